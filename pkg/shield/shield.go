// Package shield judges the actions that an AI agent proposes, before they run. A [Pipeline] sends
// each action through the tiers; only this package combines tiers.
package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Tier judges one case: an action, its analysis and what earlier tiers said. It returns ESCALATE to leave the
// decision to the next tier. An error or a panic becomes a BLOCK.
//
// A tier sets Decision, Confidence, Reasoning, ReasoningCannotLeakActionText, Rule, NextTier,
// IsAllowedDespiteFailure and ErrorCode, and Trail if it consists of several classifiers. Tier 2 also sets
// EvaluatorPromptHash, and Tier 3 AnswerChannel and AnsweredBy. The pipeline sets the other fields.
type Tier interface {
	Judge(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, error)
}
