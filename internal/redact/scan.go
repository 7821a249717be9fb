package redact

import (
	"math"
	"regexp"
	"strings"
	"sync"
)

// A rule is one kind of credential; rules.yaml says what the fields mean.
type rule struct {
	id       string
	keywords []string // in lower case
	pattern  string
	entropy  float64
}

// patterns are compiled when a keyword of theirs occurs for the first time:
// most programs meet none of them.
var patterns [len(rules)]struct {
	once sync.Once
	re   *regexp.Regexp
}

func pattern(i int) *regexp.Regexp {
	p := &patterns[i]
	p.once.Do(func() { p.re = regexp.MustCompile(rules[i].pattern) })
	return p.re
}

// A ruleSet is a set of indices into rules.
type ruleSet [(len(rules) + 63) / 64]uint64

// An index finds keywords by their first two bytes.
type index struct {
	pairs [1 << 16 / 64]uint64 // which pairs begin a keyword
	words map[uint16][]keyword
}

type keyword struct {
	text string
	rule int
}

var keywords = sync.OnceValue(func() *index {
	x := &index{words: make(map[uint16][]keyword, 2*len(rules))}
	for i := range rules {
		for _, w := range rules[i].keywords {
			p := pair(w[0], w[1])
			x.pairs[p/64] |= 1 << (p % 64)
			x.words[p] = append(x.words[p], keyword{w, i})
		}
	}
	return x
})

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// candidates returns the rules that have a keyword in s, in one pass.
func candidates(s string) (set ruleSet, any bool) {
	if len(s) < 3 {
		return set, false
	}
	x := keywords()
	a := lower(s[0])
	for i := 1; i < len(s); i++ {
		b := lower(s[i])
		if p := pair(a, b); x.pairs[p/64]&(1<<(p%64)) != 0 {
			for _, w := range x.words[p] {
				if set[w.rule/64]&(1<<(w.rule%64)) == 0 && hasFold(s[i-1:], w.text) {
					set[w.rule/64] |= 1 << (w.rule % 64)
					any = true
				}
			}
		}
		a = b
	}
	return set, any
}

func hasFold(s, prefix string) bool {
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

// credentials returns what the rules find in s as it stands.
func credentials(s string, spans []span) []span {
	set, any := candidates(s)
	if !any {
		return spans
	}
	for i := range rules {
		if set[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		for _, m := range pattern(i).FindAllStringSubmatchIndex(s, -1) {
			start, end := m[0], m[1]
			if len(m) > 2 && m[2] >= 0 {
				start, end = m[2], m[3]
			}
			if start == end || rules[i].entropy > 0 && entropy(s[start:end]) < rules[i].entropy || marked(s[start:end]) {
				continue
			}
			spans = append(spans, span{start, end, rules[i].id})
		}
	}
	return spans
}

// marked says whether text is what redaction itself leaves.
func marked(s string) bool { return strings.Contains(s, "[redacted") }

// entropy returns the Shannon entropy of the bytes of s, in bits a byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	bits, n := 0.0, float64(len(s))
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / n
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
