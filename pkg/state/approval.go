package state

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// TakeApproval counts one request to a person. If max requests were counted within the last hour, it
// returns an error that wraps [ErrApprovalLimit] and gives the time of the next free request. Refused
// requests do not count.
func (s *Store) TakeApproval(ctx context.Context, max int) error {
	return s.values.change(ctx, func(t *tx) error { return t.rec.ask(max) })
}

func (r *record) ask(limit int) error {
	if r.approvalsLeft(limit) < 1 {
		return r.noApproval(limit)
	}
	r.Approvals = append(r.Approvals, ask{At: r.Now})
	return nil
}

// noApproval returns the refusal, which tells a person what to change and an agent when to retry.
func (r *record) noApproval(limit int) error {
	next := ""
	if limit = min(limit, maxApproval); limit > 0 {
		at := r.AskFrom
		if n := len(r.Approvals) - limit; n >= 0 {
			at = max(at, r.Approvals[n].At+askWindow)
		}
		second := r.wallAt(at).Add(time.Second - 1).Truncate(time.Second) // round up: the request is not free before
		next = "; the next question is possible at " + second.Format(time.RFC3339)
	}
	return fmt.Errorf("%w: approval.max_per_hour is %d%s", ErrApprovalLimit, max(limit, 0), next)
}

func (r *record) forgetAsks() {
	r.Approvals = slices.DeleteFunc(r.Approvals, func(a ask) bool { return r.Now-a.At >= askWindow })
}

// approvalsLeft returns how many approval requests are left.
func (r *record) approvalsLeft(limit int) int {
	r.forgetAsks()
	if r.Now < r.AskFrom {
		return 0
	}
	return max(min(limit, maxApproval)-len(r.Approvals), 0)
}
