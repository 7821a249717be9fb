// Package shield judges the actions that an AI agent proposes, before they
// run. A [Pipeline] sends each action through the tiers, and this is the only
// place where tiers meet.
package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Tier judges one case: an action, its analysis and what earlier tiers said.
// It answers ESCALATE when the next should decide. An error or a panic becomes
// a BLOCK.
//
// A tier fills Decision, Confidence, Reasoning, Rule, NextTier, Degraded and
// Error, and Trail if it consists of several classifiers; the pipeline does
// the rest.
type Tier interface {
	Judge(ctx context.Context, c *analysis.Case) (verdict.Verdict, error)
}
