// Package sorted sorts with code that is compiled once. The functions of package slices are compiled
// for each type of elements in each package that sorts them, 25 KB of code at a time.
package sorted

import (
	"cmp"
	"slices"
)

// SortStrings sorts texts in place.
//
//go:noinline
func SortStrings(s []string) { slices.Sort(s) }

// Keys returns the keys of a map in order; nil if there are none.
func Keys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	SortStrings(keys)
	return keys
}

// SortStableBy sorts elements in place. compare returns less than 0 if a comes before b; elements for which it returns
// 0 keep their order.
func SortStableBy[E any](s []E, compare func(a, b E) int) {
	if len(s) < 2 {
		return
	}
	out := make([]E, len(s))
	for i, from := range stableSortPermutation(len(s), func(i, j int) int { return compare(s[i], s[j]) }) {
		out[i] = s[from]
	}
	copy(s, out)
}

// stableSortPermutation returns the numbers below n, sorted by compare. Numbers that compare as equal are in
// ascending order.
//
//go:noinline
func stableSortPermutation(n int, compare func(i, j int) int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(i, j int) int { return cmp.Or(compare(i, j), i-j) })
	return out
}
