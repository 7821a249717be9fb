package classify

import (
	"cmp"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A decisionInputs holds all inputs of Tier 1's decision except the model's answer.
type decisionInputs struct {
	rulesResult classifierResult // the most severe finding of the rules; NoApproval if none matched

	needsHigherTier              bool                      // a higher tier must decide: Tier 1 may only block
	minAuthorityRequiredToDecide verdict.ApprovalAuthority // if needsHigherTier: the lowest authority that may decide
	policyEscalationStep         *verdict.Step             // if needsHigherTier: the policy rule that asks for the higher tier; nil if no rule asks
	higherTierReason             string                    // if needsHigherTier: the reason, if no policy rule asks for the higher tier
	harmless                     bool                      // every effect is known, and none changes anything
	isAllowedByPolicyRule        bool                      // a rule of the policy allows the case
	knownEffectsAllowReason      string                    // why the case is ordinary; "" if it is not
	decidedByEffects             bool                      // decided by its effects: the model has no influence
	modelCannotBlock             bool                      // the case is ordinary, and the model alone cannot block it
	unclearedDoubt               analysis.Doubt

	rulesOff, failOpen bool
	missingModelNote   string // note about a missing model
	modelSkipsType     bool   // the model does not judge this type of action
}

// selectDecidingResult returns the finding that decides, and the findings that were weighed, one of each classifier. m is
// the model's answer, nil if the model was not asked.
func (w *decisionInputs) selectDecidingResult(modelAnswer *classifierResult) (deciding classifierResult, candidates []classifierResult) {
	candidates = w.candidateResults(modelAnswer)
	list := make([]verdict.Finding, len(candidates), 2)
	for i := range candidates {
		list[i] = candidates[i].Finding
	}
	deciding = candidates[verdict.DecidingIndex(list...)]
	if len(list) == 2 && deciding.Source == list[0].Source && deciding.Authority == list[1].Authority && deciding.Authority == verdict.AuthorityNotNeeded {
		deciding.Reasoning += "; " + list[1].Reasoning // "no rule matched" is no reason by itself
	}
	if r := &candidates[0]; w.policyEscalationStep != nil && r.Rule == w.policyEscalationStep.Rule && r.Authority == w.minAuthorityRequiredToDecide { // the policy's step is already in the trail
		r.Rule, r.Reasoning, r.ReasoningCannotLeakActionText = "", "no blocking rule matched", true
	}
	return deciding, candidates
}

// candidateResults returns the findings that Tier 1 weighs. If a higher tier must decide, these are only findings
// that block. Otherwise they are the rules' finding with the model's answer or, if the model was not asked
// and no rule matched, the finding of the effects.
func (w *decisionInputs) candidateResults(modelAnswer *classifierResult) []classifierResult {
	switch {
	case w.needsHigherTier && w.rulesResult.Authority < verdict.AuthorityNeverAllowed && w.rulesResult.err == nil:
		return []classifierResult{w.higherTierFinding()}
	case w.needsHigherTier:
	case modelAnswer != nil && w.rulesOff && w.rulesResult.Authority == verdict.AuthorityNotNeeded:
		return []classifierResult{w.restrictModelAnswerByDoubt(*modelAnswer)}
	case modelAnswer != nil:
		return []classifierResult{w.rulesResult, w.restrictModelAnswerByDoubt(*modelAnswer)}
	case w.rulesResult.Authority == verdict.AuthorityNotNeeded:
		return []classifierResult{w.effectsFinding()}
	}
	return []classifierResult{w.rulesResult}
}

// higherTierFinding returns the finding that a higher tier must decide.
func (w *decisionInputs) higherTierFinding() classifierResult {
	out := w.rulesResult
	out.Finding = verdict.Finding{Authority: w.minAuthorityRequiredToDecide, Source: out.Source, Confidence: min(out.Confidence, noMatchConfidence), Reasoning: w.higherTierReason}
	if w.policyEscalationStep != nil {
		out.Rule, out.Reasoning, out.ReasoningCannotLeakActionText = w.policyEscalationStep.Rule, w.policyEscalationStep.Reasoning, w.policyEscalationStep.ReasoningCannotLeakActionText
	}
	return out
}

// effectsFinding returns the finding of the effects, for a case without a matching rule or a model's answer.
func (w *decisionInputs) effectsFinding() classifierResult {
	out := w.rulesResult
	known := w.unclearedDoubt.Reason == "" || w.unclearedDoubt.Unusual
	switch {
	case w.harmless:
		out.Confidence, out.Reasoning = harmlessConfidence, harmlessReason
		return out
	case w.isAllowedByPolicyRule:
		out.Confidence, out.Reasoning = knownEffectsAllowConfidence, permittedReason
	case known && !w.modelSkipsType && w.rulesOff:
		out = classifierResult{Finding: verdict.Finding{Authority: verdict.AuthorityEvaluator, Source: "none", Confidence: errorConfidence,
			Reasoning: "no classifier is available: heuristics are off and no model is loaded; set classifier.enabled: true"}}
		if w.failOpen {
			out.Authority = verdict.AuthorityNotNeeded
		}
	case known && !w.modelSkipsType && w.knownEffectsAllowReason != "":
		out.Confidence, out.Reasoning = knownEffectsAllowConfidence, w.knownEffectsAllowReason
	default:
		out.Authority, out.ReasoningCannotLeakActionText = max(verdict.AuthorityEvaluator, w.unclearedDoubt.MinAuthority), known && w.modelSkipsType
		out.Reasoning = cmp.Or(w.unclearedDoubt.Reason, "no rule matched, and nothing shows that this is ordinary work")
		if out.ReasoningCannotLeakActionText {
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
	return w.rulesResult.Authority == verdict.AuthorityNotNeeded && !w.rulesOff
}

// scope returns which rules run.
func (w *decisionInputs) scope() ruleScope {
	if w.needsHigherTier {
		return scopeBlockingRules
	}
	return scopeAllRules
}

// restrictModelAnswerByDoubt limits a model's answer. SAFE does not clear a doubt that needs more than a model, or
// more confidence than the model has, unless the policy allows the case.
func (w *decisionInputs) restrictModelAnswerByDoubt(answer classifierResult) classifierResult {
	switch {
	case answer.err != nil:
	case answer.Authority == verdict.AuthorityNotNeeded && !w.isAllowedByPolicyRule && (w.unclearedDoubt.NeedsMoreThanModel() || answer.Confidence < w.unclearedDoubt.MinConfidence):
		answer.Authority, answer.Reasoning = max(verdict.AuthorityEvaluator, w.unclearedDoubt.MinAuthority), w.unclearedDoubt.Reason
	case answer.safe && w.noRuleMatched() && w.isAllowedByPolicyRule:
		answer.Authority, answer.Confidence, answer.Reasoning = verdict.AuthorityNotNeeded, knownEffectsAllowConfidence, permittedReason
	case answer.Authority == verdict.AuthorityNeverAllowed && w.noRuleMatched() && w.modelCannotBlock:
		answer.Authority, answer.Reasoning = verdict.AuthorityEvaluator, "model: looks like an attack, although every effect is known and ordinary; ask the user"
	case answer.safe && w.noRuleMatched() && w.knownEffectsAllowReason != "":
		answer.Authority, answer.Confidence, answer.Reasoning = verdict.AuthorityNotNeeded, knownEffectsAllowConfidence, w.knownEffectsAllowReason
	}
	return answer
}
