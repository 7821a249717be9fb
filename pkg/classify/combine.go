package classify

import (
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A ruleOrModelResult is the answer of one classifier. Its source is "heuristic", "model", or "none"
// if neither ran.
type ruleOrModelResult struct {
	verdict.Finding
	matchedRuleFindings   []verdict.Finding // from the rules: all that matched, in the order of their IDs
	isModelLabelSafe      bool              // the model's label is SAFE, at whatever confidence
	isTextTooLongForModel bool              // the text was too long for the model
	err                   error
	latency               time.Duration
}

// decision returns the decision of Tier 1 on this result alone.
func (r *ruleOrModelResult) decision() verdict.Decision {
	return r.RequiredAuthority.DecisionIfRequiredAtTier(1)
}

// Confidences of results that come from neither a rule nor a model.
const (
	harmlessConfidence          = 0.95 // the analysis found only known effects that change nothing
	knownEffectsAllowConfidence = 0.90 // the analysis found only known effects, and changes only in the workspace
	noMatchConfidence           = 0.70
	errorConfidence             = 0.50
)

// failureResult returns the result if a classifier failed: BLOCK, or ESCALATE with failOpen, never ALLOW.
func failureResult(source string, err error, failOpen bool) ruleOrModelResult {
	who := verdict.AuthorityNoneSuffices
	if failOpen {
		who = verdict.AuthorityEvaluator
	}
	return ruleOrModelResult{err: err, Finding: verdict.Finding{RequiredAuthority: who, JudgeName: source, Confidence: errorConfidence, ErrorCode: classifierErrorCode,
		Reasoning: "classifier error: " + redact.TruncateAndReplaceControlChars(err.Error(), 300)}}
}

// toModelResult turns a model's label into a result: INJECTION blocks if its confidence is at
// least blockThreshold, and SAFE allows if its confidence is at least safeThreshold.
func (s InjectionScore) toModelResult(blockThreshold, safeThreshold float64) ruleOrModelResult {
	r := ruleOrModelResult{isModelLabelSafe: !s.HasInjectionLabel, Finding: verdict.Finding{JudgeName: "model", Confidence: s.LabelConfidence}}
	switch {
	case !s.HasInjectionLabel && s.LabelConfidence < safeThreshold:
		r.RequiredAuthority, r.Reasoning = verdict.AuthorityEvaluator, "model: not certain enough that this is harmless; use a simpler command or ask the user"
	case !s.HasInjectionLabel:
		r.RequiredAuthority, r.Reasoning = verdict.AuthorityNotNeeded, "model: does not look like an attack"
	case s.LabelConfidence >= blockThreshold:
		r.RequiredAuthority, r.Reasoning = verdict.AuthorityNoneSuffices, "model: looks like an attack; use a simpler command or ask the user"
	default:
		r.RequiredAuthority, r.Reasoning = verdict.AuthorityEvaluator, "model: might be an attack; use a simpler command or ask the user"
	}
	return r
}

func (r ruleOrModelResult) step() verdict.TierStep {
	st := r.Step(1)
	st.LatencyMicroseconds = r.latency.Microseconds()
	return st
}
