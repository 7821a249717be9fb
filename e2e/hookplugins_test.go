//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHookPlugins runs the plugins that are installed for hosts which load one, with a
// shield that answers as the table says: nothing runs but what an answer with the id of
// the very call allows.
func TestHookPlugins(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	harness, err := filepath.Abs("testdata/plugins.mjs")
	if err != nil {
		t.Fatal(err)
	}
	const allow = `{"decision":"allow","id":"call_1"}`
	cases := []struct {
		name, id, says string
		ran            bool
	}{
		{"an allow with the id", "call_1", "echo '0" + allow + "'", true},
		{"nothing", "call_1", "true", false},
		{"no JSON", "call_1", "echo yes", false},
		{"an object that says nothing", "call_1", "echo '0{}'", false},
		{"an allow without an id", "call_1", `echo '0{"decision":"allow"}'`, false},
		{"an allow for another call", "call_1", `echo '0{"decision":"allow","id":"call_2"}'`, false},
		{"an id of another type", "call_1", `echo '0{"decision":"allow","id":["call_1"]}'`, false},
		{"another word", "call_1", `echo '0{"decision":"Allow","id":"call_1"}'`, false},
		{"a result for a call", "call_1", `echo '0{"decision":"replace","id":"call_1"}'`, false},
		{"a denial", "call_1", `echo '2{"decision":"deny","reason":"no"}'`, false},
		{"a denial with status 0", "call_1", `echo '0{"decision":"deny","reason":"no","id":"call_1"}'`, false},
		{"an allow with status 1", "call_1", "echo '1" + allow + "'", false},
		{"an allow with status 2", "call_1", "echo '2" + allow + "'", false},
		{"an allow and a signal", "call_1", "printf '%s' '0" + allow + "'; kill -9 $$", false},
		{"a line before an allow", "call_1", "echo starting; echo '0" + allow + "'", false},
		{"an allow in a list", "call_1", "echo '0[" + allow + "]'", false},
		{"a call without an id", "", `echo '0{"decision":"allow","id":""}'`, false},
	}
	for _, name := range []string{"amp", "openclaw", "opencode", "pi"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHookedFor(t, name)
			plugin := h.settings + ".mjs"
			text, err := os.ReadFile(h.settings)
			if err != nil {
				t.Fatal(err)
			}
			h.write(plugin, string(text))
			propose := func(calls string) []string {
				out, errs, status := h.run(calls, node, harness, name, plugin)
				if status != 0 {
					t.Fatalf("node ended with %d: %s", status, errs)
				}
				return strings.Split(strings.TrimSpace(out), "\n")
			}
			call := func(id, command string) string {
				line, err := json.Marshal(map[string]string{"id": id, "command": command})
				if err != nil {
					t.Fatal(err)
				}
				return string(line) + "\n"
			}

			real := propose(call("call_1", "ls") + call("call_2", "sudo rm -rf /"))
			if real[0] != "ran" || !strings.HasPrefix(real[1], "blocked: ") {
				t.Errorf("with shield itself: %q", real)
			}
			var calls, script strings.Builder
			for i, c := range cases {
				calls.WriteString(call(c.id, fmt.Sprintf("case-%02d", i)))
				fmt.Fprintf(&script, "*case-%02d*) %s;;\n", i, c.says)
			}
			h.write(h.bin, "#!/bin/sh\nin=$(cat)\ncase $in in\n"+script.String()+"esac\n")
			h.mode(h.bin, 0o755)
			h.record()
			for i, got := range propose(calls.String()) {
				if c := cases[i]; got != "ran" && !(strings.HasPrefix(got, "blocked: ") && len(got) > len("blocked: ")) || (got == "ran") != c.ran {
					t.Errorf("%s: %s, want ran %v", c.name, got, c.ran)
				}
			}
			if err := os.Remove(h.bin); err != nil {
				t.Fatal(err)
			}
			if gone := propose(call("call_1", "ls")); !strings.HasPrefix(gone[0], "blocked: ") {
				t.Errorf("without shield: %q", gone)
			}
		})
	}
}
