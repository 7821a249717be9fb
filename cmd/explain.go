package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

func explainCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "show the effects of one action, and the answer of each tier",
		ArgsUsage: "[COMMAND]",
		Description: "Judges a shell command, or the action that standard input holds as JSON, and shows what it would do: " +
			"each part of the command with its effects and the rules that match them, the texts that rules read, the answer of each tier, " +
			"and the evidence: the reasons for and against ALLOW, and the confidence the model needs to overrule them. " +
			"Nothing is executed, and nothing is written to the audit log. The exit status is that of the verdict.",
		Flags: append(commonJudgeFlags(),
			&cli.StringFlag{Name: "until", Value: "classify", Usage: "stop after the tier `policy|classify|evaluate|approve`"},
			&cli.IntFlag{Name: "width", DefaultText: "the terminal's, or 80", Usage: "use `N` columns, 40 to 1000"},
		),
		Action: func(c *cli.Context) error {
			return explain(c, w)
		},
	}
}

func explain(c *cli.Context, w *Environment) error {
	last, err := parseTierName(c.String("until"))
	if err != nil {
		return fmt.Errorf("explain: --until: %w", err)
	}
	style, err := explainStyle(c, w)
	if err != nil {
		return err
	}
	args, err := operands(c, optionalOperandNames(c, "COMMAND")...)
	if err != nil {
		return err
	}
	if len(args) == 0 && isTerminal(w.In) {
		return errors.New("explain: COMMAND is missing, and standard input is a terminal; run 'shield explain --help'")
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return &statusError{statusBlock, err}
	}
	cfg := pipelineConfigForExplainCommand(set, w, last)
	p, err := shield.NewPipeline(cfg)
	if err != nil {
		return &statusError{statusBlock, err}
	}
	e, err := judgeForExplain(c.Context, w, p, args, last, set.MaxActionRecordBytes)
	if closing := p.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	if err := report.WriteExplanation(w.Out, e, style); err != nil {
		return err
	}
	var t verdictCounts
	if t.countDecision(e.Verdict.Decision); t.exitStatus() != statusAllow {
		return &statusError{t.exitStatus(), nil}
	}
	return nil
}

// pipelineConfigForExplainCommand returns the configuration of a pipeline that writes only the evaluator's counters.
func pipelineConfigForExplainCommand(set *config.LoadedSettings, w *Environment, lastTier int) shield.Config {
	cfg := pipelineConfigFromSettings(set, w, "explain")
	cfg.ExtraProtectedShieldPaths = append(cfg.ExtraProtectedShieldPaths, auditFile(set, w))
	cfg.VerdictsIncludeTrail, cfg.OmitsActionFromVerdicts, cfg.Settings.Audit.Enabled = true, true, false
	if lastTier < shield.TierEvaluate {
		cfg.ExtraProtectedShieldPaths, cfg.StateDir = append(cfg.ExtraProtectedShieldPaths, cfg.StateDir), ""
	}
	return cfg
}

// optionalOperandNames returns operandName as a list, or nil if the command line has no operand.
func optionalOperandNames(c *cli.Context, operandName string) []string {
	if c.NArg() == 0 {
		return nil
	}
	return []string{operandName}
}

func explainStyle(c *cli.Context, w *Environment) (report.Style, error) {
	style := report.Style{Columns: terminalWidth(w.Out)}
	if c.IsSet("width") {
		style.Columns = c.Int("width")
		if style.Columns < 40 || style.Columns > 1000 {
			return style, fmt.Errorf("explain: --width %d is outside 40 to 1000; choose a width in that range", style.Columns)
		}
	}
	style.Color = usesColour(c, w, w.Out)
	return style, nil
}

// judgeForExplain judges the command in args, or the one action of standard input.
func judgeForExplain(ctx context.Context, w *Environment, p *shield.Pipeline, args []string, last, maxBytes int) (report.Explanation, error) {
	a, line, bad, err := readSingleAction(w, args, maxBytes)
	if err != nil {
		return report.Explanation{}, &statusError{statusBlock, err}
	}
	if bad != nil {
		v := verdict.Verdict{Line: line, Decision: verdict.Block, Confidence: 1, ErrorCode: string(action.CodeOf(bad)), Reasoning: redactedErrorText(bad)}
		return report.Explanation{Verdict: &v}, nil
	}
	out := p.EvaluateThroughTier(ctx, a, last)
	e := report.Explanation{Action: a, Verdict: &out.Verdict, Evidence: out.ClassifierEvidence()}
	if out.Verdict.Decision != verdict.Allow {
		e.AllowRuleMismatchReasons, err = p.AllowRuleNonMatchReasons(ctx, a)
	}
	return e, err
}

// readSingleAction reads the command in args, or the one action in standard input. inputErr is the
// error of a record that is not a valid action.
func readSingleAction(w *Environment, args []string, maxBytes int) (a *action.Action, lineNumber int, inputErr, err error) {
	var in actionRecordSource
	if len(args) > 0 {
		in = shellCommandRecordSource(args[0])
	} else {
		in = action.NewReader(w.In, action.ReaderOptions{InputName: "stdin", MaxRecordBytes: maxBytes})
	}
	rec, err := in.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, 0, nil, errors.New("standard input contains no action, so the result is BLOCK; write one JSON object a line")
	case err != nil:
		return nil, 0, nil, fmt.Errorf("read standard input: %w", err)
	}
	if inputErr = rec.Err; inputErr == nil {
		a, inputErr = action.Parse(rec.Raw)
	}
	if inputErr == nil && len(args) == 0 {
		if _, err := in.Next(); !errors.Is(err, io.EOF) {
			return nil, 0, nil, errors.New("explain: standard input has more than one action; use 'shield run --trace' for several")
		}
	}
	return a, rec.StartLine, inputErr, nil
}

// An actionRecordSource yields the action records of an input: standard input or a shell command.
type actionRecordSource interface {
	Next() (action.RawActionRecord, error)
}

// shellCommandRecordSource is one shell command.
type shellCommandRecordSource string

func (s shellCommandRecordSource) Next() (action.RawActionRecord, error) {
	text, err := jsontext.AppendQuote(nil, string(s))
	rec := action.RawActionRecord{StartLine: 1, Raw: fmt.Appendf(nil, `{"type":"execute_command","payload":{"command":%s}}`, text)}
	if err != nil {
		rec.Err = &action.LineError{InputName: "COMMAND", Line: 1, Err: err}
	}
	return rec, nil
}
