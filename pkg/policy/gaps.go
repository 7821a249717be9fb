package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// An AllowRuleMismatch says why an allow rule does not cover an action, although the rule lists the action's type or
// matches its command.
type AllowRuleMismatch struct{ Rule, NotCoveredReason string }

// AllowRuleMismatches returns why the allow rules that name an action, by its type or its command, do not cover it.
func (p *Policy) AllowRuleMismatches(ctx context.Context, c *analysis.ActionCase) ([]AllowRuleMismatch, error) {
	x, err := p.allow.compile()
	if err != nil {
		return nil, err
	}
	s := searchPool.Get().(*ruleSearch)
	s.ctx, s.judgedCase = ctx, c
	defer func() {
		*s = ruleSearch{}
		searchPool.Put(s)
	}()
	s.resetForRuleList(x)
	var out []AllowRuleMismatch
	for i := range p.allow.rules {
		r := &p.allow.rules[i]
		if !isRuleForAction(c, r) {
			continue
		}
		why, err := s.uncoveredActionReason(i, r)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, AllowRuleMismatch{r.Name, why})
		}
	}
	return out, nil
}

// isRuleForAction reports whether a rule is intended for an action: it lists the action's type, or one of its
// expressions matches part of the command.
func isRuleForAction(c *analysis.ActionCase, r *rulefile.Rule) bool {
	if slices.Contains(r.ActionTypesAndEffectKinds, c.Action.Type) || c.Action.OriginalTypeSharedByOtherTools != "" && slices.Contains(r.ActionTypesAndEffectKinds, c.Action.OriginalTypeSharedByOtherTools) {
		return true
	}
	ok, err := (&regexpCriterion{expressions: r.Commands}).matchesAnyTextVariant(c.TextVariants(), func(v *analysis.PayloadTextVariant) bool { return v.Field == "command" })
	return ok && err == nil
}

// uncoveredActionReason returns why an allow rule does not cover the whole action; "" if it covers
// it.
func (s *ruleSearch) uncoveredActionReason(rule int, r *rulefile.Rule) (string, error) {
	for i := range s.judgedCase.Effects {
		e := &s.judgedCase.Effects[i]
		if why, err := s.uncoveredEffectReason(rule, r, e); why != "" || err != nil {
			return why, err
		}
	}
	if len(r.Commands) > 0 {
		ok, err := (&regexpCriterion{expressions: r.Commands}).matchesWhole(s.judgedCase.Action.Text("command"))
		if err != nil {
			return "", err
		}
		if !ok {
			return "its pattern in commands matches only a part of the command; it must match all of it", nil
		}
	}
	ok, err := s.matchesWholeActionCriteria(rule)
	switch {
	case err != nil:
		return "", err
	case !ok && len(r.Commands) > 0 && s.executedProgramCount() > 1:
		return fmt.Sprintf("the command runs %d programs, and a rule with commands can allow only one; run them one by one", s.executedProgramCount()), nil
	case !ok:
		return "its conditions (content, when, session) do not match", nil
	}
	for i := range s.judgedCase.Effects {
		if out, err := s.isExcepted(rule, &s.judgedCase.Effects[i]); out || err != nil {
			return "an exception of the rule matches: " + describeEffect(&s.judgedCase.Effects[i]) + "; narrow the exception", err
		}
	}
	return "", nil
}

// uncoveredEffectReason returns why a rule does not cover an effect; "" if it does.
func (s *ruleSearch) uncoveredEffectReason(rule int, r *rulefile.Rule, e *effect.Effect) (string, error) {
	if isNeverAllowedByRule(s.judgedCase, e) {
		return "part of the action is unknown, and allow rules cover known actions only: " + shortenAndEscapeForMessage(cmp.Or(e.Reason, e.Program)), nil
	}
	set, err := s.rulesCoveringEffect(e)
	if set.has(rule) || err != nil {
		return "", err
	}
	typed := s.index.rulesApplyingToTypeOrKind(s.judgedCase.Action, e.KindForPolicies())
	switch {
	case !typed.has(rule) || e.Certainty == effect.Unknown && !slices.Contains(r.ActionTypesAndEffectKinds, s.judgedCase.Action.Type):
		return fmt.Sprintf("its action_types do not cover everything that the action does: %s; add %s", describeEffect(e), e.KindForPolicies()), nil
	case len(r.Paths)+len(r.Hosts) > 0 && e.Path == "" && e.Host == "" && e.URL == "":
		return fmt.Sprintf("a rule with paths or hosts cannot cover an effect that has neither: %s; use commands instead", describeEffect(e)), nil
	case r.RequiredTargetTrust != "" && (r.RequiredTargetTrust == "true") != e.IsTargetTrusted:
		return "the rule's key trusted: " + r.RequiredTargetTrust + " does not match this effect: " + describeEffect(e) + "; change or remove the key", nil
	case r.RequiredRestorability != "" && (r.RequiredRestorability == "true") != e.IsRestorableWithoutBackup:
		return "the rule's key restorable: " + r.RequiredRestorability + " does not match this effect: " + describeEffect(e) + "; change or remove the key", nil
	}
	return "its paths, hosts or other keys do not match: " + describeEffect(e), nil
}

// executedProgramCount returns how many programs the case runs.
func (s *ruleSearch) executedProgramCount() (n int) {
	for i := range s.judgedCase.Effects {
		if s.judgedCase.Effects[i].Kind == effect.Execute {
			n++
		}
	}
	return n
}

// describeEffect describes an effect in the words used in reasons.
func describeEffect(e *effect.Effect) string {
	for _, object := range [...]string{e.Path, e.Host, e.Program} {
		if object != "" {
			return string(e.KindForPolicies()) + " " + shortenAndEscapeForMessage(object)
		}
	}
	return string(e.KindForPolicies())
}

// RuleKeyValuePairs returns a rule of the policy by its name, as rows of key and value; nil if there is no such rule.
func (p *Policy) RuleKeyValuePairs(ruleName string) [][2]string {
	for _, layer := range append([]*Policy{p}, p.lowerLayers...) {
		for _, l := range [...]struct {
			list  string
			rules []rulefile.Rule
		}{{"deny", layer.rules.Deny}, {"verify", layer.rules.Verify}, {"allow", layer.rules.Allow}} {
			for i := range l.rules {
				if r := &l.rules[i]; strings.EqualFold(r.Name, ruleName) {
					return append([][2]string{{"name", r.Name}, {"list", l.list}, {"policy", layer.name}}, r.KeyValuePairs()...)
				}
			}
		}
	}
	return nil
}
