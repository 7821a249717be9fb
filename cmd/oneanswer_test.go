package cmd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneAnswer holds that score, run, hook and exec allow the same actions,
// above all where part of one is not known: score looks at no file, and what the
// others do not find it must not take for read.
func TestOneAnswer(t *testing.T) {
	w := inProcess(newWorld(t))
	w.Environ = func() []string { return []string{"PATH=/usr/bin:/bin"} }
	state, settings := t.TempDir(), filepath.Join(t.TempDir(), "shield.yaml")
	err := errors.Join(
		os.WriteFile(settings, []byte("classifier: {model: none}\napproval: {channels: []}\nhook: {answer: allow}\n"), 0o600),
		os.Mkdir(filepath.Join(w.WorkingDir, "folder.sh"), 0o700),
		os.WriteFile(filepath.Join(w.WorkingDir, "long.sh"), []byte(strings.Repeat("# a comment\n", 64<<10)), 0o600),
		os.Symlink(filepath.Join(w.WorkingDir, "nowhere"), filepath.Join(w.WorkingDir, "link.sh")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, command string
		allow         bool
	}{
		{"nothing unknown", "ls -la", true},
		{"a missing script", "sh missing.sh", false},
		{"a missing script by its path", "./missing.sh", false},
		{"a missing script below", "python3 tools/gen.py --all", false},
		{"a missing script, sourced", ". ./missing.sh", false},
		{"a missing script behind a carrier", "env A=b timeout 5 sh missing.sh", false},
		{"a missing script in a loop", "for f in a b; do sh $f.sh; done", false},
		{"a folder for a script", "sh folder.sh", false},
		{"a script that is too long", "sh long.sh", false},
		{"a link that leads nowhere", "bash link.sh", false},
		{"a script that is written first", "echo 'ls -la' > new.sh; sh new.sh", true},
		{"a script that is written first, and harms", "echo 'rm -rf ~' > new.sh; sh new.sh", false},
		{"a script of an unknown name", `sh "$NAME"`, false},
		{"an unknown command", `$NAME -la`, false},
		{"an unknown variable that runs", `eval "$NAME"`, false},
		{"an unknown variable that is data", `echo "$NAME"`, true},
		{"a script in a folder of everybody", "sh /tmp/missing.sh", false},
		{"a script elsewhere", "sh /opt/missing/run.sh", false},
	} {
		text, err := json.Marshal(c.command)
		if err != nil {
			t.Fatal(err)
		}
		flags := []string{"--config", settings, "--state", state}
		action := `{"type":"execute_command","payload":{"command":` + string(text) + `}}`
		got := map[string]bool{}

		status, out, errs := run(t, w, `{"id":"1","label":"benign","action":`+action+`}`, append(append([]string{"score"}, flags...), "--home", w.Home, "--root", w.WorkingDir, "--format", "json", "-")...)
		if status != statusAllow {
			t.Fatalf("%s: score: status %d, %s", c.name, status, errs)
		}
		var s struct {
			Honest struct{ Total struct{ Allow int } }
		}
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
		got["score"] = s.Honest.Total.Allow == 1

		status, _, _ = run(t, w, action+"\n", append([]string{"run"}, flags...)...)
		got["run"] = status == statusAllow

		payload := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","cwd":` + quoted(t, w.WorkingDir) + `,"tool_input":{"command":` + string(text) + `}}`
		_, out, _ = run(t, w, payload, append([]string{"hook", "claude-code"}, flags...)...)
		got["hook"] = strings.Contains(out, `"permissionDecision":"allow"`)

		status, _, _ = run(t, w, "", append(append([]string{"exec"}, flags...), "--check", "--shell", "--", c.command)...)
		got["exec"] = status == statusAllow

		for command, allow := range got {
			if allow != c.allow {
				t.Errorf("%s: %s: %s allows: %v, want %v", c.name, c.command, command, allow, c.allow)
			}
		}
	}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
