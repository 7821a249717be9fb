package effect

import "strings"

// PatternsOverlap reports whether two patterns match a common path. In a pattern * matches any characters except
// a slash, ** any characters, ? one character, […] one of several, and \x the character x; "/**/" also matches
// "/", and a trailing "/**" also nothing. A path without these characters matches itself. ignoreCase ignores
// case. Parts of a pattern that are too large to compare count as matching. The time is at most proportional to
// the product of both lengths.
func PatternsOverlap(firstPattern, secondPattern string, ignoreCase bool) bool {
	if ignoreCase {
		firstPattern, secondPattern = foldPath(firstPattern), foldPath(secondPattern)
	}
	if isSingleLiteralSegment(firstPattern) && isSingleLiteralSegment(secondPattern) {
		return firstPattern == secondPattern
	}
	var abuf, bbuf [16]pathOrPatternSegment
	as, bs := appendSegments(abuf[:0], clipToMaxPath(firstPattern), true), appendSegments(bbuf[:0], clipToMaxPath(secondPattern), true)
	a1, a2 := splitInnerDoubleStar(as)
	b1, b2 := splitInnerDoubleStar(bs)
	return segmentsOverlap(a1, b1) ||
		a2 != nil && segmentsOverlap(a2, b1) ||
		b2 != nil && segmentsOverlap(a1, b2) ||
		a2 != nil && b2 != nil && segmentsOverlap(a2, b2)
}

// isSingleLiteralSegment reports whether a pattern is a single name without wildcards.
func isSingleLiteralSegment(pattern string) bool {
	return len(pattern) <= maxPathBytes && strings.IndexByte(pattern, '/') < 0 && !containsGlobMetachar(pattern)
}

// segmentsOverlap reports whether two patterns, split into segments, match a common path. It uses
// dynamic programming: for every number of leading segments of a and of b, it computes whether
// these segments match a common path.
func segmentsOverlap(a, b []pathOrPatternSegment) bool {
	var rows [2][32]bool
	row, next := rows[0][:], rows[1][:]
	if len(b)+1 > len(row) {
		row, next = make([]bool, len(b)+1), make([]bool, len(b)+1)
	}
	row, next = row[:len(b)+1], next[:len(b)+1]
	row[0] = true
	for i := 0; i <= len(a); i++ {
		clear(next)
		for j := 0; j <= len(b); j++ {
			if !row[j] {
				continue
			}
			aRun := i < len(a) && a[i].kind == doubleStar
			bRun := j < len(b) && b[j].kind == doubleStar
			switch {
			case aRun:
				next[j] = true
				if j < len(b) {
					row[j+1] = true
				}
			case bRun:
				row[j+1] = true
				if i < len(a) {
					next[j] = true
				}
			case i < len(a) && j < len(b) && a[i].overlaps(&b[j]):
				next[j+1] = true
			}
		}
		if i == len(a) {
			return row[len(b)]
		}
		row, next = next, row
	}
	return false
}

// hasInnerDoubleStar reports whether a segment has "**" beside other text: unknown text that may contain slashes.
func hasInnerDoubleStar(s pathOrPatternSegment) bool {
	return s.kind == wildcardSegment && strings.Contains(s.text, "**")
}

// splitInnerDoubleStar rewrites a segment such as "a**b", which matches "a/x/b" and "axb", into two patterns in which "**"
// is a segment. With several such segments the two may match more than the original, never less. second is
// nil if there is no such segment.
func splitInnerDoubleStar(segs []pathOrPatternSegment) (first, second []pathOrPatternSegment) {
	lo, hi := -1, -1
	for i, s := range segs {
		if hasInnerDoubleStar(s) {
			if lo < 0 {
				lo = i
			}
			hi = i
		}
	}
	if lo < 0 {
		return segs, nil
	}
	head := segs[lo].text[:strings.Index(segs[lo].text, "**")]
	tail := strings.TrimLeft(segs[hi].text[strings.LastIndex(segs[hi].text, "**"):], "*")
	for _, form := range [][]pathOrPatternSegment{
		{patternSegment(head + "*"), {kind: doubleStar}, patternSegment("*" + tail)},
		{patternSegment(head + "*" + tail)},
	} {
		out := append([]pathOrPatternSegment{}, segs[:lo]...)
		out = append(out, form...)
		out = append(out, segs[hi+1:]...)
		if first == nil {
			first = out
		} else {
			second = out
		}
	}
	return first, second
}
