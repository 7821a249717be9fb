package prefilter

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// Needs are what a text must hold for an expression to match in it, beside a
// literal. A [TextFeatures] at a text says whether it does.
type Needs struct {
	Narrow int    // length of a run of letters, digits, "_" and "-"
	Wide   int    // length of a run of those and "+/=.~%"
	Bytes  string // ASCII characters that are in every match
	Line   bool   // no match reaches beyond a line, nor depends on what is there
}

// NeedsOf returns the needs of an expression. What is not ASCII counts as a part of
// a run, so that other cases of letters do.
func NeedsOf(expr string) (Needs, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return Needs{}, err
	}
	n := Needs{Narrow: runsOf(re, narrow).best, Wide: runsOf(re, wide).best, Line: inLine(re)}
	set := bytesOf(re)
	for c := range byte(128) {
		if set.has(c) {
			n.Bytes += string(rune(c))
		}
	}
	return n, nil
}

// Two classes of bytes, of which credentials are runs; wide is all of both.
const (
	narrow = 1 << iota
	wide
)

// classOf holds the classes of each byte.
var classOf = func() (classes [256]uint8) {
	for c := range classes {
		switch {
		case c >= 0x80, '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '-':
			classes[c] = narrow | wide
		case strings.IndexByte("+/=.~%", byte(c)) >= 0:
			classes[c] = wide
		}
	}
	return classes
}()

func inClass(r rune, class uint8) bool { return r >= 0x80 || classOf[r]&class != 0 }

// minRuns are the least lengths of runs of one class in whatever an expression
// matches: at the start, at the end and anywhere.
type minRuns struct {
	start, end, best int
	all              bool // a match is nothing but one run
}

func wholeRun(n int) minRuns { return minRuns{n, n, n, true} }

// concat returns the runs of a match of one expression after the other.
func (a minRuns) concat(b minRuns) minRuns {
	out := minRuns{a.start, b.end, max(a.best, b.best, a.end+b.start), a.all && b.all}
	if a.all {
		out.start = a.best + b.start
	}
	if b.all {
		out.end = a.end + b.best
	}
	return out
}

func runsOf(re *syntax.Regexp, class uint8) minRuns {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return wholeRun(0)
	case syntax.OpLiteral:
		out := wholeRun(0)
		for _, r := range re.Rune {
			one := minRuns{}
			if inClass(r, class) {
				one = wholeRun(1)
			}
			out = out.concat(one)
		}
		return out
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= min(re.Rune[i+1], 0x7f); r++ {
				if !inClass(r, class) {
					return minRuns{}
				}
			}
		}
		return wholeRun(1)
	case syntax.OpCapture:
		return runsOf(re.Sub[0], class)
	case syntax.OpStar, syntax.OpQuest:
		return repeatRuns(runsOf(re.Sub[0], class), 0)
	case syntax.OpPlus:
		return repeatRuns(runsOf(re.Sub[0], class), 1)
	case syntax.OpRepeat:
		return repeatRuns(runsOf(re.Sub[0], class), re.Min)
	case syntax.OpConcat:
		out := wholeRun(0)
		for _, sub := range re.Sub {
			out = out.concat(runsOf(sub, class))
		}
		return out
	case syntax.OpAlternate:
		out := runsOf(re.Sub[0], class)
		for _, sub := range re.Sub[1:] {
			b := runsOf(sub, class)
			out = minRuns{min(out.start, b.start), min(out.end, b.end), min(out.best, b.best), out.all && b.all}
		}
		return out
	}
	return minRuns{}
}

// repeatRuns returns the runs of what matches n times or more.
func repeatRuns(once minRuns, n int) minRuns {
	if n == 0 {
		return minRuns{all: once.all}
	}
	out := once
	for range n - 1 {
		out = out.concat(once)
	}
	return out
}

// A byteSet is a set of ASCII characters.
type byteSet [2]uint64

func (s byteSet) has(c byte) bool { return s[c/64]&(1<<(c%64)) != 0 }

// bytesOf returns the characters that are in every match.
func bytesOf(re *syntax.Regexp) (set byteSet) {
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
		return bytesOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return bytesOf(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			b := bytesOf(sub)
			set[0], set[1] = set[0]|b[0], set[1]|b[1]
		}
	case syntax.OpAlternate:
		set = bytesOf(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			b := bytesOf(sub)
			set[0], set[1] = set[0]&b[0], set[1]&b[1]
		}
	}
	return set
}

// inLine reports whether an expression matches in a line what it matches there in
// the whole text: it matches no line end, and asks for no end of the text.
func inLine(re *syntax.Regexp) bool {
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
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !inLine(sub) })
}

// A TextFeatures is what a text holds that an expression may need.
type TextFeatures struct {
	narrow, wide int
	has          byteSet
}

// NewLook looks at a text.
func NewLook(text string) (l TextFeatures) {
	n, w := 0, 0
	for i := range len(text) {
		c := text[i]
		if c < 0x80 {
			l.has[c/64] |= 1 << (c % 64)
		}
		switch classOf[c] {
		case narrow | wide:
			n, w = n+1, w+1
		case wide:
			l.narrow, n, w = max(l.narrow, n), 0, w+1
		default:
			l.narrow, l.wide, n, w = max(l.narrow, n), max(l.wide, w), 0, 0
		}
	}
	l.narrow, l.wide = max(l.narrow, n), max(l.wide, w)
	return l
}

// Meets reports whether the text holds all that an expression needs.
func (l *TextFeatures) Meets(n Needs) bool {
	if l.narrow < n.Narrow || l.wide < n.Wide {
		return false
	}
	for i := range len(n.Bytes) {
		if !l.has.has(n.Bytes[i]) {
			return false
		}
	}
	return true
}
