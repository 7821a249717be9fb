package shell

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// Deleting a place deletes what the text moved there, whatever its name says.
func TestLosesWhatWasMoved(t *testing.T) {
	t.Parallel()
	for text, loses := range map[string]bool{
		"mv src dist && rm -rf dist":                        true,
		"mv src build/ && rm -rf build":                     true,
		"mv src build/ && rm -rf build/src/x":               true,
		"mkdir -p /tmp/x; mv src /tmp/x; rm -rf /tmp/x":     true,
		"mv src /tmp/x; rm -rf /tmp/*":                      true,
		"mv src a; mv a b; mv b dist; rm -rf dist":          true,
		"mv -t dist src; find dist -delete":                 true,
		"mv src dist; cd dist; rm -rf .":                    true,
		"git mv src dist; rm -rf dist":                      true,
		"f() { mv src dist; }; f; rm -rf dist":              true,
		"for d in src; do mv $d target; done; rm -r target": true,

		"mv src lib && rm -rf dist":       false,
		"mv dist/a src/ && rm -rf dist":   false,
		"rm -rf dist; mv src dist":        false,
		"cp -r src dist && rm -rf dist":   false,
		"ssh h 'mv src dist'; rm -r dist": false,
		"mv src dist; ls dist":            false,
	} {
		got := slices.ContainsFunc(Analyze(text, workspace("src")).Effects, func(e effect.Effect) bool {
			return e.KindForPolicies() == effect.DeleteFile && e.Path == "/work/app/src"
		})
		if got != loses {
			t.Errorf("%s: src is deleted: %v, want %v\n%+v", text, got, loses, Analyze(text, workspace("src")).Effects)
		}
	}
}

// TestMovedOntoOne looks at files that are moved one by one to a place that is no folder.
func TestMovedOntoOne(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt", "there/x", "file"} {
		if err := os.MkdirAll(filepath.Dir(dir+"/"+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	place := &effect.PathContext{CWD: dir, Home: "/home/me", WorkspaceRoots: []string{dir}, ReadScript: os.ReadFile}
	for text, want := range map[string]bool{
		`for f in *.txt; do mv "$f" archive; done`:                 true,
		`for f in *.txt; do mv "$f" file; done`:                    true,
		`mkdir archive; for f in *.txt; do mv "$f" archive; done`:  false,
		`mkdir -p archive && for f in *; do mv "$f" archive; done`: false,
		`for f in *.txt; do mv "$f" there; done`:                   false,
		`for f in *.txt; do mv "$f" "$f.bak"; done`:                false,
		`mv a.txt archive`: false,
		`cp -r there archive; for f in *.txt; do mv "$f" archive; done`: false,
	} {
		got := slices.ContainsFunc(Analyze(text, place).Effects, func(e effect.Effect) bool { return e.Kind == effect.DestroyData })
		if got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
