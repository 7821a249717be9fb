package policy

import (
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A ruleListMatches is the result of a list for a case: the rule that certainly matches, and the
// rule that possibly matches, depending on an unknown part of the action.
type ruleListMatches struct {
	certain, possible matchedRule
}

// A matchedRule is a rule and the effect that matches it.
type matchedRule struct {
	rule            *rulefile.Rule
	indexInRuleList int // index of rule in its rule list
	effect          *effect.Effect
}

// tier returns the lowest tier that may decide according to the chosen rule; 0 without a rule.
func (ch *matchedRule) tier() int {
	if ch.rule == nil {
		return 0
	}
	return ch.rule.Tier
}

// replaceIfStricter replaces the chosen rule by the rule at candidateRuleIndex if that rule asks for a higher
// tier, or for the same tier and is listed earlier. A negative index changes nothing. Between rules of the same
// tier, if one effect deletes a folder and the other only reads the same path, the rule for the deletion is
// chosen, whatever the order.
func (ch *matchedRule) replaceIfStricter(rules []rulefile.Rule, candidateRuleIndex int, e *effect.Effect) {
	if candidateRuleIndex < 0 || ch.rule != nil && (rules[candidateRuleIndex].Tier < ch.rule.Tier ||
		rules[candidateRuleIndex].Tier == ch.rule.Tier && (isReadOfDeletedFolder(e, ch.effect) || candidateRuleIndex >= ch.indexInRuleList && !isReadOfDeletedFolder(ch.effect, e))) {
		return
	}
	*ch = matchedRule{&rules[candidateRuleIndex], candidateRuleIndex, e}
}

// isReadOfDeletedFolder reports whether an effect reads a path as a file that another effect deletes as a folder.
func isReadOfDeletedFolder(read, deletion *effect.Effect) bool {
	return read.Kind == effect.ReadFile && !read.Recursive && deletion.Kind == effect.DeleteFile && deletion.Recursive && read.Path == deletion.Path
}

// matchDenyAndVerifyRules matches every effect with the deny and verify rules. For each effect the first
// matching rule of a list counts; matchDenyAndVerifyRules returns the strictest of these rules. If a deny rule
// certainly matches, errors of other rules are ignored.
func (p *Policy) matchDenyAndVerifyRules(s *ruleSearch) (denyMatches, verifyMatches ruleListMatches, err error) {
	x, err := p.denyAndVerifyRules.compile()
	if err != nil {
		return denyMatches, verifyMatches, err
	}
	s.resetForRuleList(x)
	s.denyRuleCount = len(p.rules.Deny)
	s.findRulesMatchingPathAndHost()
	rules := p.denyAndVerifyRules.rules
	var failed error
	try := func(i int, e *effect.Effect) {
		t := s.matchingRules(e)
		for _, part := range [...]struct {
			found    *ruleListMatches
			from, to int
		}{{&denyMatches, 0, len(p.rules.Deny)}, {&verifyMatches, len(p.rules.Deny), len(rules)}} {
			sure, err := s.firstApplyingRuleIndex(&t.certain, part.from, part.to, e)
			part.found.certain.replaceIfStricter(rules, sure, e)
			if err == nil {
				var perhaps int
				perhaps, err = s.firstApplyingRuleIndex(&t.possible, part.from, part.to, e)
				part.found.possible.replaceIfStricter(rules, perhaps, e)
				s.recordMatch(i, rules, sure, perhaps)
			}
			if err != nil {
				failed = err
			}
		}
	}
	for i := range s.judgedCase.Effects {
		try(i, &s.judgedCase.Effects[i])
	}
	if len(s.judgedCase.Effects) == 0 {
		try(-1, &noEffect)
	}
	if denyMatches.certain.rule != nil {
		return denyMatches, verifyMatches, nil
	}
	return denyMatches, verifyMatches, failed
}

// recordMatch records, for traces, the rule of a list that counts for an effect: the rule that matches, else the
// rule that possibly matches. A negative index means none.
func (s *ruleSearch) recordMatch(effectIndex int, rules []rulefile.Rule, certainRuleIndex, possibleRuleIndex int) {
	switch {
	case certainRuleIndex >= 0:
		s.judgedCase.RecordMatch(effectIndex, analysis.RuleMatch{RuleNameOrID: rules[certainRuleIndex].Name})
	case possibleRuleIndex >= 0:
		s.judgedCase.RecordMatch(effectIndex, analysis.RuleMatch{RuleNameOrID: rules[possibleRuleIndex].Name, Uncertain: true})
	}
}

// firstRuleMatchingAllEffects returns the first rule that covers every effect of a case, or nil. Unknown effects are never
// covered, except the effect of an unknown tool that the rule names.
func (l *ruleList) firstRuleMatchingAllEffects(s *ruleSearch) (*rulefile.Rule, error) {
	c := s.judgedCase
	for i := range c.Effects {
		if isNeverAllowedByRule(c, &c.Effects[i]) {
			return nil, nil
		}
	}
	x, err := l.compile()
	if err != nil {
		return nil, err
	}
	s.resetForRuleList(x)
	left := x.rulesApplyingToTypeOrKind(c.Action, "")
	left.intersect(&x.rulesWithNeitherPathsNorHosts)
	for i := range c.Effects {
		set, err := s.rulesCoveringEffect(&c.Effects[i])
		if err != nil {
			return nil, err
		}
		if i == 0 {
			left = set
		} else {
			left.intersect(&set)
		}
		if left.isEmpty() {
			return nil, nil
		}
	}
	for r := left.next(0); r >= 0; r = left.next(r + 1) {
		ok, err := s.allowRuleMatchesCase(r)
		if err != nil {
			return nil, err
		}
		if ok {
			return &l.rules[r], nil
		}
	}
	return nil, nil
}

// isNeverAllowedByRule reports whether no allow rule can cover an effect. This holds for an unknown
// effect, unless an unknown tool causes it, and for an unknown program that an action of an unknown
// type runs.
func isNeverAllowedByRule(c *analysis.ActionCase, e *effect.Effect) bool {
	return e.Certainty == effect.Unknown && !c.IsUnknownToolEffect(e) || e.Kind == effect.Execute && e.Class == effect.UnknownClass && !analysis.IsKnownActionType(c.Action.Type)
}

// rulesCoveringEffect returns the rules whose criteria on a single effect, such as types, paths and hosts, cover
// an effect. A rule with paths or hosts does not cover an effect that has neither.
func (s *ruleSearch) rulesCoveringEffect(e *effect.Effect) (ruleSet, error) {
	placed := ruleSet{}
	if e.Path != "" {
		for _, set := range s.index.globSetsFor(e.Path, e.PathIsPattern) {
			for _, g := range set.mustCompile().AppendCoveringGlobs(s.matchedGlobIndexBuffer[:0], e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive) {
				placed.add(set.ruleOfGlob[g])
			}
		}
	}
	if e.Host != "" || e.URL != "" {
		hosts := s.rulesByHost(e)
		if e.Path == "" {
			placed = hosts
		} else {
			placed.intersect(&hosts)
		}
	}
	placed.union(&s.index.rulesWithNeitherPathsNorHosts)
	typed := s.index.candidateRules(s.judgedCase.Action, e)
	if e.Certainty == effect.Unknown { // the tool is unknown: only a rule that names the tool's type covers it
		typed = s.index.rulesNamingActionType(s.judgedCase.Action)
	}
	placed.intersect(&typed)
	for r := placed.next(0); r >= 0; r = placed.next(r + 1) {
		ok, err := s.index.matchers[r].effectPropertyCriteria.match(s, e)
		if err != nil {
			return placed, &ruleError{r, err}
		}
		if !ok {
			placed.remove(r)
		}
	}
	return placed, nil
}

// allowRuleMatchesCase reports whether an allow rule matches the case by the criteria that are checked
// last (commands, content, condition and session), and none of the rule's exceptions applies to an
// effect.
func (s *ruleSearch) allowRuleMatchesCase(ruleIndex int) (bool, error) {
	ok, err := s.matchesWholeActionCriteria(ruleIndex)
	if !ok || err != nil {
		return false, err
	}
	for i := range s.judgedCase.Effects {
		out, err := s.isExcepted(ruleIndex, &s.judgedCase.Effects[i])
		if out || err != nil {
			return false, err
		}
	}
	return true, nil
}
