package state

import (
	"context"
	"time"
)

// TakeRate takes one token from a bucket that holds up to perMinute tokens and gains perMinute tokens
// a minute, evenly. It returns [ErrRateExceeded] if there is less than one token; perMinute below 1
// means that there are none.
func (s *Store) TakeRate(ctx context.Context, perMinute int) error {
	return s.values.change(ctx, func(t *tx) error { return t.rec.take(perMinute) })
}

// A token counts tokenUnits, so that a bucket of n tokens gains n units per nanosecond without
// rounding.
const (
	tokenUnits  = int64(time.Minute)
	maxRate     = 100_000_000 // keeps the units of a bucket within an int64
	rateWindow  = int64(time.Minute)
	askWindow   = int64(time.Hour)
	maxApproval = 10_000
)

func (r *record) take(perMinute int) error {
	r.drain(perMinute)
	if r.Now < r.RateFrom || r.Spent+tokenUnits > bucketSize(perMinute) {
		return ErrRateExceeded
	}
	r.Spent += tokenUnits
	return nil
}

// drain adds to the bucket what it gained since the last update.
func (r *record) drain(perMinute int) {
	passed := min(max(r.Now-r.SpentAt, 0), rateWindow)
	r.Spent = max(r.Spent-passed*clampRate(perMinute), 0)
	r.SpentAt = r.Now
}

func clampRate(perMinute int) int64     { return int64(min(max(perMinute, 0), maxRate)) }
func bucketSize(perMinute int) int64    { return clampRate(perMinute) * tokenUnits }
func (r *record) free(perMin int) int64 { return max(bucketSize(perMin)-r.Spent, 0) }
