package classify

import (
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

const ordinaryReason = "ordinary: every effect is known, and none needs approval"

// reasonForOrdinary returns the reason why an ordinary case is allowed.
func reasonForOrdinary(c *analysis.ActionCase) string {
	if c.Class() != "" {
		return toolClassAllowReason
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Cause == effect.CauseInContainer }) {
		return "ordinary: every effect is known, and changes outside the workspace stay in the container"
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Restorable }) {
		return ordinaryReason + "; every deleted file is in the last commit, or does not exist"
	}
	return ordinaryReason
}

const toolClassAllowReason = "ordinary: this call does only what the tool is approved for"

const harmlessReason = "harmless: every effect is known, and none changes anything"

const permittedReason = "no rule matched, and a rule of the policy allows this"

// policyAllows reports whether a rule of the policy allows a case that Tier 1 must still judge.
func policyAllows(c *analysis.ActionCase) bool {
	return slices.ContainsFunc(c.EarlierSteps, func(s verdict.Step) bool { return s.Tier == 0 && s.TierWouldAllow })
}

// recordEvidence records, for people, the reasons for and against a case and the model's answer; m is nil if
// the model was not asked.
func (k *Classifier) recordEvidence(c *analysis.ActionCase, w *decisionInputs, m *classifierResult) {
	e := c.Evidence
	if e == nil {
		return
	}
	e.MinTier, e.TextsCoveredByNoEffect = c.MinTier, c.TextsCoveredByNoEffect
	e.AddFindings(w.rulesResult.matched...)
	switch {
	case w.harmless:
		e.AllowReason = harmlessReason
	case w.isAllowedByPolicyRule:
		e.AllowReason = permittedReason
	case w.knownEffectsAllowReason != "":
		e.AllowReason = ordinaryReason
	}
	if c.Action != nil {
		e.MinSafeConfidence = k.opts.SafeThresholdByActionType[c.Action.Type]
	}
	if m != nil {
		e.Answer = &analysis.ModelAnswer{Injection: !m.safe, Confidence: m.Confidence, Failed: m.err != nil}
	}
}

// gatherInputs returns the inputs of Tier 1's decision, without the findings of the rules.
func (k *Classifier) gatherInputs(c *analysis.ActionCase) decisionInputs {
	w := decisionInputs{
		needsHigherTier: c.MinTier >= 2, minAuthorityRequiredToDecide: verdict.AuthorityOfTier(max(2, c.MinTier)), harmless: c.HasOnlyHarmlessEffects(), isAllowedByPolicyRule: policyAllows(c), unclearedDoubt: c.WorstDoubt(k.opts.SafeThresholdByDoubtCause),
		rulesOff: k.opts.NoHeuristic, failOpen: k.opts.FailOpen, missingModelNote: k.opts.MissingModelNote,
		modelSkipsType: k.opts.Model != nil && c.Action != nil && slices.Contains(k.opts.ModelSkippedActionTypes, c.Action.Type),
	}
	if c.HasOnlyOrdinaryEffects() {
		w.knownEffectsAllowReason, w.decidedByEffects = reasonForOrdinary(c), k.opts.DecideByEffects && c.CanDecideByEffectsAlone()
		w.modelCannotBlock = k.opts.DecideByEffects
	}
	if w.needsHigherTier {
		at := slices.IndexFunc(c.EarlierSteps, func(s verdict.Step) bool {
			return s.Tier == 0 && s.Decision == verdict.Escalate && !s.TierWouldAllow && s.Rule != ""
		})
		if at >= 0 {
			w.policyEscalationStep = &c.EarlierSteps[at]
		} else {
			w.higherTierReason = c.WhyHigherTier()
		}
	}
	return w
}
