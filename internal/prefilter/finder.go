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
	prefixes       []string    // in lower case and order; every match begins with one of them
	prefixIndex    [257]uint16 // for each byte, where those begin in begins that begin with it or what follows it
	atWordBoundary bool        // a match begins at a word boundary
	atLineStart    bool        // a match begins where a line does, and begins, unless it is empty, are behind blanks

	maxMatchBytes int // bytes of the longest match, or more; -1 if there is none, or if anchoredRegexp also matches what is no match

	anchoredRegexp func() *regexp.Regexp // the expression at the start of a text; nil if a match may begin anywhere
	fullRegexp     func() *regexp.Regexp
}

// minCandidateBytes is how many bytes are read at least in places where a match may begin,
// before the expression is rather tried on the whole text.
const minCandidateBytes = 16 << 10

// NewFinder returns the Finder of an expression, which must be valid.
func NewFinder(expr string) *Finder {
	f := &Finder{fullRegexp: Lazy(expr)}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	f.maxMatchBytes = -1
	re = re.Simplify()
	if words, _ := startConditions(re); f.findStarts(re) {
		if (f.atWordBoundary || !words) && !hasOperator(re, syntax.OpBeginText) && !hasOperator(re, syntax.OpBeginLine) {
			f.maxMatchBytes = longestMatch(re)
		}
		f.anchoredRegexp = Lazy(`\A(?:` + expr + `)`)
	}
	return f
}

// findStarts finds out where a match may begin, and reports whether that is anywhere
// in particular.
func (f *Finder) findStarts(re *syntax.Regexp) bool {
	if re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpBeginLine {
		f.atLineStart = true
		rest := re.Sub[1:]
		if rest[0].Op == syntax.OpStar && matchesOneBlank(rest[0].Sub[0]) {
			rest = rest[1:]
		}
		f.prefixes = matchPrefixes(&syntax.Regexp{Op: syntax.OpConcat, Sub: rest})
		if slices.ContainsFunc(f.prefixes, func(s string) bool { return s == "" || isBlank(s[0]) || s[0] == '\n' }) {
			f.prefixes = nil
		}
		f.noteFirstBytes()
		return true
	}
	f.prefixes = matchPrefixes(re)
	f.atWordBoundary, _ = startsAtBoundary(re)
	words, _ := startConditions(re)
	for _, s := range f.prefixes {
		// What is before a match is not seen there: a boundary before a letter
		// is one at the start of a text, too, and no other is.
		if s == "" || words && !isWordByte(s[0]) {
			return false
		}
	}
	f.noteFirstBytes()
	return len(f.prefixes) > 0 && !hasOperator(re, syntax.OpNoWordBoundary)
}

// noteFirstBytes sorts begins, and notes where those of each byte are.
func (f *Finder) noteFirstBytes() {
	sorted.Strings(f.prefixes)
	f.prefixes = slices.CompactFunc(f.prefixes, func(a, b string) bool { return strings.HasPrefix(b, a) })
	i := 0
	for c := range 256 {
		f.prefixIndex[c] = uint16(i)
		for i < len(f.prefixes) && f.prefixes[i][0] == byte(c) {
			i++
		}
	}
	f.prefixIndex[256] = uint16(i)
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

// hasOperator reports whether an operator is in an expression.
func hasOperator(re *syntax.Regexp, op syntax.Op) bool {
	if re.Op == op {
		return true
	}
	for _, sub := range re.Sub {
		if hasOperator(sub, op) {
			return true
		}
	}
	return false
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

// Match reports whether the expression matches in a text, and how many bytes it has
// read to know that.
func (f *Finder) Match(text string) (found bool, read int) {
	if f.anchoredRegexp == nil || len(f.prefixes) > 0 && (strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a")) { // other cases of s and k
		return f.fullRegexp().MatchString(text), len(text)
	}
	// Each try may read the rest of the text. All of them together must not take
	// longer than the whole text does.
	most := 2*len(text) + minCandidateBytes
	for i := f.nextCandidate(text, 0); i >= 0; i = f.nextCandidate(text, i+1) {
		r := countingReader{text: text[i:]}
		hit := f.anchoredRegexp().MatchReader(&r)
		if read += r.offset + 1; hit || read > most {
			return f.fullRegexp().MatchString(text), read + len(text)
		}
	}
	return false, read
}

// FindAll returns what [regexp.Regexp.FindAllStringSubmatchIndex] does for all matches in a text. Where matches begin
// with known texts and are not long, only what may be a match is read, which package regexp does in less time than it
// takes for a long text.
func (f *Finder) FindAll(text string) [][]int {
	if f.anchoredRegexp == nil || f.maxMatchBytes < 0 || f.maxMatchBytes > maxWindowBytes || strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a") {
		if found, _ := f.Match(text); !found {
			return nil
		}
		return f.fullRegexp().FindAllStringSubmatchIndex(text, -1)
	}
	var found [][]int
	left := 2*len(text) + minCandidateBytes
	for i := f.nextCandidate(text, 0); i >= 0; {
		window := text[i:min(len(text), i+f.maxMatchBytes+utf8.UTFMax)] // with what is behind the longest match
		if left -= len(window); left < 0 {
			return f.fullRegexp().FindAllStringSubmatchIndex(text, -1)
		}
		m := f.anchoredRegexp().FindStringSubmatchIndex(window)
		if m == nil {
			i = f.nextCandidate(text, i+1)
			continue
		}
		for g := range m {
			if m[g] >= 0 {
				m[g] += i
			}
		}
		found = append(found, m)
		i = f.nextCandidate(text, m[1])
	}
	return found
}

// maxWindowBytes is the length of the longest match that [Finder.FindAll] looks for by itself, in bytes.
const maxWindowBytes = 4 << 10

// longestMatch returns how many bytes a match has at most, or more than that; -1 if there is no bound.
func longestMatch(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpQuest, syntax.OpCapture:
		return longestMatch(re.Sub[0])
	case syntax.OpRepeat:
		once := longestMatch(re.Sub[0])
		if once < 0 || re.Max < 0 {
			return -1
		}
		return once * re.Max
	case syntax.OpConcat, syntax.OpAlternate:
		n := 0
		for _, sub := range re.Sub {
			once := longestMatch(sub)
			if once < 0 {
				return -1
			}
			if re.Op == syntax.OpConcat {
				n += once
			} else {
				n = max(n, once)
			}
		}
		return n
	}
	return 0 // it matches no text
}

// A countingReader hands out a text and knows how much of it was asked for.
type countingReader struct {
	text   string
	offset int
}

func (r *countingReader) ReadRune() (c rune, size int, err error) {
	if r.offset == len(r.text) {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRuneInString(r.text[r.offset:])
	r.offset += size
	return c, size, nil
}

// nextCandidate returns the next place from an index on where a match may begin, or -1.
func (f *Finder) nextCandidate(text string, from int) int {
	if f.atLineStart {
		return f.nextLineCandidate(text, from)
	}
	for i := from; i < len(text); i++ {
		if c := int(lower(text[i])); f.prefixIndex[c] != f.prefixIndex[c+1] && !(f.atWordBoundary && i > 0 && isWordByte(text[i-1])) && f.canBegin(text[i:]) {
			return i
		}
	}
	return -1
}

// nextLineCandidate is next for a match that begins where a line does. If blanks and empty
// lines may be before its first letter, it also begins at the line of that letter.
func (f *Finder) nextLineCandidate(text string, from int) int {
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
		if len(f.prefixes) == 0 || at < len(text) && f.canBegin(text[at:]) {
			return from
		}
	}
}

// canBegin reports whether a text, which is not empty, begins as a match does.
func (f *Finder) canBegin(text string) bool {
	c := int(lower(text[0]))
	for _, s := range f.prefixes[f.prefixIndex[c]:f.prefixIndex[c+1]] {
		if len(text) >= len(s) && equalFold(text[1:len(s)], s[1:]) {
			return true
		}
	}
	return false
}
