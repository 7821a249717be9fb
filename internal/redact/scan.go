package redact

import (
	"math"
	"math/bits"
	"regexp"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A compiledSecretPattern is the compiled pattern of a secret form. It is compiled when one of the form's
// literals first occurs in a text, since most runs need none.
type compiledSecretPattern struct {
	once       sync.Once
	finder     *prefilter.RegexpFinder // finds where the pattern can match
	exclusions []*regexp.Regexp
}

var compiledSecretPatterns [len(knowledge.SecretForms)]compiledSecretPattern

func compileSecretPattern(i int) *compiledSecretPattern {
	c := &compiledSecretPatterns[i]
	c.once.Do(func() {
		f := &knowledge.SecretForms[i]
		c.finder = prefilter.NewRegexpFinder(f.Pattern)
		for _, not := range f.NotSecretPatterns {
			c.exclusions = append(c.exclusions, regexp.MustCompile(not))
		}
	})
	return c
}

// secretPatternLiterals finds, in one scan of a text, the forms in knowledge.SecretForms of which the text
// contains a literal. The patterns of all other forms cannot match.
var secretPatternLiterals = sync.OnceValue(func() *prefilter.LiteralSet {
	list := make([][]string, len(knowledge.SecretForms))
	for i := range knowledge.SecretForms {
		list[i] = knowledge.SecretForms[i].Literals
	}
	set, _ := prefilter.TryNewLiteralSet(list)
	return set
})

// A secretPatternIndexBitset is a set of indices into the forms.
type secretPatternIndexBitset [(len(knowledge.SecretForms) + 63) / 64]uint64

// findCredentials returns the matches of all forms in s.
func findCredentials(s string, spans []secretSpan) []secretSpan {
	var set secretPatternIndexBitset
	prefilter.ScanForLiterals(secretPatternLiterals(), s, set[:])
	if set == (secretPatternIndexBitset{}) {
		return spans
	}
	look := prefilter.NewTextFeatures(s)
	for w, word := range set {
		for ; word != 0; word &= word - 1 {
			i := 64*w + bits.TrailingZeros64(word)
			f := &knowledge.SecretForms[i]
			switch {
			case !look.Satisfies(secretPatternTextNeeds(f)):
			case f.IsWithinLine:
				spans = findSecretMatchesLineByLine(s, i, spans)
			default:
				spans = findSecretPatternMatches(s, 0, len(s), i, spans)
			}
		}
	}
	return spans
}

func secretPatternTextNeeds(f *knowledge.SecretForm) prefilter.RequiredTextFeatures {
	return prefilter.RequiredTextFeatures{MinWordRunLength: f.MinWordRunLength, MinWordOrSymbolRunLength: f.MinTokenRunLength, ASCIIBytesInEveryMatch: f.RequiredASCIIChars}
}

// findSecretMatchesLineByLine returns the matches of a secret pattern that never matches across lines. It
// examines only lines that have the characters and runs of characters that the pattern needs.
func findSecretMatchesLineByLine(s string, patternIndex int, spans []secretSpan) []secretSpan {
	f := &knowledge.SecretForms[patternIndex]
	for from := 0; from < len(s); {
		to := len(s)
		if n := strings.IndexByte(s[from:], '\n'); n >= 0 {
			to = from + n
		}
		if look := prefilter.NewTextFeatures(s[from:to]); look.Satisfies(secretPatternTextNeeds(f)) {
			spans = findSecretPatternMatches(s, from, to, patternIndex, spans)
		}
		from = to + 1
	}
	return spans
}

// findSecretPatternMatches appends to spans the matches of knowledge.SecretForms[i] in s[from:to]. A match that
// ends within a word is extended to the end of the word.
func findSecretPatternMatches(s string, from, to, i int, spans []secretSpan) []secretSpan {
	f := &knowledge.SecretForms[i]
next:
	for _, m := range compileSecretPattern(i).finder.FindAll(s[from:to]) {
		start, end := m[0], m[1]
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 && m[g] < m[g+1] {
				start, end = m[g], m[g+1]
				break
			}
		}
		start, end = from+start, from+end
		if start == end || f.Entropy > 0 && entropy(s[start:end]) < f.Entropy || isRedactionMark(s[start:end]) {
			continue
		}
		for _, not := range compileSecretPattern(i).exclusions {
			if not.MatchString(s[start:end]) {
				continue next
			}
		}
		for end < len(s) && isWordByte(s[end-1]) && isWordByte(s[end]) {
			end++
		}
		spans = append(spans, newSpan(s, start, end, f.ID))
	}
	return spans
}

func isWordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// isRedactionMark reports whether a text contains a redaction mark.
func isRedactionMark(s string) bool { return strings.Contains(s, "[redacted") }

// entropy returns the Shannon entropy of the bytes of s, in bits a byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	sum, n := 0.0, float64(len(s))
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / n
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
