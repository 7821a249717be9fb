package prefilter

import (
	"regexp/syntax"

	"github.com/shieldcli/shield/internal/sorted"
)

// maxPrefixes is how many literals an expression may begin with.
const maxPrefixes = 512

// Prefixes returns lower-case literals of at least [MinLiteralBytes] bytes such that every match of expr
// begins with one of them, without regard to ASCII letter case; nil if there are none. word reports
// whether every match begins at a word boundary. If only some matches have to begin at a word
// boundary, Prefixes returns nil.
func Prefixes(expr string) (literals []string, startsAtWordBoundary bool, err error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, false, err
	}
	re = re.Simplify()
	all, some := startsAtBoundary(re)
	set := matchPrefixes(re)
	if all != some || len(set) == 0 || len(set) > maxPrefixes {
		return nil, false, nil
	}
	sorted.Strings(set)
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

// matchPrefixes returns texts with one of which each match begins. "" stands for any.
func matchPrefixes(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return matchPrefixes(re.Sub[0])
	case syntax.OpAlternate:
		var set []string
		for _, sub := range re.Sub {
			set = append(set, matchPrefixes(sub)...)
		}
		return set
	case syntax.OpConcat:
		set := []string{""}
		for _, sub := range re.Sub {
			if in := inspectRegexp(sub); in.exact != nil && len(in.exact)*len(set) <= maxExactStrings {
				set = crossProduct(set, in.exact)
				continue
			}
			if next := matchPrefixes(sub); len(next)*len(set) <= maxPrefixes {
				set = crossProduct(set, next)
			}
			break
		}
		return set
	}
	if in := inspectRegexp(re); in.exact != nil {
		return in.exact
	}
	return []string{""}
}

// startsAtBoundary reports whether all, and whether some matches of an expression have to
// begin at a word boundary.
func startsAtBoundary(re *syntax.Regexp) (all, some bool) {
	switch re.Op {
	case syntax.OpWordBoundary:
		return true, true
	case syntax.OpCapture:
		return startsAtBoundary(re.Sub[0])
	case syntax.OpConcat:
		return startsAtBoundary(re.Sub[0])
	case syntax.OpAlternate:
		all = true
		for _, sub := range re.Sub {
			a, s := startsAtBoundary(sub)
			all, some = all && a, some || s
		}
		return all, some
	}
	return false, false
}
