package policy

import "math/bits"

// most is the maximum number of deny and verify rules together, and of allow rules, including rules of
// presets.
const most = 256

// A ruleSet is a set of rules of one list, by index.
type ruleSet [most / 64]uint64

func (s *ruleSet) add(i int) { s[i>>6] |= 1 << (i & 63) }

func (s *ruleSet) addAll(t *ruleSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *ruleSet) keep(t *ruleSet) {
	for i := range s {
		s[i] &= t[i]
	}
}

func (s *ruleSet) drop(t *ruleSet) {
	for i := range s {
		s[i] &^= t[i]
	}
}

func (s *ruleSet) take(i int)     { s[i>>6] &^= 1 << (i & 63) }
func (s *ruleSet) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

func (s *ruleSet) empty() bool { return *s == ruleSet{} }

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
