// Package suggest finds the known word that was probably meant by one that is
// unknown.
package suggest

import (
	"strconv"

	"github.com/agnivade/levenshtein"
)

// Bounds of what counts as a slip: a longer word is not compared, since the
// comparison takes time quadratic in it, and a word that differs in more places
// is another word.
const (
	maxWordBytes    = 40 // bytes
	maxEditDistance = 2
)

// Nearest returns the first of the known words that differs from a word in the
// fewest places, or "" if all differ in more than two. A known word never
// counts as near if every letter of it would have to change.
func Nearest(word string, known []string) string {
	if len(word) > maxWordBytes {
		return ""
	}
	best, least := "", maxEditDistance+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// DidYouMeanSuffix returns a question that names the nearest of the known words, to be
// put behind a message, or "" if none is near.
func DidYouMeanSuffix(word string, known []string) string {
	near := Nearest(word, known)
	if near == "" {
		return ""
	}
	return "; did you mean " + strconv.Quote(near) + "?"
}
