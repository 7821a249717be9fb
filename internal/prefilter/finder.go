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

// A RegexpFinder says whether an expression matches in a text. It tries the expression
// only where a match may begin, since most texts have few such places; package
// regexp would try it at every byte. Goroutines may share it.
type RegexpFinder struct {
	prefixes                   []string    // sorted, in lower case; every match begins with one of them, in any letter case
	prefixIndex                [257]uint16 // prefixes that begin with byte c are prefixes[prefixIndex[c]:prefixIndex[c+1]]
	matchesBeginAtWordBoundary bool        // a match begins at a word boundary
	matchesBeginAtLineStart    bool        // a match begins at the start of a line; if there are prefixes, blanks may precede the prefix in the line

	maxMatchBytes int // upper bound of a match's length; -1 if none, or if anchoredRegexp can match where fullRegexp does not

	anchoredRegexp func() *regexp.Regexp // the expression at the start of a text; nil if a match may begin anywhere
	fullRegexp     func() *regexp.Regexp
}

// minMatchAttemptBudgetBytes is how many bytes may be read at positions where a match can begin, in addition
// to twice the length of the text. Beyond that, the expression is run once on the whole text
// instead.
const minMatchAttemptBudgetBytes = 16 << 10

// NewRegexpFinder returns the Finder of an expression, which must be valid.
func NewRegexpFinder(expr string) *RegexpFinder {
	f := &RegexpFinder{fullRegexp: LazyRegexp(expr)}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	f.maxMatchBytes = -1
	re = re.Simplify()
	if words, _ := mayStartAtBoundaryOrMatchEmpty(re); f.tryDeriveMatchStartConditions(re) {
		if (f.matchesBeginAtWordBoundary || !words) && !hasOperator(re, syntax.OpBeginText) && !hasOperator(re, syntax.OpBeginLine) {
			f.maxMatchBytes = longestMatchBytes(re)
		}
		f.anchoredRegexp = LazyRegexp(`\A(?:` + expr + `)`)
	}
	return f
}

// tryDeriveMatchStartConditions determines how matches begin, and reports whether a search can skip the other
// positions of a text: every match begins at a line start, or with one of some known literals.
func (f *RegexpFinder) tryDeriveMatchStartConditions(re *syntax.Regexp) bool {
	if re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpBeginLine {
		f.matchesBeginAtLineStart = true
		rest := re.Sub[1:]
		if rest[0].Op == syntax.OpStar && matchesOneBlank(rest[0].Sub[0]) {
			rest = rest[1:]
		}
		f.prefixes = prefixesOfMatches(&syntax.Regexp{Op: syntax.OpConcat, Sub: rest})
		if slices.ContainsFunc(f.prefixes, func(s string) bool { return s == "" || isBlank(s[0]) || s[0] == '\n' }) {
			f.prefixes = nil
		}
		f.buildPrefixIndex()
		return true
	}
	f.prefixes = prefixesOfMatches(re)
	f.matchesBeginAtWordBoundary, _ = matchesStartAtWordBoundary(re)
	words, _ := mayStartAtBoundaryOrMatchEmpty(re)
	for _, s := range f.prefixes {
		// anchoredRegexp runs on the rest of the text from a candidate match on and does not see
		// the byte before it. A word boundary at its start matches only if the first byte is a word
		// character.
		if s == "" || words && !isWordByte(s[0]) {
			return false
		}
	}
	f.buildPrefixIndex()
	return len(f.prefixes) > 0 && !hasOperator(re, syntax.OpNoWordBoundary)
}

// buildPrefixIndex sorts the prefixes, drops those that begin with another prefix, and indexes them
// by their first byte.
func (f *RegexpFinder) buildPrefixIndex() {
	sorted.SortStrings(f.prefixes)
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

// mayStartAtBoundaryOrMatchEmpty reports whether an expression may ask for a word boundary where its match
// begins, and whether it may match nothing.
func mayStartAtBoundaryOrMatchEmpty(re *syntax.Regexp) (mayNeedWordBoundary, mayMatchEmpty bool) {
	switch re.Op {
	case syntax.OpWordBoundary:
		return true, true
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false, false
	case syntax.OpStar, syntax.OpQuest:
		mayNeedWordBoundary, _ = mayStartAtBoundaryOrMatchEmpty(re.Sub[0])
		return mayNeedWordBoundary, true
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			b, n := mayStartAtBoundaryOrMatchEmpty(sub)
			if mayNeedWordBoundary = mayNeedWordBoundary || b; !n {
				return mayNeedWordBoundary, false
			}
		}
		return mayNeedWordBoundary, true
	case syntax.OpAlternate, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			b, n := mayStartAtBoundaryOrMatchEmpty(sub)
			mayNeedWordBoundary, mayMatchEmpty = mayNeedWordBoundary || b, mayMatchEmpty || n
		}
		return mayNeedWordBoundary, mayMatchEmpty
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
func (f *RegexpFinder) Match(text string) (found bool, bytesRead int) {
	if f.anchoredRegexp == nil || len(f.prefixes) > 0 && (strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a")) { // other cases of s and k
		return f.fullRegexp().MatchString(text), len(text)
	}
	// Each attempt to match may read the rest of the text. If all attempts together read more bytes
	// than this limit, one scan of the whole text is faster.
	most := 2*len(text) + minMatchAttemptBudgetBytes
	for i := f.nextPossibleMatchStart(text, 0); i >= 0; i = f.nextPossibleMatchStart(text, i+1) {
		r := byteCountingRuneReader{text: text[i:]}
		hit := f.anchoredRegexp().MatchReader(&r)
		if bytesRead += r.offset + 1; hit || bytesRead > most {
			return f.fullRegexp().MatchString(text), bytesRead + len(text)
		}
	}
	return false, bytesRead
}

// FindAll returns the same matches as [regexp.Regexp.FindAllStringSubmatchIndex] does with n = -1. If every
// match begins with a known literal and is short, and the expression does not test for the start of a line or of
// the text, FindAll runs the expression only at these literals: that is faster than package regexp on a long
// text.
func (f *RegexpFinder) FindAll(text string) [][]int {
	if f.anchoredRegexp == nil || f.maxMatchBytes < 0 || f.maxMatchBytes > maxFindAllMatchBytes || strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a") {
		if found, _ := f.Match(text); !found {
			return nil
		}
		return f.fullRegexp().FindAllStringSubmatchIndex(text, -1)
	}
	var found [][]int
	left := 2*len(text) + minMatchAttemptBudgetBytes
	for i := f.nextPossibleMatchStart(text, 0); i >= 0; {
		window := text[i:min(len(text), i+f.maxMatchBytes+utf8.UTFMax)] // includes the character after the longest possible match, which \b and $ need
		if left -= len(window); left < 0 {
			return f.fullRegexp().FindAllStringSubmatchIndex(text, -1)
		}
		m := f.anchoredRegexp().FindStringSubmatchIndex(window)
		if m == nil {
			i = f.nextPossibleMatchStart(text, i+1)
			continue
		}
		for g := range m {
			if m[g] >= 0 {
				m[g] += i
			}
		}
		found = append(found, m)
		i = f.nextPossibleMatchStart(text, m[1])
	}
	return found
}

// maxFindAllMatchBytes is the length of the longest match that [RegexpFinder.FindAll] looks for by itself, in bytes.
const maxFindAllMatchBytes = 4 << 10

// longestMatchBytes returns an upper bound for the length of a match in bytes, or -1 if there is none.
func longestMatchBytes(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpQuest, syntax.OpCapture:
		return longestMatchBytes(re.Sub[0])
	case syntax.OpRepeat:
		once := longestMatchBytes(re.Sub[0])
		if once < 0 || re.Max < 0 {
			return -1
		}
		return once * re.Max
	case syntax.OpConcat, syntax.OpAlternate:
		n := 0
		for _, sub := range re.Sub {
			once := longestMatchBytes(sub)
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
	return 0 // an anchor, an empty expression, or one that never matches: no bytes
}

// A byteCountingRuneReader hands out a text and knows how much of it was asked for.
type byteCountingRuneReader struct {
	text   string
	offset int
}

func (r *byteCountingRuneReader) ReadRune() (c rune, size int, err error) {
	if r.offset == len(r.text) {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRuneInString(r.text[r.offset:])
	r.offset += size
	return c, size, nil
}

// nextPossibleMatchStart returns the next place from an index on where a match may begin, or -1.
func (f *RegexpFinder) nextPossibleMatchStart(text string, from int) int {
	if f.matchesBeginAtLineStart {
		return f.nextPossibleMatchLineStart(text, from)
	}
	for i := from; i < len(text); i++ {
		if c := int(lower(text[i])); f.prefixIndex[c] != f.prefixIndex[c+1] && !(f.matchesBeginAtWordBoundary && i > 0 && isWordByte(text[i-1])) && f.startsWithMatchPrefix(text[i:]) {
			return i
		}
	}
	return -1
}

// nextPossibleMatchLineStart returns the index of the first line start at or after fromOffset at which a match
// can begin, or -1. With known prefixes, the line must begin with one of them after optional blanks, so blank
// lines are skipped: a match that begins with blank lines can also begin at the next line that is not blank.
func (f *RegexpFinder) nextPossibleMatchLineStart(text string, fromOffset int) int {
	for ; ; fromOffset++ {
		if fromOffset > 0 {
			n := strings.IndexByte(text[fromOffset-1:], '\n')
			if n < 0 {
				return -1
			}
			fromOffset += n
		}
		at := fromOffset
		for at < len(text) && isBlank(text[at]) {
			at++
		}
		if len(f.prefixes) == 0 || at < len(text) && f.startsWithMatchPrefix(text[at:]) {
			return fromOffset
		}
	}
}

// startsWithMatchPrefix reports whether a text, which is not empty, begins as a match does.
func (f *RegexpFinder) startsWithMatchPrefix(text string) bool {
	c := int(lower(text[0]))
	for _, s := range f.prefixes[f.prefixIndex[c]:f.prefixIndex[c+1]] {
		if len(text) >= len(s) && equalsLowerCaseLiteral(text[1:len(s)], s[1:]) {
			return true
		}
	}
	return false
}
