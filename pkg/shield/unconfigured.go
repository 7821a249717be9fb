package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// noApproval stands in for a Tier 3 that has no usable channel.
type noApproval struct{ reason string }

func (t noApproval) Judge(context.Context, *analysis.Case) (verdict.Verdict, error) {
	return verdict.Verdict{Decision: verdict.Block, Confidence: 1,
		Reasoning: "a person has to decide, and none can be asked: " + t.reason}, nil
}
