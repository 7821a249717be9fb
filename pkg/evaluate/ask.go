package evaluate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/config"
)

const (
	maxTransientErrorAttempts  = 3 // attempts if a service is busy or broken
	maxParameterRemovalRetries = 6 // further attempts, each with one optional parameter less
	firstRetryDelay            = 500 * time.Millisecond
)

// A limitCounterError says that the rate limit or the budget could not be read or updated.
type limitCounterError struct{ err error }

func (e limitCounterError) Error() string { return e.err.Error() }
func (e limitCounterError) Unwrap() error { return e.err }

// A randomSourceError says that no canary could be generated.
type randomSourceError struct{ error }

// A modelExchange holds the question of one evaluation and the service's replies.
type modelExchange struct {
	question *modelQuestion
	canaries []string // canaries of all attempts; the last one belongs to reply
	reply    Reply
}

// askModelWithRetries sends a question until the service answers, its error is final, or the limits
// are reached. The first attempt is charged to the budget together with its rate token, so that
// hitting the rate limit costs nothing; each further attempt takes only a rate token. Each attempt
// has its own canary and boundary.
//
// An attempt that fails because the service rejects a parameter takes a rate token, but does not
// count towards the maximum number of attempts after transient errors.
func (e *Evaluator) askModelWithRetries(ctx context.Context, x *modelExchange) error {
	tries, repairs := 1, 0
	for attempt := 0; ; attempt++ {
		canary, boundary, err := e.newCanaryAndBoundary()
		if err != nil {
			return randomSourceError{err}
		}
		if err := e.chargeAttemptToLimits(ctx, attempt == 0); err != nil {
			return err
		}
		x.canaries = append(x.canaries, canary)
		if x.reply, err = sendPrompt(ctx, e.o.Provider, x.question.prompt(canary, boundary)); err == nil {
			if e.o.OnModelReply != nil {
				e.o.OnModelReply(x.reply)
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var refused *UnsupportedParameterError
		switch {
		case errors.As(err, &refused) && repairs < maxParameterRemovalRetries:
			repairs++
		case isTransient(err) && tries < maxTransientErrorAttempts:
			if waited := e.waitBeforeRetry(ctx, tries, err); waited != nil {
				return waited
			}
			tries++
		default:
			return err
		}
	}
}

// newCanaryAndBoundary returns a new canary and boundary for one attempt.
func (e *Evaluator) newCanaryAndBoundary() (canary, boundary string, err error) {
	canary = e.o.FixedCanaryToken
	if canary == "" {
		if canary, err = randomHex(e.o.Rand, canaryRandomBytes); err != nil {
			return "", "", err
		}
	}
	boundary, err = randomHex(e.o.Rand, untrustedDataBoundaryBytes)
	return canary, boundary, err
}

// chargeAttemptToLimits charges one attempt to the limits.
func (e *Evaluator) chargeAttemptToLimits(ctx context.Context, isFirstAttempt bool) error {
	switch {
	case e.o.Limits == nil:
		return nil
	case isFirstAttempt:
		return wrapLimitCounterError(ctx, e.o.Limits.ChargeRateTokenAndEvaluation(ctx))
	}
	return wrapLimitCounterError(ctx, e.o.Limits.TakeRateToken(ctx))
}

// wrapLimitCounterError wraps an error of the counting itself in a limitCounterError; errors that report a reached limit are
// returned as they are.
func wrapLimitCounterError(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrRateLimited) || errors.Is(err, ErrBudgetExhausted) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return limitCounterError{err}
}

// waitBeforeRetry waits before the next try: as long as the service asks for, else 0.5 s, doubled with each try, with
// jitter. If the service asks for more than the timeout of the whole evaluation, err is returned at once.
func (e *Evaluator) waitBeforeRetry(ctx context.Context, tries int, err error) error {
	d := firstRetryDelay << (tries - 1)
	var jitter [2]byte
	if _, failed := io.ReadFull(e.o.Rand, jitter[:]); failed != nil {
		return randomSourceError{fmt.Errorf("draw random bytes: %w", failed)}
	}
	d = d/2 + d*time.Duration(binary.BigEndian.Uint16(jitter[:]))/(1<<16)
	var status *HTTPStatusError
	if errors.As(err, &status) && status.RetryAfter > 0 {
		d = status.RetryAfter
	}
	if d >= e.o.EvaluationTimeout {
		return fmt.Errorf("%w; it asks to wait %s", err, config.Duration(d.Round(time.Second)))
	}
	return e.o.Sleep(ctx, d)
}

// sleep waits for a duration or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// toPrintableLine returns s on one line, at most maxRunes runes long, with control, format and
// other invisible characters replaced by spaces.
func toPrintableLine(s string, maxRunes int) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, brief.TruncateWithEllipsis(s, maxRunes)))
}
