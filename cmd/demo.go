package cmd

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/shield"
)

func demoCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:        "demo",
		Usage:       "judge six example actions and show the decisions",
		Description: "Judges built-in example actions with the settings in force, up to Tier 1, and shows for each what was proposed, the decision and the reason. Nothing is executed, and nothing is written to the audit log.",
		Flags:       commonJudgeFlags(),
		Subcommands: []*cli.Command{incidentsCommand(w)},
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			return demo(c, w, demoActionsJSONLines)
		},
	}
}

// demoActionsJSONLines are the actions of the demo, one JSON object a line.
//
//go:embed demo.jsonl
var demoActionsJSONLines string

// demo judges the actions and prints the decisions.
func demo(c *cli.Context, w *Environment, actions string) error {
	set, err := loadSettings(c, w)
	if err != nil {
		return &statusError{statusBlock, err}
	}
	p, err := shield.NewPipeline(pipelineConfigForExplainCommand(set, w, shield.TierClassify))
	if err != nil {
		return &statusError{statusBlock, err}
	}
	defer p.Close()
	var rows []report.JudgedAction
	for line := range strings.Lines(actions) {
		a, err := action.Parse([]byte(line))
		if err != nil {
			return err
		}
		out := p.EvaluateThroughTier(c.Context, a, shield.TierClassify)
		rows = append(rows, report.JudgedAction{ActionText: actionHeadline(a.Type, a.Text), Verdict: &out.Verdict})
	}
	if err := report.WriteJudgedActions(w.Out, rows, report.Style{Columns: terminalWidth(w.Out), Color: usesColour(c, w, w.Out)}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w.Out, "\nNothing was executed. To protect the agents on this machine: shield setup")
	return err
}
