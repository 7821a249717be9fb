package shield

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

// NewDecisionStore returns the store of an installation's refused actions and of a person's
// decisions on them. The store's HMAC key is derived from sealKey.
func NewDecisionStore(sealKey [verdict.KeySize]byte, store *state.Store, now func() time.Time) *approve.DecisionStore {
	return &approve.DecisionStore{Store: store, HMACKey: deriveKey(sealKey, "refusals"), Clock: now}
}

// personOverridableErrorCodes are the error codes of refusals that a person can still allow: "" for a refusal
// without an error, and the codes for refusals because no model or person could decide.
var personOverridableErrorCodes = []string{"", "unavailable", "nobody", "timeout", "rate_limit", "budget", "evaluator"}

// canPersonOverrideRefusal reports whether a person can allow what a verdict refuses. A person cannot allow what the
// protected core forbids, what has no legitimate use, or what was not judged.
func (p *Pipeline) canPersonOverrideRefusal(v *verdict.Verdict, c *analysis.ActionCase) bool {
	return v.Decision == verdict.Block && slices.Contains(personOverridableErrorCodes, v.ErrorCode) && !isNonOverridableRule(v.Rule) && canPersonDecideCase(c)
}

// canPersonDecideCase reports whether a person's answer counts for a case, given the steps so far.
func canPersonDecideCase(c *analysis.ActionCase) bool {
	return c != nil && c.Action != nil && !slices.ContainsFunc(c.EarlierTierSteps, func(s verdict.TierStep) bool { return s.Decision != verdict.Allow && isNonOverridableRule(s.Rule) }) &&
		!slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.TamperWithShield })
}

// isNonOverridableRule reports whether a person cannot make an exception to a rule.
func isNonOverridableRule(ruleID string) bool {
	return ruleID != "" && (policy.IsRuleProtectedFromExceptions(ruleID) || classify.AlwaysBlocks(ruleID))
}

// allowOnceGrantKey returns the key of a permission to run an action once; "" if the files that the
// action uses might change unnoticed.
func (p *Pipeline) allowOnceGrantKey(c *analysis.ActionCase) string {
	return p.reusableAnswerKey("once "+p.installationIDForApprovalKeys, c)
}

// earlierAllowByPerson returns the ALLOW of a person who allowed this case once or, unless
// ignoreAdvanceApprovals is true, all cases of its kind.
func (p *Pipeline) earlierAllowByPerson(ctx context.Context, c *analysis.ActionCase, tiers TierRange, ignoreAdvanceApprovals bool) (verdict.Verdict, bool) {
	if v, ok := p.allowedOnce(ctx, c, tiers); ok || ignoreAdvanceApprovals {
		return v, ok
	}
	return p.allowedByAdvanceApproval(ctx, c)
}

// allowedOnce returns the ALLOW of a person who has allowed exactly this action once. It uses up
// the permission if the tier range ends with TierApprove.
func (p *Pipeline) allowedOnce(ctx context.Context, c *analysis.ActionCase, in TierRange) (verdict.Verdict, bool) {
	if p.allowOnceDecisionStore == nil || !canPersonDecideCase(c) {
		return verdict.Verdict{}, false
	}
	take := p.allowOnceDecisionStore.TakeGrant
	if in.Last < TierApprove {
		take = p.allowOnceDecisionStore.RecentlyUsedGrant
	}
	binding := p.allowOnceGrantKey(c)
	if binding == "" {
		return verdict.Verdict{}, false
	}
	g, ok := take(ctx, binding)
	if !ok {
		return verdict.Verdict{}, false
	}
	v := addFinding(c, TierApprove, verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, JudgeName: judgeNameByTier[TierApprove], Confidence: 1, Reasoning: fmt.Sprintf("allowed once by %s (shield allow %s)", g.By, g.RefusalRef)})
	v.AnswerChannel, v.AnsweredBy = "allow", g.By
	return v, true
}

// addHintToAllowMoreActions adds to a question of the host how to allow more than this action, for which the host has no
// button.
func (p *Pipeline) addHintToAllowMoreActions(ctx context.Context, v *verdict.Verdict, c *analysis.ActionCase) {
	own := *v
	p.storeRefusalWithRef(ctx, &own, c)
	if own.Explanation.HintToAllowMoreActions != "" {
		v.Reasoning += " (In a terminal, " + own.Explanation.HintToAllowMoreActions + ")"
	}
}

// hintToAllowMoreActions says how a person can allow more than one refused action.
func hintToAllowMoreActions(r *approve.Refusal) string {
	switch {
	case r.OfferedToolClassAnswer != nil:
		return "to say what the tool does: shield tools set " + r.Ref + " CLASS"
	case r.OfferedAdvanceApproval != nil && r.AdvanceApprovalSessionKey != "":
		return "all of this kind in this session: shield allow " + r.Ref + " --session"
	}
	return ""
}

// maxRefusalPayloadTextBytes is the largest size of each text of a refused action that is kept for a person, in bytes.
const maxRefusalPayloadTextBytes = 32 << 10

// storeRefusalWithRef adds to a refusal the reference with which a person can allow the action. It
// adds none if the refusal cannot be stored, for example because the action is too large to be
// shown.
func (p *Pipeline) storeRefusalWithRef(ctx context.Context, v *verdict.Verdict, c *analysis.ActionCase) {
	payload, _ := p.redactor.RedactAndCollectSecrets(c.Action.Payload, maxRefusalPayloadTextBytes)
	text, err := json.Marshal(payload)
	binding := p.allowOnceGrantKey(c)
	if err != nil || binding == "" {
		return
	}
	r := approve.Refusal{
		ActionKey: binding, User: p.caller.User, AgentHostName: p.agentHostName, Session: c.Action.Session, CWD: c.ExecutionContext().CWD, ActionType: c.Action.Type, ActionHash: c.Action.TypeAndPayloadHash,
		Payload: text, RefusedActionText: v.Explanation.ActionText, RefusalReason: v.Explanation.EffectAndHarm, RuleNameOrID: cmp.Or(v.Rule, v.Explanation.EscalatingRule),
	}
	r.DeniedByRule = v.Tier < TierEvaluate && v.ErrorCode == ""
	p.addAdvanceApprovalToRefusal(ctx, &r, c)
	if t, binding, lasts := p.lookUpUnknownTool(c); c.CallsUnknownTool() && binding != "" {
		said := p.newPendingToolClassAnswer(c, &t, lasts)
		r.OfferedToolClassAnswer, r.ToolClassStoreKey, r.ToolDescription = &said, binding, p.redactor.RedactText(toolDescription(c.Action.Type, &t, lasts))
	}
	if p.allowOnceDecisionStore.AddRefusal(ctx, &r) == nil {
		v.RefusalRef, v.Explanation.UserAllowCommand, v.Explanation.HintToAllowMoreActions = r.Ref, "shield allow "+r.Ref, hintToAllowMoreActions(&r)
	}
}
