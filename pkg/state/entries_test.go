package state

import (
	"fmt"
	"testing"
	"time"
)

func TestEntriesAndDrop(t *testing.T) {
	w := newWorld()
	s := openStore(t, t.TempDir(), w.options(true))
	keys := func(want int) (list []string) {
		t.Helper()
		entries, err := s.CachedEntries(t.Context())
		if err != nil || len(entries) != want {
			t.Fatalf("%d entries, %v; want %d", len(entries), err, want)
		}
		for _, e := range entries {
			list = append(list, e.KeyHashHex)
			if len(e.KeyHashHex) != 64 || len(e.Value) != 1 {
				t.Errorf("entry %+v", e)
			}
		}
		return list
	}
	keys(0)
	for i := range 3 {
		if err := s.Put(t.Context(), fmt.Sprint(i), []byte{byte(i)}, w.wall.Add(time.Duration(i+1)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	list := keys(3)
	if err := s.DropCached(t.Context(), []string{"x", list[0][:12]}); err != nil {
		t.Fatal(err)
	}
	if got := keys(2); got[0] != list[1] || got[1] != list[2] {
		t.Errorf("left: %q of %q", got, list)
	}
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{})
	if err != nil || st.CachedEntryCount != 2 {
		t.Errorf("%d counted, %v", st.CachedEntryCount, err)
	}
	w.pass(time.Hour)
	keys(0)
}
