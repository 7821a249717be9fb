package state

import (
	"context"
	"time"
)

// EvaluationAndApprovalLimits are the configured limits for a [StoreStatus].
type EvaluationAndApprovalLimits struct {
	MaxEvaluatorCallsPerMinute int // evaluation attempts per minute
	MaxEvaluationsPerDay       int // evaluations per day
	MaxApprovalRequestsPerHour int // approval requests per hour
}

// A StoreStatus is the used and free part of each limit.
type StoreStatus struct {
	EvaluationsUsed            int                     `json:"budget_used"` // evaluations used since the last reset, at most the daily budget
	MaxEvaluationsPerDay       int                     `json:"budget"`
	BudgetResetsAt             time.Time               `json:"budget_resets_at"` // UTC
	AvailableEvaluatorCalls    float64                 `json:"rate_tokens"`      // evaluation attempts that are free now, 0 to MaxEvaluatorCallsPerMinute
	MaxEvaluatorCallsPerMinute int                     `json:"rate_limit"`
	ApprovalsLeft              int                     `json:"approvals_left"`
	MaxApprovalRequestsPerHour int                     `json:"approvals_per_hour"`
	CachedEntryCount           int                     `json:"cached_verdicts"`
	AuditEntryCount            uint64                  `json:"audit_entries"`
	AuditHeadHash              string                  `json:"audit_head,omitempty"`
	HourlyEvaluations          []HourlyEvaluationCount `json:"evaluations_by_hour"` // the last 24 hours, the current one last
}

// Status returns how much of the given limits is used and how much is left. The call itself does
// not count against a limit.
func (s *Store) Status(ctx context.Context, l EvaluationAndApprovalLimits) (StoreStatus, error) {
	var st StoreStatus
	err := s.limitsAndNamespacesQueue.runReadOnly(ctx, func(t *tx) error {
		r := t.record
		r.refillTokens(l.MaxEvaluatorCallsPerMinute)
		st = StoreStatus{
			EvaluationsUsed:            min(r.EvaluationsUsed, max(l.MaxEvaluationsPerDay, 0)),
			MaxEvaluationsPerDay:       l.MaxEvaluationsPerDay,
			BudgetResetsAt:             r.toWallTime(r.BudgetResetAt),
			AvailableEvaluatorCalls:    float64(r.availableRateBucketUnits(l.MaxEvaluatorCallsPerMinute)) / float64(rateUnitsPerBucketToken),
			MaxEvaluatorCallsPerMinute: l.MaxEvaluatorCallsPerMinute,
			ApprovalsLeft:              r.approvalsLeft(l.MaxApprovalRequestsPerHour),
			MaxApprovalRequestsPerHour: l.MaxApprovalRequestsPerHour,
			CachedEntryCount:           r.CachedEntryCount,
			HourlyEvaluations:          r.hourlyUsage(),
		}
		if r.StoreClockUnixNano < r.RateBlockedUntil {
			st.AvailableEvaluatorCalls = 0
		}
		return nil
	})
	if err == nil {
		st.AuditEntryCount, st.AuditHeadHash, err = s.AuditHead(ctx)
	}
	return st, err
}
