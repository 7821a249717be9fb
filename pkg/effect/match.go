package effect

import (
	"math/bits"
	"slices"
	"strings"
)

// FirstPossibleMatch reports whether some path that an effect touches could match a glob, and the least index
// of such a glob. path, pattern and recursive are fields of the [Effect]. Case is ignored, so that
// a rule protects its files on every file system.
//
// A pattern or a recursively read folder may contain any file. In two cases, at least one name of
// the glob must therefore also be in the path: if the start of the pattern is unknown ("**/id_rsa"
// matches "~/.ssh/id_rsa", but not "~/.ssh/**"), and if the glob begins with "**/" (a recursive
// read of "/src" does not match "**/.env", but a recursive read of "/src/.git" matches
// "**/.git/hooks/**").
func (g *Globs) FirstPossibleMatch(path string, isPattern, includesDescendants bool) (index int, ok bool) {
	f := globMatcher{globs: g, lowestGlobIndex: -1}
	f.findTouched(path, isPattern, includesDescendants)
	return f.lowestGlobIndex, f.lowestGlobIndex >= 0
}

// FirstPossibleMatchExcludingDotDot is like [Globs.FirstPossibleMatch] for a pattern whose "**" matches searched folders, which cannot lead
// outside, see [Effect.DoubleStarExcludesDotDot].
func (g *Globs) FirstPossibleMatchExcludingDotDot(pattern string, includesDescendants bool) (index int, ok bool) {
	f := globMatcher{globs: g, lowestGlobIndex: -1, doubleStarExcludesDotDot: true}
	f.findTouched(pattern, true, includesDescendants)
	return f.lowestGlobIndex, f.lowestGlobIndex >= 0
}

// AppendTouched appends the indices of all globs that an effect could touch to
// dst, in ascending order.
func (g *Globs) AppendTouched(dst []int, path string, pattern, recursive bool) []int {
	f := globMatcher{globs: g, lowestGlobIndex: -1, collectAll: true, foundGlobs: dst}
	f.findTouched(path, pattern, recursive)
	return f.sortFound(len(dst))
}

// FirstCoveringGlob reports whether every path that an effect touches certainly matches one glob, and the least index of
// such a glob. Case matters, except in Windows paths. tree is [Effect.DoubleStarExcludesDotDot].
func (g *Globs) FirstCoveringGlob(path string, isPattern, doubleStarExcludesDotDot, includesDescendants bool) (index int, ok bool) {
	f := globMatcher{globs: g, lowestGlobIndex: -1}
	f.findCovering(path, isPattern, doubleStarExcludesDotDot, includesDescendants)
	return f.lowestGlobIndex, f.lowestGlobIndex >= 0
}

// AppendCoveringGlobs appends the indices of all globs that cover an effect, see [Globs.FirstCoveringGlob], to dst, in
// ascending order.
func (g *Globs) AppendCoveringGlobs(dst []int, path string, isPattern, doubleStarExcludesDotDot, includesDescendants bool) []int {
	f := globMatcher{globs: g, lowestGlobIndex: -1, collectAll: true, foundGlobs: dst}
	f.findCovering(path, isPattern, doubleStarExcludesDotDot, includesDescendants)
	return f.sortFound(len(dst))
}

// A globMatcher is the state of matching one path with a set of globs.
type globMatcher struct {
	globs                    *Globs
	lowestGlobIndex          int
	collectAll               bool
	foundGlobs               []int
	recursive                bool
	isPattern                bool
	doubleStarExcludesDotDot bool // "**" of the path stays inside the folder before it
	isPathStartUnknown       bool // the start of the path is unknown
	mustCover                bool // search for rules that match with certainty
	caseFolded               bool // the path's case is folded
}

func (f *globMatcher) recordMatch(r *globRule) {
	if f.lowestGlobIndex < 0 || r.globIndex < f.lowestGlobIndex {
		f.lowestGlobIndex = r.globIndex
	}
	if f.collectAll {
		f.foundGlobs = append(f.foundGlobs, r.globIndex)
	}
}

func (f *globMatcher) sortFound(from int) []int {
	slices.Sort(f.foundGlobs[from:])
	return append(f.foundGlobs[:from], slices.Compact(f.foundGlobs[from:])...)
}

func (f *globMatcher) findTouched(path string, pattern, recursive bool) {
	var buf [32]segment
	segs := appendSegments(buf[:0], foldPath(limitPatternLength(path, pattern)), pattern)
	f.recursive, f.isPattern = recursive, pattern
	if !pattern {
		f.matchLiteralPath(segs)
		return
	}
	first, second := splitInnerDoubleStar(segs)
	f.matchPattern(first)
	if second != nil {
		f.matchPattern(second)
	}
}

// limitPatternLength limits the length of a pattern.
func limitPatternLength(path string, isPattern bool) string {
	if isPattern {
		return clipToMaxPath(path)
	}
	return path
}

// matchLiteralPath finds the rules that match a path without wildcards.
func (f *globMatcher) matchLiteralPath(path []segment) {
	g := f.globs
	f.tryIndexedRules(&g.absoluteRules, path)
	entered := -1 // length of the home folder that matched last; another entry of this length names the same folder
	for _, home := range g.possibleHomes {
		if len(home) == entered || len(g.homeRules.allRules) == 0 {
			continue
		}
		if rest, ok := f.cutFolder(home, path); ok {
			entered = len(home)
			f.tryIndexedRules(&g.homeRules, rest)
		}
	}
	f.tryAnywhereRules(path)
}

// tryAnywhereRules tries the rules that may match from any segment on.
func (f *globMatcher) tryAnywhereRules(path []segment) {
	float := &f.globs.anywhereRules
	for i := range path {
		if path[i].kind != literalSegment {
			continue
		}
		f.tryGlobRulesWithSameFirstSegment(float, path[i:])
	}
	for _, id := range float.wildcardFirstSegmentGlobs {
		r := f.globs.rule(id)
		if r.isSingleSegment && len(path) > 0 {
			if last := &path[len(path)-1]; !f.mustCover && last.kind == literalSegment && !r.isAnyDepthWithoutLiteralText && !r.foldedSegments[0].matchesFirstAndLastByte(last.text) {
				continue
			}
			f.tryRule(r, path[len(path)-1:], 1)
		} else {
			f.tryRule(r, path, 1)
		}
	}
}

// tryGlobRulesWithSameFirstSegment tries the rules of an index that begin with the first name of a path.
func (f *globMatcher) tryGlobRulesWithSameFirstSegment(ix *ruleIndex, path []segment) {
	name := f.indexKey(path[0].text)
	for id := *ix.globListHeadOf(name); id >= 0; id = f.globs.expandedGlobs[id].nextWithSameHash {
		if f.globs.expandedGlobs[id].firstLiteralSegment == name {
			f.tryRule(f.globs.rule(id), path, 1)
		}
	}
}

// indexKey returns the text of a segment as the index stores it.
func (f *globMatcher) indexKey(text string) string {
	if f.mustCover {
		return foldPath(text)
	}
	return text
}

// cutFolder returns the rest of a path below a folder. If the path is a recursively read parent of the folder,
// the rest is empty: everything below is touched.
func (f *globMatcher) cutFolder(folder, path []segment) (rest []segment, ok bool) {
	for i := range folder {
		if i == len(path) {
			return nil, f.recursive
		}
		if path[i].kind == doubleStar {
			return path[i:], true
		}
		if !path[i].overlaps(&folder[i]) {
			return nil, false
		}
	}
	return path[len(folder):], true
}

// tryIndexedRules tries the rules of an index on the rest of a path.
func (f *globMatcher) tryIndexedRules(ix *ruleIndex, path []segment) {
	if len(path) == 0 && f.recursive || len(path) > 0 && path[0].kind != literalSegment {
		for _, id := range ix.allRules {
			f.tryRule(f.globs.rule(id), path, 1)
		}
		return
	}
	if len(path) > 0 {
		f.tryGlobRulesWithSameFirstSegment(ix, path)
	}
	for _, id := range ix.wildcardFirstSegmentGlobs {
		if r := f.globs.rule(id); f.mustCover || len(path) == 0 || len(r.foldedSegments) == 0 || r.foldedSegments[0].matchesFirstAndLastByte(path[0].text) {
			f.tryRule(r, path, 1)
		}
	}
}

// matchPattern finds the rules that match a pattern.
func (f *globMatcher) matchPattern(path []segment) {
	g := f.globs
	run := slices.IndexFunc(path, func(s segment) bool { return s.kind == doubleStar })
	if run != 0 {
		f.tryIndexedRules(&g.absoluteRules, path)
		for _, home := range g.possibleHomes {
			if rest, ok := f.cutFolder(home, path); ok {
				f.tryIndexedRules(&g.homeRules, rest)
			}
		}
		for _, id := range g.anywhereRules.allRules {
			f.tryRule(g.rule(id), path, 1)
		}
	}
	if run < 0 || run > 0 && f.doubleStarExcludesDotDot {
		return
	}
	// Unknown text may contain "..": "/src/$X/passwd" could be "/etc/passwd".
	f.isPathStartUnknown = true
	for i := range g.expandedGlobs {
		r := g.rule(int32(i))
		f.tryRule(r, path[run+1:], 1<<(len(r.foldedSegments)+1)-1)
	}
}

// tryRule matches a rule, starting from a set of its states.
func (f *globMatcher) tryRule(r *globRule, path []segment, from uint64) {
	if f.mustCover {
		f.tryCovering(r, path)
		return
	}
	if f.cannotMatch(r, path, from) {
		return
	}
	matched, proven := r.statesAfter(path, from)
	if !r.isAnyDepthWithoutLiteralText && (f.isPathStartUnknown || r.anyDepth && (f.isPattern || f.recursive)) {
		matched = proven
	}
	if f.recursive && matched != 0 || matched>>len(r.foldedSegments)&1 != 0 {
		f.recordMatch(r)
	}
}

// cannotMatch reports, after a cheap comparison, whether a rule cannot match: the last names differ, or literal
// names at the start of an anchored rule.
func (f *globMatcher) cannotMatch(r *globRule, path []segment, from uint64) bool {
	if len(path) == 0 || len(r.foldedSegments) == 0 {
		return false
	}
	last, want := &path[len(path)-1], &r.foldedSegments[len(r.foldedSegments)-1]
	if !f.recursive && want.kind != doubleStar && last.kind != doubleStar && !lastNamesMayMatch(last, want) {
		return true
	}
	if from != 1 || r.startStateBitIfLeadingDoubleStar != 0 {
		return false
	}
	for i := range path {
		if i == len(r.foldedSegments) || path[i].kind != literalSegment || r.foldedSegments[i].kind != literalSegment {
			return false
		}
		if path[i].text != r.foldedSegments[i].text {
			return true
		}
	}
	return false
}

// lastNamesMayMatch reports whether the last name of a path or pattern could match that of a rule, comparing only first
// and last bytes.
func lastNamesMayMatch(last, want *segment) bool {
	switch {
	case last.kind == literalSegment && want.kind == literalSegment:
		return last.text == want.text
	case last.kind == literalSegment:
		return want.matchesFirstAndLastByte(last.text)
	case want.kind == literalSegment:
		return want.text == "" || endsMayAgree(last.text, Quote(want.text))
	}
	return endsMayAgree(last.text, want.text)
}

// statesAfter returns the set of states of a rule after a path, as bits: state i is before segment i, the last
// state after all segments. proven are the states reached with evidence: the path contains a name of the
// rule.
func (r *globRule) statesAfter(path []segment, from uint64) (matched, proven uint64) {
	end := uint64(1) << len(r.foldedSegments)
	matched = from | from&r.doubleStarBits<<1
	for k := range path {
		s := &path[k]
		if s.kind == doubleStar {
			matched, proven = statesAfterDoubleStar(matched, end), statesAfterDoubleStar(proven, end)
			continue
		}
		next, sure := matched&r.doubleStarBits|r.startStateBitIfLeadingDoubleStar, proven&r.doubleStarBits
		for set := matched &^ r.doubleStarBits &^ end; set != 0; set &= set - 1 {
			i := bits.TrailingZeros64(set)
			if !s.overlaps(&r.foldedSegments[i]) {
				continue
			}
			bit := uint64(1) << i
			next |= bit << 1
			if proven&bit != 0 || r.literalTextSegmentBits&bit != 0 && matchesEnoughLiteralText(s, &r.foldedSegments[i]) {
				sure |= bit << 1
			}
		}
		matched, proven = next|next&r.doubleStarBits<<1, sure|sure&r.doubleStarBits<<1
		if matched == 0 {
			return 0, 0
		}
	}
	return matched, proven
}

// statesAfterDoubleStar returns the states after a "**" in the path: the lowest state and all after it.
func statesAfterDoubleStar(set, end uint64) uint64 {
	if set == 0 {
		return 0
	}
	return (end | (end - 1)) &^ (set&-set - 1)
}

// matchesEnoughLiteralText reports whether a path's segment that matches a rule's contains enough of it to be evidence: its
// prefix, or its suffix if it starts with a star, or half of its letters. "*.json" is no evidence for
// "credentials.json".
func matchesEnoughLiteralText(pathSegment, ruleSegment *segment) bool {
	switch {
	case pathSegment.kind == literalSegment:
		return ruleSegment.kind == literalSegment || strings.Trim(ruleSegment.text, "*?") != ""
	case ruleSegment.kind == literalSegment:
		return pathSegment.text[0] != '*' || 2*countLetters(pathSegment) >= countLetters(ruleSegment)
	case ruleSegment.text[0] != '*':
		return pathSegment.text[0] != '*'
	}
	return literalSuffixLen(pathSegment.text) > 0 && literalSuffixLen(ruleSegment.text) > 0
}

// countLetters returns the number of characters of a segment that are not stars.
func countLetters(s *segment) int {
	var buf [48]token
	n := 0
	for _, t := range s.tokens(buf[:0]) {
		if t.kind != tokenStar {
			n++
		}
	}
	return n
}

// findCovering finds the rules that match everything an effect touches. An approximation must make the path's
// pattern match more, never the rule's.
func (f *globMatcher) findCovering(path string, pattern, tree, recursive bool) {
	var buf [32]segment
	segs := appendSegments(buf[:0], path, pattern)
	if pattern && (len(path) > maxPathBytes || slices.ContainsFunc(segs, func(s segment) bool { return s.kind == doubleStar && !tree || hasInnerDoubleStar(s) })) {
		segs = append(segs[:0], segment{kind: doubleStar}) // unknown text may contain ".."
	}
	f.mustCover, f.recursive, f.isPattern = true, recursive, pattern
	f.caseFolded = len(segs) > 0 && (segs[0].text == uncRoot || isDrive(segs[0].text))
	f.tryIndexedRules(&f.globs.absoluteRules, segs)
	for _, home := range f.globs.certainHomes {
		if len(segs) >= len(home) && slices.Equal(segs[:len(home)], home) {
			f.tryIndexedRules(&f.globs.homeRules, segs[len(home):])
		}
	}
	f.tryAnywhereRules(segs)
}

// tryCovering records a match if the rule matches every path that the effect's path pattern
// matches. It moves to the next state only if the rule's segment matches every name that the path's
// segment matches.
func (f *globMatcher) tryCovering(r *globRule, path []segment) {
	segs := r.exactSegments
	if f.caseFolded {
		segs = r.foldedSegments
	}
	end := uint64(1) << len(segs)
	set := 1 | r.doubleStarBits&1<<1
	for k := range path {
		s := &path[k]
		next := set&r.doubleStarBits | r.startStateBitIfLeadingDoubleStar
		if s.kind != doubleStar {
			for left := set &^ r.doubleStarBits &^ end; left != 0; left &= left - 1 {
				if i := bits.TrailingZeros64(left); s.isCoveredBy(&segs[i]) {
					next |= 2 << i
				}
			}
		}
		if set = next | next&r.doubleStarBits<<1; set == 0 {
			return
		}
	}
	if f.recursive {
		// Only a trailing "**" also matches everything below.
		set &= r.doubleStarBits<<1 | r.startStateBitIfLeadingDoubleStar
	}
	if set&end != 0 {
		f.recordMatch(r)
	}
}
