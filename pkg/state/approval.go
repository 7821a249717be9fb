package state

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// ChargeApprovalRequest counts one request to a person. If max requests were counted within the last hour, it
// returns an error that wraps [ErrApprovalLimit] and gives the time of the next free request. Refused
// requests do not count.
func (s *Store) ChargeApprovalRequest(ctx context.Context, maxPerHour int) error {
	return s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error { return t.record.takeApproval(maxPerHour) })
}

func (r *limitRecord) takeApproval(limit int) error {
	if r.approvalsLeft(limit) < 1 {
		return r.approvalLimitError(limit)
	}
	r.Approvals = append(r.Approvals, approvalRequest{At: r.StoreTime})
	return nil
}

// approvalLimitError returns the refusal, which tells a person what to change and an agent when to retry.
func (r *limitRecord) approvalLimitError(limit int) error {
	next := ""
	if limit = min(limit, maxApprovalLimit); limit > 0 {
		at := r.ApprovalsBlockedUntil
		if n := len(r.Approvals) - limit; n >= 0 {
			at = max(at, r.Approvals[n].At+approvalWindow)
		}
		second := r.toWallTime(at).Add(time.Second - 1).Truncate(time.Second) // round up: before at, the request would be refused again
		next = "; the next question is possible at " + second.Format(time.RFC3339)
	}
	return fmt.Errorf("%w: approval.max_per_hour is %d%s", ErrApprovalLimit, max(limit, 0), next)
}

func (r *limitRecord) dropOldApprovals() {
	r.Approvals = slices.DeleteFunc(r.Approvals, func(a approvalRequest) bool { return r.StoreTime-a.At >= approvalWindow })
}

// approvalsLeft returns how many approval requests are left.
func (r *limitRecord) approvalsLeft(limit int) int {
	r.dropOldApprovals()
	if r.StoreTime < r.ApprovalsBlockedUntil {
		return 0
	}
	return max(min(limit, maxApprovalLimit)-len(r.Approvals), 0)
}
