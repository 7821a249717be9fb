package classify

import (
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// A result is what one classifier says.
type result struct {
	source     string // "heuristic", "model", or "none" for neither
	decision   verdict.Decision
	confidence float64
	rule       string
	reasoning  string
	safe       bool // the model's label is SAFE, however sure it is
	err        error
	latency    time.Duration
}

// Confidences that no rule and no model gives.
const (
	harmlessConfidence = 0.95 // by analysis: only known effects that change nothing
	ordinaryConfidence = 0.90 // by analysis: only known effects, none beyond the workspace
	noMatchConfidence  = 0.70
	errorConfidence    = 0.50
)

// combine returns the more severe of two results: BLOCK before ESCALATE before
// ALLOW, and of two that are equally severe the more confident. The first wins
// a tie, so that a rule's name reaches the verdict.
func combine(a, b result) result {
	if b.decision != a.decision {
		if b.decision > a.decision {
			return b
		}
		return a
	}
	if b.confidence > a.confidence {
		return b
	}
	return a
}

// failed returns what becomes of an action that a classifier could not judge:
// BLOCK, or with failOpen ESCALATE, never ALLOW.
func failed(source string, err error, failOpen bool) result {
	r := result{source: source, decision: verdict.Block, confidence: errorConfidence, err: err,
		reasoning: "classifier error: " + clip(err.Error(), 300)}
	if failOpen {
		r.decision = verdict.Escalate
	}
	return r
}

// result turns a model's label into a decision. It blocks from one confidence
// on, and lets pass from another on.
func (s Score) result(limit, safe float64) result {
	r := result{source: "model", confidence: s.Confidence, safe: !s.Injection}
	switch {
	case !s.Injection && s.Confidence < safe:
		r.decision, r.reasoning = verdict.Escalate, "model: not certain that this is harmless, a higher tier decides"
	case !s.Injection:
		r.decision, r.reasoning = verdict.Allow, "model: no attack recognised"
	case s.Confidence >= limit:
		r.decision, r.reasoning = verdict.Block, "model: recognised as an attack; do what was asked for in a plainer way, or have a person do it"
	default:
		r.decision, r.reasoning = verdict.Escalate, "model: could be an attack, a higher tier decides"
	}
	return r
}

func (r result) step() verdict.Step {
	st := verdict.Step{Tier: 1, Source: r.source, Decision: r.decision, Confidence: r.confidence, Rule: r.rule, Reasoning: r.reasoning, Latency: r.latency.Microseconds()}
	if r.err != nil {
		st.Error = errorCode
	}
	return st
}
