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

func statusCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show how much of the rate limit, daily budget and approvals is left",
		Flags: append(commonJudgeFlags(), &cli.BoolFlag{Name: "json", Usage: "write JSON"}),
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			set, err := loadSettings(c, w)
			if err != nil {
				return err
			}
			store, err := openStore(set, w)
			if err != nil {
				return err
			}
			defer store.Close()
			s, err := store.Status(c.Context, shield.Limits(pipelineConfigFromSettings(set, w, "status")))
			if err != nil {
				return err
			}
			l, err := loadModelApprovalAuthority(c.Context, set, w)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return json.NewEncoder(w.Out).Encode(newStatusJSON(s, l))
			}
			if err := printStatus(w, &s); err != nil {
				return err
			}
			if text := describeModelApprovalAuthority(l); text != "" {
				if _, err := fmt.Fprintln(w.Out, escapeLineForTerminal(text)); err != nil {
					return err
				}
			}
			if kept := shield.UndoStore(pipelineConfigFromSettings(set, w, "status")); kept != nil {
				_, err = fmt.Fprint(w.Out, undoStatus(kept))
			}
			return err
		},
	}
}

// A statusJSON is the JSON output of status.
type statusJSON struct {
	state.StoreStatus
	Evaluator *evaluatorStatus `json:"evaluator,omitempty"`
}

type evaluatorStatus struct {
	Model                   string                  `json:"model"`
	CanApproveForUser       bool                    `json:"lifts_questions"`
	CannotApproveReason     string                  `json:"why,omitempty"`        // why the model may not approve actions for the user
	OverblockingDescription string                  `json:"stops_work,omitempty"` // why agents can hardly work with the model: it blocks too many harmless actions
	ModelExamResult         *shield.ModelExamResult `json:"exam,omitempty"`
}

func newStatusJSON(s state.StoreStatus, l shield.ModelApprovalAuthority) statusJSON {
	out := statusJSON{StoreStatus: s}
	if l.EvaluatorModelName != "" {
		out.Evaluator = &evaluatorStatus{l.EvaluatorModelName, l.CannotApproveReason == "", l.CannotApproveReason, describeModelOverblocking(l), l.Result}
	}
	return out
}

// describeModelApprovalAuthority says in one line what the evaluator's model may do; "" if there is no model.
func describeModelApprovalAuthority(l shield.ModelApprovalAuthority) string {
	switch {
	case l.EvaluatorModelName == "":
		return ""
	case l.CannotApproveReason != "" && describeModelOverblocking(l) != "":
		return "evaluator          the model blocks too many ordinary actions: " + describeModelOverblocking(l) + ". Its ALLOW does not replace your approval: " + l.CannotApproveReason + ". Configure a stronger model (evaluator.model)"
	case l.CannotApproveReason != "":
		return "evaluator          the model's ALLOW does not replace your approval: " + l.CannotApproveReason
	case describeModelOverblocking(l) != "":
		return "evaluator          the model blocks too many ordinary actions: " + describeModelOverblocking(l) + "; configure a stronger model (evaluator.model)"
	}
	return "evaluator          " + describeModelExamResult(l.Result)
}

func printStatus(w *Environment, s *state.StoreStatus) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "evaluations today  %d of %d, resets at %s\n", s.EvaluationsUsed, s.MaxEvaluationsPerDay, s.BudgetResetsAt.Format(time.RFC3339))
	fmt.Fprintf(&b, "model calls        %.0f of %d left this minute\n", s.AvailableEvaluatorCalls, s.MaxEvaluatorCallsPerMinute)
	fmt.Fprintf(&b, "approvals          %d of %d this hour left\n", s.ApprovalsLeft, s.MaxApprovalRequestsPerHour)
	fmt.Fprintf(&b, "cached verdicts    %d\naudit entries      %d\n", s.CachedEntryCount, s.AuditEntryCount)
	for _, h := range s.HourlyEvaluations {
		if h.Evaluations > 0 {
			fmt.Fprintf(&b, "evaluations        %d from %s\n", h.Evaluations, h.From.Format("2006-01-02 15:04 MST"))
		}
	}
	_, err := w.Out.Write(b.Bytes())
	return err
}
