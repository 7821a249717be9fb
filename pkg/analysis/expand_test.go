//go:build unix

package analysis

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// TestExpand holds that the names which a pattern matches are found, with what links lead
// to, and that nothing is said to be all of them if that is not known.
func TestExpand(t *testing.T) {
	t.Parallel()
	top := repository(t)
	home := filepath.Dir(top) + "/home"
	put(t, home+"/.ssh/id_rsa", "x")
	put(t, top+"/.env", "x")
	put(t, top+"/deep/a/b/id_rsa", "x")
	for link, target := range map[string]string{"k": home + "/.ssh", "src2/loop": ".", "docs/key.md": home + "/.ssh/id_rsa", "docs/broken.md": "/nowhere"} {
		if err := os.Symlink(target, top+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	many := top + "/many"
	for i := range maxExpandedPaths + 1 {
		put(t, fmt.Sprintf("%s/%d.json", many, i), "")
	}
	an, err := New(Options{ShellAnalyzer: shell.Analyze, CWD: top, Home: home, WorkspaceRoots: []string{top}, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"cat *.md":                               "all a.md b.md new.md",
		"cat src/*":                              "all src/c.go",
		"cat s*/*.go":                            "all src/c.go src2/d.go",
		"cat *.nothing":                          "all",
		"cat nothing/*":                          "all",
		"cat **/id_rsa":                          "all deep/a/b/id_rsa",
		"find . -name id_rsa -exec cat {} +":     "all deep/a/b/id_rsa",
		"cat k/*":                                "all ../home/.ssh/id_rsa",
		"cat */id_rsa":                           "all ../home/.ssh/id_rsa",
		"cat docs/*.md":                          "all docs/broken.md docs/key.md ../home/.ssh/id_rsa",
		"cat src2/loop/loop/loop/*.go":           "all src2/d.go",
		"cat *env":                               "all (.env)",
		"cat .e*":                                "all .env",
		"cat many/*":                             "some",
		`cat "$X"/id_rsa`:                        "some",
		"echo x > z.md; cat *.md":                "some a.md b.md new.md",
		"ln -s ~/.ssh q; cat q/*":                "some",
		"mkdir q; mv ~/.ssh/id_rsa q/a; cat q/*": "some",
		"frobnicate; cat src/*":                  "some src/c.go",
		"git checkout old; cat src/*":            "some src/c.go",
	} {
		c := an.AnalyzeAction(act("execute_command", map[string]any{"command": command}))
		var x GlobExpansion
		for i := range c.Effects {
			if e := &c.Effects[i]; e.Kind == effect.ReadFile && e.PathIsPattern && strings.HasPrefix(e.Path, top) {
				x = c.ExpandPathGlob(e)
			}
		}
		got := map[bool]string{true: "all", false: "some"}[x.Complete]
		slices.Sort(x.Paths)
		for _, p := range x.Paths[:min(len(x.Paths), 9)] {
			rel, _ := filepath.Rel(top, p)
			if !strings.HasPrefix(p, many) {
				got += " " + rel
			}
		}
		for _, p := range x.DotFilesAmongPaths {
			rel, _ := filepath.Rel(top, p)
			got += " (" + rel + ")"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

// TestExpandUnreadable holds that a folder that cannot be read may hold anything.
func TestExpandUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads every folder")
	}
	top := repository(t)
	if err := os.Chmod(top+"/src", 0o111); err != nil {
		t.Fatal(err)
	}
	an, err := New(Options{ShellAnalyzer: shell.Analyze, CWD: top, Home: "/home/me", WorkspaceRoots: []string{top}, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	c := an.AnalyzeAction(act("execute_command", map[string]any{"command": "cat src/*.go"}))
	if x := c.ExpandPathGlob(&c.Effects[len(c.Effects)-1]); x.Complete {
		t.Errorf("all of an unreadable folder is known: %v", x)
	}
}
