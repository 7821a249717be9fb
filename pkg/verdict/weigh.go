package verdict

// Authority is the lowest authority that may allow an action. Up to Person it is the number of a tier.
type Authority uint8

// The authorities, from the lowest to the highest.
const (
	NoApproval   Authority = iota // no approval is needed
	Classifier                    // Tier 1, with its model
	Evaluator                     // Tier 2, a language model
	Person                        // Tier 3
	NeverAllowed                  // the action cannot be allowed
)

// AuthorityOfTier returns the authority of a tier, 0–3.
func AuthorityOfTier(tier int) Authority { return Authority(min(max(tier, 0), int(Person))) }

// DecisionAt returns the decision of a tier, 0–3, on a finding that requires authority w.
func (w Authority) DecisionAt(tier int) Decision {
	switch {
	case w >= NeverAllowed:
		return Block
	case int(w) > tier:
		return Escalate
	}
	return Allow
}

// A Finding is a reason for or against an action: the lowest authority that may allow it nevertheless, and
// why.
type Finding struct {
	Authority      Authority
	Source         string  // as in [Step]
	Confidence     float64 // 0.0–1.0
	Rule           string
	Reasoning      string
	Error          string // a short code, if the finding reports a failure
	FixedReasoning bool   // as in [Verdict]
}

// DecidingIndex returns the index of the finding that decides: the one that requires the highest
// authority. If several do, the one with the highest confidence decides, then the first. It returns
// -1 if there are no findings.
func DecidingIndex(findings ...Finding) int {
	at := -1
	for i := range findings {
		if f := &findings[i]; at < 0 || f.Authority > findings[at].Authority || f.Authority == findings[at].Authority && f.Confidence > findings[at].Confidence {
			at = i
		}
	}
	return at
}

// Verdict returns the decision of a tier, 0–3, on a finding.
func (f Finding) Verdict(tier int) Verdict {
	v := Verdict{Decision: f.Authority.DecisionAt(tier), Tier: tier, Confidence: f.Confidence, Rule: f.Rule, Reasoning: f.Reasoning, Error: f.Error, FixedReasoning: f.FixedReasoning}
	if v.Decision == Escalate {
		v.NextTier = int(f.Authority)
	}
	return v
}

// Step returns the entry of a finding in the trail.
func (f Finding) Step(tier int) Step {
	return Step{Tier: tier, Source: f.Source, Decision: f.Authority.DecisionAt(tier), Confidence: f.Confidence, Rule: f.Rule, Reasoning: f.Reasoning, Error: f.Error, FixedReasoning: f.FixedReasoning}
}
