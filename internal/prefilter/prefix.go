package prefilter

import (
	"regexp/syntax"

	"github.com/shieldcli/shield/internal/sorted"
)

// maxPrefixes is how many literals an expression may begin with.
const maxPrefixes = 512

// LiteralPrefixesOfMatches returns lower-case literals of at least [MinLiteralBytes] bytes such that every match
// of expr begins with one of them, without regard to ASCII letter case. literals is nil if no literals are
// known, or if only some matches have to begin at a word boundary. startsAtWordBoundary reports whether every
// match has to begin at a word boundary; it is false if literals is nil.
func LiteralPrefixesOfMatches(expr string) (literals []string, startsAtWordBoundary bool, err error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, false, err
	}
	re = re.Simplify()
	all, some := matchesStartAtWordBoundary(re)
	set := prefixesOfMatches(re)
	if all != some || len(set) == 0 || len(set) > maxPrefixes {
		return nil, false, nil
	}
	sorted.SortStrings(set)
	for _, s := range set { // sorted: a text comes after the text that is its prefix, and can be left out
		if n := len(literals); n > 0 && len(s) >= len(literals[n-1]) && s[:len(literals[n-1])] == literals[n-1] {
			continue
		}
		if len(s) < MinLiteralBytes {
			return nil, false, nil
		}
		literals = append(literals, s)
	}
	return literals, all, nil
}

// prefixesOfMatches returns strings such that each match of re begins with one of them. "" means
// that a match can begin with any text.
func prefixesOfMatches(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return prefixesOfMatches(re.Sub[0])
	case syntax.OpAlternate:
		var set []string
		for _, sub := range re.Sub {
			set = append(set, prefixesOfMatches(sub)...)
		}
		return set
	case syntax.OpConcat:
		set := []string{""}
		for _, sub := range re.Sub {
			if in := findRegexpLiterals(sub); in.exactMatches != nil && len(in.exactMatches)*len(set) <= maxExactStrings {
				set = crossProduct(set, in.exactMatches)
				continue
			}
			if next := prefixesOfMatches(sub); len(next)*len(set) <= maxPrefixes {
				set = crossProduct(set, next)
			}
			break
		}
		return set
	}
	if in := findRegexpLiterals(re); in.exactMatches != nil {
		return in.exactMatches
	}
	return []string{""}
}

// matchesStartAtWordBoundary reports whether all, and whether some matches of an expression have to
// begin at a word boundary.
func matchesStartAtWordBoundary(re *syntax.Regexp) (allMatches, someMatches bool) {
	switch re.Op {
	case syntax.OpWordBoundary:
		return true, true
	case syntax.OpCapture:
		return matchesStartAtWordBoundary(re.Sub[0])
	case syntax.OpConcat:
		return matchesStartAtWordBoundary(re.Sub[0])
	case syntax.OpAlternate:
		allMatches = true
		for _, sub := range re.Sub {
			a, s := matchesStartAtWordBoundary(sub)
			allMatches, someMatches = allMatches && a, someMatches || s
		}
		return allMatches, someMatches
	}
	return false, false
}
