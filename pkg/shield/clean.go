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
func (p *Pipeline) redactVerdictAndPayload(v *verdict.Verdict, o *VerdictWithLogData, c *analysis.ActionCase, isFirstPipeStage bool) any {
	var payload any
	r := p.redactor
	if p.log != nil || p.verdictsIncludeTrail || !verdictTextQuotesNoAction(v, c) {
		payload, r = r.RedactAndCollectSecrets(c.Action.Payload, audit.MaxEntryStringBytes)
	}
	v.Reasoning, o.reasoningForLog = r.RedactText(v.Reasoning), r.RedactText(o.reasoningForLog)
	for _, text := range []*string{&v.Explanation.ActionText, &v.Explanation.EffectAndHarm, &v.Explanation.AlternativeToAction, &v.Explanation.ShieldOwnProblemText} {
		*text = r.RedactText(*text)
	}
	for i := range c.EarlierTierSteps {
		c.EarlierTierSteps[i].Reasoning = r.RedactText(c.EarlierTierSteps[i].Reasoning)
	}
	if p.verdictsIncludeTrail && isFirstPipeStage && len(c.EarlierTierSteps) > 0 {
		c.EarlierTierSteps[0].Effects, _ = c.EffectsJSON(r)
		c.EarlierTierSteps[0].JudgedActionTextVariants, _ = c.TextVariantsJSON(r)
	}
	if c.Tier1AllowEvidence != nil {
		for i := range c.Tier1AllowEvidence.TextsCoveredByNoEffect {
			c.Tier1AllowEvidence.TextsCoveredByNoEffect[i] = r.RedactText(c.Tier1AllowEvidence.TextsCoveredByNoEffect[i])
		}
		for i := range c.Tier1AllowEvidence.Findings {
			c.Tier1AllowEvidence.Findings[i].Reasoning = r.RedactText(c.Tier1AllowEvidence.Findings[i].Reasoning)
		}
		for i := range c.Tier1AllowEvidence.Doubts {
			c.Tier1AllowEvidence.Doubts[i].Reason = r.RedactText(c.Tier1AllowEvidence.Doubts[i].Reason)
		}
	}
	return payload
}

// verdictTextQuotesNoAction reports whether the text of a verdict is certain not to quote the action. That is possible for
// an ALLOW and for an ESCALATE of Tier 0 only, and holds if neither the verdict nor an earlier step quotes it.
func verdictTextQuotesNoAction(v *verdict.Verdict, c *analysis.ActionCase) bool {
	if v.Decision == verdict.Block || v.Decision == verdict.Escalate && v.Tier != TierPolicy || v.Explanation != (verdict.Explanation{}) {
		return false
	}
	return v.ReasoningCannotLeakActionText && !slices.ContainsFunc(c.EarlierTierSteps, func(s verdict.Step) bool { return !s.ReasoningCannotLeakActionText })
}
