package prefilter

import (
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/sorted"
)

// A Finder says whether an expression matches in a text. It tries the expression
// only where a match may begin, since most texts have few such places; package
// regexp would try it at every byte. Goroutines may share it.
type Finder struct {
	begins []string    // in lower case and order; every match begins with one of them
	first  [257]uint16 // for each byte, where those begin in begins that begin with it or what follows it
	word   bool        // a match begins at a word boundary
	line   bool        // a match begins where a line does, and begins, unless it is empty, are behind blanks

	here  func() *regexp.Regexp // the expression at the start of a text; nil if a match may begin anywhere
	whole func() *regexp.Regexp
}

// minCandidateBytes is how many bytes are read at least in places where a match may begin,
// before the expression is rather tried on the whole text.
const minCandidateBytes = 16 << 10

// NewFinder returns the Finder of an expression, which must be valid.
func NewFinder(expr string) *Finder {
	f := &Finder{whole: Lazy(expr)}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	if f.findStarts(re.Simplify()) {
		f.here = Lazy(`\A(?:` + expr + `)`)
	}
	return f
}

// findStarts finds out where a match may begin, and reports whether that is anywhere
// in particular.
func (f *Finder) findStarts(re *syntax.Regexp) bool {
	if re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpBeginLine {
		f.line = true
		rest := re.Sub[1:]
		if rest[0].Op == syntax.OpStar && matchesOneBlank(rest[0].Sub[0]) {
			rest = rest[1:]
		}
		f.begins = prefixes(&syntax.Regexp{Op: syntax.OpConcat, Sub: rest})
		if slices.ContainsFunc(f.begins, func(s string) bool { return s == "" || isBlank(s[0]) || s[0] == '\n' }) {
			f.begins = nil
		}
		f.noteFirstBytes()
		return true
	}
	f.begins = prefixes(re)
	f.word, _ = startsAtBoundary(re)
	words, _ := startConditions(re)
	for _, s := range f.begins {
		// What is before a match is not seen there: a boundary before a letter
		// is one at the start of a text, too, and no other is.
		if s == "" || words && !wordByte(s[0]) {
			return false
		}
	}
	f.noteFirstBytes()
	return len(f.begins) > 0 && !has(re, syntax.OpNoWordBoundary)
}

// noteFirstBytes sorts begins, and notes where those of each byte are.
func (f *Finder) noteFirstBytes() {
	sorted.Strings(f.begins)
	f.begins = slices.CompactFunc(f.begins, func(a, b string) bool { return strings.HasPrefix(b, a) })
	i := 0
	for c := range 256 {
		f.first[c] = uint16(i)
		for i < len(f.begins) && f.begins[i][0] == byte(c) {
			i++
		}
	}
	f.first[256] = uint16(i)
}

// matchesOneBlank reports whether an expression matches nothing but one blank or line break.
func matchesOneBlank(re *syntax.Regexp) bool {
	if re.Op != syntax.OpCharClass {
		return false
	}
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if r >= 0x80 || !isBlank(byte(r)) && r != '\n' {
				return false
			}
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\f' }

// startConditions reports whether an expression may ask for a word boundary where its match
// begins, and whether it may match nothing.
func startConditions(re *syntax.Regexp) (boundary, nothing bool) {
	switch re.Op {
	case syntax.OpWordBoundary:
		return true, true
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false, false
	case syntax.OpStar, syntax.OpQuest:
		boundary, _ = startConditions(re.Sub[0])
		return boundary, true
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			b, n := startConditions(sub)
			if boundary = boundary || b; !n {
				return boundary, false
			}
		}
		return boundary, true
	case syntax.OpAlternate, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			b, n := startConditions(sub)
			boundary, nothing = boundary || b, nothing || n
		}
		return boundary, nothing
	}
	return false, true
}

// has reports whether an operator is in an expression.
func has(re *syntax.Regexp, op syntax.Op) bool {
	if re.Op == op {
		return true
	}
	for _, sub := range re.Sub {
		if has(sub, op) {
			return true
		}
	}
	return false
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

// Match reports whether the expression matches in a text, and how many bytes it has
// read to know that.
func (f *Finder) Match(text string) (found bool, read int) {
	if f.here == nil || len(f.begins) > 0 && (strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a")) { // other cases of s and k
		return f.whole().MatchString(text), len(text)
	}
	// Each try may read the rest of the text. All of them together must not take
	// longer than the whole text does.
	most := 2*len(text) + minCandidateBytes
	for i := f.next(text, 0); i >= 0; i = f.next(text, i+1) {
		r := reader{text: text[i:]}
		hit := f.here().MatchReader(&r)
		if read += r.at + 1; hit || read > most {
			return f.whole().MatchString(text), read + len(text)
		}
	}
	return false, read
}

// Regexp returns the expression.
func (f *Finder) Regexp() *regexp.Regexp { return f.whole() }

// A reader hands out a text and knows how much of it was asked for.
type reader struct {
	text string
	at   int
}

func (r *reader) ReadRune() (c rune, size int, err error) {
	if r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRuneInString(r.text[r.at:])
	r.at += size
	return c, size, nil
}

// next returns the next place from an index on where a match may begin, or -1.
func (f *Finder) next(text string, from int) int {
	if f.line {
		return f.nextLine(text, from)
	}
	for i := from; i < len(text); i++ {
		if c := int(lower(text[i])); f.first[c] != f.first[c+1] && !(f.word && i > 0 && wordByte(text[i-1])) && f.canBegin(text[i:]) {
			return i
		}
	}
	return -1
}

// nextLine is next for a match that begins where a line does. If blanks and empty
// lines may be before its first letter, it also begins at the line of that letter.
func (f *Finder) nextLine(text string, from int) int {
	for ; ; from++ {
		if from > 0 {
			n := strings.IndexByte(text[from-1:], '\n')
			if n < 0 {
				return -1
			}
			from += n
		}
		at := from
		for at < len(text) && isBlank(text[at]) {
			at++
		}
		if len(f.begins) == 0 || at < len(text) && f.canBegin(text[at:]) {
			return from
		}
	}
}

// canBegin reports whether a text, which is not empty, begins as a match does.
func (f *Finder) canBegin(text string) bool {
	c := int(lower(text[0]))
	for _, s := range f.begins[f.first[c]:f.first[c+1]] {
		if len(text) >= len(s) && equal(text[1:len(s)], s[1:]) {
			return true
		}
	}
	return false
}
