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

// Refusals returns the refused actions of an installation; key is its seal key.
func Refusals(key [verdict.KeySize]byte, store *state.Store, now func() time.Time) *approve.Refusals {
	return &approve.Refusals{Store: store, Key: deriveKey(key, "refusals"), Clock: now}
}

// allowableErrors are the error codes of refusals that a person can still allow: "" for a refusal
// without an error, and the codes for refusals because no model or person could decide.
var allowableErrors = []string{"", "unavailable", "nobody", "timeout", "rate_limit", "budget", "evaluator"}

// isAllowable reports whether a person can allow what a verdict refuses. A person cannot allow what the
// protected core forbids, what has no legitimate use, or what was not judged.
func (p *Pipeline) isAllowable(v *verdict.Verdict, c *analysis.Case) bool {
	return v.Decision == verdict.Block && slices.Contains(allowableErrors, v.Error) && !allowsNoException(v.Rule) && acceptsPersonAnswer(c)
}

// acceptsPersonAnswer reports whether a person's answer counts for a case, given the steps so far.
func acceptsPersonAnswer(c *analysis.Case) bool {
	return c != nil && c.Action != nil && !slices.ContainsFunc(c.EarlierSteps, func(s verdict.Step) bool { return s.Decision != verdict.Allow && allowsNoException(s.Rule) }) &&
		!slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.ChangeGuard })
}

// allowsNoException reports whether a person cannot make an exception to a rule.
func allowsNoException(rule string) bool {
	return rule != "" && (policy.IsProtectedRule(rule) || classify.AlwaysBlocks(rule))
}

// allowOnceKey returns the binding of a permission to run a case once; "" if the files that it uses might
// change unnoticed.
func (p *Pipeline) allowOnceKey(c *analysis.Case) string {
	return p.answerKey("once "+p.approvalInstallationID, c)
}

// allowedByPerson returns the ALLOW of a person who allowed this case once or, unless onlyOnce, all cases of
// its kind.
func (p *Pipeline) allowedByPerson(ctx context.Context, c *analysis.Case, in TierRange, onlyOnce bool) (verdict.Verdict, bool) {
	if v, ok := p.allowedOnce(ctx, c, in); ok || onlyOnce {
		return v, ok
	}
	return p.allowedByKind(ctx, c)
}

// allowedOnce returns the ALLOW of a person who has allowed exactly this action once, and
// uses it up if the chain decides whether the action runs.
func (p *Pipeline) allowedOnce(ctx context.Context, c *analysis.Case, in TierRange) (verdict.Verdict, bool) {
	if p.refusals == nil || !acceptsPersonAnswer(c) {
		return verdict.Verdict{}, false
	}
	take := p.refusals.TakeGrant
	if in.Last < TierApprove {
		take = p.refusals.RecentGrant
	}
	binding := p.allowOnceKey(c)
	if binding == "" {
		return verdict.Verdict{}, false
	}
	g, ok := take(ctx, binding)
	if !ok {
		return verdict.Verdict{}, false
	}
	v := addFinding(c, TierApprove, verdict.Finding{Authority: verdict.Person, Source: tierSources[TierApprove], Confidence: 1, Reasoning: fmt.Sprintf("allowed once by %s (shield allow %s)", g.By, g.Ref)})
	v.Channel, v.By = "allow", g.By
	return v, true
}

// addScopeHint adds to a question of the host how to allow more than this action, for which the host has no
// button.
func (p *Pipeline) addScopeHint(ctx context.Context, v *verdict.Verdict, c *analysis.Case) {
	own := *v
	p.addAllowReference(ctx, &own, c)
	if own.Explanation.FurtherAdvice != "" {
		v.Reasoning += " (In a terminal, " + own.Explanation.FurtherAdvice + ")"
	}
}

// widerApprovalHint says how a person can allow more than one refused action.
func widerApprovalHint(r *approve.Refusal) string {
	switch {
	case r.Tool != nil:
		return "to say what the tool does: shield tools set " + r.Ref + " CLASS"
	case r.KindApproval != nil && r.KindSession != "":
		return "all of this kind in this session: shield allow " + r.Ref + " --session"
	}
	return ""
}

// maxShownBytes is the largest size of each text of a refused action that is kept for a person, in bytes.
const maxShownBytes = 32 << 10

// addAllowReference adds to a refusal the reference with which a person can allow the action. It
// adds none if the refusal cannot be stored, for example because the action is too large to be
// shown.
func (p *Pipeline) addAllowReference(ctx context.Context, v *verdict.Verdict, c *analysis.Case) {
	payload, _ := p.redactor.Learn(c.Action.Payload, maxShownBytes)
	text, err := json.Marshal(payload)
	binding := p.allowOnceKey(c)
	if err != nil || binding == "" {
		return
	}
	r := approve.Refusal{
		ActionKey: binding, User: p.caller.User, Host: p.host, Session: c.Action.Session, CWD: c.Place().CWD, Type: c.Action.Type, Hash: c.Action.Hash,
		Payload: text, Subject: v.Explanation.ActionText, Why: v.Explanation.EffectAndHarm, Rule: cmp.Or(v.Rule, v.Explanation.AskingRule),
	}
	r.DeniedByRule = v.Tier < TierEvaluate && v.Error == ""
	p.describeKindApproval(ctx, &r, c)
	if t, binding, lasts := p.unknownTool(c); c.CallsUnknownTool() && binding != "" {
		said := p.newToolClass(c, &t, lasts)
		r.Tool, r.ToolKey, r.ToolDescription = &said, binding, p.redactor.String(toolDescription(c.Action.Type, &t, lasts))
	}
	if p.refusals.Add(ctx, &r) == nil {
		v.Ref, v.Explanation.Remedy, v.Explanation.FurtherAdvice = r.Ref, "shield allow "+r.Ref, widerApprovalHint(&r)
	}
}
