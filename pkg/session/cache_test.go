package session

import (
	"context"
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
		return NewStore(file, Options{Clock: clock, SessionRetention: time.Hour, MaxFileRecordsPerUser: 10, MaxDenials: 10})
	}
	one, other, key := opened(), opened(), Key{User: "u"}
	all := []effect.TaintLabel{effect.LabelFromCredentialLocation, effect.LabelPersonalData, effect.LabelUntrusted}
	for i, label := range all {
		for range 3 {
			if got := one.Load(t.Context(), key, Lineage{}, "").Labels(); len(got) != i {
				t.Fatalf("labels %q, want %d", got, i)
			}
		}
		d := RecordDelta{Labels: []SessionTaintLabel{{Label: label, EffectOrActionType: "test"}}}
		if err := other.Add(t.Context(), other.Load(t.Context(), key, Lineage{}, ""), &d); err != nil {
			t.Fatal(err)
		}
	}
	a, b := one.Load(t.Context(), key, Lineage{}, ""), one.Load(t.Context(), key, Lineage{}, "")
	if len(one.cache.sessions) != 1 {
		t.Errorf("%d sessions are kept", len(one.cache.sessions))
	}
	if a.FileOriginLabels("/x"); a == b || len(b.originLabelBitsByPath) != 0 {
		t.Error("two callers share a session")
	}
	if _, err := other.Clear(t.Context(), func(*Record) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := one.Load(t.Context(), key, Lineage{}, "").Labels(); len(got) != 0 {
		t.Errorf("labels %q of a session that was cleared", got)
	}
}

// TestInMemory: without a state file a session is read again only after it has changed.
func TestInMemory(t *testing.T) {
	t.Parallel()
	s := NewStore(nil, Options{Clock: func() time.Time { return time.Unix(1_800_000_000, 0) }, SessionRetention: time.Hour, MaxFileRecordsPerUser: 10, MaxDenials: 10})
	kept := func(label effect.TaintLabel) []effect.TaintLabel {
		t.Helper()
		d := RecordDelta{Labels: []SessionTaintLabel{{Label: label, EffectOrActionType: "test"}}}
		if err := s.Add(t.Context(), s.Load(t.Context(), Key{}, Lineage{}, ""), &d); err != nil {
			t.Fatal(err)
		}
		s.Load(t.Context(), Key{}, Lineage{}, "")
		read := false
		s.storage = watched{s.storage, &read}
		got := s.Load(t.Context(), Key{}, Lineage{}, "").Labels()
		if read {
			t.Error("a session that is known was read again")
		}
		return got
	}
	for i, label := range []effect.TaintLabel{effect.LabelFromCredentialLocation, effect.LabelPersonalData, effect.LabelUntrusted} {
		if got := kept(label); len(got) != i+1 {
			t.Errorf("labels %q, want %d", got, i+1)
		}
	}
	if _, err := s.Clear(t.Context(), func(*Record) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := s.Load(t.Context(), Key{}, Lineage{}, "").Labels(); len(got) != 0 {
		t.Errorf("labels %q of a session that was cleared", got)
	}
}

// watched notes whether a shelf was read.
type watched struct {
	storage
	read *bool
}

func (w watched) runReadOnly(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error {
	*w.read = true
	return w.storage.runReadOnly(ctx, fn, wants...)
}
