package classify

import (
	"cmp"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A weighing is everything that Tier 1 decides by, apart from the model's answer.
type weighing struct {
	rules result // the gravest finding of the rules; ALLOW if none matched

	above     bool          // a higher tier must decide: Tier 1 may only block
	asked     *verdict.Step // the rule of the policy that asks for it; nil for none
	why       string        // why a higher tier must decide where no rule asks
	harmless  bool          // every effect is known and only reads inside the workspace
	permitted bool          // a rule of the policy allows the case
	ordinary  string        // why the case is ordinary; "" if it is not
	factual   bool          // it is decided by its effects: the model has no say
	noBlock   bool          // it is ordinary, and the model alone cannot block it
	doubt     analysis.Doubt

	noRules, failOpen bool
	note              string // of a missing model
	skips             bool   // the model does not judge this type of action
}

// weigh decides Tier 1. m is the model's answer, nil where it is not asked. It returns
// the result and what the trail says about each classifier.
func (w *weighing) weigh(m *result) (out result, steps []result) {
	out = w.rules
	switch {
	case w.above && (out.decision == verdict.Block || out.err != nil):
	case w.above:
		out.decision, out.confidence, out.rule, out.reasoning, out.fixed = verdict.Escalate, min(out.confidence, noMatchConfidence), "", w.why, w.asked != nil
		if w.asked != nil {
			out.reasoning = "no blocking rule matched"
			steps = []result{out}
			out.rule, out.reasoning, out.fixed = w.asked.Rule, w.asked.Reasoning, w.asked.Fixed
		}
	case m != nil:
		said := w.worth(*m)
		if w.noRules && w.rules.decision == verdict.Allow {
			return said, []result{said}
		}
		return graver(w.rules, said), []result{w.rules, said}
	case out.decision == verdict.Allow:
		out = w.facts()
	}
	if steps == nil {
		steps = []result{out}
	}
	return out, steps
}

// facts decides a case in which no rule matched, without a model.
func (w *weighing) facts() result {
	out := w.rules
	known := w.doubt.Reason == "" || w.doubt.Unusual
	switch {
	case w.harmless:
		out.confidence, out.reasoning = harmlessConfidence, harmlessReason
		return out
	case w.permitted:
		out.confidence, out.reasoning = ordinaryConfidence, permittedReason
	case known && !w.skips && w.noRules:
		out = result{source: "none", confidence: errorConfidence, decision: verdict.Escalate,
			reasoning: "no classifier is available: heuristics are switched off and no model is loaded"}
		if w.failOpen {
			out.decision = verdict.Allow
		}
	case known && !w.skips && w.ordinary != "":
		out.confidence, out.reasoning = ordinaryConfidence, w.ordinary
	default:
		out.decision, out.fixed = verdict.Escalate, known && w.skips
		out.reasoning = cmp.Or(w.doubt.Reason, "no rule matched, and nothing shows that this is ordinary work")
		if out.fixed {
			out.reasoning = "the model does not judge this type of action"
		}
	}
	if w.note != "" {
		out.reasoning += "; " + w.note
	}
	return out
}

// unmatched reports whether rules were tried and none matched.
func (w *weighing) unmatched() bool { return w.rules.decision == verdict.Allow && !w.noRules }

// scope is which rules count.
func (w *weighing) scope() scope {
	if w.above {
		return scopeBlock
	}
	return scopeAll
}

// worth returns what a model's answer is worth: its SAFE clears no final doubt,
// unless the policy allows the case.
func (w *weighing) worth(m result) result {
	switch {
	case m.err != nil:
	case m.decision == verdict.Allow && !w.permitted && (w.doubt.Final || m.confidence < w.doubt.Least):
		m.decision, m.reasoning = verdict.Escalate, w.doubt.Reason
	case m.safe && w.unmatched() && w.permitted:
		m.decision, m.confidence, m.reasoning = verdict.Allow, ordinaryConfidence, permittedReason
	case m.decision == verdict.Block && w.unmatched() && w.noBlock:
		m.decision, m.reasoning = verdict.Escalate, "model: looks like an attack, though every effect is known and ordinary"
	case m.safe && w.unmatched() && w.ordinary != "":
		m.decision, m.confidence, m.reasoning = verdict.Allow, ordinaryConfidence, w.ordinary
	}
	return m
}
