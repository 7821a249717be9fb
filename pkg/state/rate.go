package state

import (
	"context"
	"time"
)

// TakeRate takes one token from the bucket, which holds perMinute tokens when
// full and gains as many a minute, evenly. It returns [ErrRateExceeded] if the
// bucket holds less than one; perMinute below 1 means that there are none.
func (s *Store) TakeRate(ctx context.Context, perMinute int) error {
	return s.values.change(ctx, func(t *tx) error { return t.rec.take(perMinute) })
}

// A token counts tokenUnits, so that a bucket of n tokens gains n units a
// nanosecond and nothing is lost by rounding.
const (
	tokenUnits  = int64(time.Minute)
	maxRate     = 100_000_000 // keeps a bucket of units within an int64
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

// drain fills the bucket by what it gained since it was last looked at.
func (r *record) drain(perMinute int) {
	passed := min(max(r.Now-r.SpentAt, 0), rateWindow)
	r.Spent = max(r.Spent-passed*clampRate(perMinute), 0)
	r.SpentAt = r.Now
}

func clampRate(perMinute int) int64     { return int64(min(max(perMinute, 0), maxRate)) }
func bucketSize(perMinute int) int64    { return clampRate(perMinute) * tokenUnits }
func (r *record) free(perMin int) int64 { return max(bucketSize(perMin)-r.Spent, 0) }
