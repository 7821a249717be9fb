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

// A turn is one action of a session.
type turn struct {
	raw    json.RawMessage
	denied bool // the action was refused and did not run: its verdict does not count
	result any  // the result, a string or another JSON value; nil if unknown
}

func (t *turn) UnmarshalJSON(raw []byte) error {
	var given struct {
		Denied bool
		Result any
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return fmt.Errorf("actions: %w", plainJSON(err))
	}
	t.raw, t.denied, t.result = bytes.Clone(raw), given.Denied, given.Result
	return nil
}

// maxTurns is the maximum number of actions in a session.
const maxTurns = 1000

// sessionFault returns an error for an invalid session; nil if it is valid.
func (r *row) sessionFault() error {
	counted := slices.ContainsFunc(r.Actions, func(t turn) bool { return !t.denied })
	switch {
	case len(r.Action) > 0 || r.Text != nil:
		return errors.New("the row has actions and also an action or a text; keep one")
	case len(r.Actions) > maxTurns:
		return fmt.Errorf("the row has more than %d actions; split the session", maxTurns)
	case r.Decisive != nil && (*r.Decisive < 0 || *r.Decisive >= len(r.Actions)):
		return fmt.Errorf("decisive is %d; use 0 to %d, the index of an action", *r.Decisive, len(r.Actions)-1)
	case r.Decisive != nil && r.Actions[*r.Decisive].denied, !counted:
		return errors.New("no action of the session can be judged: the decisive action, or every action, has denied: true; correct the row")
	}
	return nil
}

// row judges a row. For a session it returns the outcome of the decisive action or, if none is marked, the
// most severe one, and makes that action the row's own. Every earlier action counts as executed, whatever
// its verdict, unless it is marked denied.
func (c *Counter) row(ctx context.Context, r *row, seq int) Judged {
	if r.Actions == nil {
		return c.one(ctx, r.Action, "")
	}
	var most Judged
	session := "row " + strconv.Itoa(seq) // sessions of different rows are independent
	for i, t := range r.Actions {
		if !t.denied {
			out := c.one(ctx, t.raw, session)
			decisive := r.Decisive != nil && i == *r.Decisive
			if decisive || r.Decisive == nil && (r.Action == nil || moreSevere(&out.Verdict, &most.Verdict)) {
				r.Action, most = t.raw, out
			}
			if decisive {
				break
			}
		}
		if err := c.tell(ctx, &t, session); err != nil {
			r.Action = t.raw
			return Judged{Verdict: verdict.Verdict{Decision: verdict.Block, Confidence: 1, Error: "session", Reasoning: err.Error()}}
		}
	}
	return most
}

// tell reports to an action's session whether the action was denied or returned a result.
func (c *Counter) tell(ctx context.Context, t *turn, session string) error {
	a, err := action.Parse(jsontext.Value(t.raw))
	if err != nil {
		return nil // the error counts as a block
	}
	a.Session = session
	switch {
	case t.denied && c.opts.Denied != nil:
		return c.opts.Denied(ctx, a)
	case !t.denied && c.opts.Returned != nil:
		return c.opts.Returned(ctx, a, t.result)
	}
	return nil
}

func moreSevere(a, b *verdict.Verdict) bool {
	return cmp.Or(cmp.Compare(a.Decision, b.Decision), cmp.Compare(a.Confidence, b.Confidence)) > 0
}
