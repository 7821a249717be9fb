package state

import (
	"errors"
	"testing"
	"time"
)

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Skip(err)
	}
	return loc
}

// exhaust uses up a budget of 2.
func exhaust(t *testing.T, s *Store) {
	t.Helper()
	for range 2 {
		if _, err := s.ChargeEvaluation(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ChargeEvaluation(t.Context(), 2); !errors.Is(err, ErrBudgetExhausted) {
		t.Fatalf("error %v, want %v", err, ErrBudgetExhausted)
	}
}

func free(t *testing.T, s *Store) bool {
	t.Helper()
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: 2})
	if err != nil {
		t.Fatal(err)
	}
	return st.EvaluationsUsed < st.MaxEvaluationsPerDay
}

func TestBudget(t *testing.T) {
	s := openStore(t, t.TempDir(), newWorld().options(true))
	for want := 1; want <= 3; want++ {
		if used, err := s.ChargeEvaluation(t.Context(), 3); used != want || err != nil {
			t.Errorf("used %d, %v; want %d", used, err, want)
		}
	}
	if used, err := s.ChargeEvaluation(t.Context(), 3); used != 3 || !errors.Is(err, ErrBudgetExhausted) {
		t.Errorf("used %d, error %v", used, err)
	}
	if _, err := s.ChargeEvaluation(t.Context(), 4); err != nil {
		t.Errorf("a raised budget: %v", err)
	}
	for _, budget := range []int{0, -1} {
		if _, err := s.ChargeEvaluation(t.Context(), budget); !errors.Is(err, ErrBudgetExhausted) {
			t.Errorf("budget %d: error %v", budget, err)
		}
	}
}

// A budget survives the process, and refills at midnight, not before.
func TestBudgetRefills(t *testing.T) {
	for _, steady := range []bool{false, true} {
		w := newWorld()
		dir := t.TempDir()
		s := openStore(t, dir, w.options(steady))
		exhaust(t, s)
		w.pass(12*time.Hour - time.Nanosecond)
		s = openStore(t, dir, w.options(steady))
		if free(t, s) {
			t.Errorf("steady %v: refilled before midnight", steady)
		}
		w.pass(time.Nanosecond)
		if !free(t, s) {
			t.Errorf("steady %v: not refilled at midnight", steady)
		}
		exhaust(t, s)
		w.pass(23 * time.Hour)
		if free(t, s) {
			t.Errorf("steady %v: refilled twice in a day", steady)
		}
		w.pass(5*24*time.Hour + 14*time.Hour)
		exhaust(t, s) // days of rest do not add up
	}
}

// What someone does to the clocks after the budget is exhausted, and whether it
// may then have refilled. It is noon at first, and due at midnight.
func TestBudgetClockChanges(t *testing.T) {
	type step struct {
		set  time.Duration // of the wall clock alone
		pass time.Duration // of both
		boot bool
		free bool
	}
	const day = 24 * time.Hour
	tests := []struct {
		name   string
		steady bool
		steps  []step
	}{
		{"set back an hour", true, []step{{set: -time.Hour}, {pass: 11 * time.Hour}, {pass: time.Hour, free: true}}},
		{"set back an hour, no uptime", false, []step{{set: -time.Hour}, {pass: 11 * time.Hour}, {pass: time.Hour, free: true}}},
		{"set back to just before an earlier midnight", true, []step{{set: -day - 12*time.Hour - time.Minute}, {pass: 2 * time.Minute}, {pass: 12 * time.Hour, free: true}}},
		{"the same, no uptime", false, []step{{set: -day - 12*time.Hour - time.Minute}, {pass: 2 * time.Minute}, {pass: 12 * time.Hour, free: true}}},
		{"set back while time passes", true, []step{{set: -2 * day, pass: 12 * time.Hour, free: true}}},
		{"set forward a day", true, []step{{set: day}, {pass: time.Minute}, {pass: 12 * time.Hour, free: true}}},
		{"forward and back again and again", true, []step{{set: day}, {set: -day}, {set: day}, {set: -day}, {set: 3 * day}}},
		{"years forward, then right again", true, []step{{set: 4 * 365 * day}, {set: -4 * 365 * day}, {pass: 13 * time.Hour, free: true}}},
		{"years back, then right again", true, []step{{set: -4 * 365 * day}, {set: 4 * 365 * day}, {pass: 13 * time.Hour, free: true}}},
		{"years back and stays, no uptime", false, []step{{set: -40 * 365 * day}, {pass: 11 * time.Hour}, {pass: time.Hour, free: true}}},
		{"back before 1970", false, []step{{set: -100 * 365 * day}, {pass: time.Hour}, {set: 0}}},
		{"after another boot", true, []step{{pass: time.Hour, boot: true}, {pass: 12 * time.Hour, free: true}}},
		{"after a boot with a clock set back", true, []step{{set: -2 * day, boot: true}, {pass: 11 * time.Hour}, {pass: 2 * time.Hour, free: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			s := openStore(t, t.TempDir(), w.options(tt.steady))
			exhaust(t, s)
			for i, st := range tt.steps {
				w.pass(st.pass)
				w.wall = w.wall.Add(st.set)
				if st.boot {
					w.boot, w.up = "b2", time.Minute
				}
				// Every look is a transaction that may keep what it saw.
				if err := s.TakeRateToken(t.Context(), 1000); err != nil {
					t.Fatal(err)
				}
				if got := free(t, s); got != st.free {
					t.Fatalf("step %d: free %v, want %v", i, got, st.free)
				}
			}
		})
	}
}

// Without a clock that cannot be set, a wrong year is believed once; when it is
// put right no one is locked out and nothing refills early.
func TestBudgetWrongYearWithoutUptime(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(false))
	exhaust(t, s)
	w.wall = w.wall.AddDate(10, 0, 0)
	exhaust(t, s)
	w.wall = noon
	if free(t, s) {
		t.Fatal("refilled by setting the clock back")
	}
	w.pass(48 * time.Hour)
	if !free(t, s) {
		t.Error("locked out for more than two days")
	}
}

// A process that claims to be, each time, where it is nearly midnight, must not
// see a new day each time.
func TestBudgetTimeZones(t *testing.T) {
	for _, steady := range []bool{false, true} {
		w := newWorld()
		dir := t.TempDir()
		refills := 0
		for i := range 2 * 24 * 5 { // five days in half hours
			_, m, _ := w.wall.Clock()
			for _, offset := range []int{23 - w.wall.Hour(), -1 - w.wall.Hour(), 0} {
				o := w.options(steady)
				o.BudgetResetLocation = time.FixedZone("", offset*3600+(45-m)*60) // it is 23:45
				s := openStore(t, dir, o)
				if i == 0 && refills == 0 || free(t, s) {
					exhaust(t, s)
					refills++
				}
				s.Close()
			}
			w.pass(30 * time.Minute)
		}
		if refills > 7 { // the first, one midnight, and one in each 23 hours
			t.Errorf("steady %v: %d refills in five days", steady, refills)
		}
	}
}

func TestNextMidnight(t *testing.T) {
	tests := []struct{ zone, at, want string }{
		{"UTC", "2026-03-10T12:00:00Z", "2026-03-11T00:00:00Z"},
		{"UTC", "2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z"},
		{"UTC", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"},
		{"Europe/Berlin", "2026-03-29T00:30:00+01:00", "2026-03-30T00:00:00+02:00"},     // 23 hours
		{"Europe/Berlin", "2026-10-25T00:30:00+02:00", "2026-10-26T00:00:00+01:00"},     // 25 hours
		{"America/Sao_Paulo", "2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00"}, // there is no 0:00
		{"America/Sao_Paulo", "2018-02-17T23:30:00-02:00", "2018-02-18T00:00:00-03:00"}, // 23:30 comes twice
		{"America/Sao_Paulo", "2018-02-17T23:30:00-03:00", "2018-02-18T00:00:00-03:00"},
		{"Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"}, // no 30 December
		{"Australia/Lord_Howe", "2026-10-04T00:10:00+10:30", "2026-10-05T00:00:00+11:00"},
		{"Africa/Cairo", "2026-04-23T20:00:00+02:00", "2026-04-24T01:00:00+03:00"},
	}
	for _, tt := range tests {
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		want, err := time.Parse(time.RFC3339, tt.want)
		if err != nil {
			t.Fatal(err)
		}
		if got := nextMidnight(at, location(t, tt.zone)); !got.Equal(want) {
			t.Errorf("%s: after %s comes %s, want %s", tt.zone, tt.at, got.Format(time.RFC3339), tt.want)
		}
	}
}

// On days with clock changes the budget of each local day is granted once.
func TestBudgetDaylightSaving(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/Sao_Paulo", "America/Havana"} {
		loc := location(t, zone)
		w := newWorld()
		w.wall = time.Date(2018, 1, 1, 12, 0, 0, 0, loc)
		o := w.options(true)
		o.BudgetResetLocation = loc
		s := openStore(t, t.TempDir(), o)
		exhaust(t, s)
		y, m, d := w.wall.In(loc).Date()
		for w.wall.In(loc).Year() == 2018 {
			w.pass(time.Hour)
			ny, nm, nd := w.wall.In(loc).Date()
			fresh := ny != y || nm != m || nd != d
			if got := free(t, s); got != fresh {
				t.Fatalf("%s: %v: free %v", zone, w.wall.In(loc), got)
			}
			if fresh {
				exhaust(t, s)
			}
			y, m, d = ny, nm, nd
		}
	}
}

func TestAdmit(t *testing.T) {
	s := openStore(t, t.TempDir(), newWorld().options(true))
	steps := []struct {
		rate, budget int
		want         error
	}{
		{1, 5, nil},
		{1, 5, ErrEvaluatorRateExceeded}, // costs no budget
		{2, 2, nil},
		{3, 2, ErrBudgetExhausted}, // costs no token
		{3, 3, nil},
		{3, 9, ErrEvaluatorRateExceeded},
	}
	for i, st := range steps {
		if _, _, err := s.ChargeRateTokenAndEvaluation(t.Context(), st.rate, st.budget); !errors.Is(err, st.want) {
			t.Fatalf("step %d: %v, want %v", i, err, st.want)
		}
	}
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluatorCallsPerMinute: 3, MaxEvaluationsPerDay: 9})
	if err != nil || st.EvaluationsUsed != 3 || st.AvailableEvaluatorCalls != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}
