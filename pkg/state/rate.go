package state

import (
	"context"
	"time"
)

// TakeRateToken takes one token from a bucket that holds up to perMinute tokens and gains perMinute tokens
// a minute, evenly. It returns [ErrEvaluatorRateExceeded] if there is less than one token; perMinute below 1
// means that there are none.
func (s *Store) TakeRateToken(ctx context.Context, perMinute int) error {
	return s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error { return t.record.takeToken(perMinute) })
}

// The rate limiter is a token bucket that counts in units, rateUnitsPerBucketToken for each token.
// A bucket of n tokens therefore gains exactly n units per nanosecond, without rounding.
const (
	rateUnitsPerBucketToken         = int64(time.Minute)
	maxRateBucketTokensPerMinute    = 100_000_000 // keeps the units of a bucket within an int64
	rateWindow                      = int64(time.Minute)
	approvalWindow                  = int64(time.Hour)
	maxConfigurableApprovalsPerHour = 10_000
)

func (r *limitRecord) takeToken(perMinute int) error {
	r.refillTokens(perMinute)
	if r.StoreClockUnixNano < r.RateBlockedUntil || r.SpentRateBucketUnits+rateUnitsPerBucketToken > rateBucketCapacityUnits(perMinute) {
		return ErrEvaluatorRateExceeded
	}
	r.SpentRateBucketUnits += rateUnitsPerBucketToken
	return nil
}

// refillTokens adds to the bucket what it gained since the last update.
func (r *limitRecord) refillTokens(perMinute int) {
	passed := min(max(r.StoreClockUnixNano-r.RateBucketRefilledAt, 0), rateWindow)
	r.SpentRateBucketUnits = max(r.SpentRateBucketUnits-passed*clampRate(perMinute), 0)
	r.RateBucketRefilledAt = r.StoreClockUnixNano
}

func clampRate(perMinute int) int64 {
	return int64(min(max(perMinute, 0), maxRateBucketTokensPerMinute))
}
func rateBucketCapacityUnits(tokensPerMinute int) int64 {
	return clampRate(tokensPerMinute) * rateUnitsPerBucketToken
}
func (r *limitRecord) availableRateBucketUnits(tokensPerMinute int) int64 {
	return max(rateBucketCapacityUnits(tokensPerMinute)-r.SpentRateBucketUnits, 0)
}
