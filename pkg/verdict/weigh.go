package verdict

// Who is the least that may still allow an action. Up to Person it is the number of the tier
// that decides.
type Who uint8

// Who may allow an action, from the one that takes nothing to the one that nothing lifts.
const (
	NoApproval Who = iota // no one has to
	Classifier            // Tier 1, with its model
	Evaluator             // Tier 2, a language model
	Person                // Tier 3
	Never                 // no one may
)

// Least returns who may allow what needs at least a tier, 0–3.
func Least(tier int) Who { return Who(min(max(tier, 0), int(Person))) }

// At returns the decision of a tier, 0–3, that goes by a finding.
func (w Who) At(tier int) Decision {
	switch {
	case w >= Never:
		return Block
	case int(w) > tier:
		return Escalate
	}
	return Allow
}

// A Finding is a reason for or against an action: who may allow it in spite of it, and why.
type Finding struct {
	Who        Who
	Source     string  // as in [Step]
	Confidence float64 // 0.0–1.0
	Rule       string
	Reasoning  string
	Error      string // a short code, if it is that something failed
	Fixed      bool   // as in [Verdict]
}

// Weigh returns the index of the finding that decides: the one that leaves the decision to the
// highest, of these the most confident, of these the first. It is -1 for no findings.
func Weigh(findings ...Finding) int {
	at := -1
	for i := range findings {
		if f := &findings[i]; at < 0 || f.Who > findings[at].Who || f.Who == findings[at].Who && f.Confidence > findings[at].Confidence {
			at = i
		}
	}
	return at
}

// Verdict returns what a tier, 0–3, decides by a finding.
func (f Finding) Verdict(tier int) Verdict {
	v := Verdict{Decision: f.Who.At(tier), Tier: tier, Confidence: f.Confidence, Rule: f.Rule, Reasoning: f.Reasoning, Error: f.Error, Fixed: f.Fixed}
	if v.Decision == Escalate {
		v.NextTier = int(f.Who)
	}
	return v
}

// Step returns what the trail says of a finding.
func (f Finding) Step(tier int) Step {
	return Step{Tier: tier, Source: f.Source, Decision: f.Who.At(tier), Confidence: f.Confidence, Rule: f.Rule, Reasoning: f.Reasoning, Error: f.Error, Fixed: f.Fixed}
}
