package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A ruleMatches holds the deny and verify rules that match an effect.
type ruleMatches struct {
	certain  ruleSet
	possible ruleSet // rules that match only if something unknown is true: the rest of a path, a folder's content, or the effect itself
}

// firstApplyingRuleIndex returns the index of the first candidate rule, from startIndex up to but
// without endIndex, that applies to an effect; -1 if there is none.
func (s *ruleSearch) firstApplyingRuleIndex(candidates *ruleSet, startIndex, endIndex int, e *effect.Effect) (int, error) {
	for r := candidates.next(startIndex); r >= 0 && r < endIndex; r = candidates.next(r + 1) {
		ok, err := s.index.matchers[r].effectPropertyCriteria.match(s, e)
		if ok && err == nil {
			ok, err = s.matchesWholeActionCriteria(r)
		}
		if err != nil {
			return -1, &ruleError{r, err}
		}
		if !ok {
			continue
		}
		out, err := s.isExcepted(r, e)
		if err != nil {
			return -1, err
		}
		if !out {
			return r, nil
		}
	}
	return -1, nil
}

// matchingRules returns the rules whose types, paths and hosts an effect matches.
func (s *ruleSearch) matchingRules(e *effect.Effect) ruleMatches {
	typed := s.index.candidateRules(s.judgedCase.Action, e)
	t := s.rulesByPathOrHost(e)
	t.certain.intersect(&typed)
	t.possible.intersect(&typed)

	free := s.index.rulesWithNeitherPathsNorHosts
	free.intersect(&typed)
	t.certain.union(&free)
	if e.Certainty == effect.Possible {
		t.possible.union(&t.certain)
		t.certain.intersect(&s.index.coreRulesProtectedFromExceptions) // a possible effect certainly matches only the protected core, which blocks harm to shield or the system
	}
	return t
}

// findRulesMatchingPathAndHost finds the rules with paths and hosts for which one effect matches the paths and one matches the hosts.
// Otherwise such a rule does not match.
func (s *ruleSearch) findRulesMatchingPathAndHost() {
	want := s.index.withPaths
	want.intersect(&s.index.withHosts)
	if want.isEmpty() {
		return
	}
	var paths, hosts ruleSet
	for i := range s.judgedCase.Effects {
		e := &s.judgedCase.Effects[i]
		typed := s.index.candidateRules(s.judgedCase.Action, e)
		p := s.rulesByPath(e)
		p.certain.union(&p.possible)
		p.certain.intersect(&typed)
		paths.union(&p.certain)
		h := s.rulesByHost(e)
		h.intersect(&typed)
		hosts.union(&h)
	}
	s.rulesMatchingPathAndHost = want
	s.rulesMatchingPathAndHost.intersect(&paths)
	s.rulesMatchingPathAndHost.intersect(&hosts)
}

// rulesByPathOrHost returns the rules with paths or hosts that match an effect, for any kind of effect.
func (s *ruleSearch) rulesByPathOrHost(e *effect.Effect) ruleMatches {
	t := s.rulesByPath(e)
	hosts := s.rulesByHost(e)
	t.certain.union(&hosts)
	unpaired := s.index.withPaths
	unpaired.intersect(&s.index.withHosts)
	unpaired.subtract(&s.rulesMatchingPathAndHost)
	t.certain.subtract(&unpaired)
	t.possible.subtract(&unpaired)
	return t
}

func (s *ruleSearch) rulesByHost(e *effect.Effect) (set ruleSet) {
	if e.Host == "" || len(s.index.hostPatterns) == 0 {
		return set
	}
	addr := effect.ParseAddr(e.Host)
	for i := range s.index.hostPatterns {
		if s.index.hostPatterns[i].Match(e.Host, addr) {
			set.add(s.index.ruleIndexByHostPattern[i])
		}
	}
	return set
}

// rulesByPath finds the rules whose globs match an effect's path, see [effect.Globs.FirstPossibleMatch].
func (s *ruleSearch) rulesByPath(e *effect.Effect) (t ruleMatches) {
	if e.Path == "" {
		return t
	}
	if !e.PathIsPattern {
		s.addKnownPathMatches(&t, e, e.Path, e.Recursive)
		return t
	}
	if sight := knownPathPartOf(e.Path); sight != knownPathPartNone {
		s.addPartlyKnownPathMatches(&t, e, sight)
		s.refineMatchesByExistingFiles(&t, e)
	}
	if folder, ok := emptiedFolder(e); ok && !strings.ContainsAny(folder, `*?[\`) {
		s.addKnownPathMatches(&t, e, folder, true)
	}
	return t
}

// refineMatchesByExistingFiles refines the match of a pattern by the files that it matches on the disk. In the workspace, if the
// expansion is complete, only these files count; otherwise they are added. If no rule could match the pattern
// itself, only deny rules are considered.
func (s *ruleSearch) refineMatchesByExistingFiles(t *ruleMatches, e *effect.Effect) {
	could := t.certain
	could.union(&t.possible)
	if could.isEmpty() {
		if e.DoubleStarExcludesDotDot {
			return // the effect is a search of the folder, and does not use each matching file
		}
		for r := range s.denyRuleCount {
			could.add(r)
		}
	}
	var known, hidden ruleMatches
	for _, set := range s.index.globSetsFor(e.Path, true) {
		for _, g := range set.mustCompile().AppendCoveringGlobs(s.matchedGlobIndexBuffer[:0], e.Path, true, e.DoubleStarExcludesDotDot, e.Recursive) {
			known.certain.add(set.ruleOfGlob[g])
		}
	}
	x := s.judgedCase.ExpandPathGlob(e)
	for _, name := range x.Paths {
		s.addKnownPathMatches(&known, e, name, e.Recursive)
	}
	for _, name := range x.DotFilesAmongPaths {
		s.addKnownPathMatches(&hidden, e, name, e.Recursive)
	}
	hidden.certain.intersect(&could)
	known.possible.union(&hidden.certain)
	switch at := s.judgedCase.ExecutionContext(); {
	case t.certain.isEmpty() && t.possible.isEmpty():
		known.certain.intersect(&could)
		t.certain = known.certain
	case x.Complete && at.IsInsideRoots(e.Path, true, e.DoubleStarExcludesDotDot):
		*t = known
	case e.DoubleStarExcludesDotDot && e.Kind == effect.ReadFile && at.IsInsideRoots(e.Path, true, true) && startsWithWildcard(path.Base(e.Path)):
		s.addKnownPathMatches(&known, e, literalFolderPrefix(e.Path), true) // too many files: treat as if the whole folder were read
		*t = known
	case e.DoubleStarExcludesDotDot && startsWithWildcard(path.Base(e.Path)): // the effect is a search of the folder, and does not use each matching file
		t.possible.union(&known.certain)
	default:
		t.certain.union(&known.certain)
	}
}

// addKnownPathMatches adds the rules that match an effect on a known path. If the effect is a recursive read, or a write
// somewhere in a folder, a rule for a file below only possibly matches, unless the folder is the one where a
// program keeps that file.
func (s *ruleSearch) addKnownPathMatches(matches *ruleMatches, e *effect.Effect, path string, isRecursive bool) {
	reads := e.Kind == effect.ReadFile || e.Kind == effect.ListDirectory
	writes := e.Kind == effect.WriteFile || e.Kind == effect.Persist
	above := isRecursive && (reads || writes)
	modes := isRecursive && e.Kind == effect.ChangePermissions
	for _, set := range s.index.globSetsFor(path, false) {
		var itself []int
		if above || modes {
			itself = set.mustCompile().AppendTouchedGlobIndices(s.exactPathGlobIndexBuffer[:0], path, false, false)
		}
		for _, g := range set.mustCompile().AppendTouchedGlobIndices(s.matchedGlobIndexBuffer[:0], path, false, isRecursive) {
			switch {
			case above && set.segmentGlobAt(g).glob == "$SHIELD_CACHE_PARENT": // no match: rules with $SHIELD_CACHE/** already protect the cache from a recursive read or write
			case writes && set.segmentGlobAt(g).isForPolicyFiles() && s.index.holdsPolicyFile(path):
				matches.certain.add(set.ruleOfGlob[g])
			case above && (writes || !set.segmentGlobAt(g).isForPolicyFiles()) && !slices.Contains(itself, g) && !set.segmentGlobAt(g).isGlobDirectlyInHiddenFolder(path):
				matches.possible.add(set.ruleOfGlob[g])
			case modes && !slices.Contains(itself, g) && (set.segmentGlobAt(g).matchesOnlyOtherUsersHomesBelow(path) || set.segmentGlobAt(g).isFolderInHome(path) && !s.index.coreRulesProtectedFromExceptions.has(set.ruleOfGlob[g])):
				matches.possible.add(set.ruleOfGlob[g])
			case !isRecursive || !set.segmentGlobAt(g).isForPolicyFiles() || s.index.isPolicyPath(path):
				matches.certain.add(set.ruleOfGlob[g])
			case e.Kind == effect.ReadFile: // a recursive read of a folder is a search, which does not count as reading a policy file in the folder
			default:
				matches.certain.add(set.ruleOfGlob[g])
			}
		}
	}
}

// addPartlyKnownPathMatches adds the rules that match a partly unknown path. It is not enough that some path matches both
// pattern and glob: "$d/package.json" could be in ~/.ssh. The pattern must contain the literal names of the
// glob, or be inside it. If nothing below a folder is known ("$HOME/$f"), the path possibly matches every
// glob for that folder.
func (s *ruleSearch) addPartlyKnownPathMatches(t *ruleMatches, e *effect.Effect, knownPortion knownPathPart) {
	for _, set := range s.index.globSetsFor(e.Path, true) {
		for _, g := range set.mustCompile().AppendTouchedGlobIndices(s.matchedGlobIndexBuffer[:0], e.Path, true, e.Recursive) {
			if e.DoubleStarExcludesDotDot && set.segmentGlobAt(g).cannotMatchBelow(literalFolderPrefix(e.Path)) {
				continue
			}
			switch set.segmentGlobAt(g).matchSegments(e.Path) {
			case segmentMatchAll:
				if e.Kind == effect.DeleteFile && !e.Recursive && !e.DoubleStarExcludesDotDot && strings.HasSuffix(e.Path, "/**") {
					t.possible.add(set.ruleOfGlob[g]) // the command deletes one unknown file in the folder, so it is uncertain whether the rule matches
				} else {
					t.certain.add(set.ruleOfGlob[g])
				}
			case segmentMatchPossiblyAll:
				t.possible.add(set.ruleOfGlob[g])
			case segmentMatchLastOnly:
				if !set.segmentGlobAt(g).isForPolicyFiles() || e.Kind != effect.ReadFile {
					t.possible.add(set.ruleOfGlob[g])
				}
			case segmentMatchNone:
			}
		}
		for _, g := range set.mustCompile().AppendCoveringGlobs(s.matchedGlobIndexBuffer[:0], e.Path, true, e.DoubleStarExcludesDotDot, e.Recursive) {
			t.certain.add(set.ruleOfGlob[g])
		}
		if knownPortion != knownPathPartFolderOnly {
			continue
		}
		for _, g := range set.mustCompile().AppendTouchedGlobIndices(s.matchedGlobIndexBuffer[:0], literalFolderPrefix(e.Path), false, true) {
			if !set.segmentGlobAt(g).matchesAnyFolder() && (!set.segmentGlobAt(g).isForPolicyFiles() || s.index.mayChangePolicyPath(e)) {
				t.possible.add(set.ruleOfGlob[g])
			}
		}
	}
}
