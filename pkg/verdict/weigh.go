package verdict

// ApprovalAuthority is the lowest authority that may allow an action. Up to AuthorityPerson it is
// the number of a tier.
type ApprovalAuthority uint8

// The authorities, from the lowest to the highest.
const (
	AuthorityNotNeeded    ApprovalAuthority = iota // no approval is needed
	AuthorityClassifier                            // Tier 1, with its model
	AuthorityEvaluator                             // Tier 2, a language model
	AuthorityPerson                                // Tier 3
	AuthorityNoneSuffices                          // the action cannot be allowed
)

// AuthorityOfTier returns the authority of a tier, 0–3.
func AuthorityOfTier(tier int) ApprovalAuthority {
	return ApprovalAuthority(min(max(tier, 0), int(AuthorityPerson)))
}

// DecisionIfRequiredAtTier returns the decision of a tier, 0–3, on a finding that requires authority w.
func (w ApprovalAuthority) DecisionIfRequiredAtTier(tier int) Decision {
	switch {
	case w >= AuthorityNoneSuffices:
		return Block
	case int(w) > tier:
		return Escalate
	}
	return Allow
}

// A Finding is a reason for or against an action: the lowest authority that may allow it nevertheless, and
// why.
type Finding struct {
	RequiredAuthority             ApprovalAuthority
	JudgeName                     string  // as in [TierStep]
	Confidence                    float64 // 0.0–1.0
	Rule                          string
	Reasoning                     string
	ErrorCode                     string // a short code, if the finding reports a failure
	ReasoningCannotLeakActionText bool   // as in [Verdict]
}

// DecidingFindingIndex returns the index of the finding that decides: the one that requires the highest
// authority. If several do, the one with the highest confidence decides, then the first. It returns
// -1 if there are no findings.
func DecidingFindingIndex(findings ...Finding) int {
	at := -1
	for i := range findings {
		if f := &findings[i]; at < 0 || f.RequiredAuthority > findings[at].RequiredAuthority || f.RequiredAuthority == findings[at].RequiredAuthority && f.Confidence > findings[at].Confidence {
			at = i
		}
	}
	return at
}

// Verdict returns a tier's verdict on a finding; tier is 0 to 3.
func (f Finding) Verdict(tier int) Verdict {
	v := Verdict{Decision: f.RequiredAuthority.DecisionIfRequiredAtTier(tier), Tier: tier, Confidence: f.Confidence, Rule: f.Rule, Reasoning: f.Reasoning, ErrorCode: f.ErrorCode, ReasoningCannotLeakActionText: f.ReasoningCannotLeakActionText}
	if v.Decision == Escalate {
		v.NextTier = int(f.RequiredAuthority)
	}
	return v
}

// Step returns the entry of a finding in the trail.
func (f Finding) Step(tier int) TierStep {
	return TierStep{Tier: tier, JudgeName: f.JudgeName, Decision: f.RequiredAuthority.DecisionIfRequiredAtTier(tier), Confidence: f.Confidence, Rule: f.Rule, Reasoning: f.Reasoning, ErrorCode: f.ErrorCode, ReasoningCannotLeakActionText: f.ReasoningCannotLeakActionText}
}
