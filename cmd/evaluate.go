package cmd

import (
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/shield"
)

func evaluateCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:        "evaluate",
		Usage:       "judge by an isolated language model (Tier 2)",
		Description: "Reads actions, or the verdicts of an earlier stage, from standard input. ALLOW and BLOCK pass through; ESCALATE is judged. An action that skipped the earlier stages is checked against their blocking rules first. Rate and budget are kept in the state folder.",
		Flags:       judgingFlags(),
		Action: func(c *cli.Context) error {
			return stage{tiers: shield.Range{First: shield.TierEvaluate, Last: shield.TierEvaluate}}.judge(c, w)
		},
	}
}
