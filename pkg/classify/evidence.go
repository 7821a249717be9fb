package classify

import (
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

const noApprovalNeededAllowReason = "ordinary: every effect is known, and none needs approval"

// ordinaryEffectsAllowReason returns the reason why an ordinary case is allowed.
func ordinaryEffectsAllowReason(c *analysis.ActionCase) string {
	if c.UserDeclaredToolClass() != "" {
		return approvedToolUseAllowReason
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Cause == effect.CauseInContainer }) {
		return "ordinary: every effect is known, and changes outside the workspace stay in the container"
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.IsRestorableWithoutBackup }) {
		return noApprovalNeededAllowReason + "; every deleted file is in the last commit, or does not exist"
	}
	return noApprovalNeededAllowReason
}

const approvedToolUseAllowReason = "ordinary: this call does only what the tool is approved for"

const harmlessEffectsAllowReason = "harmless: every effect is known, and none changes anything"

const policyRuleAllowReason = "an allow rule of the policy covers this action, and no heuristic rule matched"

// policyAllows reports whether a rule of the policy allows a case that Tier 1 must still judge.
func policyAllows(c *analysis.ActionCase) bool {
	return slices.ContainsFunc(c.EarlierTierSteps, func(s verdict.TierStep) bool { return s.Tier == 0 && s.AllowedPendingHigherTier })
}

// recordTier1Evidence records the reasons for and against a case and the model's answer, to be shown to
// people. modelAnswer is nil if the model was not asked.
func (k *Classifier) recordTier1Evidence(c *analysis.ActionCase, w *decisionInputs, modelAnswer *ruleOrModelResult) {
	e := c.Tier1AllowEvidence
	if e == nil {
		return
	}
	e.MinAllowTier, e.TextsCoveredByNoEffect = c.MinAllowTier, c.TextsCoveredByNoEffect
	e.AddFindings(w.rulesResult.matchedRuleFindings...)
	switch {
	case w.hasOnlyHarmlessEffects:
		e.AllowReason = harmlessEffectsAllowReason
	case w.isAllowedByPolicyRule:
		e.AllowReason = policyRuleAllowReason
	case w.knownEffectsAllowReason != "":
		e.AllowReason = noApprovalNeededAllowReason
	}
	if c.Action != nil {
		e.RequiredSafeConfidence = k.opts.SafeThresholdByActionType[c.Action.Type]
	}
	if modelAnswer != nil {
		e.Answer = &analysis.ModelAnswer{InjectionDetected: !modelAnswer.isModelLabelSafe, Confidence: modelAnswer.Confidence, Failed: modelAnswer.err != nil}
	}
}

// gatherInputs returns the inputs of Tier 1's decision, without the findings of the rules.
func (k *Classifier) gatherInputs(c *analysis.ActionCase) decisionInputs {
	w := decisionInputs{
		needsHigherTier: c.MinAllowTier >= 2, minAuthorityRequiredToDecide: verdict.AuthorityOfTier(max(2, c.MinAllowTier)), hasOnlyHarmlessEffects: c.HasOnlyHarmlessEffects(), isAllowedByPolicyRule: policyAllows(c), worstDoubt: c.WorstDoubt(k.opts.SafeThresholdByDoubtCause),
		rulesOff: k.opts.RunsOnlyAlwaysBlockRules, failOpen: k.opts.FailOpen, missingModelNote: k.opts.MissingModelNote,
		modelSkipsType: k.opts.Model != nil && c.Action != nil && slices.Contains(k.opts.ModelSkippedActionTypes, c.Action.Type),
	}
	if c.HasOnlyOrdinaryEffects() {
		w.knownEffectsAllowReason, w.decidesByEffectsAlone = ordinaryEffectsAllowReason(c), k.opts.OrdinaryEffectsOverrideModel && c.CanDecideByEffectsAlone()
		w.modelCannotBlock = k.opts.OrdinaryEffectsOverrideModel
	}
	if w.needsHigherTier {
		at := slices.IndexFunc(c.EarlierTierSteps, func(s verdict.TierStep) bool {
			return s.Tier == 0 && s.Decision == verdict.Escalate && !s.AllowedPendingHigherTier && s.Rule != ""
		})
		if at >= 0 {
			w.policyEscalationStep = &c.EarlierTierSteps[at]
		} else {
			w.higherTierReason = c.WhyHigherTierMustDecide()
		}
	}
	return w
}
