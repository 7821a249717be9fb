package classify

import (
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

const ordinaryReason = "ordinary: every effect is known, and none needs approval"

// becauseOrdinary returns the reason why an ordinary case is allowed.
func becauseOrdinary(c *analysis.Case) string {
	if c.Class() != "" {
		return classedReason
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Cause == effect.CauseContained }) {
		return "ordinary: every effect is known, and changes outside the workspace end with the container"
	}
	if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Restorable }) {
		return ordinaryReason + "; what it deletes is in the last commit, or does not exist"
	}
	return ordinaryReason
}

const classedReason = "ordinary: the tool's class covers this call"

const harmlessReason = "harmless: every effect is known, and none changes anything"

const permittedReason = "no rule matched, and a rule of the policy allows this"

// policyAllows reports whether a rule of the policy allows a case that Tier 1 must still judge.
func policyAllows(c *analysis.Case) bool {
	return slices.ContainsFunc(c.Trail, func(s verdict.Step) bool { return s.Tier == 0 && s.Allows })
}

// recordEvidence records, for people, the reasons for and against a case and the model's answer; m is nil if
// the model was not asked.
func (k *Classifier) recordEvidence(c *analysis.Case, w *weighing, m *result) {
	e := c.Evidence
	if e == nil {
		return
	}
	e.Tier, e.Uncovered = c.MinTier, c.Uncovered
	e.Weighs(w.rules.matched...)
	switch {
	case w.harmless:
		e.For = harmlessReason
	case w.permitted:
		e.For = permittedReason
	case w.ordinary != "":
		e.For = ordinaryReason
	}
	if c.Action != nil {
		e.Safe = k.opts.Safe[c.Action.Type]
	}
	if m != nil {
		e.Answer = &analysis.Answer{Injection: !m.safe, Confidence: m.Confidence, Failed: m.err != nil}
	}
}

// weighing returns the inputs of Tier 1's decision, without the findings of the rules.
func (k *Classifier) weighing(c *analysis.Case) weighing {
	w := weighing{
		above: c.MinTier >= 2, least: verdict.Least(max(2, c.MinTier)), harmless: c.Harmless(), permitted: policyAllows(c), doubt: c.Doubt(k.opts.Doubts),
		noRules: k.opts.NoHeuristic, failOpen: k.opts.FailOpen, note: k.opts.Note,
		skips: k.opts.Model != nil && c.Action != nil && slices.Contains(k.opts.SkipTypes, c.Action.Type),
	}
	if c.Ordinary() {
		w.ordinary, w.factual = becauseOrdinary(c), k.opts.Facts && c.Factual()
		w.noBlock = k.opts.Facts
	}
	if w.above {
		at := slices.IndexFunc(c.Trail, func(s verdict.Step) bool {
			return s.Tier == 0 && s.Decision == verdict.Escalate && !s.Allows && s.Rule != ""
		})
		if at >= 0 {
			w.asked = &c.Trail[at]
		} else {
			w.why = c.WhyTier()
		}
	}
	return w
}
