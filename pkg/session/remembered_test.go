package session

import (
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/state"
)

// TestDraftReads: a stream reads of the state file what has changed since, and nothing
// again, however much it adds itself; what another process adds is seen at once.
func TestDraftReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	opened := func() *Store {
		file, err := state.Open(dir, state.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return NewStore(file, Options{Clock: clock, SessionRetention: time.Hour, MaxFileRecordsPerUser: 100, MaxDenials: 10})
	}
	one, other, key := opened(), opened(), Key{User: "u"}
	read := false
	one.storage = watched{one.storage, &read}
	draft := one.NewMemoryOverlay()
	add := func(s *Store, d RecordDelta) {
		t.Helper()
		if err := s.Add(t.Context(), s.Load(t.Context(), key, Lineage{}, ""), &d); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) RecordDelta {
		return RecordDelta{LabelledFiles: []effect.LabelledFile{{Path: "/work/" + name, Labels: []effect.TaintLabel{effect.LabelFromNetwork}}}}
	}
	has := func(name string) bool {
		return len(draft.Load(t.Context(), key, Lineage{}, "").FileOriginLabels("/work/"+name)) > 0
	}
	add(other, file("first"))
	if add(draft, file("own")); !read || !has("first") || !has("own") {
		t.Error("the stream does not know what is there and what it added")
	}
	read = false
	for _, name := range []string{"a", "b", "c"} {
		if add(draft, file(name)); !has(name) || !has("own") || !has("first") {
			t.Errorf("%s, or what came before it, is not known", name)
		}
	}
	if read {
		t.Error("what has not changed was read again")
	}
	if add(other, file("second")); !has("second") || !has("a") || !read {
		t.Error("what another process added is not known")
	}
	if _, err := other.Clear(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if has("first") || !has("own") {
		t.Error("after all was forgotten the stream knows more than what it added")
	}
}

// TestDraftRuns: what a run writes counts once, also where it had to run again on what is
// there.
func TestDraftRuns(t *testing.T) {
	t.Parallel()
	o := NewStore(nil, Options{Clock: time.Now, SessionRetention: time.Hour}).NewMemoryOverlay().storage.(*overlayStorage)
	group, runs := []byte("g"), 0
	count := func() (n int) {
		err := o.runWriting(t.Context(), func(sh storageTx) error {
			runs++
			n = len(sh.Get(group, []byte("list")))
			sh.Get([]byte("other"), []byte{byte(runs)}) // not known the first time
			if err := sh.Put(group, []byte("list"), make([]byte, n+1)); err != nil {
				return err
			}
			return sh.DropGroup([]byte("gone"))
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range 3 {
		if n := count(); n != i {
			t.Errorf("change %d finds %d", i, n)
		}
	}
	if runs != 6 {
		t.Errorf("%d runs, want 6: one on what is known and one on what is there, each", runs)
	}
}
