package classify

import (
	"cmp"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A decisionInputs holds all inputs of Tier 1's decision except the model's answer.
type decisionInputs struct {
	rulesResult result // the most severe finding of the rules; NoApproval if none matched

	needsHigherTier  bool              // a higher tier must decide: Tier 1 may only block
	minAuthority     verdict.Authority // if needsHigherTier: the lowest authority that may decide
	askingStep       *verdict.Step     // if needsHigherTier: the policy rule that asks for the higher tier; nil if no rule asks
	higherTierReason string            // if needsHigherTier: the reason, if no policy rule asks for the higher tier
	harmless         bool              // every effect is known, and none changes anything
	permitted        bool              // a rule of the policy allows the case
	reasonOrdinary   string            // why the case is ordinary; "" if it is not
	decidedByEffects bool              // decided by its effects: the model has no influence
	modelCannotBlock bool              // the case is ordinary, and the model alone cannot block it
	unclearedDoubt   analysis.Doubt

	rulesOff, failOpen bool
	missingModelNote   string // note about a missing model
	modelSkipsType     bool   // the model does not judge this type of action
}

// weigh returns the finding that decides, and the findings that were weighed, one of each classifier. m is
// the model's answer, nil if the model was not asked.
func (w *decisionInputs) weigh(m *result) (out result, weighed []result) {
	weighed = w.findings(m)
	list := make([]verdict.Finding, len(weighed), 2)
	for i := range weighed {
		list[i] = weighed[i].Finding
	}
	out = weighed[verdict.DecidingIndex(list...)]
	if len(list) == 2 && out.Source == list[0].Source && out.Authority == list[1].Authority && out.Authority == verdict.NoApproval {
		out.Reasoning += "; " + list[1].Reasoning // "no rule matched" is no reason by itself
	}
	if r := &weighed[0]; w.askingStep != nil && r.Rule == w.askingStep.Rule && r.Authority == w.minAuthority { // the policy's step is already in the trail
		r.Rule, r.Reasoning, r.FixedReasoning = "", "no blocking rule matched", true
	}
	return out, weighed
}

// findings returns the findings that Tier 1 weighs. If a higher tier must decide, these are only findings
// that block. Otherwise they are the rules' finding with the model's answer or, if the model was not asked
// and no rule matched, the finding of the effects.
func (w *decisionInputs) findings(m *result) []result {
	switch {
	case w.needsHigherTier && w.rulesResult.Authority < verdict.NeverAllowed && w.rulesResult.err == nil:
		return []result{w.higherTierFinding()}
	case w.needsHigherTier:
	case m != nil && w.rulesOff && w.rulesResult.Authority == verdict.NoApproval:
		return []result{w.limitAnswer(*m)}
	case m != nil:
		return []result{w.rulesResult, w.limitAnswer(*m)}
	case w.rulesResult.Authority == verdict.NoApproval:
		return []result{w.effectsFinding()}
	}
	return []result{w.rulesResult}
}

// higherTierFinding returns the finding that a higher tier must decide.
func (w *decisionInputs) higherTierFinding() result {
	out := w.rulesResult
	out.Finding = verdict.Finding{Authority: w.minAuthority, Source: out.Source, Confidence: min(out.Confidence, noMatchConfidence), Reasoning: w.higherTierReason}
	if w.askingStep != nil {
		out.Rule, out.Reasoning, out.FixedReasoning = w.askingStep.Rule, w.askingStep.Reasoning, w.askingStep.FixedReasoning
	}
	return out
}

// effectsFinding returns the finding of the effects, for a case without a matching rule or a model's answer.
func (w *decisionInputs) effectsFinding() result {
	out := w.rulesResult
	known := w.unclearedDoubt.Reason == "" || w.unclearedDoubt.Unusual
	switch {
	case w.harmless:
		out.Confidence, out.Reasoning = harmlessConfidence, harmlessReason
		return out
	case w.permitted:
		out.Confidence, out.Reasoning = ordinaryConfidence, permittedReason
	case known && !w.modelSkipsType && w.rulesOff:
		out = result{Finding: verdict.Finding{Authority: verdict.Evaluator, Source: "none", Confidence: errorConfidence,
			Reasoning: "no classifier is available: heuristics are off and no model is loaded; set classifier.enabled: true"}}
		if w.failOpen {
			out.Authority = verdict.NoApproval
		}
	case known && !w.modelSkipsType && w.reasonOrdinary != "":
		out.Confidence, out.Reasoning = ordinaryConfidence, w.reasonOrdinary
	default:
		out.Authority, out.FixedReasoning = max(verdict.Evaluator, w.unclearedDoubt.MinAuthority), known && w.modelSkipsType
		out.Reasoning = cmp.Or(w.unclearedDoubt.Reason, "no rule matched, and nothing shows that this is ordinary work")
		if out.FixedReasoning {
			out.Reasoning = "the classifier model does not judge this type of action; ask the user"
		}
	}
	if w.missingModelNote != "" {
		out.Reasoning += "; " + w.missingModelNote
	}
	return out
}

// noRuleMatched reports whether the rules ran and none matched.
func (w *decisionInputs) noRuleMatched() bool {
	return w.rulesResult.Authority == verdict.NoApproval && !w.rulesOff
}

// scope returns which rules run.
func (w *decisionInputs) scope() ruleScope {
	if w.needsHigherTier {
		return scopeBlock
	}
	return scopeAll
}

// limitAnswer limits a model's answer. SAFE does not clear a doubt that needs more than a model, or
// more confidence than the model has, unless the policy allows the case.
func (w *decisionInputs) limitAnswer(m result) result {
	switch {
	case m.err != nil:
	case m.Authority == verdict.NoApproval && !w.permitted && (w.unclearedDoubt.NeedsMoreThanModel() || m.Confidence < w.unclearedDoubt.MinConfidence):
		m.Authority, m.Reasoning = max(verdict.Evaluator, w.unclearedDoubt.MinAuthority), w.unclearedDoubt.Reason
	case m.safe && w.noRuleMatched() && w.permitted:
		m.Authority, m.Confidence, m.Reasoning = verdict.NoApproval, ordinaryConfidence, permittedReason
	case m.Authority == verdict.NeverAllowed && w.noRuleMatched() && w.modelCannotBlock:
		m.Authority, m.Reasoning = verdict.Evaluator, "model: looks like an attack, although every effect is known and ordinary; ask the user"
	case m.safe && w.noRuleMatched() && w.reasonOrdinary != "":
		m.Authority, m.Confidence, m.Reasoning = verdict.NoApproval, ordinaryConfidence, w.reasonOrdinary
	}
	return m
}
