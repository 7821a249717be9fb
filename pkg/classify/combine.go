package classify

import (
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A result is what one classifier says. Its source is "heuristic", "model", or "none" if there is
// neither.
type result struct {
	verdict.Finding
	matched []verdict.Finding // of the rules: all that matched, in the order of their IDs
	safe    bool              // the model's label is SAFE, however sure it is
	unread  bool              // the text was too long for the model
	err     error
	latency time.Duration
}

// decision is what Tier 1 would decide by a result alone.
func (r *result) decision() verdict.Decision { return r.Who.At(1) }

// Confidences of results that come from neither a rule nor a model.
const (
	harmlessConfidence = 0.95 // the analysis found only known effects that change nothing
	ordinaryConfidence = 0.90 // the analysis found only known effects, and changes of nothing but the workspace
	noMatchConfidence  = 0.70
	errorConfidence    = 0.50
)

// failed returns the result for an action that a classifier could not judge:
// BLOCK, or ESCALATE with failOpen, never ALLOW.
func failed(source string, err error, failOpen bool) result {
	who := verdict.Never
	if failOpen {
		who = verdict.Evaluator
	}
	return result{err: err, Finding: verdict.Finding{Who: who, Source: source, Confidence: errorConfidence, Error: errorCode,
		Reasoning: "classifier error: " + redact.Clip(err.Error(), 300)}}
}

// result turns a model's label into a decision: an injection blocks from the
// confidence limit on, and SAFE allows from the confidence safe on.
func (s Score) result(limit, safe float64) result {
	r := result{safe: !s.Injection, Finding: verdict.Finding{Source: "model", Confidence: s.Confidence}}
	switch {
	case !s.Injection && s.Confidence < safe:
		r.Who, r.Reasoning = verdict.Evaluator, "model: not certain enough that this is harmless; use a simpler command or ask the user"
	case !s.Injection:
		r.Who, r.Reasoning = verdict.NoApproval, "model: does not look like an attack"
	case s.Confidence >= limit:
		r.Who, r.Reasoning = verdict.Never, "model: looks like an attack; use a simpler command or ask the user"
	default:
		r.Who, r.Reasoning = verdict.Evaluator, "model: might be an attack; use a simpler command or ask the user"
	}
	return r
}

func (r result) step() verdict.Step {
	st := r.Step(1)
	st.Latency = r.latency.Microseconds()
	return st
}
