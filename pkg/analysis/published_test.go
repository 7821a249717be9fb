//go:build unix

package analysis

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/committed"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// TestPublished looks at credentials that others would read: in text for people, in what git takes up,
// in source. Files that git leaves out, examples and tests are no such place.
func TestPublished(t *testing.T) {
	t.Parallel()
	top := repository(t)
	token := "ghp_16C7e42F292c6912E7710c838347" + "Ae178B4a"
	for name, text := range map[string]string{
		".gitignore": "*.local\nbuild/\n", "deploy/.gitignore": "keys/\n",
		"deploy/run.sh": "TOKEN=" + token + "\n", "deploy/keys/a.txt": token, "x.local": token, "build/out.js": token, "note.txt": "say " + token,
		"plain/a.txt": "nothing\n", "server/.env": "A=1\n",
	} {
		put(t, top+"/"+name, text)
	}
	an, err := New(Options{ShellAnalyzer: shell.Analyze, CWD: top, Home: "/home/me", WorkspaceRoots: []string{top}, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	handsOn := func(c *ActionCase) bool {
		return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
			return e.Kind == effect.SendData && e.HasLabel(effect.LabelCredential)
		})
	}
	for command, want := range map[string]bool{
		"git add deploy": true,
		"git add .":      true,
		"git add -A && git commit -m x && git push": true,
		"git stage deploy/run.sh":                   true,
		"git add server/.env":                       true,
		"git add -f x.local":                        true,
		"git commit -am x":                          false, // nothing that is tracked has changed
		"git add plain":                             false,
		"git add x.local":                           false, // left out
		"git add deploy/keys build":                 false,
		"git add -u":                                false,
		"gh issue create --title x --body 'use " + token + "'":    true,
		"gh pr create --title=" + token:                           true,
		"gh issue comment 5 -F note.txt":                          true,
		"gh issue comment 5 --body 'the token is in note.txt'":    false,
		"gh issue comment 5 --body 'use ghp_xxxxxxxxxxxxxxxx'":    false,
		"git commit -m 'key " + token + "'":                       true,
		"git commit -m" + token:                                   true,
		"git commit -am 'key " + token + "'":                      true,
		"git commit '-mtoken=" + token + "'":                      true,
		"git commit '-amtoken=" + token + "'":                     true,
		"git commit -qsm 'key " + token + "'":                     true,
		"git commit -aF note.txt":                                 true,
		"git commit -aFnote.txt":                                  true,
		"gh pr create -dt x -b 'use " + token + "'":               true,
		"gh pr create -dt 'use " + token + "'":                    true,
		"gh pr create '-b=use " + token + "'":                     true,
		"git commit -am 'the token is in note.txt'":               false,
		"git commit -aF plain/a.txt":                              false,
		"git commit -am 'use ghp_xxxxxxxxxxxxxxxx'":               false,
		"gh issue create -t'PDF/A support' -b'F/X and aF/Y'":      false,
		"git tag -a v1 -m '" + token + "'":                        true,
		"gh secret set X --body " + token:                         false, // a store of secrets
		"gh pr view --json body -q '" + token + "'":               false,
		"echo 'x = \"" + token + "\"' > src/new.js":               true,
		"cat > src/k.js <<'E'\nconst k = '" + token + "'\nE":      true,
		"echo 'x = \"" + token + "\"' > build/new.js":             false,
		"echo 'x = \"" + token + "\"' > tests/new_test.py":        false,
		"echo 'x = \"" + token + "\"' > deploy/run.sh":            false, // it held it before
		"echo 'x = \"AKIAIOSFODNN7" + "EXAMPLE\"' > src/new.js":   false,
		"echo 'url = \"postgres://u:pw1234@h/db\"' > src/conf.js": false,
	} {
		c := an.AnalyzeAction(&action.Action{Type: "execute_command", Payload: map[string]any{"command": command}})
		if got := handsOn(c); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
	for p, want := range map[string]bool{"src/a.ts": true, "x.local": false, "docs/a.md": false, "../outside.ts": false} {
		c := an.AnalyzeAction(&action.Action{Type: "write_file", Payload: map[string]any{"path": p, "content": "const t = '" + token + "'\n"}})
		if got := handsOn(c); got != want {
			t.Errorf("write %s: %v, want %v", p, got, want)
		}
	}
}

// TestPublishedBounds looks at a folder with many and large files: what is read is bounded.
func TestPublishedBounds(t *testing.T) {
	t.Parallel()
	top := repository(t)
	put(t, top+"/.gitignore", strings.Repeat("a*b*c*d\n", 20_000))
	for _, n := range []string{"a", "b", "c"} {
		put(t, top+"/big/"+n, strings.Repeat("x", 3<<20))
	}
	s := stagedFilesSearch{localDisk: localNoSymlinkDisk{newLocalFileInspector()}, folderEntriesLeft: 3}
	s.stagedFiles = []string{top + "/big/a", top + "/big/b"}
	if got, whole := s.describeCredentialFile(top); got != "" || !whole {
		t.Errorf("found %q, %t", got, whole)
	}
	s.stagedFiles = make([]string, maxGitStagedFiles+1)
	for i := range s.stagedFiles {
		s.stagedFiles[i] = top + "/big/a"
	}
	if got, whole := s.describeCredentialFile(top); got != "" || whole {
		t.Errorf("more than is looked at: %q, %t", got, whole)
	}
	if ps := s.appendIgnorePatterns(top+"/.gitignore", nil, nil); len(ps) > maxIgnorePatterns {
		t.Errorf("%d patterns", len(ps))
	}
}

// TestPublishedSearchLimits holds that a search which leaves out a folder that git would read is not called whole.
func TestPublishedSearchLimits(t *testing.T) {
	t.Parallel()
	top := repository(t)
	put(t, top+strings.Repeat("/d", 30)+"/a", "a\n")
	put(t, top+"/deep"+strings.Repeat("/d", 45)+"/a", "a\n")
	put(t, top+"/closed/a", "a\n")
	if err := errors.Join(os.Symlink(top+"/d", top+"/link"), os.Chmod(top+"/closed", 0)); err != nil { // git cannot read the folder either
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(top+"/closed", 0o755) })
	for _, c := range []struct {
		top, below string
		whole      bool
	}{
		{top, top, false},
		{top, top + "/d", true},
		{top, top + "/closed", true},
		{top, top + "/deep/d/d", false},
		{top, top + "/deep" + strings.Repeat("/d", 45) + "/a", false},
		{top, top + "/src", true},
		{top + "/link", top + "/link", false}, // a folder that shield does not read
		{top + "/gone", top + "/gone", true},
	} {
		s := stagedFilesSearch{localDisk: localNoSymlinkDisk{newLocalFileInspector()}, folderEntriesLeft: maxGitStagedSearchEntries}
		s.addUntracked(&committed.WorkTree{Top: c.top, GitDir: top + "/.git"}, nil, []string{c.below}, false)
		if got, whole := s.describeCredentialFile(c.top); got != "" || whole != c.whole {
			t.Errorf("%s in %s: %q, %t, want %t", c.below, c.top, got, whole, c.whole)
		}
	}
}
