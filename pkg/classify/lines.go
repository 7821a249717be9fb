package classify

import (
	"github.com/shieldcli/shield/pkg/effect"
)

// A commandLineSpan is one command in the form that rules match: the program and its arguments, in
// commandLineText[start:end] of [ruleMatchBuffers].
type commandLineSpan struct {
	effectIndex int // index into the effects of the case
	start, end  int
	argsStart   int // where the arguments start
}

// maxMatchedCommandLines and maxAllCommandLinesBytes limit how much of a command's effects is matched. A case that exceeds them is
// reported as unexamined.
const (
	maxMatchedCommandLines  = 1024
	maxAllCommandLinesBytes = 64 << 10
)

// appendQuotedArgs appends arguments separated by spaces. Arguments for which needsNoQuotes is false are put in single quotes, so that an expression for one argument does not match inside
// another.
func appendQuotedArgs(dst []byte, args []string) []byte {
	for _, arg := range args {
		dst = append(dst, ' ')
		if needsNoQuotes(arg) {
			dst = append(dst, arg...)
			continue
		}
		dst = append(dst, '\'')
		dst = append(dst, arg...)
		dst = append(dst, '\'')
	}
	return dst
}

// needsNoQuotes reports whether [appendQuotedArgs] writes a word without quotes: the word is not empty, and
// contains no white space, no quotes or backquotes, and none of the characters ; | & < > ( ).
func needsNoQuotes(word string) bool {
	for i := range len(word) {
		switch word[i] {
		case ' ', '\t', '\n', '\r', '\'', '"', '`', ';', '|', '&', '<', '>', '(', ')':
			return false
		}
	}
	return word != ""
}

// tryAppendAllCommandLines appends a line for each execute effect. It returns false if some did not fit.
func (s *ruleMatchBuffers) tryAppendAllCommandLines(effects []effect.Effect) bool {
	for i := range effects {
		e := &effects[i]
		if e.Kind != effect.Execute {
			continue
		}
		size := len(e.Program)
		for _, arg := range e.Args {
			size += len(arg) + 3
		}
		if len(s.commandLineSpans) == maxMatchedCommandLines || len(s.commandLineText)+size > maxAllCommandLinesBytes {
			return false
		}
		l := commandLineSpan{effectIndex: i, start: len(s.commandLineText)}
		s.commandLineText = append(s.commandLineText, e.Program...)
		l.argsStart = len(s.commandLineText)
		s.commandLineText = appendQuotedArgs(s.commandLineText, e.Args)
		l.end = len(s.commandLineText)
		s.commandLineSpans = append(s.commandLineSpans, l)
	}
	return true
}
