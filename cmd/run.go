package cmd

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/shield"
)

func runCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:        "run",
		Usage:       "judge in all tiers in turn, until one decides",
		Description: "Reads actions from standard input and gives the same verdicts as shield policy | shield classify | shield evaluate | shield approve: ALLOW or BLOCK, unless --until stops early.",
		Flags: recordStreamJudgeFlags(unattendedFlag(),
			&cli.StringFlag{Name: "until", Value: "approve", Usage: "stop after the tier `policy|classify|evaluate|approve`"},
		),
		Action: func(c *cli.Context) error {
			last, err := parseTierName(c.String("until"))
			if err != nil {
				return fmt.Errorf("run: --until: %w", err)
			}
			return recordStreamJudge{tierRange: shield.TierRange{First: shield.TierPolicy, Last: last}, rejectsVerdictRecords: true}.judgeInput(c, w)
		},
	}
}

// parseTierName returns the number of a tier from its command name: policy is 0, classify 1,
// evaluate 2, approve 3.
func parseTierName(name string) (int, error) {
	names := []string{"policy", "classify", "evaluate", "approve"}
	for tier, n := range names {
		if n == name {
			return tier, nil
		}
	}
	return 0, fmt.Errorf("%q is not valid; use one of %q", shortenTo80Characters(name), names)
}
