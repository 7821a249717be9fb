package classify

import (
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

const ordinaryReason = "ordinary: every effect is known, and none needs approval"

// reasonForOrdinary returns the reason why an ordinary case is allowed.
func reasonForOrdinary(c *analysis.Case) string {
	if c.Class() != "" {
		return classedReason
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Cause == effect.CauseInContainer }) {
		return "ordinary: every effect is known, and changes outside the workspace stay in the container"
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Restorable }) {
		return ordinaryReason + "; every deleted file is in the last commit, or does not exist"
	}
	return ordinaryReason
}

const classedReason = "ordinary: this call does only what the tool is approved for"

const harmlessReason = "harmless: every effect is known, and none changes anything"

const permittedReason = "no rule matched, and a rule of the policy allows this"

// policyAllows reports whether a rule of the policy allows a case that Tier 1 must still judge.
func policyAllows(c *analysis.Case) bool {
	return slices.ContainsFunc(c.EarlierSteps, func(s verdict.Step) bool { return s.Tier == 0 && s.Allows })
}

// recordEvidence records, for people, the reasons for and against a case and the model's answer; m is nil if
// the model was not asked.
func (k *Classifier) recordEvidence(c *analysis.Case, w *decisionInputs, m *result) {
	e := c.Evidence
	if e == nil {
		return
	}
	e.MinTier, e.TextsWithoutEffect = c.MinTier, c.TextsWithoutEffect
	e.AddFindings(w.rulesResult.matched...)
	switch {
	case w.harmless:
		e.AllowReason = harmlessReason
	case w.permitted:
		e.AllowReason = permittedReason
	case w.reasonOrdinary != "":
		e.AllowReason = ordinaryReason
	}
	if c.Action != nil {
		e.MinSafe = k.opts.SafeThresholds[c.Action.Type]
	}
	if m != nil {
		e.Answer = &analysis.ModelAnswer{Injection: !m.safe, Confidence: m.Confidence, Failed: m.err != nil}
	}
}

// gatherInputs returns the inputs of Tier 1's decision, without the findings of the rules.
func (k *Classifier) gatherInputs(c *analysis.Case) decisionInputs {
	w := decisionInputs{
		needsHigherTier: c.MinTier >= 2, minAuthority: verdict.AuthorityOfTier(max(2, c.MinTier)), harmless: c.HasOnlyHarmlessEffects(), permitted: policyAllows(c), unclearedDoubt: c.WorstDoubt(k.opts.DoubtThresholds),
		rulesOff: k.opts.NoHeuristic, failOpen: k.opts.FailOpen, missingModelNote: k.opts.Note,
		modelSkipsType: k.opts.Model != nil && c.Action != nil && slices.Contains(k.opts.SkipTypes, c.Action.Type),
	}
	if c.HasOnlyOrdinaryEffects() {
		w.reasonOrdinary, w.decidedByEffects = reasonForOrdinary(c), k.opts.DecideByEffects && c.DecidedByEffects()
		w.modelCannotBlock = k.opts.DecideByEffects
	}
	if w.needsHigherTier {
		at := slices.IndexFunc(c.EarlierSteps, func(s verdict.Step) bool {
			return s.Tier == 0 && s.Decision == verdict.Escalate && !s.Allows && s.Rule != ""
		})
		if at >= 0 {
			w.askingStep = &c.EarlierSteps[at]
		} else {
			w.higherTierReason = c.WhyHigherTier()
		}
	}
	return w
}
