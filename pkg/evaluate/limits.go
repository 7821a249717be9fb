package evaluate

import (
	"context"
	"errors"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Limits count what Tier 2 costs, across all processes that share a state
// file. Any error other than [ErrRateLimited] and [ErrBudgetExhausted] means
// that the count itself cannot be trusted, and blocks.
type Limits interface {
	// Admit counts one evaluation and takes the rate token of its first attempt:
	// both, or neither and an error that wraps ErrRateLimited or
	// ErrBudgetExhausted. It does not wait, and what it counted must survive a
	// crash.
	Admit(ctx context.Context) error

	// TakeRate takes the rate token of a further attempt, or returns an error
	// that wraps ErrRateLimited. It does not wait.
	TakeRate(ctx context.Context) error
}

// What [Limits] return when nothing is left.
var (
	ErrRateLimited     = errors.New("rate limit exceeded")
	ErrBudgetExhausted = errors.New("daily evaluation budget exhausted")
)

// A Cache remembers verdicts of Tier 2. It decides under which key: the
// binding of a case is wider than its action, see the pipeline.
type Cache interface {
	// Lookup returns the verdict kept for a case, if one has not expired.
	Lookup(ctx context.Context, c *analysis.Case) (verdict.Verdict, bool)

	// Store keeps a verdict. Failing to do so only costs another evaluation.
	Store(ctx context.Context, c *analysis.Case, v verdict.Verdict)
}
