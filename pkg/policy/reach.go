package policy

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A hidingDegree says which part of a later rule an earlier rule makes ineffective.
type hidingDegree uint8

const (
	hidesNone                hidingDegree = iota
	hidesAllButOwnExceptions              // all except the exceptions of the earlier rule
	hidesKnownPaths                       // all except partly unknown paths
	hidesAll                              // all
)

// reportUnreachable reports rules that never apply because earlier rules match everything that they match: earlier rules
// of the same list, deny rules before verify and allow rules, and verify rules before allow rules. It
// compares criteria entry by entry and reports only certain cases.
func (l *linter) reportUnreachable(list, name string) {
	at := slices.IndexFunc(l.rulesOf(list), func(r rulefile.Rule) bool { return r.Name == name })
	if at < 0 {
		return
	}
	r := &l.rulesOf(list)[at]
	types := slices.DeleteFunc(slices.Clone(r.ActionTypesAndEffectKinds), func(t string) bool { return canonicalType(t) != t })
	if len(types) == 0 {
		types = []string{""}
	}
	var hidden []overridingRule
	for _, t := range types {
		if b := l.findOverridingRule(list, at, t); b.hiding != hidesNone {
			hidden = append(hidden, b)
		}
	}
	switch {
	case len(hidden) == 0:
	case len(hidden) == len(types) && !slices.ContainsFunc(hidden, func(b overridingRule) bool { return b.hiding == hidesAllButOwnExceptions }):
		b := slices.MinFunc(hidden, func(a, b overridingRule) int { return int(a.hiding) - int(b.hiding) })
		msg := fmt.Sprintf("rule %s is never reached", name)
		if b.hiding == hidesKnownPaths {
			msg = fmt.Sprintf("rule %s is never reached, except for paths with variables or wildcards", name)
		}
		l.add(r.Pos, Warning, "%s: %s", msg, b.reason(list))
	default:
		for _, b := range hidden {
			what := ""
			if b.effectType != "" && len(types) > 1 {
				what = " for " + b.effectType
			}
			if b.hiding == hidesAllButOwnExceptions {
				l.add(r.Pos, Note, "rule %s is reached%s only by actions that an exception of rule %s matches: %s", name, what, b.rule.Name, b.reason(list))
			} else {
				l.add(r.Pos, Note, "rule %s is never reached%s: %s", name, what, b.reason(list))
			}
		}
	}
}

func (l *linter) rulesOf(list string) []rulefile.Rule {
	switch list {
	case "deny":
		return l.effectiveSet.Deny
	case "verify":
		return l.effectiveSet.Verify
	default:
		return l.effectiveSet.Allow
	}
}

// An overridingRule is a rule that takes precedence over another rule for effects of a type.
type overridingRule struct {
	rule       *rulefile.Rule
	listName   string
	effectType string // "" for all types
	hiding     hidingDegree
}

// reason says why the overriding rule takes precedence and how to change that.
func (b overridingRule) reason(list string) string {
	where := "of the preset"
	if b.rule.Pos.Line > 0 {
		where = fmt.Sprintf("in line %d", b.rule.Pos.Line)
	}
	s := fmt.Sprintf("the %s rule %s %s comes first and matches the same actions", b.listName, b.rule.Name, where)
	switch {
	case isProtectedCoreRule(b.rule.Name):
		return s + "; remove your rule: that one is part of the protected core, which allows no exceptions"
	case b.rule.Pos.Line == 0:
		return s + fmt.Sprintf("; to except this from it, add to the list %s: {name: %s, except: {…}}", b.listName, b.rule.Name)
	case b.listName == list:
		return s + "; move the narrower rule up"
	}
	return s + "; add an exception to that rule"
}

// IsProtectedRule reports whether a rule belongs to the protected core, to which no exceptions are possible.
func IsProtectedRule(name string) bool { return isProtectedCoreRule(name) }

func isProtectedCoreRule(name string) bool {
	return slices.ContainsFunc(protectedRules(), func(r rulefile.Rule) bool { return r.Name == name })
}

// protectedRules returns the rules of the protected core.
var protectedRules = sync.OnceValue(func() []rulefile.Rule { return preset{denyRuleIndexes: coreRules}.ruleLists().Deny })

// findOverridingRule returns the rule that takes precedence over a given rule of a list, for
// effects of a type. If several do, it returns the one that leaves the fewest cases to the given
// rule.
func (l *linter) findOverridingRule(list string, at int, typ string) overridingRule {
	r := &l.rulesOf(list)[at]
	best := overridingRule{effectType: typ}
	try := func(name string, rules []rulefile.Rule, how func(a, b *rulefile.Rule) hidingDegree) {
		for i := range rules {
			a := &rules[i]
			if len(a.ActionTypesAndEffectKinds) > 0 && !slices.Contains(a.ActionTypesAndEffectKinds, typ) {
				continue
			}
			if h := how(a, r); h > best.hiding {
				best.rule, best.listName, best.hiding = a, name, h
			}
		}
	}
	if list != "deny" {
		try("deny", l.effectiveSet.Deny, hidesAcrossLists(list))
	}
	if list == "allow" {
		try("verify", l.effectiveSet.Verify, hidesAcrossLists(list))
	}
	try(list, l.rulesOf(list)[:at], hidesWithinList(list))
	return best
}

// hidesWithinList returns a function that tells how much of rule b, later in the same list, rule a hides.
func hidesWithinList(list string) func(a, b *rulefile.Rule) hidingDegree {
	return func(a, b *rulefile.Rule) hidingDegree {
		// An allow rule must cover all effects of an action, which have different types.
		whole := list == "allow" || hasPathsAndHosts(a)
		if whole && !areCriterionEntriesSubset(b.ActionTypesAndEffectKinds, a.ActionTypesAndEffectKinds) || !hasNoPathsOrHosts(a) && !hasAllPathsAndHostsOf(a, b) || !areCriterionEntriesSubset(b.Commands, a.Commands) || !areCriterionEntriesSubset(b.Content, a.Content) || !sameFacts(a, b) {
			return hidesNone
		}
		how := hidingDespiteExceptions(a, b)
		// A partly unknown path certainly matches a rule without paths, and
		// possibly one with paths; the stricter rule counts.
		if list == "verify" && how == hidesAll && hasNoPathsOrHosts(a) && len(b.Paths) > 0 && b.Tier > a.Tier {
			return hidesKnownPaths
		}
		return how
	}
}

// hidesAcrossLists returns a function that reports how much of rule b is hidden by rule a, which is
// in an earlier list. Only an allow rule must cover whole effects; an effect that it covers
// certainly matches a rule with the same paths.
func hidesAcrossLists(list string) func(a, b *rulefile.Rule) hidingDegree {
	return func(a, b *rulefile.Rule) hidingDegree {
		if len(a.Commands) > 0 || len(a.Content) > 0 || !sameFacts(a, b) {
			return hidesNone
		}
		if !hasNoPathsOrHosts(a) && (list != "allow" || hasPathsAndHosts(a) || !hasAllPathsAndHostsOf(a, b) || slices.ContainsFunc(b.Paths, hasNoLiteralText)) {
			return hidesNone
		}
		return hidingDespiteExceptions(a, b)
	}
}

// sameFacts reports whether each criterion of rule a on facts, condition, trust, restorability and
// session is empty or equal to that of rule b.
func sameFacts(a, b *rulefile.Rule) bool {
	return (len(a.Facts) == 0 || reflect.DeepEqual(a.Facts, b.Facts)) && (a.When == "" || a.When == b.When) && (a.TrustedTrueFalseOrAny == "" || a.TrustedTrueFalseOrAny == b.TrustedTrueFalseOrAny) && (a.RestorableTrueFalseBackedUpOrAny == "" || a.RestorableTrueFalseBackedUpOrAny == b.RestorableTrueFalseBackedUpOrAny) &&
		(a.Session.Empty() || reflect.DeepEqual(a.Session, b.Session))
}

// hidingDespiteExceptions returns how much of rule b is hidden by rule a, given the exceptions of
// a. The caller must have checked that the criteria of a hold wherever those of b do.
func hidingDespiteExceptions(a, b *rulefile.Rule) hidingDegree {
	for i := range a.Except {
		if !slices.ContainsFunc(b.Except, func(x rulefile.Criteria) bool { return sameCriteria(x, a.Except[i]) }) {
			return hidesAllButOwnExceptions
		}
	}
	return hidesAll
}

func sameCriteria(a, b rulefile.Criteria) bool {
	a.Positions, b.Positions = nil, nil
	return reflect.DeepEqual(a, b)
}

func hasNoPathsOrHosts(r *rulefile.Rule) bool { return len(r.Paths) == 0 && len(r.Hosts) == 0 }

// hasPathsAndHosts reports whether a rule has both paths and hosts, which may match two different effects.
func hasPathsAndHosts(r *rulefile.Rule) bool { return len(r.Paths) > 0 && len(r.Hosts) > 0 }

func hasNoLiteralText(glob string) bool { return !effect.HasLiteralText(glob) }

// hasAllPathsAndHostsOf reports whether a contains every path and host of b.
func hasAllPathsAndHostsOf(a, b *rulefile.Rule) bool {
	return (len(a.Paths) == 0) == (len(b.Paths) == 0) && (len(a.Hosts) == 0) == (len(b.Hosts) == 0) &&
		areCriterionEntriesSubset(expandGlobs(b.Paths), expandGlobs(a.Paths)) && areCriterionEntriesSubset(b.Hosts, a.Hosts)
}

func expandGlobs(globs []string) (out []string) {
	for _, g := range globs {
		out = append(out, rulefile.Expand(g)...)
	}
	return out
}

// areCriterionEntriesSubset reports whether all entries of a criterion are among those of another. A criterion without entries
// matches everything.
func areCriterionEntriesSubset(subset, superset []string) bool {
	if len(superset) == 0 {
		return true
	}
	return len(subset) > 0 && !slices.ContainsFunc(subset, func(s string) bool { return !slices.Contains(superset, s) })
}
