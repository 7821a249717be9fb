package policy

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A ruleShadowing says which part of a later rule an earlier rule makes ineffective.
type ruleShadowing uint8

const (
	ruleShadowingNone             ruleShadowing = iota
	ruleShadowingAllButExceptions               // everything that the later rule matches, except what an exception of the earlier rule matches
	ruleShadowingAllKnownPaths                  // all except partly unknown paths
	ruleShadowingAll                            // all
)

// reportUnreachableRule reports a rule that never applies, at least for some of its action types,
// because earlier rules match the same actions. Earlier rules are those above it in its list, deny
// rules for verify and allow rules, and verify rules for allow rules. It compares criteria entry by
// entry, and does not report a rule if it is not sure.
func (l *linter) reportUnreachableRule(listName, ruleName string) {
	at := slices.IndexFunc(l.rulesOf(listName), func(r rulefile.Rule) bool { return r.Name == ruleName })
	if at < 0 {
		return
	}
	r := &l.rulesOf(listName)[at]
	types := slices.DeleteFunc(slices.Clone(r.ActionTypesAndEffectKinds), func(t string) bool { return resolveActionTypeAlias(t) != t })
	if len(types) == 0 {
		types = []string{""}
	}
	var hidden []shadowingRule
	for _, t := range types {
		if b := l.findShadowingRule(listName, at, t); b.shadowing != ruleShadowingNone {
			hidden = append(hidden, b)
		}
	}
	switch {
	case len(hidden) == 0:
	case len(hidden) == len(types) && !slices.ContainsFunc(hidden, func(b shadowingRule) bool { return b.shadowing == ruleShadowingAllButExceptions }):
		b := slices.MinFunc(hidden, func(a, b shadowingRule) int { return int(a.shadowing) - int(b.shadowing) })
		msg := fmt.Sprintf("rule %s is never reached", ruleName)
		if b.shadowing == ruleShadowingAllKnownPaths {
			msg = fmt.Sprintf("rule %s is never reached, except for paths with variables or wildcards", ruleName)
		}
		l.add(r.Pos, Warning, "%s: %s", msg, b.explainPrecedence(listName))
	default:
		for _, b := range hidden {
			what := ""
			if b.actionTypeOrEffectKind != "" && len(types) > 1 {
				what = " for " + b.actionTypeOrEffectKind
			}
			if b.shadowing == ruleShadowingAllButExceptions {
				l.add(r.Pos, Note, "rule %s is reached%s only by actions under \"except\" of rule %s: %s", ruleName, what, b.rule.Name, b.explainPrecedence(listName))
			} else {
				l.add(r.Pos, Note, "rule %s is never reached%s: %s", ruleName, what, b.explainPrecedence(listName))
			}
		}
	}
}

func (l *linter) rulesOf(list string) []rulefile.Rule {
	switch list {
	case "deny":
		return l.mergedRuleLists.Deny
	case "verify":
		return l.mergedRuleLists.Verify
	default:
		return l.mergedRuleLists.Allow
	}
}

// A shadowingRule is a rule that takes precedence over another rule for one action type or kind of effect.
type shadowingRule struct {
	rule                   *rulefile.Rule
	listName               string
	actionTypeOrEffectKind string // "" for all types
	shadowing              ruleShadowing
}

// explainPrecedence says why the overriding rule takes precedence and how to change that.
func (b shadowingRule) explainPrecedence(shadowedRuleList string) string {
	where := "of the preset"
	if b.rule.Pos.Line > 0 {
		where = fmt.Sprintf("in line %d", b.rule.Pos.Line)
	}
	s := fmt.Sprintf("the %s rule %s %s comes first and matches the same actions", b.listName, b.rule.Name, where)
	switch {
	case isProtectedFromExceptions(b.rule.Name):
		return s + "; remove your rule: that one is part of the protected core, which allows no exceptions"
	case b.rule.Pos.Line == 0:
		return s + fmt.Sprintf("; to except this from it, add to the list %s: {name: %s, except: {…}}", b.listName, b.rule.Name)
	case b.listName == shadowedRuleList:
		return s + "; move the narrower rule up"
	}
	return s + "; add an exception to that rule"
}

// IsRuleProtectedFromExceptions reports whether a rule belongs to the protected core, to which no exceptions are possible.
func IsRuleProtectedFromExceptions(ruleName string) bool { return isProtectedFromExceptions(ruleName) }

func isProtectedFromExceptions(ruleName string) bool {
	return slices.ContainsFunc(rulesProtectedFromExceptions(), func(r rulefile.Rule) bool { return r.Name == ruleName })
}

// rulesProtectedFromExceptions returns the rules of the protected core.
var rulesProtectedFromExceptions = sync.OnceValue(func() []rulefile.Rule { return preset{denyRuleIndexes: coreRules}.ruleLists().Deny })

// findShadowingRule returns the rule that takes precedence over a given rule of a list, for
// effects of a type. If several do, it returns the one that leaves the fewest cases to the given
// rule.
func (l *linter) findShadowingRule(list string, at int, typ string) shadowingRule {
	r := &l.rulesOf(list)[at]
	best := shadowingRule{actionTypeOrEffectKind: typ}
	try := func(name string, rules []rulefile.Rule, how func(a, b *rulefile.Rule) ruleShadowing) {
		for i := range rules {
			a := &rules[i]
			if len(a.ActionTypesAndEffectKinds) > 0 && !slices.Contains(a.ActionTypesAndEffectKinds, typ) {
				continue
			}
			if h := how(a, r); h > best.shadowing {
				best.rule, best.listName, best.shadowing = a, name, h
			}
		}
	}
	if list != "deny" {
		try("deny", l.mergedRuleLists.Deny, earlierListShadowingFunc(list))
	}
	if list == "allow" {
		try("verify", l.mergedRuleLists.Verify, earlierListShadowingFunc(list))
	}
	try(list, l.rulesOf(list)[:at], sameListShadowingFunc(list))
	return best
}

// sameListShadowingFunc returns a function that tells how much of rule b, later in the same list, rule a hides.
func sameListShadowingFunc(list string) func(a, b *rulefile.Rule) ruleShadowing {
	return func(a, b *rulefile.Rule) ruleShadowing {
		// Rule a must list all types of rule b if it is an allow rule, which must cover every effect of an
		// action, or if it has both paths and hosts, which two different effects may match.
		whole := list == "allow" || hasPathsAndHosts(a)
		if whole && !areCriterionEntriesSubset(b.ActionTypesAndEffectKinds, a.ActionTypesAndEffectKinds) || !hasNeitherPathsNorHosts(a) && !hasAllPathsAndHostsOf(a, b) || !areCriterionEntriesSubset(b.Commands, a.Commands) || !areCriterionEntriesSubset(b.Content, a.Content) || !subsumesEffectCriteria(a, b) {
			return ruleShadowingNone
		}
		how := classifyShadowingByEarlierExceptions(a, b)
		// If an effect's path is partly unknown, rule a, which has no paths, certainly matches, and rule b
		// possibly matches. The stricter of the two counts, so rule b is still reached if its tier is higher.
		if list == "verify" && how == ruleShadowingAll && hasNeitherPathsNorHosts(a) && len(b.Paths) > 0 && b.Tier > a.Tier {
			return ruleShadowingAllKnownPaths
		}
		return how
	}
}

// earlierListShadowingFunc returns a function that reports how much of rule b, which is in the list
// shadowedRuleList, is hidden by rule a, which is in an earlier list. A rule a with paths or hosts hides only
// allow rules: an allow rule must cover a partly unknown path completely, and then a rule with the same paths
// certainly matches. A verify rule can match where rule a only possibly matches.
func earlierListShadowingFunc(shadowedRuleList string) func(a, b *rulefile.Rule) ruleShadowing {
	return func(a, b *rulefile.Rule) ruleShadowing {
		if len(a.Commands) > 0 || len(a.Content) > 0 || !subsumesEffectCriteria(a, b) {
			return ruleShadowingNone
		}
		if !hasNeitherPathsNorHosts(a) && (shadowedRuleList != "allow" || hasPathsAndHosts(a) || !hasAllPathsAndHostsOf(a, b) || slices.ContainsFunc(b.Paths, hasNoLiteralText)) {
			return ruleShadowingNone
		}
		return classifyShadowingByEarlierExceptions(a, b)
	}
}

// subsumesEffectCriteria reports whether each criterion of the earlier rule on effect properties, condition,
// trust, restorability and session is empty or equal to that of the later rule.
func subsumesEffectCriteria(earlierRule, laterRule *rulefile.Rule) bool {
	return (len(earlierRule.EffectPropertyCriteria) == 0 || reflect.DeepEqual(earlierRule.EffectPropertyCriteria, laterRule.EffectPropertyCriteria)) && (earlierRule.ConditionJQ == "" || earlierRule.ConditionJQ == laterRule.ConditionJQ) && (earlierRule.RequiredTargetTrust == "" || earlierRule.RequiredTargetTrust == laterRule.RequiredTargetTrust) && (earlierRule.RequiredRestorability == "" || earlierRule.RequiredRestorability == laterRule.RequiredRestorability) &&
		(earlierRule.Session.Empty() || reflect.DeepEqual(earlierRule.Session, laterRule.Session))
}

// classifyShadowingByEarlierExceptions returns how much of the later rule the earlier rule hides, given the
// exceptions of the earlier rule. The caller must have checked that the earlier rule matches
// whatever the later rule matches.
func classifyShadowingByEarlierExceptions(earlierRule, laterRule *rulefile.Rule) ruleShadowing {
	for i := range earlierRule.Except {
		if !slices.ContainsFunc(laterRule.Except, func(x rulefile.Criteria) bool { return sameCriteria(x, earlierRule.Except[i]) }) {
			return ruleShadowingAllButExceptions
		}
	}
	return ruleShadowingAll
}

func sameCriteria(a, b rulefile.Criteria) bool {
	a.EntryPositionsByCriterionKey, b.EntryPositionsByCriterionKey = nil, nil
	return reflect.DeepEqual(a, b)
}

func hasNeitherPathsNorHosts(r *rulefile.Rule) bool { return len(r.Paths) == 0 && len(r.Hosts) == 0 }

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
		out = append(out, rulefile.ExpandGlobBraces(g)...)
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
