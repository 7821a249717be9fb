package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/shield"
)

func policyCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:        "policy",
		Usage:       "judge actions by the policy alone (Tier 0)",
		Description: "Reads actions as JSON from standard input and writes one verdict a line. An action that no rule decides is ESCALATEd to the next tier.",
		Flags:       recordStreamJudgeFlags(),
		Action: func(c *cli.Context) error {
			return recordStreamJudge{tierRange: shield.TierRange{First: shield.TierPolicy, Last: shield.TierPolicy}, rejectsVerdictRecords: true}.judgeInput(c, w)
		},
		Subcommands: []*cli.Command{
			{
				Name: "check", Usage: "check a policy file, and judge its rules' examples", ArgsUsage: "FILE",
				Description: "Prints all findings at once, each with its place: errors, which make the file unusable; warnings, such as an action type that no action has, " +
					"a rule that never counts because of other rules, or an example with another result; and notes. Exits with 1 if there is an error or a warning.",
				Flags:  commonJudgeFlags(),
				Action: func(c *cli.Context) error { return checkPolicy(c, w) },
			},
			{
				Name: "test", Usage: "judge a table of actions and expected decisions", ArgsUsage: "CASES…",
				Description: "CASES is YAML, or JSON Lines with one case a line: {action, want, name, rule}. Exits with 1 if a case fails.",
				Flags: append(commonJudgeFlags(),
					&cli.StringFlag{Name: "format", Value: "text", Usage: "write `text|tap|junit|json`"}),
				Action: func(c *cli.Context) error { return testPolicy(c, w) },
			},
			{
				Name: "explain", Usage: "show the decision of each policy layer for one action, and which layer decides", ArgsUsage: "[COMMAND]",
				Description: "Judges a shell command, or the action that standard input holds as JSON, by the policy alone. The highest layer is the organisation's: a bundle, a file or a preset; " +
					"those below it are the files of layers.team, layers.user and layers.project. The strictest decides. The exit status is that of the decision.",
				Flags:  commonJudgeFlags(),
				Action: func(c *cli.Context) error { return explainPolicy(c, w) },
			},
			policyBundleCommand(w),
			suggestCommand(w),
		},
	}
}

// checkPolicy prints errors and doubtful parts of a policy file; its status is 1 if the file cannot be
// used or does not do what it says.
func checkPolicy(c *cli.Context, w *Environment) error {
	args, err := operands(c, "FILE")
	if err != nil {
		return err
	}
	cfg, err := loadPipelineConfig(c, w)
	if err != nil {
		return err
	}
	an, err := shield.NewAnalyzer(cfg)
	if err != nil {
		return err
	}
	data, err := shield.ReadPolicyFile(args[0])
	if err != nil {
		return err
	}
	var count [policy.Error + 1]int
	for _, f := range policy.LintPolicyFile(c.Context, args[0], data, an, shield.PolicyOptions(cfg, &an.DefaultExecutionContext)) {
		count[f.Severity]++
		fmt.Fprintf(w.Out, "%s: %v: %s\n", findingPosition(args[0], f), f.Severity, f.Msg)
	}
	switch {
	case count[policy.Error] > 0:
		fmt.Fprintf(w.Out, "%s: the policy cannot be used; correct the errors\n", args[0])
	case count[policy.Warning] > 0:
		fmt.Fprintf(w.Out, "%s: the policy can be used, but see the warnings\n", args[0])
	default:
		_, err = fmt.Fprintf(w.Out, "%s: the policy can be used\n", args[0])
		return err
	}
	return &statusError{statusFailure, nil}
}

// findingPosition returns the position of a finding, as compilers write it: FILE:LINE:COLUMN, or only the
// file.
func findingPosition(name string, f policy.LintFinding) string {
	if f.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, f.Line, f.Column)
}

// testPolicy judges the actions in files of test cases by the policy of the settings and flags, or by the preset
// that a case names, and compares the decisions with the expected ones.
func testPolicy(c *cli.Context, w *Environment) error {
	files, err := operands(c, "CASES…")
	if err != nil {
		return err
	}
	format := c.String("format")
	if !slices.Contains(report.PolicyTestFormatNames(), format) {
		return fmt.Errorf("policy test: --format %q is not one of %s", shortenTo80Characters(format), strings.Join(report.PolicyTestFormatNames(), ", "))
	}
	cfg, err := loadPipelineConfig(c, w)
	if err != nil {
		return err
	}
	an, err := shield.NewAnalyzer(cfg)
	if err != nil {
		return err
	}
	var all []report.PolicyTestResult
	failed := 0
	for _, file := range files {
		data, err := shield.ReadPolicyFile(file)
		if err != nil {
			return err
		}
		table, err := policy.LoadCases(file, data)
		if err != nil {
			return err
		}
		results, err := table.Run(c.Context, an, func(opts policy.Options) (*policy.Policy, error) {
			if opts.FoldersByGlobVariable == nil {
				opts = shield.PolicyOptions(cfg, &an.DefaultExecutionContext)
			}
			return shield.LoadPolicy(cfg, opts)
		})
		if err != nil {
			return err
		}
		for _, r := range results {
			if !r.OK {
				failed++
			}
			all = append(all, report.PolicyTestResult{Suite: r.PolicyName, Name: r.Name, File: file, Line: r.Line, Want: r.Want, Got: r.Got, DecidingRule: r.Rule, ReasonOrError: r.ReasoningOrError, OK: r.OK})
		}
	}
	if err := report.WritePolicyTestResults(w.Out, format, all); err != nil {
		return err
	}
	if failed > 0 {
		return &statusError{statusFailure, nil}
	}
	return nil
}

// loadPipelineConfig returns the library's configuration for a command line.
func loadPipelineConfig(c *cli.Context, w *Environment) (shield.Config, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return shield.Config{}, err
	}
	return pipelineConfigFromSettings(set, w, strings.TrimPrefix(c.Command.HelpName, "shield ")), nil
}
