package state

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// ChargeApprovalRequest counts one request to a person. If maxPerHour requests were counted within
// the last hour, it returns an error that wraps [ErrApprovalLimit] and gives the time of the next
// free request. Refused requests do not count.
func (s *Store) ChargeApprovalRequest(ctx context.Context, maxPerHour int) error {
	return s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error { return t.record.chargeApprovalRequest(maxPerHour) })
}

func (r *limitRecord) chargeApprovalRequest(limit int) error {
	if r.approvalsLeft(limit) < 1 {
		return r.approvalLimitError(limit)
	}
	r.ApprovalRequests = append(r.ApprovalRequests, approvalRequest{At: r.StoreClockUnixNano})
	return nil
}

// approvalLimitError returns the refusal, which tells a person what to change and an agent when to retry.
func (r *limitRecord) approvalLimitError(limit int) error {
	next := ""
	if limit = min(limit, maxConfigurableApprovalsPerHour); limit > 0 {
		at := r.ApprovalsBlockedUntil
		if n := len(r.ApprovalRequests) - limit; n >= 0 {
			at = max(at, r.ApprovalRequests[n].At+approvalWindow)
		}
		second := r.toWallTime(at).Add(time.Second - 1).Truncate(time.Second) // round up: before at, the request would be refused again
		next = "; the next question is possible at " + second.Format(time.RFC3339)
	}
	return fmt.Errorf("%w: approval.max_per_hour is %d%s", ErrApprovalLimit, max(limit, 0), next)
}

func (r *limitRecord) dropOldApprovals() {
	r.ApprovalRequests = slices.DeleteFunc(r.ApprovalRequests, func(a approvalRequest) bool { return r.StoreClockUnixNano-a.At >= approvalWindow })
}

// approvalsLeft returns how many approval requests are left.
func (r *limitRecord) approvalsLeft(limit int) int {
	r.dropOldApprovals()
	if r.StoreClockUnixNano < r.ApprovalsBlockedUntil {
		return 0
	}
	return max(min(limit, maxConfigurableApprovalsPerHour)-len(r.ApprovalRequests), 0)
}
