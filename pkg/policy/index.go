package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A ruleList is a list of rules, compiled on first use: many actions are decided before the last list is needed.
type ruleList struct {
	rules   []rulefile.Rule
	compile func() (*ruleIndex, error)
}

// newRuleList returns a list. Exceptions to deny and verify rules make the policy less strict; exceptions to
// allow rules make it stricter.
func newRuleList(rules []rulefile.Rule, vars map[string][]string, allow bool) ruleList {
	return ruleList{rules, sync.OnceValues(func() (*ruleIndex, error) { return compileRuleList(rules, vars, allow) })}
}

// A ruleIndex finds the rules of a list that match an effect. All globs are matched at once, so the time hardly
// depends on the number of rules.
type ruleIndex struct {
	matchers []ruleMatcher

	rulesByActionTypeOrKind          map[string]*ruleSet  // rules that list an action type or kind
	rulesWithoutTypeOrKind           ruleSet              // rules that list no action type and no kind of effect
	rulesWithNeitherPathsNorHosts    ruleSet              // rules with neither paths nor hosts
	coreRulesProtectedFromExceptions ruleSet              // rules of the protected core
	byRequiredTargetTrust            rulesByBoolCriterion // rules that require a trusted place, or an untrusted one
	byRequiredFileRestorability      rulesByBoolCriterion // rules that require that version control can restore the file, or cannot
	rulesRequiringShieldBackup       ruleSet              // rules that require that shield backs up the file
	rulesBySendingEarlierReadValue   rulesByBoolCriterion // rules for values that the session has seen, or for all other values
	withPaths                        ruleSet
	withHosts                        ruleSet

	policyPaths    []string // policy files, and those parent folders of shield's files that are symbolic links or do not exist
	workspaceRoots []string // workspace folders

	posixGlobs             globSet
	driveGlobs             globSet // globs that begin with a drive or a share
	globSets               [2]*globSet
	hostPatterns           []effect.HostPattern
	ruleIndexByHostPattern []int // index of the rule of each entry of hostPatterns
}

// A ruleMatcher is the criteria of a rule other than types, paths and hosts.
type ruleMatcher struct {
	effectPropertyCriteria effectPropertyCriteria
	wholeActionCriteria    *wholeActionCriteria
	exceptions             []ruleException
}

func compileRuleList(rules []rulefile.Rule, vars map[string][]string, areAllowRules bool) (*ruleIndex, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("more than %d rules in a list; combine rules", maxRules)
	}
	x := &ruleIndex{
		matchers: make([]ruleMatcher, len(rules)), rulesByActionTypeOrKind: make(map[string]*ruleSet, 32),
		policyPaths: slices.Concat(vars["SHIELD_POLICY"], vars["SHIELD_WAY"]), workspaceRoots: vars["WORKSPACE"],
	}
	x.globSets = [...]*globSet{&x.posixGlobs, &x.driveGlobs}
	for i := range rules {
		r := &rules[i]
		x.addRuleByTypesAndKinds(i, r.ActionTypesAndEffectKinds)
		if len(r.Paths) == 0 && len(r.Hosts) == 0 {
			x.rulesWithNeitherPathsNorHosts.add(i)
		}
		if isProtectedFromExceptions(r.Name) {
			x.coreRulesProtectedFromExceptions.add(i)
		}
		x.byRequiredTargetTrust.add(i, r.RequiredTargetTrust)
		x.byRequiredFileRestorability.add(i, r.RequiredRestorability)
		if r.RequiredRestorability == "kept" {
			x.rulesRequiringShieldBackup.add(i)
		}
		x.rulesBySendingEarlierReadValue.add(i, r.Session.SendsEarlierReadValue)
		for _, g := range r.Paths {
			x.withPaths.add(i)
			for _, g := range rulefile.ExpandGlobBraces(g) {
				if isDriveGlob(g) {
					x.driveGlobs.add(g, i)
				} else {
					x.posixGlobs.add(g, i)
				}
			}
		}
		for _, h := range r.Hosts {
			p, err := effect.ParseHostPattern(h)
			if err != nil {
				return nil, fmt.Errorf("rule %s: %w", yamlfile.QuoteForMessage(r.Name), err)
			}
			x.withHosts.add(i)
			x.hostPatterns = append(x.hostPatterns, p)
			x.ruleIndexByHostPattern = append(x.ruleIndexByHostPattern, i)
		}
		x.matchers[i].effectPropertyCriteria = compileEffectPropertyCriteria(r.EffectPropertyCriteria)
		x.matchers[i].wholeActionCriteria = compileWholeActionCriteria(&r.Criteria, areAllowRules)
		for k := range r.Except {
			e, err := compileException(&r.Except[k], vars, !areAllowRules)
			if err != nil {
				return nil, fmt.Errorf("rule %s: %w", yamlfile.QuoteForMessage(r.Name), err)
			}
			x.matchers[i].exceptions = append(x.matchers[i].exceptions, e)
		}
	}
	x.driveGlobs.compileLazily(vars)
	x.posixGlobs.compileLazily(vars)
	_, err := x.posixGlobs.compileOnce()
	return x, err
}

// A globSet matches the globs of many rules.
type globSet struct {
	globs       []string
	ruleOfGlob  []int // index of the rule of each glob
	vars        map[string][]string
	compileOnce func() (*effect.Globs, error)
}

func (s *globSet) add(glob string, rule int) {
	s.globs = append(s.globs, glob)
	s.ruleOfGlob = append(s.ruleOfGlob, rule)
}

// compileLazily prepares the set for compilation on first use: most processes never see a path with a drive.
func (s *globSet) compileLazily(vars map[string][]string) {
	s.vars = vars
	s.compileOnce = sync.OnceValues(func() (*effect.Globs, error) { return effect.NewGlobs(s.globs, vars) })
}

// mustCompile returns the set. It panics on an invalid glob: all globs were checked when the policy was loaded,
// so that would be a bug. The caller turns the panic into a BLOCK.
func (s *globSet) mustCompile() *effect.Globs {
	g, err := s.compileOnce()
	if err != nil {
		panic(err)
	}
	return g
}

// segmentGlobAt returns the glob with index g, together with the folders that glob variables such
// as $HOME stand for.
func (s *globSet) segmentGlobAt(g int) segmentGlob { return segmentGlob{s.globs[g], s.vars} }

// isDriveGlob reports whether a glob matches only Windows paths.
func isDriveGlob(glob string) bool {
	return len(glob) > 1 && glob[1] == ':' || strings.HasPrefix(glob, "//")
}

// globSetsFor returns the glob sets that can match a path. A path that starts with "/" is not on a drive, so most
// paths skip half of the globs.
func (x *ruleIndex) globSetsFor(path string, isPattern bool) []*globSet {
	if !isPattern && path[0] == '/' {
		return x.globSets[:1]
	}
	return x.globSets[:]
}

func (x *ruleIndex) addRuleByTypesAndKinds(rule int, typesAndKinds []string) {
	if len(typesAndKinds) == 0 {
		x.rulesWithoutTypeOrKind.add(rule)
	}
	for _, t := range typesAndKinds {
		set := x.rulesByActionTypeOrKind[t]
		if set == nil {
			set = new(ruleSet)
			x.rulesByActionTypeOrKind[t] = set
		}
		set.add(rule)
	}
}

// rulesByBoolCriterion are the rules with a criterion of value true or false.
type rulesByBoolCriterion struct{ requireTrue, requireFalse ruleSet }

func (t *rulesByBoolCriterion) add(rule int, want string) {
	switch want {
	case "true":
		t.requireTrue.add(rule)
	case "false":
		t.requireFalse.add(rule)
	}
}

// removeRulesRequiringOther removes from a set the rules that require true if actualValue is false,
// or that require false if actualValue is true.
func (t *rulesByBoolCriterion) removeRulesRequiringOther(set *ruleSet, actualValue bool) {
	if actualValue {
		set.subtract(&t.requireFalse)
	} else {
		set.subtract(&t.requireTrue)
	}
}

// candidateRules returns the rules whose types, and criteria on trust, restorability and seen values, an effect meets.
func (x *ruleIndex) candidateRules(a *action.Action, e *effect.Effect) ruleSet {
	set := x.rulesApplyingToTypeOrKind(a, e.KindForPolicies())
	x.byRequiredTargetTrust.removeRulesRequiringOther(&set, e.IsTargetTrusted)
	x.byRequiredFileRestorability.removeRulesRequiringOther(&set, e.IsRestorableWithoutBackup)
	if !e.IsBackedUpByShield {
		set.subtract(&x.rulesRequiringShieldBackup)
	}
	x.rulesBySendingEarlierReadValue.removeRulesRequiringOther(&set, e.Cause == effect.CauseSecretReadEarlierInSession)
	return set
}

// rulesNamingActionType returns the rules that list the action's type under one of its names.
func (x *ruleIndex) rulesNamingActionType(a *action.Action) (set ruleSet) {
	for _, name := range [...]string{a.Type, a.OriginalTypeSharedByOtherTools} {
		if s := x.rulesByActionTypeOrKind[name]; s != nil {
			set.union(s)
		}
	}
	return set
}

// rulesApplyingToTypeOrKind returns the rules that list a kind of effect, or the action's type under one of its names, or no
// types.
func (x *ruleIndex) rulesApplyingToTypeOrKind(a *action.Action, kind effect.Kind) ruleSet {
	set := x.rulesWithoutTypeOrKind
	if s := x.rulesByActionTypeOrKind[a.Type]; s != nil {
		set.union(s)
	}
	if s := x.rulesByActionTypeOrKind[a.OriginalTypeSharedByOtherTools]; s != nil {
		set.union(s)
	}
	if string(kind) != a.Type {
		if s := x.rulesByActionTypeOrKind[string(kind)]; s != nil {
			set.union(s)
		}
	}
	return set
}

// A ruleSearch is the state of judging one case by the lists of a policy.
type ruleSearch struct {
	ctx                      context.Context
	judgedCase               *analysis.ActionCase
	index                    *ruleIndex // index of the rule list that is searched
	rulesMatchingPathAndHost ruleSet    // rules with both paths and hosts: one effect matches the path, and the same or another effect the host

	denyRuleCount int // number of deny rules, which are first in the list

	conditionInput any // input of jq conditions; nil until the first is evaluated

	rulesEvaluatedOnWholeAction, rulesMatchingWholeAction ruleSet // rules whose [wholeActionCriteria] were evaluated, and those of them that matched
	matchedGlobIndexBuffer, exactPathGlobIndexBuffer      [48]int // buffers for indices of globs
}

var searchPool = sync.Pool{New: func() any { return new(ruleSearch) }}

// resetForRuleList starts the search of a list.
func (s *ruleSearch) resetForRuleList(x *ruleIndex) {
	s.index, s.rulesMatchingPathAndHost, s.rulesEvaluatedOnWholeAction, s.rulesMatchingWholeAction = x, ruleSet{}, ruleSet{}, ruleSet{}
}

// matchesWholeActionCriteria reports whether the action meets a rule's criteria on the whole
// action, such as commands, content and jq conditions. It evaluates them once for each rule.
func (s *ruleSearch) matchesWholeActionCriteria(rule int) (bool, error) {
	m := &s.index.matchers[rule]
	if m.wholeActionCriteria == nil {
		return true, nil
	}
	if !s.rulesEvaluatedOnWholeAction.has(rule) {
		ok, err := m.wholeActionCriteria.match(s)
		if err != nil {
			return false, &ruleError{rule, err}
		}
		s.rulesEvaluatedOnWholeAction.add(rule)
		if ok {
			s.rulesMatchingWholeAction.add(rule)
		}
	}
	return s.rulesMatchingWholeAction.has(rule), nil
}

// isExcepted reports whether an exception of a rule holds for an effect.
func (s *ruleSearch) isExcepted(rule int, e *effect.Effect) (bool, error) {
	for i := range s.index.matchers[rule].exceptions {
		ok, err := s.index.matchers[rule].exceptions[i].match(s, e)
		if err != nil {
			return false, &ruleError{rule, err}
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}

// A ruleError means that a rule could not be evaluated.
type ruleError struct {
	ruleIndexInList int
	err             error
}

func (e *ruleError) Error() string { return e.err.Error() }
func (e *ruleError) Unwrap() error { return e.err }
