package evaluate

import (
	"context"
	"errors"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// EvaluationLimits count the cost of Tier 2 across all processes that share a state file. Any error other than
// [ErrRateLimited], [ErrBudgetExhausted] and the context's error means that the count is unreliable, so the
// action is blocked.
type EvaluationLimits interface {
	// ChargeRateTokenAndEvaluation charges one evaluation to the budget and takes the rate token of its first attempt: both, or
	// neither with an error that wraps ErrRateLimited or ErrBudgetExhausted. It does not wait, and its
	// changes must survive a crash.
	ChargeRateTokenAndEvaluation(ctx context.Context) error

	// TakeRateToken takes the rate token of a further attempt, or returns an error
	// that wraps ErrRateLimited. It does not wait.
	TakeRateToken(ctx context.Context) error
}

// The errors that [EvaluationLimits] return when a limit is reached.
var (
	ErrRateLimited     = errors.New("rate limit exceeded; wait a minute, or let the user raise rate_limit")
	ErrBudgetExhausted = errors.New("daily evaluation budget exhausted; wait until tomorrow, or let the user raise daily_budget")
)

// A VerdictCache stores verdicts of Tier 2. The implementation chooses the cache key, which must
// cover more than the action: everything that the verdict depends on, such as the files that the
// action reads and the prompt's hash.
type VerdictCache interface {
	// Lookup returns the stored verdict for a case, if there is one that has not expired.
	Lookup(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, bool)

	// Store stores a verdict. If it fails, the case is evaluated again next time.
	Store(ctx context.Context, c *analysis.ActionCase, v verdict.Verdict)
}
