package prefilter

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// RequiredTextFeatures are properties that a text must have for an expression to match in it, in addition to
// containing a literal. [TextFeatures] are the properties that a text has.
type RequiredTextFeatures struct {
	MinWordRunLength         int    // length of a run of letters, digits, "_" and "-"
	MinWordOrSymbolRunLength int    // least length of a run of letters, digits and the characters _-+/=.~%
	ASCIIBytesInEveryMatch   string // ASCII characters that are in every match
	MatchesWithinOneLine     bool   // no match contains a line break or depends on the text of other lines
}

// RequiredTextFeaturesOf returns the needs of an expression. Non-ASCII characters count as part of a run, because
// some of them match ASCII letters when case is ignored.
func RequiredTextFeaturesOf(expr string) (RequiredTextFeatures, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return RequiredTextFeatures{}, err
	}
	n := RequiredTextFeatures{MinWordRunLength: computeMinRuns(re, wordByteClass).longest, MinWordOrSymbolRunLength: computeMinRuns(re, wordOrSymbolByteClass).longest, MatchesWithinOneLine: matchesWithinLine(re)}
	set := bytesInEveryMatch(re)
	for c := range byte(128) {
		if set.contains(c) {
			n.ASCIIBytesInEveryMatch += string(rune(c))
		}
	}
	return n, nil
}

// Classes of bytes of which credentials consist, as bits. Each byte in wordByteClass is also in
// wordOrSymbolByteClass.
const (
	wordByteClass = 1 << iota
	wordOrSymbolByteClass
)

// byteClasses holds the classes of each byte.
var byteClasses = func() (classes [256]uint8) {
	for c := range classes {
		switch {
		case c >= 0x80, '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '-':
			classes[c] = wordByteClass | wordOrSymbolByteClass
		case strings.IndexByte("+/=.~%", byte(c)) >= 0:
			classes[c] = wordOrSymbolByteClass
		}
	}
	return classes
}()

func inClass(r rune, class uint8) bool { return r >= 0x80 || byteClasses[r]&class != 0 }

// minByteClassRunLengths describes the runs in every match of an expression. A run is a sequence of bytes of one
// class, such as wordByteClass. The lengths are minimum lengths: of the run at the start of a match, of the run
// at its end, and of its longest run.
type minByteClassRunLengths struct {
	runAtStart, runAtEnd, longest int
	isWholeMatchOneRun            bool // every match consists only of bytes of the class for which the lengths were computed
}

func newWholeMatchRun(n int) minByteClassRunLengths { return minByteClassRunLengths{n, n, n, true} }

// concat returns the run lengths for an expression that consists of the expression of a followed by
// that of b.
func (a minByteClassRunLengths) concat(b minByteClassRunLengths) minByteClassRunLengths {
	out := minByteClassRunLengths{a.runAtStart, b.runAtEnd, max(a.longest, b.longest, a.runAtEnd+b.runAtStart), a.isWholeMatchOneRun && b.isWholeMatchOneRun}
	if a.isWholeMatchOneRun {
		out.runAtStart = a.longest + b.runAtStart
	}
	if b.isWholeMatchOneRun {
		out.runAtEnd = a.runAtEnd + b.longest
	}
	return out
}

func computeMinRuns(re *syntax.Regexp, class uint8) minByteClassRunLengths {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return newWholeMatchRun(0)
	case syntax.OpLiteral:
		out := newWholeMatchRun(0)
		for _, r := range re.Rune {
			one := minByteClassRunLengths{}
			if inClass(r, class) {
				one = newWholeMatchRun(1)
			}
			out = out.concat(one)
		}
		return out
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= min(re.Rune[i+1], 0x7f); r++ {
				if !inClass(r, class) {
					return minByteClassRunLengths{}
				}
			}
		}
		return newWholeMatchRun(1)
	case syntax.OpCapture:
		return computeMinRuns(re.Sub[0], class)
	case syntax.OpStar, syntax.OpQuest:
		return repeatRuns(computeMinRuns(re.Sub[0], class), 0)
	case syntax.OpPlus:
		return repeatRuns(computeMinRuns(re.Sub[0], class), 1)
	case syntax.OpRepeat:
		return repeatRuns(computeMinRuns(re.Sub[0], class), re.Min)
	case syntax.OpConcat:
		out := newWholeMatchRun(0)
		for _, sub := range re.Sub {
			out = out.concat(computeMinRuns(sub, class))
		}
		return out
	case syntax.OpAlternate:
		out := computeMinRuns(re.Sub[0], class)
		for _, sub := range re.Sub[1:] {
			b := computeMinRuns(sub, class)
			out = minByteClassRunLengths{min(out.runAtStart, b.runAtStart), min(out.runAtEnd, b.runAtEnd), min(out.longest, b.longest), out.isWholeMatchOneRun && b.isWholeMatchOneRun}
		}
		return out
	}
	return minByteClassRunLengths{}
}

// repeatRuns returns the minimum run lengths for n or more repetitions of an expression. The parameter once has
// the minimum run lengths of a single repetition.
func repeatRuns(once minByteClassRunLengths, n int) minByteClassRunLengths {
	if n == 0 {
		return minByteClassRunLengths{isWholeMatchOneRun: once.isWholeMatchOneRun}
	}
	out := once
	for range n - 1 {
		out = out.concat(once)
	}
	return out
}

// A byteSet is a set of ASCII characters.
type byteSet [2]uint64

func (s byteSet) contains(c byte) bool { return s[c/64]&(1<<(c%64)) != 0 }

// bytesInEveryMatch returns the characters that are in every match.
func bytesInEveryMatch(re *syntax.Regexp) (set byteSet) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
			if r < 0x80 && (!letter || re.Flags&syntax.FoldCase == 0) {
				set[r/64] |= 1 << (r % 64)
			}
		}
	case syntax.OpCharClass:
		if len(re.Rune) == 2 && re.Rune[0] == re.Rune[1] && re.Rune[0] < 0x80 {
			set[re.Rune[0]/64] |= 1 << (re.Rune[0] % 64)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return bytesInEveryMatch(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return bytesInEveryMatch(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			b := bytesInEveryMatch(sub)
			set[0], set[1] = set[0]|b[0], set[1]|b[1]
		}
	case syntax.OpAlternate:
		set = bytesInEveryMatch(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			b := bytesInEveryMatch(sub)
			set[0], set[1] = set[0]&b[0], set[1]&b[1]
		}
	}
	return set
}

// matchesWithinLine reports whether an expression finds the same matches in the separate lines of a
// text as in the whole text: it matches no line feed, and does not test for the start or the end of
// the text.
func matchesWithinLine(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return false
	case syntax.OpLiteral:
		return !slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return false
			}
		}
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !matchesWithinLine(sub) })
}

// A TextFeatures describes a text for a comparison with [RequiredTextFeatures]: which ASCII characters it
// contains, and how long its longest runs of word characters and of token characters are.
type TextFeatures struct {
	longestWordRun, longestWordOrSymbolRun int
	asciiBytes                             byteSet
}

// NewTextFeatures returns the features of a text.
func NewTextFeatures(text string) (l TextFeatures) {
	n, w := 0, 0
	for i := range len(text) {
		c := text[i]
		if c < 0x80 {
			l.asciiBytes[c/64] |= 1 << (c % 64)
		}
		switch byteClasses[c] {
		case wordByteClass | wordOrSymbolByteClass:
			n, w = n+1, w+1
		case wordOrSymbolByteClass:
			l.longestWordRun, n, w = max(l.longestWordRun, n), 0, w+1
		default:
			l.longestWordRun, l.longestWordOrSymbolRun, n, w = max(l.longestWordRun, n), max(l.longestWordOrSymbolRun, w), 0, 0
		}
	}
	l.longestWordRun, l.longestWordOrSymbolRun = max(l.longestWordRun, n), max(l.longestWordOrSymbolRun, w)
	return l
}

// Satisfies reports whether the text holds all that an expression needs.
func (l *TextFeatures) Satisfies(n RequiredTextFeatures) bool {
	if l.longestWordRun < n.MinWordRunLength || l.longestWordOrSymbolRun < n.MinWordOrSymbolRunLength {
		return false
	}
	for i := range len(n.ASCIIBytesInEveryMatch) {
		if !l.asciiBytes.contains(n.ASCIIBytesInEveryMatch[i]) {
			return false
		}
	}
	return true
}
