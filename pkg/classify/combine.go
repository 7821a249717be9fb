package classify

import (
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A result is the answer of one classifier. Its source is "heuristic", "model", or "none" if neither ran.
type result struct {
	verdict.Finding
	matched []verdict.Finding // from the rules: all that matched, in the order of their IDs
	safe    bool              // the model's label is SAFE, at whatever confidence
	tooLong bool              // the text was too long for the model
	err     error
	latency time.Duration
}

// decision returns the decision of Tier 1 on this result alone.
func (r *result) decision() verdict.Decision { return r.Authority.DecisionAt(1) }

// Confidences of results that come from neither a rule nor a model.
const (
	harmlessConfidence = 0.95 // the analysis found only known effects that change nothing
	ordinaryConfidence = 0.90 // the analysis found only known effects, and changes only in the workspace
	noMatchConfidence  = 0.70
	errorConfidence    = 0.50
)

// failureResult returns the result if a classifier failed: BLOCK, or ESCALATE with failOpen, never ALLOW.
func failureResult(source string, err error, failOpen bool) result {
	who := verdict.NeverAllowed
	if failOpen {
		who = verdict.Evaluator
	}
	return result{err: err, Finding: verdict.Finding{Authority: who, Source: source, Confidence: errorConfidence, Error: errorCode,
		Reasoning: "classifier error: " + redact.Clip(err.Error(), 300)}}
}

// result turns a model's label into a result: INJECTION blocks if its confidence is at least limit, and SAFE
// allows if its confidence is at least safe.
func (s Score) result(limit, safe float64) result {
	r := result{safe: !s.Injection, Finding: verdict.Finding{Source: "model", Confidence: s.Confidence}}
	switch {
	case !s.Injection && s.Confidence < safe:
		r.Authority, r.Reasoning = verdict.Evaluator, "model: not certain enough that this is harmless; use a simpler command or ask the user"
	case !s.Injection:
		r.Authority, r.Reasoning = verdict.NoApproval, "model: does not look like an attack"
	case s.Confidence >= limit:
		r.Authority, r.Reasoning = verdict.NeverAllowed, "model: looks like an attack; use a simpler command or ask the user"
	default:
		r.Authority, r.Reasoning = verdict.Evaluator, "model: might be an attack; use a simpler command or ask the user"
	}
	return r
}

func (r result) step() verdict.Step {
	st := r.Step(1)
	st.Latency = r.latency.Microseconds()
	return st
}
