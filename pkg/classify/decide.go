package classify

import (
	"cmp"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A weighing holds all inputs of Tier 1's decision except the model's answer.
type weighing struct {
	rules result // the most severe finding of the rules; NoApproval if none matched

	above     bool          // a higher tier must decide: Tier 1 may only block
	least     verdict.Who   // with above: the lowest authority that may decide
	asked     *verdict.Step // with above: the rule of the policy that asks for it; nil for none
	why       string        // with above: the reason if no rule asks
	harmless  bool          // every effect is known, and none changes anything
	permitted bool          // a rule of the policy allows the case
	ordinary  string        // why the case is ordinary; "" if it is not
	factual   bool          // decided by its effects: the model has no influence
	noBlock   bool          // the case is ordinary, and the model alone cannot block it
	doubt     analysis.Doubt

	noRules, failOpen bool
	note              string // note about a missing model
	skips             bool   // the model does not judge this type of action
}

// weigh returns the finding that decides, and the findings that were weighed, one of each classifier. m is
// the model's answer, nil if the model was not asked.
func (w *weighing) weigh(m *result) (out result, weighed []result) {
	weighed = w.findings(m)
	list := make([]verdict.Finding, len(weighed), 2)
	for i := range weighed {
		list[i] = weighed[i].Finding
	}
	out = weighed[verdict.Weigh(list...)]
	if len(list) == 2 && out.Source == list[0].Source && out.Who == list[1].Who && out.Who == verdict.NoApproval {
		out.Reasoning += "; " + list[1].Reasoning // "no rule matched" is no reason by itself
	}
	if r := &weighed[0]; w.asked != nil && r.Rule == w.asked.Rule && r.Who == w.least { // the policy's step is already in the trail
		r.Rule, r.Reasoning, r.Fixed = "", "no blocking rule matched", true
	}
	return out, weighed
}

// findings returns the findings that Tier 1 weighs. If a higher tier must decide, these are only findings
// that block. Otherwise they are the rules' finding with the model's answer or, if the model was not asked
// and no rule matched, the finding of the effects.
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

// higherTierFinding returns the finding that a higher tier must decide.
func (w *weighing) higherTierFinding() result {
	out := w.rules
	out.Finding = verdict.Finding{Who: w.least, Source: out.Source, Confidence: min(out.Confidence, noMatchConfidence), Reasoning: w.why}
	if w.asked != nil {
		out.Rule, out.Reasoning, out.Fixed = w.asked.Rule, w.asked.Reasoning, w.asked.Fixed
	}
	return out
}

// facts returns the finding of the effects, for a case without a matching rule or a model's answer.
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

// noRuleMatched reports whether the rules ran and none matched.
func (w *weighing) noRuleMatched() bool { return w.rules.Who == verdict.NoApproval && !w.noRules }

// scope returns which rules run.
func (w *weighing) scope() scope {
	if w.above {
		return scopeBlock
	}
	return scopeAll
}

// answerWorth limits a model's answer: SAFE does not clear a final doubt, unless the policy allows the case.
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
