package classify

import (
	"context"
	"slices"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Findings returns all evidence against an action, even if a rule of the policy sends it to a higher tier:
// the IDs of the matching rules, the causes of doubt, and whether the model suspects it. After an error the
// results are unknown.
func (k *Classifier) Findings(ctx context.Context, c *analysis.Case) (rules, doubted []string, suspected bool, err error) {
	if k.opts.NoHeuristic {
		rules = append(rules, "heuristic rules are off")
	}
	eng := k.engine()
	s := eng.pool.Get().(*runBuffers)
	defer eng.pool.Put(s)
	eng.run(s, c, scopeAll)
	if err := k.dropExemptHits(eng, s, c); err != nil {
		return nil, nil, false, err
	}
	if s.budgetExceeded {
		rules = append(rules, "too long for the heuristic rules")
	}
	for _, h := range s.hits {
		rules = append(rules, eng.rules[h.rule].ID)
	}
	before := c.Evidence
	c.Evidence = &analysis.Evidence{}
	c.WorstDoubt(k.opts.DoubtThresholds)
	if c.Evidence.HasMaxDoubts() {
		rules = append(rules, "more unknown effects than shield lists")
	}
	for _, d := range c.Evidence.Doubts {
		doubted = append(doubted, d.Cause)
	}
	c.Evidence = before
	sorted.Strings(rules)
	sorted.Strings(doubted)
	rules, doubted = slices.Compact(rules), slices.Compact(doubted)
	if k.opts.Model == nil || slices.Contains(k.opts.SkipTypes, c.Action.Type) || c.HasOnlyHarmlessEffects() {
		return rules, doubted, false, nil
	}
	text, err := Text(c.Action)
	if err != nil {
		return nil, nil, false, err
	}
	m := k.score(ctx, c.Action.Type, text)
	if m.err != nil {
		return nil, nil, false, m.err
	}
	if m.safe {
		return rules, doubted, false, nil
	}
	tier := c.MinTier
	c.MinTier = min(tier, 1) // evaluate the model's answer as Tier 1 would, whichever tier decides
	w := k.gatherInputs(c)
	c.MinTier = tier
	w.rulesResult = result{Finding: verdict.Finding{Source: "heuristic", Confidence: noMatchConfidence}}
	r, _ := w.weigh(&m)
	return rules, doubted, r.decision() != verdict.Allow, nil
}
