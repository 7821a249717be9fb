package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
)

func statusCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "say what of rate, budget and approvals is used and left",
		Flags: append(placeFlags(), &cli.BoolFlag{Name: "json", Usage: "write JSON"}),
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			_, p, err := pipeline(c, w)
			if err != nil {
				return err
			}
			status := p.Status()
			if err := errors.Join(status.Err, p.Close()); err != nil {
				return err
			}
			s := status.State
			if c.Bool("json") {
				return json.NewEncoder(w.Out).Encode(s)
			}
			_, err = fmt.Fprintf(w.Out, "evaluations today  %d of %d, resets at %s\nrate               %.0f of %d a minute left\napprovals          %d of %d this hour left\ncached verdicts    %d\naudit entries      %d\n",
				s.Used, s.Budget, s.Resets.Format(time.RFC3339), s.Tokens, s.RateLimit, s.ApprovalsLeft, s.MaxApprovals, s.Cached, s.AuditEntries)
			return err
		},
	}
}
