package effect

import (
	"math/bits"
	"slices"
	"strings"
)

// FirstPossibleMatch reports whether some path that an effect touches could match a glob, and returns the lowest
// index of a matching glob, or -1. The parameters are the fields Path, PathIsPattern and Recursive of the
// [Effect]. Case is ignored, so that a rule protects its files on every file system.
//
// The path of an effect can be a pattern or a folder that is read recursively, and so may include any file. In
// two cases, a glob with literal text matches only if the path also contains at least one name of the glob, or
// enough of it. The first case is a pattern with an unknown start: the path "**/id_rsa" matches the glob
// "~/.ssh/id_rsa", but not the glob "~/.ssh/**". The second case is a glob that begins with "**/" or
// "$NAME/**/": a recursive read of the path "/src/.git" matches the glob "**/.git/hooks/**", but a recursive
// read of the path "/src" does not match the glob "**/.env".
func (g *Globs) FirstPossibleMatch(path string, isPattern, includesDescendants bool) (index int, ok bool) {
	f := globMatcher{globs: g, lowestFoundGlobIndex: -1}
	f.findTouchedGlobs(path, isPattern, includesDescendants)
	return f.lowestFoundGlobIndex, f.lowestFoundGlobIndex >= 0
}

// FirstPossibleMatchExcludingDotDot is like [Globs.FirstPossibleMatch], for a pattern in which "**" stands for
// folders that a program searches. Here "**" cannot match "..", so the pattern matches only paths inside the
// folder before "**". See [Effect.DoubleStarExcludesDotDot].
func (g *Globs) FirstPossibleMatchExcludingDotDot(pattern string, includesDescendants bool) (index int, ok bool) {
	f := globMatcher{globs: g, lowestFoundGlobIndex: -1, doubleStarExcludesDotDot: true}
	f.findTouchedGlobs(pattern, true, includesDescendants)
	return f.lowestFoundGlobIndex, f.lowestFoundGlobIndex >= 0
}

// AppendTouchedGlobIndices appends to dst, in ascending order, the index of each glob that matches
// a path which the effect could touch. path, isPattern and recursive say which paths the effect
// touches.
func (g *Globs) AppendTouchedGlobIndices(dst []int, path string, isPattern, recursive bool) []int {
	f := globMatcher{globs: g, lowestFoundGlobIndex: -1, collectAll: true, foundGlobs: dst}
	f.findTouchedGlobs(path, isPattern, recursive)
	return f.sortAndDedupeFoundGlobs(len(dst))
}

// FirstCoveringGlob reports whether every path that an effect touches certainly matches one glob,
// and the least index of such a glob. Case matters, except in Windows paths.
// doubleStarExcludesDotDot is [Effect.DoubleStarExcludesDotDot].
func (g *Globs) FirstCoveringGlob(path string, isPattern, doubleStarExcludesDotDot, includesDescendants bool) (index int, ok bool) {
	f := globMatcher{globs: g, lowestFoundGlobIndex: -1}
	f.findGlobsMatchingWholePath(path, isPattern, doubleStarExcludesDotDot, includesDescendants)
	return f.lowestFoundGlobIndex, f.lowestFoundGlobIndex >= 0
}

// AppendCoveringGlobs appends the indices of all globs that cover an effect, see [Globs.FirstCoveringGlob], to dst, in
// ascending order.
func (g *Globs) AppendCoveringGlobs(dst []int, path string, isPattern, doubleStarExcludesDotDot, includesDescendants bool) []int {
	f := globMatcher{globs: g, lowestFoundGlobIndex: -1, collectAll: true, foundGlobs: dst}
	f.findGlobsMatchingWholePath(path, isPattern, doubleStarExcludesDotDot, includesDescendants)
	return f.sortAndDedupeFoundGlobs(len(dst))
}

// A globMatcher is the state of matching one path with a set of globs.
type globMatcher struct {
	globs                     *Globs
	lowestFoundGlobIndex      int
	collectAll                bool
	foundGlobs                []int
	recursive                 bool
	isPattern                 bool
	doubleStarExcludesDotDot  bool // "**" of the path stays inside the folder before it
	isPathStartUnknown        bool // the start of the path is unknown
	mustMatchEveryTouchedPath bool // search for rules that match with certainty
	isPathCaseFolded          bool // the path's case is folded
}

func (f *globMatcher) recordMatch(r *globRule) {
	if f.lowestFoundGlobIndex < 0 || r.globIndex < f.lowestFoundGlobIndex {
		f.lowestFoundGlobIndex = r.globIndex
	}
	if f.collectAll {
		f.foundGlobs = append(f.foundGlobs, r.globIndex)
	}
}

func (f *globMatcher) sortAndDedupeFoundGlobs(firstIndex int) []int {
	slices.Sort(f.foundGlobs[firstIndex:])
	return append(f.foundGlobs[:firstIndex], slices.Compact(f.foundGlobs[firstIndex:])...)
}

func (f *globMatcher) findTouchedGlobs(path string, isPattern, recursive bool) {
	var buf [32]pathOrPatternSegment
	segs := appendSegments(buf[:0], foldPath(limitPatternLength(path, isPattern)), isPattern)
	f.recursive, f.isPattern = recursive, isPattern
	if !isPattern {
		f.matchLiteralPath(segs)
		return
	}
	first, second := splitInnerDoubleStar(segs)
	f.matchPattern(first)
	if second != nil {
		f.matchPattern(second)
	}
}

// limitPatternLength shortens a pattern that is longer than maxPathBytes, and ends it with "**" for the rest.
// Other paths are returned unchanged.
func limitPatternLength(path string, isPattern bool) string {
	if isPattern {
		return clipToMaxPath(path)
	}
	return path
}

// matchLiteralPath finds the rules that match a path without wildcards.
func (f *globMatcher) matchLiteralPath(path []pathOrPatternSegment) {
	g := f.globs
	f.tryIndexedRules(&g.absoluteRules, path)
	entered := -1 // length of the last home folder for which rest was found, or -1; a home of equal length gives the same rest
	for _, home := range g.possibleHomeFolders {
		if len(home) == entered || len(g.homeRules.allRules) == 0 {
			continue
		}
		if rest, ok := f.cutFolder(home, path); ok {
			entered = len(home)
			f.tryIndexedRules(&g.homeRules, rest)
		}
	}
	f.tryRulesAtEverySegment(path)
}

// tryRulesAtEverySegment tries the rules that may match from any segment on.
func (f *globMatcher) tryRulesAtEverySegment(path []pathOrPatternSegment) {
	float := &f.globs.anywhereRules
	for i := range path {
		if path[i].kind != literalSegment {
			continue
		}
		f.tryGlobRulesWithSameFirstSegment(float, path[i:])
	}
	for _, id := range float.wildcardFirstSegmentGlobs {
		r := f.globs.compiledRule(id)
		if r.isSingleSegment && len(path) > 0 {
			if last := &path[len(path)-1]; !f.mustMatchEveryTouchedPath && last.kind == literalSegment && !r.isAnyDepthWithoutLiteralText && !r.foldedSegments[0].matchesFirstAndLastByte(last.text) {
				continue
			}
			f.tryRule(r, path[len(path)-1:], 1)
		} else {
			f.tryRule(r, path, 1)
		}
	}
}

// tryGlobRulesWithSameFirstSegment tries the rules of an index that begin with the first name of a path.
func (f *globMatcher) tryGlobRulesWithSameFirstSegment(ix *ruleIndex, path []pathOrPatternSegment) {
	name := f.firstSegmentIndexKey(path[0].text)
	for id := *ix.globListHeadOf(name); id >= 0; id = f.globs.expandedGlobs[id].nextWithSameHash {
		if f.globs.expandedGlobs[id].firstLiteralSegment == name {
			f.tryRule(f.globs.compiledRule(id), path, 1)
		}
	}
}

// firstSegmentIndexKey returns the text of a segment as the index stores it.
func (f *globMatcher) firstSegmentIndexKey(segmentText string) string {
	if f.mustMatchEveryTouchedPath {
		return foldPath(segmentText)
	}
	return segmentText
}

// cutFolder returns the rest of a path below a folder. If the path is a recursively read parent of the folder,
// the rest is empty: everything below is touched.
func (f *globMatcher) cutFolder(folder, path []pathOrPatternSegment) (rest []pathOrPatternSegment, ok bool) {
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
func (f *globMatcher) tryIndexedRules(ix *ruleIndex, path []pathOrPatternSegment) {
	if len(path) == 0 && f.recursive || len(path) > 0 && path[0].kind != literalSegment {
		for _, id := range ix.allRules {
			f.tryRule(f.globs.compiledRule(id), path, 1)
		}
		return
	}
	if len(path) > 0 {
		f.tryGlobRulesWithSameFirstSegment(ix, path)
	}
	for _, id := range ix.wildcardFirstSegmentGlobs {
		if r := f.globs.compiledRule(id); f.mustMatchEveryTouchedPath || len(path) == 0 || len(r.foldedSegments) == 0 || r.foldedSegments[0].matchesFirstAndLastByte(path[0].text) {
			f.tryRule(r, path, 1)
		}
	}
}

// matchPattern finds the rules that can match a path of an action that contains wildcards or
// unknown text.
func (f *globMatcher) matchPattern(path []pathOrPatternSegment) {
	g := f.globs
	run := slices.IndexFunc(path, func(s pathOrPatternSegment) bool { return s.kind == doubleStar })
	if run != 0 {
		f.tryIndexedRules(&g.absoluteRules, path)
		for _, home := range g.possibleHomeFolders {
			if rest, ok := f.cutFolder(home, path); ok {
				f.tryIndexedRules(&g.homeRules, rest)
			}
		}
		for _, id := range g.anywhereRules.allRules {
			f.tryRule(g.compiledRule(id), path, 1)
		}
	}
	if run < 0 || run > 0 && f.doubleStarExcludesDotDot {
		return
	}
	// Unknown text may contain "..": "/src/$X/passwd" could be "/etc/passwd".
	f.isPathStartUnknown = true
	for i := range g.expandedGlobs {
		r := g.compiledRule(int32(i))
		f.tryRule(r, path[run+1:], 1<<(len(r.foldedSegments)+1)-1)
	}
}

// tryRule matches a rule, starting from a set of its states.
func (f *globMatcher) tryRule(r *globRule, path []pathOrPatternSegment, startStateBits uint64) {
	if f.mustMatchEveryTouchedPath {
		f.recordRuleIfCoversPath(r, path)
		return
	}
	if f.cannotMatch(r, path, startStateBits) {
		return
	}
	matched, proven := r.stateBitsAfterPath(path, startStateBits)
	if !r.isAnyDepthWithoutLiteralText && (f.isPathStartUnknown || r.matchesAnyDepth && (f.isPattern || f.recursive)) {
		matched = proven
	}
	if f.recursive && matched != 0 || matched>>len(r.foldedSegments)&1 != 0 {
		f.recordMatch(r)
	}
}

// cannotMatch reports, after a cheap comparison, whether a rule cannot match a path: their last
// names differ, or the rule is anchored and literal names at the start of rule and path differ.
func (f *globMatcher) cannotMatch(r *globRule, path []pathOrPatternSegment, from uint64) bool {
	if len(path) == 0 || len(r.foldedSegments) == 0 {
		return false
	}
	last, want := &path[len(path)-1], &r.foldedSegments[len(r.foldedSegments)-1]
	if !f.recursive && want.kind != doubleStar && last.kind != doubleStar && !lastSegmentsMayMatch(last, want) {
		return true
	}
	if from != 1 || r.leadingDoubleStarStartBit != 0 {
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

// lastSegmentsMayMatch reports whether the last name of a path or pattern could match that of a rule. Two
// literal names are compared in full, others only by their first and last bytes.
func lastSegmentsMayMatch(pathSegment, ruleSegment *pathOrPatternSegment) bool {
	switch {
	case pathSegment.kind == literalSegment && ruleSegment.kind == literalSegment:
		return pathSegment.text == ruleSegment.text
	case pathSegment.kind == literalSegment:
		return ruleSegment.matchesFirstAndLastByte(pathSegment.text)
	case ruleSegment.kind == literalSegment:
		return ruleSegment.text == "" || firstAndLastBytesMayMatch(pathSegment.text, QuoteGlobMeta(ruleSegment.text))
	}
	return firstAndLastBytesMayMatch(pathSegment.text, ruleSegment.text)
}

// stateBitsAfterPath returns the states in which the match of a rule can be after a path, as bits. In state i,
// segment i of the rule is next; in the last state, all segments have matched. startStateBits are the states
// before the path. literalEvidenceStateBits are the states that are reached with evidence: the path contains a
// name of the rule.
func (r *globRule) stateBitsAfterPath(path []pathOrPatternSegment, startStateBits uint64) (possibleStateBits, literalEvidenceStateBits uint64) {
	end := uint64(1) << len(r.foldedSegments)
	possibleStateBits = startStateBits | startStateBits&r.doubleStarBits<<1
	for k := range path {
		s := &path[k]
		if s.kind == doubleStar {
			possibleStateBits, literalEvidenceStateBits = statesAfterDoubleStar(possibleStateBits, end), statesAfterDoubleStar(literalEvidenceStateBits, end)
			continue
		}
		next, sure := possibleStateBits&r.doubleStarBits|r.leadingDoubleStarStartBit, literalEvidenceStateBits&r.doubleStarBits
		for set := possibleStateBits &^ r.doubleStarBits &^ end; set != 0; set &= set - 1 {
			i := bits.TrailingZeros64(set)
			if !s.overlaps(&r.foldedSegments[i]) {
				continue
			}
			bit := uint64(1) << i
			next |= bit << 1
			if literalEvidenceStateBits&bit != 0 || r.literalTextSegmentBits&bit != 0 && isEvidenceOfMatch(s, &r.foldedSegments[i]) {
				sure |= bit << 1
			}
		}
		possibleStateBits, literalEvidenceStateBits = next|next&r.doubleStarBits<<1, sure|sure&r.doubleStarBits<<1
		if possibleStateBits == 0 {
			return 0, 0
		}
	}
	return possibleStateBits, literalEvidenceStateBits
}

// statesAfterDoubleStar returns the states in which the match of a rule can be after a "**" in the path, as
// bits. A "**" can match any number of the rule's segments, so these are the lowest state of stateBits and all
// later states, up to the last state, endStateBit.
func statesAfterDoubleStar(stateBits, endStateBit uint64) uint64 {
	if stateBits == 0 {
		return 0
	}
	return (endStateBit | (endStateBit - 1)) &^ (stateBits&-stateBits - 1)
}

// isEvidenceOfMatch reports whether a path segment that matches a rule segment contains
// enough of the rule's text to be evidence of a match: the beginning of the rule segment, its end
// if the rule segment starts with a star, or half of its letters. The path segment "*.json" is no
// evidence for "credentials.json".
func isEvidenceOfMatch(pathSegment, ruleSegment *pathOrPatternSegment) bool {
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
func countLetters(s *pathOrPatternSegment) int {
	var buf [48]wildcardToken
	n := 0
	for _, t := range s.tokens(buf[:0]) {
		if t.kind != tokenStar {
			n++
		}
	}
	return n
}

// findGlobsMatchingWholePath finds the globs that match every path that an effect touches. An approximate
// comparison may assume that the effect touches more paths than it does, but not that a glob matches more paths
// than it does.
func (f *globMatcher) findGlobsMatchingWholePath(path string, isPattern, doubleStarExcludesDotDot, recursive bool) {
	var buf [32]pathOrPatternSegment
	segs := appendSegments(buf[:0], path, isPattern)
	if isPattern && (len(path) > maxPathBytes || slices.ContainsFunc(segs, func(s pathOrPatternSegment) bool {
		return s.kind == doubleStar && !doubleStarExcludesDotDot || hasInnerDoubleStar(s)
	})) {
		segs = append(segs[:0], pathOrPatternSegment{kind: doubleStar}) // unknown text may contain ".."
	}
	f.mustMatchEveryTouchedPath, f.recursive, f.isPattern = true, recursive, isPattern
	f.isPathCaseFolded = len(segs) > 0 && (segs[0].text == uncRoot || isDrive(segs[0].text))
	f.tryIndexedRules(&f.globs.absoluteRules, segs)
	for _, home := range f.globs.knownHomeFolders {
		if len(segs) >= len(home) && slices.Equal(segs[:len(home)], home) {
			f.tryIndexedRules(&f.globs.homeRules, segs[len(home):])
		}
	}
	f.tryRulesAtEverySegment(segs)
}

// recordRuleIfCoversPath records a match if the rule matches every path that the effect's path pattern matches.
// It compares segment by segment: a segment of the rule matches only if it matches every name that the path's
// segment matches.
func (f *globMatcher) recordRuleIfCoversPath(r *globRule, path []pathOrPatternSegment) {
	segs := r.exactSegments
	if f.isPathCaseFolded {
		segs = r.foldedSegments
	}
	end := uint64(1) << len(segs)
	set := 1 | r.doubleStarBits&1<<1
	for k := range path {
		s := &path[k]
		next := set&r.doubleStarBits | r.leadingDoubleStarStartBit
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
		set &= r.doubleStarBits<<1 | r.leadingDoubleStarStartBit
	}
	if set&end != 0 {
		f.recordMatch(r)
	}
}
