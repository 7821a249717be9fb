package classify

import (
	"cmp"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A decisionInputs holds all inputs of Tier 1's decision except the model's answer.
type decisionInputs struct {
	rulesResult ruleOrModelResult // the most severe finding of the rules; it allows if no rule matched

	needsHigherTier              bool                      // a higher tier must decide: Tier 1 may only block
	minAuthorityRequiredToDecide verdict.ApprovalAuthority // if needsHigherTier: the lowest authority that may decide
	policyEscalationStep         *verdict.TierStep         // if needsHigherTier: the policy rule that asks for the higher tier; nil if no rule asks
	higherTierReason             string                    // if needsHigherTier: the reason, if no policy rule asks for the higher tier
	hasOnlyHarmlessEffects       bool                      // every effect is known, and none changes anything
	isAllowedByPolicyRule        bool                      // a rule of the policy allows the case
	knownEffectsAllowReason      string                    // why the case is ordinary; "" if it is not
	decidesByEffectsAlone        bool                      // the effects alone decide, and the model has no influence
	modelCannotBlock             bool                      // the case is ordinary, and the model alone cannot block it
	worstDoubt                   analysis.EffectSafetyDoubt

	rulesOff, failOpen bool
	missingModelNote   string // note about a missing model
	modelSkipsType     bool   // the model does not judge this type of action
}

// selectDecidingResult returns the finding that decides, and the findings that were weighed, one of
// each classifier. modelAnswer is nil if the model was not asked.
func (w *decisionInputs) selectDecidingResult(modelAnswer *ruleOrModelResult) (deciding ruleOrModelResult, candidates []ruleOrModelResult) {
	candidates = w.candidateResults(modelAnswer)
	list := make([]verdict.Finding, len(candidates), 2)
	for i := range candidates {
		list[i] = candidates[i].Finding
	}
	deciding = candidates[verdict.DecidingFindingIndex(list...)]
	if len(list) == 2 && deciding.JudgeName == list[0].JudgeName && deciding.RequiredAuthority == list[1].RequiredAuthority && deciding.RequiredAuthority == verdict.AuthorityNotNeeded {
		deciding.Reasoning += "; " + list[1].Reasoning // "no rule matched" is no reason by itself
	}
	if r := &candidates[0]; w.policyEscalationStep != nil && r.Rule == w.policyEscalationStep.Rule && r.RequiredAuthority == w.minAuthorityRequiredToDecide { // the policy's step is already in the trail
		r.Rule, r.Reasoning, r.ReasoningCannotLeakActionText = "", "no blocking rule matched", true
	}
	return deciding, candidates
}

// candidateResults returns the findings that Tier 1 weighs. If a higher tier must decide, the only finding is
// that of the rules if it blocks or the rules failed, else the finding that a higher tier must decide.
// Otherwise, if the model was asked, they are the rules' finding and the model's answer; only the model's answer
// if the rules are off and none matched. If the model was not asked, the only finding is that of the rules if a
// rule matched, else the one derived from the effects.
func (w *decisionInputs) candidateResults(modelAnswer *ruleOrModelResult) []ruleOrModelResult {
	switch {
	case w.needsHigherTier && w.rulesResult.RequiredAuthority < verdict.AuthorityNoneSuffices && w.rulesResult.err == nil:
		return []ruleOrModelResult{w.resultRequiringHigherTier()}
	case w.needsHigherTier:
	case modelAnswer != nil && w.rulesOff && w.rulesResult.RequiredAuthority == verdict.AuthorityNotNeeded:
		return []ruleOrModelResult{w.reconcileModelAnswer(*modelAnswer)}
	case modelAnswer != nil:
		return []ruleOrModelResult{w.rulesResult, w.reconcileModelAnswer(*modelAnswer)}
	case w.rulesResult.RequiredAuthority == verdict.AuthorityNotNeeded:
		return []ruleOrModelResult{w.effectsBasedResult()}
	}
	return []ruleOrModelResult{w.rulesResult}
}

// resultRequiringHigherTier returns a finding which says that a higher tier must decide.
func (w *decisionInputs) resultRequiringHigherTier() ruleOrModelResult {
	out := w.rulesResult
	out.Finding = verdict.Finding{RequiredAuthority: w.minAuthorityRequiredToDecide, JudgeName: out.JudgeName, Confidence: min(out.Confidence, noMatchConfidence), Reasoning: w.higherTierReason}
	if w.policyEscalationStep != nil {
		out.Rule, out.Reasoning, out.ReasoningCannotLeakActionText = w.policyEscalationStep.Rule, w.policyEscalationStep.Reasoning, w.policyEscalationStep.ReasoningCannotLeakActionText
	}
	return out
}

// effectsBasedResult returns the finding of the effects, for a case without a matching rule or a model's answer.
func (w *decisionInputs) effectsBasedResult() ruleOrModelResult {
	out := w.rulesResult
	known := w.worstDoubt.Reason == "" || w.worstDoubt.IsEffectUnusual
	switch {
	case w.hasOnlyHarmlessEffects:
		out.Confidence, out.Reasoning = harmlessConfidence, harmlessEffectsAllowReason
		return out
	case w.isAllowedByPolicyRule:
		out.Confidence, out.Reasoning = knownEffectsAllowConfidence, policyRuleAllowReason
	case known && !w.modelSkipsType && w.rulesOff:
		out = ruleOrModelResult{Finding: verdict.Finding{RequiredAuthority: verdict.AuthorityEvaluator, JudgeName: "none", Confidence: errorConfidence,
			Reasoning: "no classifier is available: heuristics are off and no model is loaded; set classifier.enabled: true"}}
		if w.failOpen {
			out.RequiredAuthority = verdict.AuthorityNotNeeded
		}
	case known && !w.modelSkipsType && w.knownEffectsAllowReason != "":
		out.Confidence, out.Reasoning = knownEffectsAllowConfidence, w.knownEffectsAllowReason
	default:
		out.RequiredAuthority, out.ReasoningCannotLeakActionText = max(verdict.AuthorityEvaluator, w.worstDoubt.MinApprovingAuthority), known && w.modelSkipsType
		out.Reasoning = cmp.Or(w.worstDoubt.Reason, "no rule matched, and nothing shows that this is ordinary work")
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
	return w.rulesResult.RequiredAuthority == verdict.AuthorityNotNeeded && !w.rulesOff
}

// scopeOfRulesToRun returns which rules run.
func (w *decisionInputs) scopeOfRulesToRun() ruleScope {
	if w.needsHigherTier {
		return ruleScopeBlocking
	}
	return ruleScopeAll
}

// reconcileModelAnswer limits a model's answer. SAFE does not clear a doubt that needs more than a model, or
// more confidence than the model has, unless the policy allows the case.
func (w *decisionInputs) reconcileModelAnswer(answer ruleOrModelResult) ruleOrModelResult {
	switch {
	case answer.err != nil:
	case answer.RequiredAuthority == verdict.AuthorityNotNeeded && !w.isAllowedByPolicyRule && (w.worstDoubt.NeedsAuthorityAboveClassifier() || answer.Confidence < w.worstDoubt.MinSafeAnswerConfidence):
		answer.RequiredAuthority, answer.Reasoning = max(verdict.AuthorityEvaluator, w.worstDoubt.MinApprovingAuthority), w.worstDoubt.Reason
	case answer.isModelLabelSafe && w.noRuleMatched() && w.isAllowedByPolicyRule:
		answer.RequiredAuthority, answer.Confidence, answer.Reasoning = verdict.AuthorityNotNeeded, knownEffectsAllowConfidence, policyRuleAllowReason
	case answer.RequiredAuthority == verdict.AuthorityNoneSuffices && w.noRuleMatched() && w.modelCannotBlock:
		answer.RequiredAuthority, answer.Reasoning = verdict.AuthorityEvaluator, "model: looks like an attack, although every effect is known and ordinary; ask the user"
	case answer.isModelLabelSafe && w.noRuleMatched() && w.knownEffectsAllowReason != "":
		answer.RequiredAuthority, answer.Confidence, answer.Reasoning = verdict.AuthorityNotNeeded, knownEffectsAllowConfidence, w.knownEffectsAllowReason
	}
	return answer
}
