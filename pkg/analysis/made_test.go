//go:build unix

package analysis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/shell"
)

// TestMakes holds that only what is not there yet counts as made.
func TestMakes(t *testing.T) {
	t.Parallel()
	top := repository(t)
	an, err := New(Options{ShellAnalyzer: shell.Analyze, CWD: top, Home: "/home/me", WorkspaceRoots: []string{top}, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"echo x > fresh.md":            "fresh.md",
		"mkdir -p d/e && echo > d/e/f": "d",
		"echo x > new.md":              "",
		"echo x >> new.md":             "",
		"mv new.md other.md":           "", // the user's file under another name
		"mkdir q && mv new.md q/":      "q",
		"echo x > /etc/nothing":        "",
		`echo x > "$X"`:                "",
	} {
		var got []string
		for _, p := range an.AnalyzeAction(act("execute_command", map[string]any{"command": command})).CreatedPaths() {
			rel, _ := filepath.Rel(top, p)
			got = append(got, rel)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: made %q, want %q", command, got, want)
		}
	}
}

// TestIntact holds that what is in a folder counts as unchanged only if all of it was
// written in the time that is asked about: a file of the user's that was moved there is older.
func TestIntact(t *testing.T) {
	t.Parallel()
	top := repository(t)
	an, err := New(Options{ShellAnalyzer: shell.Analyze, CWD: top, WorkspaceRoots: []string{top}, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	from, to := now.Add(-time.Minute), now.Add(time.Minute)
	ask := func(name string) bool {
		return an.NewFileIdentityResolver().AllFilesChangedBetween(top+"/"+name, from, to)
	}
	if !ask("src") || !ask("nothing") || !ask("new.md") {
		t.Error("what was just written is not intact")
	}
	for _, at := range []time.Time{now.Add(-time.Hour), now.Add(time.Hour)} {
		if err := os.Chtimes(top+"/src/c.go", at, at); err != nil {
			t.Fatal(err)
		}
		if ask("src") || ask("src/c.go") {
			t.Errorf("what was changed %v is intact", at)
		}
	}
	if err := os.Symlink(top+"/docs", top+"/link"); err != nil {
		t.Fatal(err)
	}
	if ask("link/x.txt") {
		t.Error("what lies behind a link is intact")
	}
}
