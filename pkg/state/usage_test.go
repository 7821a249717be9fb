package state

import (
	"testing"
	"time"
)

// admit takes n evaluations and returns the rises that were told.
func admit(t *testing.T, s *Store, n int) (told []*UsageSpike) {
	t.Helper()
	for range n {
		_, rise, err := s.ChargeRateTokenAndEvaluation(t.Context(), 1_000_000, 1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		if rise != nil {
			told = append(told, rise)
		}
	}
	return told
}

func TestRise(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	// Ten an hour are usual here, and no rise.
	for range 30 {
		if told := admit(t, s, 10); told != nil {
			t.Fatalf("told %v", told[0])
		}
		w.pass(time.Hour)
	}
	if told := admit(t, s, 30); told != nil { // three times the mean is not more than that
		t.Errorf("told %v", told[0])
	}
	told := admit(t, s, 1)
	if len(told) != 1 {
		t.Fatal("the rise was not told")
	}
	if r := told[0]; r.Evaluations != 31 || r.MeanHourlyEvaluationsBeforeSpike != 10 || !r.From.Equal(w.wall.Truncate(time.Hour)) {
		t.Errorf("told %+v", r)
	}
	if told := admit(t, s, 50); told != nil {
		t.Errorf("told again within the hour: %v", told[0])
	}
	w.pass(time.Hour)
	if told := admit(t, s, 60); len(told) != 1 { // 81 are in the mean now
		t.Errorf("told %d times in the next hour", len(told))
	}
	// What is old is forgotten, and a handful never is a rise.
	w.pass(100 * time.Hour)
	if told := admit(t, s, minSpikeEvaluations-1); told != nil {
		t.Errorf("told %v", told[0])
	}
	if told := admit(t, s, 1); len(told) != 1 || told[0].MeanHourlyEvaluationsBeforeSpike != 0 {
		t.Errorf("told %v", told)
	}
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: 1})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, h := range st.HourlyEvaluations {
		sum += h.Evaluations
	}
	if sum != minSpikeEvaluations || len(st.HourlyEvaluations) != usageWindowHours {
		t.Errorf("%d in %d hours", sum, len(st.HourlyEvaluations))
	}
	// In the first day there is nothing to compare with.
	first := openStore(t, t.TempDir(), newWorld().options(true))
	if told := admit(t, first, 500); told != nil {
		t.Errorf("told %v of the first hour", told[0])
	}
	rec := new(limitRecord)
	for at := range int64(1000) {
		rec.StoreClockUnixNano = at * int64(time.Hour)
		rec.countEvaluation()
		if len(rec.EvaluationsByHour) > usageWindowHours+1 {
			t.Fatalf("%d hours are kept", len(rec.EvaluationsByHour))
		}
	}
}
