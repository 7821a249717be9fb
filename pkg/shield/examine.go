package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/sanitize"
	"github.com/shieldcli/shield/pkg/verdict"
)

// ExamineToolResult examines a result by rules and, if the settings enable it, by the evaluator.
// actionType is the type of the action that returned it.
func (p *Pipeline) ExamineToolResult(ctx context.Context, actionType string, result any) *sanitize.Report {
	report := sanitize.Examine(result)
	if f := p.evaluatorFindingInToolResult(ctx, actionType, result); f != nil {
		report.Add(*f)
	}
	return report
}

// ReviewResultWithEvaluator lets the evaluator examine a result that the caller has examined by
// rules. It logs and returns the findings. withheldReason says why the agent must not get the
// result; "" if it may.
func (p *Pipeline) ReviewResultWithEvaluator(ctx context.Context, toolResult ToolResult) (found []sanitize.Finding, withheldReason string, err error) {
	if len(toolResult.Actions) == 0 || p.sanitizeSettings.Enabled == config.Off {
		return nil, "", nil
	}
	f := p.evaluatorFindingInToolResult(ctx, toolResult.Actions[0].Type, toolResult.ReturnedValue)
	if f == nil {
		return nil, "", nil
	}
	report := sanitize.Report{Findings: []sanitize.Finding{*f}}
	return report.Findings, report.SanitizeResult(sanitize.ResultHandlingMode(p.sanitizeSettings.ActionOnFindings)).WithheldReason, p.logFindings(ctx, toolResult, report.Findings)
}

// evaluatorFindingInToolResult returns the evaluator's finding in a result; nil if there is none or the evaluator is not
// asked.
func (p *Pipeline) evaluatorFindingInToolResult(ctx context.Context, actionType string, toolResult any) *sanitize.Finding {
	if !p.sanitizeSettings.EvaluatorExaminesResults || toolResult == nil {
		return nil
	}
	v := p.tiers[TierEvaluate].(*evaluate.Evaluator).ExamineResultForInjection(ctx, actionType, toolResult)
	f := &sanitize.Finding{Kind: sanitize.FindingPromptInjection, Rule: v.Rule, FindingDescription: p.redactor.RedactText(v.Reasoning), Severity: sanitize.SeverityHigh, ExaminerName: judgeNameByTier[TierEvaluate]}
	switch {
	case v.Decision == verdict.Allow && !v.IsAllowedDespiteFailure:
		return nil
	case v.IsAllowedDespiteFailure:
		f.Kind, f.Severity = sanitize.FindingUnexamined, sanitize.SeverityLow
	case v.ErrorCode != "":
		f.Kind = sanitize.FindingUnexamined
	case v.Decision == verdict.Escalate:
		f.Severity = sanitize.SeverityMedium
	}
	return f
}
