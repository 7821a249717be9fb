package classify

import (
	"context"
	"slices"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// EvidenceAgainstAction returns all evidence against an action, even if a rule of the policy sends it to a higher tier:
// the IDs of the matching rules, the causes of doubt, and whether the model suspects it. After an error the
// results are unknown.
func (k *Classifier) EvidenceAgainstAction(ctx context.Context, c *analysis.ActionCase) (matchedRuleIDs, doubtCauses []string, modelSuspectsAttack bool, err error) {
	if k.opts.RunsOnlyAlwaysBlockRules {
		matchedRuleIDs = append(matchedRuleIDs, "heuristic rules are off")
	}
	eng := k.engine()
	s := eng.ruleMatchBuffersPool.Get().(*ruleMatchBuffers)
	defer eng.ruleMatchBuffersPool.Put(s)
	eng.run(s, c, ruleScopeAll)
	if err := k.dropExemptHits(eng, s, c); err != nil {
		return nil, nil, false, err
	}
	if s.isScanBudgetExceeded {
		matchedRuleIDs = append(matchedRuleIDs, "too long for the heuristic rules")
	}
	for _, h := range s.hits {
		matchedRuleIDs = append(matchedRuleIDs, eng.rules[h.ruleIndex].ID)
	}
	before := c.Tier1AllowEvidence
	c.Tier1AllowEvidence = &analysis.Tier1DecisionEvidence{}
	c.WorstDoubt(k.opts.SafeThresholdByDoubtCause)
	if c.Tier1AllowEvidence.IsDoubtLimitReached() {
		matchedRuleIDs = append(matchedRuleIDs, "more unknown effects than shield lists")
	}
	for _, d := range c.Tier1AllowEvidence.Doubts {
		doubtCauses = append(doubtCauses, d.CauseName)
	}
	c.Tier1AllowEvidence = before
	sorted.SortStrings(matchedRuleIDs)
	sorted.SortStrings(doubtCauses)
	matchedRuleIDs, doubtCauses = slices.Compact(matchedRuleIDs), slices.Compact(doubtCauses)
	if k.opts.Model == nil || slices.Contains(k.opts.ModelSkippedActionTypes, c.Action.Type) || c.HasOnlyHarmlessEffects() {
		return matchedRuleIDs, doubtCauses, false, nil
	}
	text, err := ModelInputText(c.Action)
	if err != nil {
		return nil, nil, false, err
	}
	m := k.runModel(ctx, c.Action.Type, text)
	if m.err != nil {
		return nil, nil, false, m.err
	}
	if m.isModelLabelSafe {
		return matchedRuleIDs, doubtCauses, false, nil
	}
	tier := c.MinAllowTier
	c.MinAllowTier = min(tier, 1) // judge the model's answer as Tier 1 would, even if a higher tier must decide this action
	w := k.gatherInputs(c)
	c.MinAllowTier = tier
	w.rulesResult = ruleOrModelResult{Finding: verdict.Finding{JudgeName: "heuristic", Confidence: noMatchConfidence}}
	r, _ := w.selectDecidingResult(&m)
	return matchedRuleIDs, doubtCauses, r.decision() != verdict.Allow, nil
}
