package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// TakeApproval counts one request to a person. It returns [ErrApprovalLimit]
// if max requests were counted within the last hour, and [ErrApprovalQuota] if
// the session has used half of them: one session of an agent must not tire the
// person, nor use up what the others need. Actions without a session share
// one. Refused requests do not count.
func (s *Store) TakeApproval(ctx context.Context, session string, max int) error {
	return s.change(ctx, func(t *tx) error { return t.rec.ask(session, max) })
}

func (r *record) ask(session string, limit int) error {
	r.forgetAsks()
	limit = min(limit, maxApproval)
	if r.Now < r.AskFrom || len(r.Approvals) >= limit {
		return ErrApprovalLimit
	}
	sum := sha256.Sum256([]byte(session))
	name := hex.EncodeToString(sum[:8])
	mine := 0
	for _, a := range r.Approvals {
		if a.Session == name {
			mine++
		}
	}
	if mine >= max(limit/2, 1) {
		return ErrApprovalQuota
	}
	r.Approvals = append(r.Approvals, ask{At: r.Now, Session: name})
	return nil
}

func (r *record) forgetAsks() {
	r.Approvals = slices.DeleteFunc(r.Approvals, func(a ask) bool { return r.Now-a.At >= askWindow })
}

// approvalsLeft returns how many requests are left, whoever asks.
func (r *record) approvalsLeft(limit int) int {
	r.forgetAsks()
	if r.Now < r.AskFrom {
		return 0
	}
	return max(min(limit, maxApproval)-len(r.Approvals), 0)
}
