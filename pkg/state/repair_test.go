package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRepair(t *testing.T) {
	damage := map[string]func(*testing.T, string){
		"damaged": func(t *testing.T, p string) { write(t, p, []byte("oh")) },
		"missing": remove,
	}
	for name, spoil := range damage {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			dir := t.TempDir()
			s := openStore(t, dir, w.options(true))
			if _, err := s.ChargeEvaluation(t.Context(), 5); err != nil {
				t.Fatal(err)
			}
			before, ok := s.NamespaceRevisionID("things")
			spoil(t, filepath.Join(dir, stateFileName))
			done, err := RepairIfDamaged(t.Context(), dir, w.options(true), 12, "head")
			if !done || err != nil {
				t.Fatal(done, err)
			}
			if name == "damaged" {
				kept, err := filepath.Glob(filepath.Join(dir, stateFileName+".damaged-*"))
				if err != nil || len(kept) != 1 {
					t.Errorf("kept %v, %v", kept, err)
				}
			}
			if after, still := s.NamespaceRevisionID("things"); !ok || !still || after == before {
				t.Errorf("stamps %x, %v and %x, %v of a shelf that was lost", before, ok, after, still)
			}
			// Everything counts as used, whatever the limits are.
			if _, err := s.ChargeEvaluation(t.Context(), 1_000_000); !errors.Is(err, ErrBudgetExhausted) {
				t.Errorf("budget: %v", err)
			}
			if err := s.TakeRateToken(t.Context(), 1_000_000); !errors.Is(err, ErrEvaluatorRateExceeded) {
				t.Errorf("rate: %v", err)
			}
			if err := s.ChargeApprovalRequest(t.Context(), 10); !errors.Is(err, ErrApprovalLimit) {
				t.Errorf("approvals: %v", err)
			}
			st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluatorCallsPerMinute: 60, MaxEvaluationsPerDay: 100, MaxApprovalRequestsPerHour: 10})
			if err != nil || st.EvaluationsUsed != 100 || st.AvailableEvaluatorCalls != 0 || st.ApprovalsLeft != 0 || st.AuditEntryCount != 12 || st.AuditHeadHash != "head" {
				t.Errorf("%+v, %v", st, err)
			}
			w.pass(time.Hour)
			if err := s.TakeRateToken(t.Context(), 60); err != nil {
				t.Errorf("rate after an hour: %v", err)
			}
			if err := s.ChargeApprovalRequest(t.Context(), 10); err != nil {
				t.Errorf("approvals after an hour: %v", err)
			}
			w.pass(12 * time.Hour)
			if used, err := s.ChargeEvaluation(t.Context(), 2); used != 1 || err != nil {
				t.Errorf("budget after midnight: %d, %v", used, err)
			}
		})
	}
}

// Repair is no way to get a fresh state.
func TestRepairLeavesWhatIsWhole(t *testing.T) {
	w := newWorld()
	dir := t.TempDir()
	s := openStore(t, dir, w.options(true))
	if _, err := s.ChargeEvaluation(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if done, err := RepairIfDamaged(t.Context(), dir, w.options(true), 0, ""); done || err != nil {
		t.Fatal(done, err)
	}
	if used, err := s.ChargeEvaluation(t.Context(), 5); used != 2 || err != nil {
		t.Error(used, err)
	}
	if err := os.Chmod(filepath.Join(dir, stateFileName), 0o622); err != nil {
		t.Fatal(err)
	}
	if done, err := RepairIfDamaged(t.Context(), dir, w.options(true), 0, ""); done || !errors.Is(err, ErrStateAccessibleToOtherUsers) {
		t.Error(done, err)
	}
}
