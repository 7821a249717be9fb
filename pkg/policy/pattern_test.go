//go:build unix

package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/shell"
)

// TestPatternsOnDisk holds that a deny rule counts for a pattern that holds what it
// protects, or could hold nothing else, and that no rule counts for one in the workspace
// that holds nothing of the kind.
func TestPatternsOnDisk(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, app := dir+"/home", dir+"/home/app"
	for _, name := range []string{home + "/.aws/credentials", home + "/data/a.json", app + "/dist/a.json", app + "/src/b.json", app + "/leak/credentials.json", app + "/leak/id_rsa", app + "/.env", app + "/conf/rc"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home+"/.aws", app+"/link"); err != nil {
		t.Fatal(err)
	}
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, CWD: app, Home: home, WorkspaceRoots: []string{app}, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Preset("offline", Options{FoldersByGlobVariable: map[string][]string{"WORKSPACE": {app}, "HOME": {home}}})
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"cat dist/*.json":                                "",
		"rm -f dist/*.json":                              "",
		"cat src/**/*.json":                              "",
		`find src -name "*.json" -exec cat {} +`:         "",
		`find dist src -name "*.conf" | xargs grep -l x`: "",
		"cat */*.env":                                    "",
		"cat leak/*.json":                                "secret_names",
		"cat leak/id*":                                   "secret_names",
		"cat l*/credentials":                             "credential_files",
		"cat link/*":                                     "credential_files",
		"cat conf/*rc":                                   "",
		"cat *env":                                       "secret_names",
		"cat ~/.ssh/*":                                   "credential_files",
		"cat ~/.aws/*":                                   "credential_files",
		"cat ~/.aws/c*":                                  "credential_files",
		"rm -rf /*":                                      "wipe_system",
		"rm -rf ~/*":                                     "wipe_system",
		"cd ~ && rm -rf **":                              "wipe_system",
		"ln -s ~/.aws q; cat q/*":                        "credential_files",
		"cat ~/*/*.json":                                 "credential_files",
		"cat ~/data/*.json":                              "",
	} {
		c := an.AnalyzeAction(&action.Action{Type: "execute_command", Payload: map[string]any{"command": command}})
		v, err := p.Judge(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if v.Rule != want {
			t.Errorf("%s: %s %q, want %q", command, v.Decision, v.Rule, want)
		}
	}
}
