package cmd

import (
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/shield"
)

func classifyCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:        "classify",
		Usage:       "judge by rules and model (Tier 1)",
		Description: "Reads actions, or the verdicts of shield policy, from standard input. ALLOW and BLOCK pass through; ESCALATE is judged.",
		Flags:       judgingFlags(),
		Action: func(c *cli.Context) error {
			return stage{tiers: shield.Range{First: shield.TierClassify, Last: shield.TierClassify}}.judge(c, w)
		},
	}
}
