// Package verdict defines shield's answers: a [Verdict] for each action, the order of decisions, the seal by
// which one stage of a pipe recognises verdicts of another, and a reader and writer.
package verdict

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Decision is shield's decision on an action. Decisions are ordered by severity: the larger of two is the
// stricter.
type Decision uint8

// The decisions. The zero value is not a decision; in output it becomes BLOCK.
const (
	NoDecision Decision = iota
	Allow               // the action may run
	Escalate            // a higher tier must decide
	Block               // the action must not run
)

var decisionNames = [...]string{"", "ALLOW", "ESCALATE", "BLOCK"}

// String returns the name used in JSON: ALLOW, ESCALATE or BLOCK.
func (d Decision) String() string {
	if int(d) < len(decisionNames) {
		return decisionNames[d]
	}
	return fmt.Sprintf("Decision(%d)", uint8(d))
}

// MarshalText implements [encoding.TextMarshaler].
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Decision) UnmarshalText(b []byte) error {
	for i, name := range decisionNames {
		if i > 0 && name == string(b) {
			*d = Decision(i)
			return nil
		}
	}
	return fmt.Errorf("unknown decision %q", b)
}

// A Verdict is shield's answer to one action: one line of output.
type Verdict struct {
	ActionID                string         `json:"id,omitempty"`
	Line                    int            `json:"line"` // line at which the record starts, counted from 1
	Decision                Decision       `json:"decision"`
	Tier                    int            `json:"tier"`       // the tier that decided, 0–3
	Confidence              float64        `json:"confidence"` // 0.0–1.0
	Reasoning               string         `json:"reasoning"`
	Rule                    string         `json:"rule,omitempty"`
	RefusalRef              string         `json:"ref,omitempty"`        // argument of "shield allow", for a BLOCK that a person can override
	NextTier                int            `json:"next_tier,omitempty"`  // on ESCALATE: the lowest tier that may decide, 1–3
	IsAllowedDespiteFailure bool           `json:"degraded,omitempty"`   // allowed although something failed (fail_closed: false)
	ErrorCode               string         `json:"error,omitempty"`      // code of what went wrong, such as "budget" or "timeout"; "" if nothing did
	AllowConditions         []string       `json:"conditions,omitempty"` // conditions of an ALLOW, see [AllowConditionFilesBackedUp]
	BackupSetID             string         `json:"undo,omitempty"`       // the backup that holds the files which the action deletes or overwrites
	EvaluatorPromptHash     string         `json:"prompt_hash,omitempty"`
	ActionHash              string         `json:"action_hash,omitempty"`
	JudgedAt                time.Time      `json:"evaluated_at"`
	Expires                 time.Time      `json:"expires_at"`
	Trail                   []TierStep     `json:"trail,omitempty"`
	Action                  jsontext.Value `json:"action,omitempty"` // as received
	Seal                    string         `json:"seal,omitempty"`

	ReasoningCannotLeakActionText bool        `json:"-"` // the reasoning quotes no text of the action; the JSON and the seal leave this field out
	Explanation                   Explanation `json:"-"` // texts for agent and user, unless it is ALLOW; neither written nor sealed

	// Details of a person's answer in Tier 3, for the entry in the audit log. They are not in the JSON of the
	// verdict, and the seal does not cover them.
	AnswerChannel string `json:"-"` // channel through which the person was asked; "remembered" for an earlier answer
	AnsweredBy    string `json:"-"` // name of the person in the channel; may be empty
}

// AllowConditionFilesBackedUp is the condition of an ALLOW that files which the action deletes or overwrites are backed up before it
// runs. A caller that cannot back them up must treat the verdict as ESCALATE.
const AllowConditionFilesBackedUp = "kept"

// A TierStep is the result of one tier, or of one of its classifiers, for an action.
type TierStep struct {
	Tier                      int            `json:"tier"`
	JudgeName                 string         `json:"source"` // policy, heuristic, model, evaluator, person
	Decision                  Decision       `json:"decision"`
	Confidence                float64        `json:"confidence"`
	Rule                      string         `json:"rule,omitempty"`
	AllowedPendingHigherTier  bool           `json:"allows,omitempty"` // the tier allows the action, but a higher tier must decide
	Reasoning                 string         `json:"reasoning,omitempty"`
	ErrorCode                 string         `json:"error,omitempty"`
	LatencyMicroseconds       int64          `json:"latency_us,omitempty"` // with --trace, in microseconds
	Effects                   jsontext.Value `json:"effects,omitempty"`    // with --trace, in the first step
	JudgedActionTextVariants  jsontext.Value `json:"views,omitempty"`      // with --trace, in the first step
	SessionDataForNextProcess jsontext.Value `json:"session,omitempty"`    // of Tier 0: labels of files from earlier actions, by path

	ReasoningCannotLeakActionText bool `json:"-"` // as in [Verdict]
}
