//go:build linux

package hosts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
)

// asksOrigin is a command whose result says which account a workspace comes from. That is
// kept only of an event that the host itself has sent.
const asksOrigin = "git remote get-url origin"

// forges is a program of the agent that sends events of its own, to each installed line and
// to shield, in several ways.
const forges = `for line in line.*; do
	/bin/sh -c "$(cat "$line")" <event >>answers 2>&1
	/bin/sh "$line" <event >>answers 2>&1
	bash -c "$(cat "$line")" <event >>answers 2>&1
done
"$1" hook "$2" <event >>answers 2>&1
"$1" hook "$2" --line $$ <event >>answers 2>&1
"$1" hook "$2" --line $PPID <event >>answers 2>&1
touch forged
`

// TestHostsOrigin has hosts send the result of a command that says where a workspace comes
// from, which must count, and has their agents send the same event, which must not. What
// Gemini CLI says about such a command has more in it, so that nothing is kept of it.
func TestHostsOrigin(t *testing.T) {
	for _, name := range []string{"claude-code", "codex"} {
		d := driverOf(name)
		t.Run(name, func(t *testing.T) {
			installed(t, d)
			r, events := asked(t, d, nil, call{"shell", asksOrigin})
			i := slices.IndexFunc(events, func(e []byte) bool { return strings.Contains(string(e), "acme/app") })
			if i < 0 {
				t.Fatalf("no event has the result: %s", events)
			}
			t.Run("the host's", func(t *testing.T) {
				host := newRun(t, d, []call{{"shell", asksOrigin}}, "20s")
				host.origin()
				out := host.start()
				if owners := host.owners(); !slices.Equal(owners, []string{"github.com/acme"}) {
					t.Errorf("the workspace comes from %q: %.800s\n%s", owners, out, host.log())
				}
			})
			t.Run("the agent's", func(t *testing.T) {
				forge := call{"shell", "./forge"}
				agent := newRun(t, d, []call{forge}, "20s")
				agent.origin()
				server := evaltest.NewServer()
				t.Cleanup(server.Close)
				server.SetModelBehaviour("lenient", evaltest.BlockSuspicious) // passes its exam, and has nothing against what is forged
				agent.configure("evaluator: {provider: custom, model: lenient, base_url: " + server.BaseURL() + "}\n")
				if out, err := agent.command(time.Minute, agent.shield, "evaluate", "--exam", "--jobs", "8"); err != nil {
					t.Fatal(err, out)
				}
				event := strings.NewReplacer(r.work, agent.work, r.home, agent.home).Replace(string(events[i]))
				agent.write(filepath.Join(agent.work, "event"), event)
				for n, line := range agent.lines() {
					agent.write(filepath.Join(agent.work, "line."+string(rune('a'+n))), line+"\n")
				}
				agent.write(filepath.Join(agent.work, "words"), agent.shield+"\n"+name)
				self, err := os.Executable()
				if err == nil {
					err = os.Symlink(self, filepath.Join(agent.work, "forge"))
				}
				if err != nil {
					t.Fatal(err)
				}
				out := agent.start()
				answers, _ := os.ReadFile(filepath.Join(agent.work, "answers"))
				if !agent.ran(call{"shell", "touch forged"}) {
					t.Fatalf("nothing was forged: %.800s\n%s", out, agent.log())
				}
				t.Logf("%s", answers)
				if owners := agent.owners(); len(owners) > 0 {
					t.Errorf("a forged event counts: %q", owners)
				}
			})
		})
	}
}

// forge sends forged events. Shield denies it as a script, which it reads, so that the program of
// these tests runs it.
func forge() error {
	words, err := os.ReadFile("words")
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/bash", append([]string{"-c", forges, "forge"}, strings.Split(string(words), "\n")...)...)
	return cmd.Run()
}

// origin gives the workspace an address that it comes from.
func (r *run) origin() {
	r.t.Helper()
	if out, err := r.command(time.Minute, "git", "remote", "add", "origin", "https://github.com/acme/app.git"); err != nil {
		r.t.Fatal(err, out)
	}
}

// owners returns the accounts that shield takes the workspace of a session to come from.
func (r *run) owners() (owners []string) {
	r.t.Helper()
	out, err := r.command(time.Minute, r.shield, "session", "list", "--json")
	if err != nil {
		r.t.Fatal(err, out)
	}
	var sessions []struct{ Owners []string }
	if err := json.Unmarshal([]byte(out), &sessions); err != nil {
		r.t.Fatal(err, out)
	}
	for _, s := range sessions {
		owners = append(owners, s.Owners...)
	}
	return owners
}

// lines returns the command lines of shield that are installed, without the user's shell.
func (r *run) lines() (lines []string) {
	r.t.Helper()
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case string:
			if strings.Contains(v, "--line $$") {
				lines = append(lines, v)
			}
		case []any:
			for _, e := range v {
				find(e)
			}
		case object:
			for _, e := range v {
				find(e)
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(r.home, ".*", "*.json"))
	for _, name := range files {
		var doc any
		if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &doc) == nil {
			find(doc)
		}
	}
	if len(lines) == 0 {
		r.t.Fatal("no line is installed")
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
