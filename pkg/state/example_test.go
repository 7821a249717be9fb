package state_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/shieldcli/shield/pkg/state"
)

func Example() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s, err := state.Open(dir, state.Options{Clock: func() time.Time { return noon }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	ctx := context.Background()
	for range 3 {
		used, err := s.ChargeEvaluation(ctx, 2)
		fmt.Println(used, err)
	}
	st, err := s.Status(ctx, state.EvaluationAndApprovalLimits{MaxEvaluatorCallsPerMinute: 60, MaxEvaluationsPerDay: 2, MaxApprovalRequestsPerHour: 10})
	fmt.Println(st.BudgetResetsAt, err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 2 daily evaluation budget exhausted; wait until tomorrow, or let the user raise daily_budget
	// 2026-01-03 00:00:00 +0000 UTC <nil>
}
