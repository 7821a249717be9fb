package cmd

import (
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/shield"
)

func classifyCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:        "classify",
		Usage:       "judge by rules and model (Tier 1)",
		Description: "Reads actions, or the verdicts of shield policy, from standard input. ALLOW and BLOCK pass through; ESCALATE is judged.",
		Flags:       recordStreamJudgeFlags(),
		Action: func(c *cli.Context) error {
			return recordStreamJudge{tierRange: shield.TierRange{First: shield.TierClassify, Last: shield.TierClassify}}.judgeInput(c, w)
		},
	}
}
