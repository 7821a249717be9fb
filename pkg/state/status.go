package state

import (
	"context"
	"time"
)

// Limits are the configured limits for a [Status].
type Limits struct {
	PerMinute int // evaluation attempts per minute
	PerDay    int // evaluations per day
	PerHour   int // approval requests per hour
}

// A Status is the used and free part of each limit.
type Status struct {
	Used          int       `json:"budget_used"` // 0 to Budget
	Budget        int       `json:"budget"`
	Resets        time.Time `json:"budget_resets_at"` // UTC
	Tokens        float64   `json:"rate_tokens"`      // 0 to RateLimit
	RateLimit     int       `json:"rate_limit"`
	ApprovalsLeft int       `json:"approvals_left"`
	MaxApprovals  int       `json:"approvals_per_hour"`
	Cached        int       `json:"cached_verdicts"`
	AuditEntries  uint64    `json:"audit_entries"`
	AuditHead     string    `json:"audit_head,omitempty"`
	Hours         []HourUse `json:"evaluations_by_hour"` // the last 24 hours, the current one last
}

// Status returns the used and free part of the given limits. It uses none of them.
func (s *Store) Status(ctx context.Context, l Limits) (Status, error) {
	var st Status
	err := s.values.look(ctx, func(t *tx) error {
		r := t.rec
		r.drain(l.PerMinute)
		st = Status{
			Used:          min(r.Used, max(l.PerDay, 0)),
			Budget:        l.PerDay,
			Resets:        r.wallAt(r.Reset),
			Tokens:        float64(r.free(l.PerMinute)) / float64(tokenUnits),
			RateLimit:     l.PerMinute,
			ApprovalsLeft: r.approvalsLeft(l.PerHour),
			MaxApprovals:  l.PerHour,
			Cached:        r.Cached,
			Hours:         r.usage(),
		}
		if r.Now < r.RateFrom {
			st.Tokens = 0
		}
		return nil
	})
	if err == nil {
		st.AuditEntries, st.AuditHead, err = s.Head(ctx)
	}
	return st, err
}
