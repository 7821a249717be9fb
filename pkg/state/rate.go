package state

import (
	"context"
	"time"
)

// TakeRate takes one token from a bucket that holds up to perMinute tokens and gains perMinute tokens
// a minute, evenly. It returns [ErrRateExceeded] if there is less than one token; perMinute below 1
// means that there are none.
func (s *Store) TakeRate(ctx context.Context, perMinute int) error {
	return s.valueQueue.runWriting(ctx, func(t *tx) error { return t.record.takeToken(perMinute) })
}

// A token counts unitsPerToken, so that a bucket of n tokens gains n units per nanosecond without
// rounding.
const (
	unitsPerToken      = int64(time.Minute)
	maxTokensPerMinute = 100_000_000 // keeps the units of a bucket within an int64
	rateWindow         = int64(time.Minute)
	approvalWindow     = int64(time.Hour)
	maxApprovalLimit   = 10_000
)

func (r *limitRecord) takeToken(perMinute int) error {
	r.refillTokens(perMinute)
	if r.StoreTime < r.RateBlockedUntil || r.MissingUnits+unitsPerToken > tokenBucketUnits(perMinute) {
		return ErrRateExceeded
	}
	r.MissingUnits += unitsPerToken
	return nil
}

// refillTokens adds to the bucket what it gained since the last update.
func (r *limitRecord) refillTokens(perMinute int) {
	passed := min(max(r.StoreTime-r.UnitsUpdatedAt, 0), rateWindow)
	r.MissingUnits = max(r.MissingUnits-passed*clampRate(perMinute), 0)
	r.UnitsUpdatedAt = r.StoreTime
}

func clampRate(perMinute int) int64        { return int64(min(max(perMinute, 0), maxTokensPerMinute)) }
func tokenBucketUnits(perMinute int) int64 { return clampRate(perMinute) * unitsPerToken }
func (r *limitRecord) freeUnits(perMin int) int64 {
	return max(tokenBucketUnits(perMin)-r.MissingUnits, 0)
}
