package cmd

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// explainPolicy prints what each layer of the policy says about one action, and which layer decides.
func explainPolicy(c *cli.Context, w *Environment) error {
	args, err := operands(c, optionalOperandNames(c, "COMMAND")...)
	if err != nil {
		return err
	}
	if len(args) == 0 && isTerminal(w.In) {
		return errors.New("policy explain: COMMAND is missing, and standard input is a terminal; run 'shield policy explain --help'")
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return &statusError{statusBlock, err}
	}
	cfg := pipelineConfigFromSettings(set, w, "policy explain")
	an, err := shield.NewAnalyzer(cfg)
	if err != nil {
		return &statusError{statusBlock, err}
	}
	p, err := shield.LoadPolicy(cfg, shield.PolicyOptions(cfg, &an.DefaultExecutionContext))
	if err != nil {
		return &statusError{statusBlock, err}
	}
	act, _, bad, err := readSingleAction(w, args, set.MaxActionRecordBytes)
	if err = errors.Join(err, bad); err != nil {
		return &statusError{statusBlock, err}
	}
	judged := an.AnalyzeAction(act)
	answers, err := p.LayerVerdicts(c.Context, judged)
	if err != nil {
		return &statusError{statusBlock, err}
	}
	decision, err := printPolicyLayerVerdicts(w.Out, answers)
	if err != nil {
		return err
	}
	if decision != verdict.Allow {
		gaps, err := p.AllowRuleMismatches(c.Context, judged)
		if err != nil {
			return &statusError{statusBlock, err}
		}
		for _, g := range gaps {
			fmt.Fprintf(w.Out, "allow rule %s does not cover this action: %s\n", g.Rule, term.EscapeControlAndInvisible(g.NotCoveredReason))
		}
	}
	var t verdictCounts
	if t.countDecision(decision); t.exitStatus() != statusAllow {
		return &statusError{t.exitStatus(), nil}
	}
	return nil
}

// printPolicyLayerVerdicts prints a line for each layer, and returns the decision of the policy.
func printPolicyLayerVerdicts(out io.Writer, layerVerdicts []policy.LayerVerdict) (decision verdict.Decision, err error) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, a := range layerVerdicts {
		v := a.Verdict
		says, mark := v.Decision.String(), ""
		switch {
		case v.Decision == verdict.NoDecision:
			says = "-"
		case v.Decision == verdict.Escalate:
			says = fmt.Sprintf("%s to tier %d", says, v.NextTier)
		}
		if a.IsDecisive {
			decision, mark = v.Decision, "decides"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", a.Layer, term.EscapeControlAndInvisible(a.Name), says, mark, term.EscapeControlAndInvisible(v.Reasoning))
	}
	return decision, t.Flush()
}
