package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/sanitize"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Examine examines a result by rules and, if the settings enable it, by the evaluator. kind is the
// type of the action that returned it.
func (p *Pipeline) Examine(ctx context.Context, kind string, result any) *sanitize.Report {
	report := sanitize.Examine(result)
	if f := p.evaluatorFinding(ctx, kind, result); f != nil {
		report.Add(*f)
	}
	return report
}

// Review lets the evaluator examine a result that the caller has examined by rules. It logs and
// returns the findings. withheld says why the agent must not get the result; "" if it may.
func (p *Pipeline) Review(ctx context.Context, r ToolResult) (found []sanitize.Finding, withheld string, err error) {
	if len(r.Actions) == 0 || p.sanitize.Enabled == config.Off {
		return nil, "", nil
	}
	f := p.evaluatorFinding(ctx, r.Actions[0].Type, r.Result)
	if f == nil {
		return nil, "", nil
	}
	report := sanitize.Report{Findings: []sanitize.Finding{*f}}
	return report.Findings, report.Apply(sanitize.Mode(p.sanitize.Mode)).Withheld, p.logFindings(ctx, r, report.Findings)
}

// evaluatorFinding returns the evaluator's finding in a result; nil if there is none or the evaluator is not
// asked.
func (p *Pipeline) evaluatorFinding(ctx context.Context, kind string, result any) *sanitize.Finding {
	if !p.sanitize.Evaluator || result == nil {
		return nil
	}
	v := p.tiers[TierEvaluate].(*evaluate.Evaluator).Examine(ctx, kind, result)
	f := &sanitize.Finding{Kind: sanitize.Instruction, Rule: v.Rule, What: p.redactor.String(v.Reasoning), Severity: sanitize.High, Source: tierSources[TierEvaluate]}
	switch {
	case v.Decision == verdict.Allow && !v.Degraded:
		return nil
	case v.Degraded:
		f.Kind, f.Severity = sanitize.Unexamined, sanitize.Low
	case v.Error != "":
		f.Kind = sanitize.Unexamined
	case v.Decision == verdict.Escalate:
		f.Severity = sanitize.Medium
	}
	return f
}
