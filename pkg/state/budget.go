package state

import (
	"context"
	"time"
)

// ChargeEvaluation takes one evaluation from the daily budget and returns how many are used,
// including this one. If none is left it returns [ErrBudgetExhausted] and charges nothing. The
// charge is on disk when ChargeEvaluation returns, so killing the caller does not refund it.
func (s *Store) ChargeEvaluation(ctx context.Context, dailyBudget int) (used int, err error) {
	err = s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error {
		_, err := t.record.chargeEvaluation(dailyBudget)
		used = min(t.record.EvaluationsUsed, max(dailyBudget, 0))
		return err
	})
	return used, err
}

// ChargeRateTokenAndEvaluation takes a rate token and one evaluation of the daily budget in one transaction, or neither: it
// returns [ErrBudgetExhausted], which it checks first, or [ErrEvaluatorRateExceeded]. It also returns how many
// evaluations are used, and the sudden rise that this one causes, or nil.
func (s *Store) ChargeRateTokenAndEvaluation(ctx context.Context, perMinute, dailyBudget int) (used int, usageSpike *UsageSpike, err error) {
	err = s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error {
		if t.record.EvaluationsUsed >= dailyBudget {
			return ErrBudgetExhausted
		}
		if err := t.record.takeToken(perMinute); err != nil {
			return err
		}
		usageSpike, err = t.record.chargeEvaluation(dailyBudget)
		used = t.record.EvaluationsUsed
		return err
	})
	return used, usageSpike, err
}

func (r *limitRecord) chargeEvaluation(budget int) (*UsageSpike, error) {
	if r.EvaluationsUsed >= budget {
		return nil, ErrBudgetExhausted
	}
	r.EvaluationsUsed++
	return r.countEvaluation(), nil
}

// exhaustedEvaluationCount is larger than any budget.
const exhaustedEvaluationCount = 1 << 30

const (
	day = 24 * time.Hour
	// minBudgetRefillInterval is the least time between two refills: the length of a day on which daylight saving time
	// begins.
	minBudgetRefillInterval = 23 * time.Hour
)

// refillBudget renews the budget when its time has come and sets the next refill. It reports whether the
// record changed.
func (r *limitRecord) refillBudget(now time.Time, loc *time.Location) bool {
	now = time.Unix(0, clampedUnixNano(now))
	if r.BudgetResetAt == 0 {
		r.BudgetResetAt = r.StoreClockUnixNano + int64(nextMidnight(now, loc).Sub(now))
		return true
	}
	if r.StoreClockUnixNano < r.BudgetResetAt {
		return false
	}
	r.EvaluationsUsed = 0
	// due is the latest time, up to now, at which a refill was due if refills are one day apart. The next refill
	// must be at least minBudgetRefillInterval after due: otherwise a process could repeatedly claim a time zone
	// in which midnight is near, and refill the budget each time.
	due := r.BudgetResetAt + (r.StoreClockUnixNano-r.BudgetResetAt)/int64(day)*int64(day)
	earliest := max(due+int64(minBudgetRefillInterval)-r.StoreClockUnixNano, 1)
	r.BudgetResetAt = r.StoreClockUnixNano + int64(nextMidnight(now.Add(time.Duration(earliest-1)), loc).Sub(now))
	return true
}

// nextMidnight returns the first instant after t at which a new day has begun in loc. If daylight
// saving time begins at midnight there is no 0:00, and [time.Date] may return an instant of the
// previous day.
func nextMidnight(t time.Time, loc *time.Location) time.Time {
	y, m, d := t.In(loc).Date()
	next := time.Date(y, m, d+1, 0, 0, 0, 0, loc)
	const step = 15 * time.Minute
	for range day / step { // a time zone may even skip a whole day, as Samoa did in 2011
		ny, nm, nd := next.Date()
		if next.After(t) && (ny != y || nm != m || nd != d) {
			break
		}
		next = next.Add(step)
	}
	return next
}
