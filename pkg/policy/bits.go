package policy

import "math/bits"

// maxRules is the maximum number of deny and verify rules together, and of allow rules, including rules of
// presets.
const maxRules = 256

// A ruleSet is a set of rules of one list, by index.
type ruleSet [maxRules / 64]uint64

func (s *ruleSet) add(i int) { s[i>>6] |= 1 << (i & 63) }

func (s *ruleSet) union(t *ruleSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *ruleSet) intersect(t *ruleSet) {
	for i := range s {
		s[i] &= t[i]
	}
}

func (s *ruleSet) subtract(t *ruleSet) {
	for i := range s {
		s[i] &^= t[i]
	}
}

func (s *ruleSet) remove(i int)   { s[i>>6] &^= 1 << (i & 63) }
func (s *ruleSet) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

func (s *ruleSet) isEmpty() bool { return *s == ruleSet{} }

// next returns the lowest rule from i on, or -1.
func (s *ruleSet) next(i int) int {
	for w := i >> 6; w < len(s); w++ {
		word := s[w]
		if w == i>>6 {
			word &= ^uint64(0) << (i & 63)
		}
		if word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
	}
	return -1
}
