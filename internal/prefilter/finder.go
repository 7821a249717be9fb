package prefilter

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// A Finder says whether an expression matches in a text. It tries the expression
// only where a match may begin, since most texts have few such places; package
// regexp would try it at every byte. Goroutines may share it.
type Finder struct {
	begins []string // in lower case; every match begins with one of them
	first  [256]bool
	word   bool // a match begins at a word boundary
	line   bool // a match begins where a line does; then begins is empty

	here  *regexp.Regexp // the expression at the start of a text; nil if a match may begin anywhere
	whole func() *regexp.Regexp
}

// slack is how many bytes are read at least in places where a match may begin,
// before the expression is rather tried on the whole text.
const slack = 16 << 10

// NewFinder returns the Finder of an expression, which must be valid.
func NewFinder(expr string) *Finder {
	f := &Finder{whole: Lazy(expr)}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	if f.places(re.Simplify()) {
		f.here = regexp.MustCompile(`\A(?:` + expr + `)`)
	}
	return f
}

// places finds out where a match may begin, and reports whether that is anywhere
// in particular.
func (f *Finder) places(re *syntax.Regexp) bool {
	if re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpBeginLine {
		f.line = true
		return true
	}
	f.begins = prefixes(re)
	f.word, _ = bounded(re)
	words := has(re, syntax.OpWordBoundary)
	for _, s := range f.begins {
		// What stands before a match is not seen there: a boundary before a letter
		// is one at the start of a text, too, and no other is.
		if s == "" || words && !wordByte(s[0]) {
			return false
		}
		f.first[s[0]] = true
	}
	for c := byte('A'); c <= 'Z'; c++ {
		f.first[c] = f.first[lower(c)]
	}
	return len(f.begins) > 0 && !has(re, syntax.OpNoWordBoundary)
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

// MatchString reports whether the expression matches in a text.
func (f *Finder) MatchString(text string) bool {
	if f.here == nil || !f.line && (strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a")) { // other cases of s and k
		return f.whole().MatchString(text)
	}
	// Each try may read the rest of the text. All of them together must not take
	// longer than the whole text does.
	left := 2*len(text) + slack
	for i := f.next(text, 0); i >= 0; i = f.next(text, i+1) {
		if left -= len(text) - i + 1; left < 0 || f.here.MatchString(text[i:]) {
			return f.whole().MatchString(text)
		}
	}
	return false
}

// next returns the next place from an index on where a match may begin, or -1.
func (f *Finder) next(text string, from int) int {
	if f.line {
		if from == 0 {
			return 0
		}
		if n := strings.IndexByte(text[from-1:], '\n'); n >= 0 {
			return from + n
		}
		return -1
	}
	for i := from; i < len(text); i++ {
		if !f.first[text[i]] || f.word && i > 0 && wordByte(text[i-1]) {
			continue
		}
		for _, s := range f.begins {
			if len(text)-i >= len(s) && equal(text[i:i+len(s)], s) {
				return i
			}
		}
	}
	return -1
}
