package analysis

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestAbsent holds that a file which was not there is looked for again once anything
// has changed in the folder that it would be in, or the folder is another.
func TestAbsent(t *testing.T) {
	for name, change := range map[string]func(folder string) error{
		"the file is put there": func(folder string) error { return os.WriteFile(folder+"/x", []byte("x"), 0o600) },
		"a folder of its name is renamed to": func(folder string) error {
			return os.Rename(folder+"/other", folder+"/x")
		},
		"the folder is another": func(folder string) error {
			if err := os.Rename(folder, folder+".old"); err != nil {
				return err
			}
			return os.Mkdir(folder, 0o700)
		},
		"the folder is a link": func(folder string) error {
			if err := os.Rename(folder, folder+".old"); err != nil {
				return err
			}
			return os.Symlink(folder+".old", folder)
		},
		"the folder is gone": func(folder string) error { return os.RemoveAll(folder) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "f")
			if err := os.MkdirAll(folder+"/other", 0o700); err != nil {
				t.Fatal(err)
			}
			st, ok := folderStampOf(folder)
			if !ok {
				t.Fatal("no stamp")
			}
			var a missingFileCache
			a.byPath = map[string]fileAbsenceEvidence{folder + "/x/y": {folder, st}}
			if !a.stillAbsent(folder+"/x/y", folderStampCache{}) {
				t.Error("forgotten though nothing changed")
			}
			list := []string{folder + "/x/y"}
			for range 2 {
				if got := a.possiblyPresent(list, folderStampCache{}); got != nil {
					t.Errorf("%q is forgotten though nothing changed", got)
				}
			}
			if got := a.possiblyPresent([]string{folder + "/x/y", folder + "/z"}, folderStampCache{}); !slices.Equal(got, []string{folder + "/z"}) {
				t.Errorf("of a file that was looked for and one that was not, %q may be there", got)
			}
			a.possiblyPresent(list, folderStampCache{})
			if err := change(folder); err != nil {
				t.Fatal(err)
			}
			if a.stillAbsent(folder+"/x/y", folderStampCache{}) {
				t.Error("still taken as absent")
			}
			if got := a.possiblyPresent(list, folderStampCache{}); !slices.Equal(got, list) {
				t.Error("in a list, still taken as absent")
			}
		})
	}
}

// TestSettled holds that nothing is kept of a folder that changed just now: a file that
// comes in the same tick of the clock does not show.
func TestSettled(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	for _, tt := range []struct {
		since time.Duration
		want  bool
	}{
		{0, false},
		{9*time.Millisecond + 1, false}, // the longest tick of Linux
		{101*time.Millisecond + 1, true},
		{time.Second, false}, // whole seconds
		{2 * time.Second, true},
		{-time.Hour, false}, // a clock that was set back
	} {
		if got := (folderStamp{changedAtNanos: now.Add(-tt.since).UnixNano()}).isOlderThanClockTick(tt.since); got != tt.want {
			t.Errorf("changed %v ago: settled %v", tt.since, got)
		}
	}
}
