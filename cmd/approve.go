package cmd

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
)

func approveCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:        "approve",
		Usage:       "have a person decide (Tier 3)",
		Description: "Reads actions, or the verdicts of an earlier stage, from standard input. ALLOW and BLOCK pass through; ESCALATE is put to a person on all configured channels at once, and the first answer counts. An action that came past the stages before is first held against the rules of theirs that block. Nobody answering in time is a BLOCK.",
		Flags:       judgingFlags(),
		Action: func(c *cli.Context) error {
			return stage{tiers: shield.Range{First: shield.TierApprove, Last: shield.TierApprove}}.judge(c, w)
		},
	}
}

// approval returns how the settings have people asked; command is the name of
// the one that asks.
func approval(set *config.Loaded, w *World, command string) approve.Options {
	a := &set.Approval
	person := w.User
	if person == "" {
		person = "the person at the terminal"
	}
	return approve.Options{
		Hosted:   strings.HasPrefix(command, "hook "),
		Channels: a.Channels, Timeout: a.Timeout.Std(),
		Person: person, Getenv: w.Getenv, Environ: w.Environ(), Command: a.Command,
		Listen: a.Web.Listen, Notice: w.Err,
		// In the mode in which a question is asked the terminal does not turn ^C
		// into a signal.
		Interrupt: func() {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Signal(os.Interrupt) // where there are no signals, the denial stands alone
			}
		},
	}
}
