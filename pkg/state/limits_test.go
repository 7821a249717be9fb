package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// take empties the bucket and returns how many tokens it gave.
func take(t *testing.T, s *Store, perMinute int) int {
	t.Helper()
	for n := range 10_000 {
		if err := s.TakeRateToken(t.Context(), perMinute); err != nil {
			if !errors.Is(err, ErrEvaluatorRateExceeded) {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no end of tokens")
	return 0
}

func TestRate(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	steps := []struct {
		pass, set time.Duration
		rate      int
		want      int
	}{
		{rate: 6, want: 6},
		{rate: 6, want: 0},
		{pass: 9 * time.Second, rate: 6, want: 0},
		{pass: time.Second, rate: 6, want: 1}, // fractions add up
		{pass: 25 * time.Second, rate: 6, want: 2},
		{pass: 5 * time.Second, rate: 6, want: 1},
		{set: -time.Hour, rate: 6, want: 0},
		{pass: 10 * time.Second, rate: 6, want: 1},
		{set: time.Hour, rate: 6, want: 0},
		{set: 24 * time.Hour, rate: 6, want: 0},
		{pass: 24 * time.Hour, rate: 6, want: 6}, // never more than full
		{rate: 0, want: 0},
		{rate: -5, want: 0},
		{rate: math.MinInt, want: 0},
		{pass: time.Minute, rate: 3, want: 0}, // the limit was lowered
		{rate: 5, want: 4},                    // and raised
	}
	for i, st := range steps {
		w.pass(st.pass)
		w.wall = w.wall.Add(st.set)
		if got := take(t, s, st.rate); got != st.want {
			t.Fatalf("step %d: %d tokens, want %d", i, got, st.want)
		}
	}
	if err := s.TakeRateToken(t.Context(), math.MaxInt); err != nil {
		t.Error(err)
	}
}

// Without an uptime the clock can be set back; the bucket then refills from
// there on.
func TestRateClockSetBack(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(false))
	take(t, s, 6)
	w.wall = w.wall.Add(-time.Hour)
	if n := take(t, s, 6); n != 0 {
		t.Errorf("%d tokens by setting the clock back", n)
	}
	w.wall = w.wall.Add(10 * time.Second)
	if n := take(t, s, 6); n != 1 {
		t.Errorf("%d tokens after ten seconds", n)
	}
}

func TestApprovals(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	start := w.wall
	steps := []struct {
		pass time.Duration
		max  int
		free time.Duration // after the start; 0 means that the request is free
	}{
		{max: 3}, {max: 3},
		{pass: 30 * time.Minute, max: 3},
		{max: 3, free: time.Hour},
		{pass: 30*time.Minute - 1, max: 3, free: time.Hour},
		{pass: 1, max: 3}, {max: 3},
		{max: 3, free: 90 * time.Minute},
		{max: 2, free: 2 * time.Hour}, // the limit was lowered
		{max: 0, free: -1}, {max: -1, free: -1},
		{pass: 2 * time.Hour, max: 1},
		{max: 1, free: 4 * time.Hour},
	}
	for i, st := range steps {
		w.pass(st.pass)
		err := s.ChargeApprovalRequest(t.Context(), st.max)
		if st.free == 0 {
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			continue
		}
		want := fmt.Sprintf("hourly approval limit reached: approval.max_per_hour is %d; the next question is possible at %s",
			st.max, start.Add(st.free).UTC().Format(time.RFC3339))
		if st.free < 0 {
			want = "hourly approval limit reached: approval.max_per_hour is 0"
		}
		if !errors.Is(err, ErrApprovalLimit) || err.Error() != want {
			t.Fatalf("step %d: %v, want %s", i, err, want)
		}
	}
}

func TestApprovalsClockChanges(t *testing.T) {
	for _, tt := range []struct {
		name   string
		steady bool
		set    time.Duration
	}{
		{"forward", true, 2 * time.Hour}, {"back", true, -2 * time.Hour}, {"back, no uptime", false, -2 * time.Hour},
	} {
		w := newWorld()
		s := openStore(t, t.TempDir(), w.options(tt.steady))
		if err := s.ChargeApprovalRequest(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		w.wall = w.wall.Add(tt.set)
		if err := s.ChargeApprovalRequest(t.Context(), 1); !errors.Is(err, ErrApprovalLimit) {
			t.Errorf("%s: %v", tt.name, err)
		}
		w.pass(time.Hour)
		if err := s.ChargeApprovalRequest(t.Context(), 1); err != nil {
			t.Errorf("%s: still refused after an hour: %v", tt.name, err)
		}
	}
}

func TestCache(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	get := func(binding string) string {
		t.Helper()
		v, ok, err := s.Get(t.Context(), binding)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return "none"
		}
		return string(v)
	}
	put := func(binding, value string, ttl time.Duration) {
		t.Helper()
		if err := s.Put(t.Context(), binding, []byte(value), w.wall.Add(ttl)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(binding, value string) {
		t.Helper()
		if got := get(binding); got != value {
			t.Errorf("%q: %q, want %q", binding, got, value)
		}
	}
	want("a", "none")
	put("a", "1", time.Minute)
	put("", "empty binding", time.Minute)
	put("past", "x", -time.Second)
	put("now", "x", 0)
	want("a", "1")
	want("", "empty binding")
	want("past", "none")
	want("now", "none")
	put("a", "2", 2*time.Minute)
	w.pass(time.Minute)
	want("a", "2")
	want("", "none")
	w.wall = w.wall.Add(-time.Hour) // setting the clock back keeps nothing alive
	w.pass(time.Minute)
	want("a", "none")
	put("b", "3", time.Minute)
	w.wall = w.wall.Add(time.Hour)
	want("b", "none")
	put("long", "x", 90*24*time.Hour)
	w.pass(maxCacheLifetime)
	want("long", "none")
	if err := s.Put(t.Context(), "big", make([]byte, MaxCachedValueBytes+1), w.wall.Add(time.Hour)); !errors.Is(err, ErrCachedValueLarge) {
		t.Errorf("too large: %v", err)
	}
	put("big", string(make([]byte, MaxCachedValueBytes)), time.Hour)
	put("c", "4", time.Hour)
	if err := s.ClearCache(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("c", "none")
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{})
	if err != nil || st.CachedEntryCount != 0 {
		t.Errorf("%d entries left, %v", st.CachedEntryCount, err)
	}
}

func TestTakeOnce(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	if err := s.Put(t.Context(), "a", []byte("yes"), w.wall.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	got := make(chan bool)
	for range 8 {
		go func() {
			v, ok, err := s.GetAndRemove(t.Context(), "a")
			got <- ok && err == nil && bytes.Equal(v, []byte("yes"))
		}()
	}
	n := 0
	for range 8 {
		if <-got {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d got the answer", n)
	}
}

func TestCacheBounded(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	count := func() int {
		st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{})
		if err != nil {
			t.Fatal(err)
		}
		return st.CachedEntryCount
	}
	for i := range maxCachedEntries + 20 {
		if err := s.Put(t.Context(), fmt.Sprint(i), nil, w.wall.Add(time.Hour+time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != maxCachedEntries {
		t.Errorf("%d entries, want %d", n, maxCachedEntries)
	}
	for i, want := range map[int]bool{0: false, 19: false, 20: true, maxCachedEntries + 19: true} {
		if _, ok, err := s.Get(t.Context(), fmt.Sprint(i)); ok != want || err != nil {
			t.Errorf("entry %d: %v, %v; want %v", i, ok, err, want)
		}
	}
	w.pass(time.Hour + 100*time.Second)
	if err := s.Put(t.Context(), "new", nil, w.wall.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != maxCachedEntries-80 {
		t.Errorf("%d entries after the expired ones made room, want %d", n, maxCachedEntries-80)
	}
}

func TestStatus(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	limits := EvaluationAndApprovalLimits{MaxEvaluatorCallsPerMinute: 60, MaxEvaluationsPerDay: 100, MaxApprovalRequestsPerHour: 10}
	if _, _, err := s.ChargeRateTokenAndEvaluation(t.Context(), 60, 100); err != nil {
		t.Fatal(err)
	}
	if err := s.ChargeApprovalRequest(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a", nil, w.wall.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.AdvanceAuditHead(t.Context(), func(uint64, string) (uint64, string, error) { return 7, "abc", nil }); err != nil {
		t.Fatal(err)
	}
	w.pass(500 * time.Millisecond)
	got, err := s.Status(t.Context(), limits)
	if err != nil {
		t.Fatal(err)
	}
	want := StoreStatus{
		EvaluationsUsed: 1, MaxEvaluationsPerDay: 100, BudgetResetsAt: time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC),
		AvailableEvaluatorCalls: 59.5, MaxEvaluatorCallsPerMinute: 60, ApprovalsLeft: 9, MaxApprovalRequestsPerHour: 10, CachedEntryCount: 1,
		AuditEntryCount: 7, AuditHeadHash: "abc",
	}
	if n := len(got.HourlyEvaluations); n != 24 || got.HourlyEvaluations[23] != (HourlyEvaluationCount{noon, 1}) || got.HourlyEvaluations[0] != (HourlyEvaluationCount{noon.Add(-23 * time.Hour), 0}) {
		t.Errorf("by hour: %v", got.HourlyEvaluations)
	}
	got.HourlyEvaluations = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	w.wall = w.wall.Add(-72 * time.Hour) // said on the clock that people see
	if got, err = s.Status(t.Context(), limits); err != nil || !got.BudgetResetsAt.Equal(want.BudgetResetsAt.Add(-72*time.Hour)) {
		t.Errorf("resets %v, %v", got.BudgetResetsAt, err)
	}
}
