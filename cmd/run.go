package cmd

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/shield"
)

func runCommand(w *World) *cli.Command {
	return &cli.Command{
		Name:        "run",
		Usage:       "judge in all tiers in turn, until one decides",
		Description: "Reads actions from standard input and gives the same verdicts as shield policy | shield classify | shield evaluate | shield approve: ALLOW or BLOCK, unless --until stops early.",
		Flags: judgingFlags(unattendedFlag(),
			&cli.StringFlag{Name: "until", Value: "approve", Usage: "stop after the tier `policy|classify|evaluate|approve`"},
		),
		Action: func(c *cli.Context) error {
			last, err := tierNamed(c.String("until"))
			if err != nil {
				return fmt.Errorf("run: --until: %w", err)
			}
			return stage{tiers: shield.Range{First: shield.TierPolicy, Last: last}, actionsOnly: true}.judge(c, w)
		},
	}
}

// tierNamed returns the tier with a command's name.
func tierNamed(name string) (int, error) {
	names := []string{"policy", "classify", "evaluate", "approve"}
	for tier, n := range names {
		if n == name {
			return tier, nil
		}
	}
	return 0, fmt.Errorf("%q is not valid; use one of %q", shortenText(name), names)
}
