package classify

import (
	"cmp"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A weighing is everything that Tier 1 decides by, apart from the model's answer.
type weighing struct {
	rules result // the gravest finding of the rules; if none matched, that no one has to approve

	above     bool          // a higher tier must decide: Tier 1 may only block
	least     verdict.Who   // who may decide then
	asked     *verdict.Step // the rule of the policy that asks for it; nil for none
	why       string        // why a higher tier must decide where no rule asks
	harmless  bool          // every effect is known, and none changes anything
	permitted bool          // a rule of the policy allows the case
	ordinary  string        // why the case is ordinary; "" if it is not
	factual   bool          // it is decided by its effects: the model has no say
	noBlock   bool          // it is ordinary, and the model alone cannot block it
	doubt     analysis.Doubt

	noRules, failOpen bool
	note              string // of a missing model
	skips             bool   // the model does not judge this type of action
}

// weigh decides Tier 1. m is the model's answer, nil where it is not asked. It returns the
// finding that decides and those that were weighed, one of each classifier.
func (w *weighing) weigh(m *result) (out result, weighed []result) {
	weighed = w.findings(m)
	list := make([]verdict.Finding, len(weighed), 2)
	for i := range weighed {
		list[i] = weighed[i].Finding
	}
	out = weighed[verdict.Weigh(list...)]
	if len(list) == 2 && out.Source == list[0].Source && out.Who == list[1].Who && out.Who == verdict.NoApproval {
		out.Reasoning += "; " + list[1].Reasoning // that no rule matched is no reason
	}
	if r := &weighed[0]; w.asked != nil && r.Rule == w.asked.Rule && r.Who == w.least { // its own step is in the trail
		r.Rule, r.Reasoning, r.Fixed = "", "no blocking rule matched", true
	}
	return out, weighed
}

// findings returns what Tier 1 may use: where a higher tier must decide, only what blocks;
// otherwise what the rules found, and beside it the model's answer or, without one and if no rule matched,
// the facts.
func (w *weighing) findings(m *result) []result {
	switch {
	case w.above && w.rules.Who < verdict.Never && w.rules.err == nil:
		return []result{w.higherTierFinding()}
	case w.above:
	case m != nil && w.noRules && w.rules.Who == verdict.NoApproval:
		return []result{w.answerWorth(*m)}
	case m != nil:
		return []result{w.rules, w.answerWorth(*m)}
	case w.rules.Who == verdict.NoApproval:
		return []result{w.facts()}
	}
	return []result{w.rules}
}

// higherTierFinding is the finding that a higher tier must decide.
func (w *weighing) higherTierFinding() result {
	out := w.rules
	out.Finding = verdict.Finding{Who: w.least, Source: out.Source, Confidence: min(out.Confidence, noMatchConfidence), Reasoning: w.why}
	if w.asked != nil {
		out.Rule, out.Reasoning, out.Fixed = w.asked.Rule, w.asked.Reasoning, w.asked.Fixed
	}
	return out
}

// facts is the finding about a case in which no rule matched, without a model.
func (w *weighing) facts() result {
	out := w.rules
	known := w.doubt.Reason == "" || w.doubt.Unusual
	switch {
	case w.harmless:
		out.Confidence, out.Reasoning = harmlessConfidence, harmlessReason
		return out
	case w.permitted:
		out.Confidence, out.Reasoning = ordinaryConfidence, permittedReason
	case known && !w.skips && w.noRules:
		out = result{Finding: verdict.Finding{Who: verdict.Evaluator, Source: "none", Confidence: errorConfidence,
			Reasoning: "no classifier is available: heuristics are off and no model is loaded; set classifier.enabled: true"}}
		if w.failOpen {
			out.Who = verdict.NoApproval
		}
	case known && !w.skips && w.ordinary != "":
		out.Confidence, out.Reasoning = ordinaryConfidence, w.ordinary
	default:
		out.Who, out.Fixed = max(verdict.Evaluator, w.doubt.Who), known && w.skips
		out.Reasoning = cmp.Or(w.doubt.Reason, "no rule matched, and nothing shows that this is ordinary work")
		if out.Fixed {
			out.Reasoning = "the classifier model does not judge this type of action; ask the user"
		}
	}
	if w.note != "" {
		out.Reasoning += "; " + w.note
	}
	return out
}

// noRuleMatched reports whether rules were tried and none matched.
func (w *weighing) noRuleMatched() bool { return w.rules.Who == verdict.NoApproval && !w.noRules }

// scope is which rules count.
func (w *weighing) scope() scope {
	if w.above {
		return scopeBlock
	}
	return scopeAll
}

// answerWorth returns what a model's answer is worth: its SAFE clears no final doubt,
// unless the policy allows the case.
func (w *weighing) answerWorth(m result) result {
	switch {
	case m.err != nil:
	case m.Who == verdict.NoApproval && !w.permitted && (w.doubt.Final() || m.Confidence < w.doubt.Least):
		m.Who, m.Reasoning = max(verdict.Evaluator, w.doubt.Who), w.doubt.Reason
	case m.safe && w.noRuleMatched() && w.permitted:
		m.Who, m.Confidence, m.Reasoning = verdict.NoApproval, ordinaryConfidence, permittedReason
	case m.Who == verdict.Never && w.noRuleMatched() && w.noBlock:
		m.Who, m.Reasoning = verdict.Evaluator, "model: looks like an attack, although every effect is known and ordinary; ask the user"
	case m.safe && w.noRuleMatched() && w.ordinary != "":
		m.Who, m.Confidence, m.Reasoning = verdict.NoApproval, ordinaryConfidence, w.ordinary
	}
	return m
}
