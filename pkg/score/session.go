package score

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A sessionAction is an action of a corpus row that holds a whole session, with its recorded result.
type sessionAction struct {
	raw               json.RawMessage
	wasDeniedInCorpus bool // the action was refused and did not run: its verdict does not count
	result            any  // the result, a string or another JSON value; nil if unknown
}

func (t *sessionAction) UnmarshalJSON(raw []byte) error {
	var given struct {
		Denied bool
		Result any
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return fmt.Errorf("actions: %w", describeJSONError(err))
	}
	t.raw, t.wasDeniedInCorpus, t.result = bytes.Clone(raw), given.Denied, given.Result
	return nil
}

// maxSessionActions is the maximum number of actions in a session.
const maxSessionActions = 1000

// validateSession returns an error for an invalid session; nil if it is valid.
func (r *corpusRow) validateSession() error {
	counted := slices.ContainsFunc(r.Actions, func(t sessionAction) bool { return !t.wasDeniedInCorpus })
	switch {
	case len(r.Action) > 0 || r.TextInsteadOfAction != nil:
		return errors.New("the row has actions and also an action or a text; keep one")
	case len(r.Actions) > maxSessionActions:
		return fmt.Errorf("the row has more than %d actions; split the session", maxSessionActions)
	case r.DecisiveActionIndex != nil && (*r.DecisiveActionIndex < 0 || *r.DecisiveActionIndex >= len(r.Actions)):
		return fmt.Errorf("\"decisive\" is %d; use 0 to %d, the index in \"actions\" of the action that must be stopped", *r.DecisiveActionIndex, len(r.Actions)-1)
	case r.DecisiveActionIndex != nil && r.Actions[*r.DecisiveActionIndex].wasDeniedInCorpus:
		return errors.New("the decisive action of the session has denied: true, so shield does not judge it; remove denied, or make another action decisive")
	case !counted:
		return errors.New("the session has no action without denied: true, so shield judges none; add an action, or remove denied from one")
	}
	return nil
}

// judgeRow judges a row. For a session it returns the outcome of the decisive action or, if none is
// marked, the most severe outcome, and stores the action with that outcome in r.Action. Every
// earlier action counts as executed, whatever its verdict, unless it is marked as denied.
func (c *CorpusOutcomeCounter) judgeRow(ctx context.Context, r *corpusRow, seq int) ActionJudgingOutcome {
	if r.Actions == nil {
		return c.judgeAction(ctx, r.Action, "")
	}
	var most ActionJudgingOutcome
	session := "row " + strconv.Itoa(seq) // sessions of different rows are independent
	for i, t := range r.Actions {
		if !t.wasDeniedInCorpus {
			out := c.judgeAction(ctx, t.raw, session)
			decisive := r.DecisiveActionIndex != nil && i == *r.DecisiveActionIndex
			if decisive || r.DecisiveActionIndex == nil && (r.Action == nil || isMoreSevere(&out.Verdict, &most.Verdict)) {
				r.Action, most = t.raw, out
			}
			if decisive {
				break
			}
		}
		if err := c.reportResultOrDenial(ctx, &t, session); err != nil {
			r.Action = t.raw
			return ActionJudgingOutcome{Verdict: verdict.Verdict{Decision: verdict.Block, Confidence: 1, ErrorCode: "session", Reasoning: err.Error()}}
		}
	}
	return most
}

// reportResultOrDenial reports to an action's session whether the action was denied or returned a result.
func (c *CorpusOutcomeCounter) reportResultOrDenial(ctx context.Context, t *sessionAction, session string) error {
	a, err := action.Parse(jsontext.Value(t.raw))
	if err != nil {
		return nil // nothing to report: judgeAction blocks an invalid action
	}
	a.Session = session
	switch {
	case t.wasDeniedInCorpus && c.opts.OnActionDeniedInCorpus != nil:
		return c.opts.OnActionDeniedInCorpus(ctx, a)
	case !t.wasDeniedInCorpus && c.opts.OnToolResult != nil:
		return c.opts.OnToolResult(ctx, a, t.result)
	}
	return nil
}

func isMoreSevere(a, b *verdict.Verdict) bool {
	return cmp.Or(cmp.Compare(a.Decision, b.Decision), cmp.Compare(a.Confidence, b.Confidence)) > 0
}
