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
	maxTries   = 3 // attempts at a busy or broken service
	maxRepairs = 6 // attempts more, each with one optional parameter less
	firstWait  = 500 * time.Millisecond
)

// A stateError says that the rate or the budget could not be counted.
type stateError struct{ err error }

func (e stateError) Error() string { return e.err.Error() }
func (e stateError) Unwrap() error { return e.err }

// A randomError says that no canary could be drawn.
type randomError struct{ error }

// An exchange is what one evaluation says to the service and hears from it.
type exchange struct {
	question *question
	canaries []string // of all attempts; the last belongs to reply
	reply    Reply
}

// ask sends a question until the service answers, its refusal is final, or the
// limits are reached. The first attempt is charged to the budget together with
// its rate token, so that a refusal by rate costs nothing; each further one takes
// a rate token only. Each attempt has a canary and a boundary of its own.
//
// A refused parameter is not a failure of the service, hence not one of the
// tries, but it is an attempt and takes its token.
func (e *Evaluator) ask(ctx context.Context, x *exchange) error {
	tries, repairs := 1, 0
	for attempt := 0; ; attempt++ {
		canary, boundary, err := e.tokens()
		if err != nil {
			return randomError{err}
		}
		if err := e.admit(ctx, attempt == 0); err != nil {
			return err
		}
		x.canaries = append(x.canaries, canary)
		if x.reply, err = complete(ctx, e.o.Provider, x.question.prompt(canary, boundary)); err == nil {
			if e.o.Observe != nil {
				e.o.Observe(x.reply)
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var refused *UnsupportedError
		switch {
		case errors.As(err, &refused) && repairs < maxRepairs:
			repairs++
		case isTransient(err) && tries < maxTries:
			if waited := e.wait(ctx, tries, err); waited != nil {
				return waited
			}
			tries++
		default:
			return err
		}
	}
}

// tokens returns the canary and the boundary of one attempt.
func (e *Evaluator) tokens() (canary, boundary string, err error) {
	canary = e.o.CanaryToken
	if canary == "" {
		if canary, err = token(e.o.Rand, canaryBytes); err != nil {
			return "", "", err
		}
	}
	boundary, err = token(e.o.Rand, boundaryBytes)
	return canary, boundary, err
}

// admit takes what one attempt costs.
func (e *Evaluator) admit(ctx context.Context, first bool) error {
	switch {
	case e.o.Limits == nil:
		return nil
	case first:
		return countError(ctx, e.o.Limits.Admit(ctx))
	}
	return countError(ctx, e.o.Limits.TakeRate(ctx))
}

// countError marks an error that does not come from a limit but from counting.
func countError(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrRateLimited) || errors.Is(err, ErrBudgetExhausted) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return stateError{err}
}

// wait waits before the next try: as long as the service asks for, else 0.5 s
// and then twice as long, with jitter. If a service asks for more than the whole
// evaluation may take, err is returned at once.
func (e *Evaluator) wait(ctx context.Context, tries int, err error) error {
	d := firstWait << (tries - 1)
	var jitter [2]byte
	if _, failed := io.ReadFull(e.o.Rand, jitter[:]); failed != nil {
		return randomError{fmt.Errorf("draw random bytes: %w", failed)}
	}
	d = d/2 + d*time.Duration(binary.BigEndian.Uint16(jitter[:]))/(1<<16)
	var status *StatusError
	if errors.As(err, &status) && status.RetryAfter > 0 {
		d = status.RetryAfter
	}
	if d >= e.o.Timeout {
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

// printable returns s on one line, at most n runes long, with control, format
// and other invisible characters replaced by spaces.
func printable(s string, n int) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, brief.Text(s, n)))
}
