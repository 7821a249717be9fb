package shield

import (
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/verdict"
)

// redactVerdictAndPayload redacts secrets in the texts about an action: the reasons of the verdict and of its
// trail, which may quote the action. If verdicts include the trail, the first stage of a pipe also adds to the
// first step the redacted effects and the redacted text variants of the action that rules and models read. Text
// that cannot be redacted is left out. The action itself, which the seal covers, stays as received.
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

// verdictTextQuotesNoAction reports whether it is certain that the texts of a verdict do not quote the action.
// This is never certain for a BLOCK, for an ESCALATE of a tier above Tier 0, and for a verdict with an
// Explanation. It is certain for other verdicts if the reasoning of the verdict and of each earlier step of the
// trail is marked with ReasoningCannotLeakActionText.
func verdictTextQuotesNoAction(v *verdict.Verdict, c *analysis.ActionCase) bool {
	if v.Decision == verdict.Block || v.Decision == verdict.Escalate && v.Tier != TierPolicy || v.Explanation != (verdict.Explanation{}) {
		return false
	}
	return v.ReasoningCannotLeakActionText && !slices.ContainsFunc(c.EarlierTierSteps, func(s verdict.TierStep) bool { return !s.ReasoningCannotLeakActionText })
}
