package shield

import (
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/verdict"
)

// redactVerdictAndPayload redacts secrets in what is said about an action: the reasons of the verdict and of its trail,
// which may quote the action. If a trace is wanted and there is none yet, it also adds redacted
// effects and views to the first step. Text that cannot be redacted is left out. The action itself,
// which the seal covers, stays as received.
//
// It returns the redacted payload for the log, if there is a log.
func (p *Pipeline) redactVerdictAndPayload(v *verdict.Verdict, o *Outcome, c *analysis.ActionCase, isFirstPipeStage bool) any {
	var payload any
	r := p.redactor
	if p.log != nil || p.verdictsIncludeTrail || !verdictTextQuotesNoAction(v, c) {
		payload, r = r.RedactAndCollectSecrets(c.Action.Payload, audit.MaxEntryStringBytes)
	}
	v.Reasoning, o.reasoningForLog = r.String(v.Reasoning), r.String(o.reasoningForLog)
	for _, text := range []*string{&v.Explanation.ActionText, &v.Explanation.EffectAndHarm, &v.Explanation.Alternative, &v.Explanation.ShieldOwnProblemText} {
		*text = r.String(*text)
	}
	for i := range c.EarlierSteps {
		c.EarlierSteps[i].Reasoning = r.String(c.EarlierSteps[i].Reasoning)
	}
	if p.verdictsIncludeTrail && isFirstPipeStage && len(c.EarlierSteps) > 0 {
		c.EarlierSteps[0].Effects, _ = c.EffectsJSON(r)
		c.EarlierSteps[0].JudgedActionTextVariants, _ = c.ViewsJSON(r)
	}
	if c.Evidence != nil {
		for i := range c.Evidence.TextsCoveredByNoEffect {
			c.Evidence.TextsCoveredByNoEffect[i] = r.String(c.Evidence.TextsCoveredByNoEffect[i])
		}
		for i := range c.Evidence.Findings {
			c.Evidence.Findings[i].Reasoning = r.String(c.Evidence.Findings[i].Reasoning)
		}
		for i := range c.Evidence.Doubts {
			c.Evidence.Doubts[i].Reason = r.String(c.Evidence.Doubts[i].Reason)
		}
	}
	return payload
}

// verdictTextQuotesNoAction reports whether a verdict's text cannot quote the action: that of an ALLOW, or of a
// question of Tier 0 that a later tier answers.
func verdictTextQuotesNoAction(v *verdict.Verdict, c *analysis.ActionCase) bool {
	if v.Decision == verdict.Block || v.Decision == verdict.Escalate && v.Tier != TierPolicy || v.Explanation != (verdict.Explanation{}) {
		return false
	}
	return v.ReasoningCannotLeakActionText && !slices.ContainsFunc(c.EarlierSteps, func(s verdict.Step) bool { return !s.ReasoningCannotLeakActionText })
}
