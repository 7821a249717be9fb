package policy

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// meetsSessionCriterion reports whether the session of a case meets a rule's criterion on earlier
// actions. If c.SessionState is nil, no earlier actions are known, and the criterion is not met.
func meetsSessionCriterion(s *rulefile.Session, c *analysis.ActionCase) (bool, error) {
	if c.SessionState == nil {
		return false, nil
	}
	holds := len(s.Labels) == 0 || slices.ContainsFunc(s.Labels, func(entry string) bool {
		for label := range strings.SplitSeq(entry, "+") {
			if !c.SessionHasLabel(effect.TaintLabel(label)) {
				return false
			}
		}
		return true
	})
	holds = holds && (len(s.EarlierActionTypesOrKinds) == 0 || c.SessionState.HasRecentAction(s.EarlierActionTypesOrKinds, s.Within, s.MaxActionsAgo))
	return holds, c.SessionState.Err()
}

// RequiredSessionHistory returns the action types and kinds of effects that rules of the policy look for in
// earlier actions of the session, and whether a rule limits how many actions ago the earlier action may be.
func (p *Policy) RequiredSessionHistory() (eventTypes []string, hasRuleWithMaxActionsAgo bool) {
	look := func(s *rulefile.Session) {
		hasRuleWithMaxActionsAgo = hasRuleWithMaxActionsAgo || s.MaxActionsAgo > 0
		for _, kind := range s.EarlierActionTypesOrKinds {
			if kind = resolveActionTypeAlias(kind); !slices.Contains(eventTypes, kind) {
				eventTypes = append(eventTypes, kind)
			}
		}
	}
	for _, layer := range append([]*Policy{p}, p.lowerLayers...) {
		for _, list := range [][]rulefile.Rule{layer.rules.Deny, layer.rules.Verify, layer.rules.Allow} {
			for i := range list {
				look(&list[i].Session)
				for k := range list[i].Except {
					look(&list[i].Except[k].Session)
				}
			}
		}
	}
	return eventTypes, hasRuleWithMaxActionsAgo
}
