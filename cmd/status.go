package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/state"
)

func statusCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show how much of the rate limit, daily budget and approvals is left",
		Flags: append(placeFlags(), &cli.BoolFlag{Name: "json", Usage: "write JSON"}),
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			set, err := settings(c, w)
			if err != nil {
				return err
			}
			store, err := openStore(set, w)
			if err != nil {
				return err
			}
			defer store.Close()
			s, err := store.Status(c.Context, shield.Limits(shieldConfig(set, w, "status")))
			if err != nil {
				return err
			}
			l, err := licence(c.Context, set, w)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return json.NewEncoder(w.Out).Encode(statusOf(s, l))
			}
			if err := printStatus(w, &s); err != nil {
				return err
			}
			if text := licenceStatus(l); text != "" {
				if _, err := fmt.Fprintln(w.Out, shown(text)); err != nil {
					return err
				}
			}
			if kept := shield.UndoStore(shieldConfig(set, w, "status")); kept != nil {
				_, err = fmt.Fprint(w.Out, undoStatus(kept))
			}
			return err
		},
	}
}

// A statusJSON is the JSON output of status.
type statusJSON struct {
	state.Status
	Evaluator *evaluatorStatus `json:"evaluator,omitempty"`
}

type evaluatorStatus struct {
	Model string             `json:"model"`
	Lifts bool               `json:"lifts_questions"`
	Why   string             `json:"why,omitempty"`        // why it has no licence
	Stops string             `json:"stops_work,omitempty"` // why agents can hardly work with it
	Exam  *shield.ExamResult `json:"exam,omitempty"`
}

func statusOf(s state.Status, l shield.Licence) statusJSON {
	out := statusJSON{Status: s}
	if l.Model != "" {
		out.Evaluator = &evaluatorStatus{l.Model, l.Why == "", l.Why, whyModelHinders(l), l.Result}
	}
	return out
}

// licenceStatus says in one line what the evaluator's model may do; "" if there is no model.
func licenceStatus(l shield.Licence) string {
	switch {
	case l.Model == "":
		return ""
	case l.Why != "" && whyModelHinders(l) != "":
		return "evaluator          the model blocks too many ordinary actions: " + whyModelHinders(l) + "; its ALLOW does not replace your approval: " + l.Why
	case l.Why != "":
		return "evaluator          the model's ALLOW does not replace your approval: " + l.Why
	case whyModelHinders(l) != "":
		return "evaluator          the model blocks too many ordinary actions: " + whyModelHinders(l)
	}
	return "evaluator          " + examText(l.Result)
}

func printStatus(w *World, s *state.Status) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "evaluations today  %d of %d, resets at %s\n", s.Used, s.Budget, s.Resets.Format(time.RFC3339))
	fmt.Fprintf(&b, "rate               %.0f of %d a minute left\n", s.Tokens, s.RateLimit)
	fmt.Fprintf(&b, "approvals          %d of %d this hour left\n", s.ApprovalsLeft, s.MaxApprovals)
	fmt.Fprintf(&b, "cached verdicts    %d\naudit entries      %d\n", s.Cached, s.AuditEntries)
	for _, h := range s.Hours {
		if h.Used > 0 {
			fmt.Fprintf(&b, "evaluations        %d from %s\n", h.Used, h.From.Format("2006-01-02 15:04 MST"))
		}
	}
	_, err := w.Out.Write(b.Bytes())
	return err
}
