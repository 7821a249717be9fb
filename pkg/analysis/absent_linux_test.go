package analysis

import (
	"os"
	"path/filepath"
	"testing"
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
			st, ok := stampOf(folder)
			if !ok {
				t.Fatal("no stamp")
			}
			var a absences
			a.of = map[string]absence{folder + "/x/y": {folder, st}}
			if !a.still(folder+"/x/y", stamps{}) {
				t.Error("forgotten though nothing changed")
			}
			if err := change(folder); err != nil {
				t.Fatal(err)
			}
			if a.still(folder+"/x/y", stamps{}) {
				t.Error("still taken as absent")
			}
		})
	}
}

// TestAbsentAtOnce holds that nothing is kept of a folder that changed just now: a
// file that comes in the same tick of the clock does not show.
func TestAbsentAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	f := newFiles()
	if _, ok := f.identify(file, folders{}, stamps{}); ok || len(f.absent.of) != 0 {
		t.Fatalf("identify says %v and keeps %v", ok, f.absent.of)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.identify(file, folders{}, stamps{}); !ok {
		t.Error("a file that is there is not identified")
	}
}
