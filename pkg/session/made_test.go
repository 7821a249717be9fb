package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
)

// An untouched disk says that nothing was changed outside the session.
type untouched struct{ from, to time.Time }

func (*untouched) Identify(string) (id effect.FileIdentity, ok bool) { return id, false }
func (*untouched) PossiblyPresent([]string) []string                 { return nil }
func (u *untouched) AllFilesChangedBetween(_ string, from, to time.Time) bool {
	u.from, u.to = from, to
	return true
}

// TestMade holds that a session knows what it has made, below a folder, too, and no other
// session does.
func TestMade(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, w *world, s *Store) {
		k := Key{"host", "a", "me"}
		load := func(k Key, from Lineage) (*Session, *untouched) {
			memory, disk := s.Load(t.Context(), k, from, ""), &untouched{}
			memory.EnableFileIdentification(disk)
			return memory, disk
		}
		add := func(paths ...string) {
			memory, _ := load(k, Lineage{})
			if err := s.Add(t.Context(), memory, &RecordDelta{CreatedPaths: paths}); err != nil {
				t.Fatal(err)
			}
		}
		add("/work/app/d", "/work/app/f")
		w.now = w.now.Add(time.Hour)
		add("/work/app/d/more")
		memory, disk := load(k, Lineage{})
		for path, want := range map[string]bool{"/work/app/d": true, "/work/app/d/x/y": true, "/work/app/f": true, "/work/app/ff": false, "/work/app": false} {
			if memory.HasCreated(path) != want {
				t.Errorf("%s: made: %v", path, !want)
			}
		}
		memory.hasCreatedByPath = nil
		memory.HasCreated("/work/app/d")
		if got := disk.to.Sub(disk.from); got < time.Hour || got > 2*time.Hour {
			t.Errorf("the folder may have changed within %v", got)
		}
		for _, other := range []Key{{"host", "b", "me"}, {"other", "a", "me"}, {User: "me"}} {
			if memory, _ := load(other, Lineage{ParentSessionID: "a"}); memory.HasCreated("/work/app/f") {
				t.Errorf("%v has made the file", other)
			}
		}
		for i := range maxCreatedPaths + 10 {
			add(fmt.Sprint("/work/app/many/", i))
		}
		if memory, _ := load(k, Lineage{}); memory.HasCreated("/work/app/f") || len(memory.record.CreatedPaths) != maxCreatedPaths {
			t.Errorf("%d are kept", len(memory.record.CreatedPaths))
		}
	})
}
