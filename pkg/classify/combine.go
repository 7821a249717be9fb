package classify

import (
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// A result is what one classifier says.
type result struct {
	source     string // "heuristic", "model", or "none" if there is neither
	decision   verdict.Decision
	confidence float64
	rule       string
	reasoning  string
	fixed      bool // the reasoning quotes nothing of the action
	safe       bool // the model's label is SAFE, however sure it is
	unread     bool // the text was too long for the model
	err        error
	latency    time.Duration
}

// Confidences of results that come from neither a rule nor a model.
const (
	harmlessConfidence = 0.95 // the analysis found only known effects that change nothing
	ordinaryConfidence = 0.90 // the analysis found only known effects, and changes of nothing but the workspace
	noMatchConfidence  = 0.70
	errorConfidence    = 0.50
)

// graver returns the more severe of two results: BLOCK before ESCALATE before
// ALLOW, and for equal severity the more confident. The first wins a tie, which
// keeps the rule's name in the verdict. Where both allow, it is said what the second
// goes by: that no rule matched is no reason.
func graver(a, b result) result {
	if b.decision != a.decision {
		if b.decision > a.decision {
			return b
		}
		return a
	}
	if b.confidence > a.confidence {
		return b
	}
	if a.decision == verdict.Allow {
		a.reasoning += "; " + b.reasoning
	}
	return a
}

// failed returns the result for an action that a classifier could not judge:
// BLOCK, or ESCALATE with failOpen, never ALLOW.
func failed(source string, err error, failOpen bool) result {
	r := result{source: source, decision: verdict.Block, confidence: errorConfidence, err: err,
		reasoning: "classifier error: " + clip(err.Error(), 300)}
	if failOpen {
		r.decision = verdict.Escalate
	}
	return r
}

// result turns a model's label into a decision: an injection blocks from the
// confidence limit on, and SAFE allows from the confidence safe on.
func (s Score) result(limit, safe float64) result {
	r := result{source: "model", confidence: s.Confidence, safe: !s.Injection}
	switch {
	case !s.Injection && s.Confidence < safe:
		r.decision, r.reasoning = verdict.Escalate, "model: not certain enough that this is harmless"
	case !s.Injection:
		r.decision, r.reasoning = verdict.Allow, "model: does not look like an attack"
	case s.Confidence >= limit:
		r.decision, r.reasoning = verdict.Block, "model: looks like an attack; use a simpler command or ask the user"
	default:
		r.decision, r.reasoning = verdict.Escalate, "model: might be an attack"
	}
	return r
}

func (r result) step() verdict.Step {
	st := verdict.Step{Tier: 1, Source: r.source, Decision: r.decision, Confidence: r.confidence, Rule: r.rule, Reasoning: r.reasoning, Fixed: r.fixed, Latency: r.latency.Microseconds()}
	if r.err != nil {
		st.Error = errorCode
	}
	return st
}
