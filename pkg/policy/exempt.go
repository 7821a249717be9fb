package policy

import (
	"context"
	"slices"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// compileHeuristicExceptions compiles the policy's exceptions from heuristic rules, and stores them
// by the ID of the rule.
func (p *Policy) compileHeuristicExceptions(opts Options) error {
	for i := range p.rules.HeuristicExceptions {
		r := &p.rules.HeuristicExceptions[i]
		for k := range r.Except {
			x, err := compileException(&r.Except[k], opts.FoldersByGlobVariable, true)
			if err != nil {
				return err
			}
			if p.exceptionsByHeuristicRuleID == nil {
				p.exceptionsByHeuristicRuleID = map[string][]ruleException{}
			}
			p.exceptionsByHeuristicRuleID[r.Name] = append(p.exceptionsByHeuristicRuleID[r.Name], x)
		}
	}
	return nil
}

// DisablesHeuristicRule reports whether the policy's exceptions from a heuristic rule disable it for a case.
// Together they must cover all effects of the action, since the rule may match text that belongs to no single
// effect. Effects that only run a known, unprivileged program need not be covered, but one effect must be.
func (p *Policy) DisablesHeuristicRule(ctx context.Context, c *analysis.ActionCase, ruleID string) (bool, error) {
	list := p.exceptionsByHeuristicRuleID[ruleID]
	if len(list) == 0 {
		return false, nil
	}
	s := searchPool.Get().(*ruleSearch)
	s.ctx, s.judgedCase = ctx, c
	defer func() {
		*s = ruleSearch{}
		searchPool.Put(s)
	}()
	all := c.Effects
	if len(all) == 0 {
		all = []effect.Effect{noEffect}
	}
	covered := false
	for i := range all {
		e := &all[i]
		held := false
		for k := range list {
			ok, err := list[k].match(s, e)
			if err != nil {
				return false, err
			}
			held = held || ok
		}
		if !held && (e.Kind != effect.Execute || e.Class == effect.UnknownClass || e.Class == effect.Privileged || e.Path != "" || e.Host != "") {
			return false, nil
		}
		covered = covered || held
	}
	return covered, nil
}

// MatchingDenyAndVerifyRules returns the names of the deny and verify rules that certainly or
// possibly match an action. isEffectAskedAbout says, for each effect of the action, whether one of
// these rules matches that effect.
func (p *Policy) MatchingDenyAndVerifyRules(ctx context.Context, c *analysis.ActionCase) (rules []string, isEffectAskedAbout []bool, err error) {
	before := c.MatchedRulesByEffectIndex
	defer func() { c.MatchedRulesByEffectIndex = before }()
	isEffectAskedAbout = make([]bool, len(c.Effects))
	for _, l := range append([]*Policy{p}, p.lowerLayers...) {
		c.MatchedRulesByEffectIndex = make([][]analysis.RuleMatch, len(c.Effects))
		s := searchPool.Get().(*ruleSearch)
		s.ctx, s.judgedCase = ctx, c
		denied, verified, err := l.matchDenyAndVerifyRules(s)
		*s = ruleSearch{}
		searchPool.Put(s)
		if err != nil {
			return nil, nil, err
		}
		for _, ch := range [...]matchedRule{denied.certain, denied.possible, verified.certain, verified.possible} {
			if ch.rule != nil {
				rules = append(rules, ch.rule.Name)
			}
		}
		for i := range c.MatchedRulesByEffectIndex {
			for _, m := range c.MatchedRulesByEffectIndex[i] {
				rules, isEffectAskedAbout[i] = append(rules, m.RuleNameOrID), true
			}
		}
	}
	sorted.SortStrings(rules)
	return slices.Compact(rules), isEffectAskedAbout, nil
}
