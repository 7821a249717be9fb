package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// action is what action.yml says.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Steps []struct {
			Name, Run string
			Env       map[string]string
		}
	}
}

// TestAction runs the steps of action.yml as a runner of GitHub does: with its variables, and the inputs in the
// environment only, since what is pasted into a script is run.
func TestAction(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	text, err := os.ReadFile("action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	input := regexp.MustCompile(`^\$\{\{ inputs\.([a-z0-9-]+) \}\}$`)
	work := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const good, bad = `{"type":"execute_command","payload":{"command":"ls src"}}`, `{"type":"execute_command","payload":{"command":"rm -rf ~"}}`
	write("good file.jsonl", good+"\n"+good+"\n")
	write("deep/er/bad.jsonl", good+"\n"+bad+"\n")
	write("attack.jsonl", `{"id":"a","label":"stop","action":`+bad+"}\n")
	write("passes.jsonl", `{"id":"a","label":"stop","action":`+good+"}\n")
	write("broken.jsonl", good+"\n{\"type\":\n")
	write("empty.jsonl", "\n")
	write("release/install.sh", "while [ $# -gt 0 ]; do [ \"$1\" != --to ] || to=$2; shift; done\nmkdir -p \"$to/bin\"; printf '#!/bin/sh\\necho \"installed: $*\"' >\"$to/bin/shield\"; chmod +x \"$to/bin/shield\"\n")
	script, err := os.ReadFile(filepath.Join(work, "release/install.sh"))
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(script))
	for name, tt := range map[string]struct {
		with   map[string]string
		status int
		want   string // in what the steps print
	}{
		"good":             {map[string]string{"files": "good file.jsonl"}, 0, "::notice title=shield score::"},
		"bad":              {map[string]string{"files": "**/*bad.jsonl\ngood*.jsonl"}, 1, "::error file=deep/er/bad.jsonl,line=2,title=shield%3A label pass%2C is blocked::execute_command: rm -rf ~%0A"},
		"some may":         {map[string]string{"files": "deep/er/bad.jsonl", "max-friction": "50"}, 0, "::warning file=deep/er/bad.jsonl,line=2,"},
		"bad as expected":  {map[string]string{"files": "attack.jsonl", "label": "stop"}, 0, "::notice "},
		"attack allowed":   {map[string]string{"files": "passes.jsonl"}, 1, "::error file=passes.jsonl,line=1,title=shield%3A label stop%2C is allowed::"},
		"cannot be read":   {map[string]string{"files": "broken.jsonl"}, 1, "rows could not be read"},
		"nothing judged":   {map[string]string{"files": "empty.jsonl"}, 1, "no row was judged"},
		"no such file":     {map[string]string{"files": "missing.jsonl"}, 1, "missing.jsonl"},
		"no match":         {map[string]string{"files": "*.none"}, 1, "names no file"},
		"no files":         {map[string]string{"files": "\n"}, 1, "no files are named"},
		"a flag as a file": {map[string]string{"files": "--max-friction=100"}, 1, "--max-friction=100"},
		"a command":        {map[string]string{"files": "good file.jsonl", "policy": "$(touch ran)`touch ran`"}, 1, "touch ran"},
		"a wrong label":    {map[string]string{"files": "good file.jsonl", "label": "fine"}, 1, "label"},
		"release":          {map[string]string{"files": "good file.jsonl", "release": "release", "release-sha256": sum}, 0, "installed: score --gate"},
		"changed release":  {map[string]string{"files": "good file.jsonl", "release": "release", "release-sha256": strings.Repeat("0", 64)}, 1, "not the file that release-sha256 names"},
		"unnamed release":  {map[string]string{"files": "good file.jsonl", "release": "release"}, 1, "not the file that release-sha256 names"},
		"release by http":  {map[string]string{"files": "good file.jsonl", "release": "http://x.test"}, 1, "use https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			env := append(os.Environ(), "HOME="+temp, "RUNNER_TEMP="+temp, "GITHUB_ACTION_PATH=/missing",
				"GITHUB_PATH="+filepath.Join(temp, "path"), "GITHUB_STEP_SUMMARY="+filepath.Join(temp, "summary.md"))
			var printed strings.Builder
			status := 0
			for _, step := range a.Runs.Steps {
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: an input is part of the script", step.Name)
				}
				cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
				cmd.Dir, cmd.Env = work, env
				if added, err := os.ReadFile(filepath.Join(temp, "path")); err == nil {
					cmd.Env = append(cmd.Env, "PATH="+strings.TrimSpace(string(added))+":"+os.Getenv("PATH"))
				}
				for _, key := range slices.Sorted(maps.Keys(step.Env)) {
					m := input.FindStringSubmatch(step.Env[key])
					if m == nil {
						t.Fatalf("%s: %s is no input", step.Name, key)
					}
					value, given := tt.with[m[1]]
					if !given {
						value = a.Inputs[m[1]].Default
					}
					cmd.Env = append(cmd.Env, key+"="+value)
				}
				out, err := cmd.CombinedOutput()
				printed.Write(out)
				if status = cmd.ProcessState.ExitCode(); err != nil {
					break
				}
			}
			if status != tt.status || !strings.Contains(printed.String(), tt.want) {
				t.Errorf("status %d, want %d and %q:\n%s", status, tt.status, tt.want, printed.String())
			}
			if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
				t.Error("an input was run")
			}
			summary, err := os.ReadFile(filepath.Join(temp, "summary.md"))
			if tt.status == 0 && tt.with["release"] == "" && (err != nil || !strings.Contains(string(summary), "|")) {
				t.Errorf("the summary: %v\n%s", err, summary)
			}
		})
	}
}

// TestPreCommit runs the entry of each hook of .pre-commit-hooks.yaml on files that its pattern takes.
func TestPreCommit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(".pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks []struct{ ID, Entry, Files, Language string }
	if err := yaml.Unmarshal(text, &hooks); err != nil || len(hooks) == 0 {
		t.Fatal(hooks, err)
	}
	for _, h := range hooks {
		dir := t.TempDir()
		for name, tt := range map[string]struct {
			action string
			status int
		}{"good.actions.jsonl": {"ls src", 0}, "bad.actions.jsonl": {"rm -rf ~", 1}} {
			if !regexp.MustCompile(h.Files).MatchString(name) {
				t.Errorf("%s does not take %s", h.ID, name)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"type":"execute_command","payload":{"command":"`+tt.action+`"}}`+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append(strings.Fields(h.Entry), name)
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
			if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != tt.status {
				t.Errorf("%s %s: status %d, want %d\n%s", h.Entry, name, cmd.ProcessState.ExitCode(), tt.status, out)
			}
		}
	}
}
