package session

import (
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/state"
)

// TestOtherProcess: what another process adds is seen, however often the session was
// read before, and what one caller does with a session is not seen by the next.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	opened := func() *Store {
		file, err := state.Open(dir, state.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return NewStore(file, Options{Clock: clock, Keep: time.Hour, MaxFiles: 10, MaxDenials: 10})
	}
	one, other, key := opened(), opened(), Key{User: "u"}
	all := []effect.Label{effect.LabelSecret, effect.LabelPrivate, effect.LabelUntrusted}
	for i, label := range all {
		for range 3 {
			if got := one.Load(t.Context(), key, "", "").Labels(); len(got) != i {
				t.Fatalf("labels %q, want %d", got, i)
			}
		}
		d := Delta{Labels: []Labelled{{Label: label, By: "test"}}}
		if err := other.Add(t.Context(), other.Load(t.Context(), key, "", ""), &d); err != nil {
			t.Fatal(err)
		}
	}
	a, b := one.Load(t.Context(), key, "", ""), one.Load(t.Context(), key, "", "")
	if len(one.cache.sessions) != 1 {
		t.Errorf("%d sessions are kept", len(one.cache.sessions))
	}
	if a.Origin("/x"); a == b || len(b.asked) != 0 {
		t.Error("two callers share a session")
	}
	if _, err := other.Clear(t.Context(), func(*Record) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := one.Load(t.Context(), key, "", "").Labels(); len(got) != 0 {
		t.Errorf("labels %q of a session that was cleared", got)
	}
}
