//go:build unix

package cmd

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/host"
)

// TestResultLine runs the line that is installed for results with what shield may
// turn out to be: a host that can be given another result must be, and others get
// what is neutral, whatever happens. An answer with status 0 alone passes.
func TestResultLine(t *testing.T) {
	t.Parallel()
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		shell, err := newToolResultWrapperShellScript(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		lost, err := h.UnexaminedResultResponse(t.Context(), unexaminedToolResultText)
		if err != nil {
			t.Fatal(err)
		}
		for command, passes := range map[string]bool{
			`printf '0{"a":"it\\\\n $x"}\n'`: true,
			`/nowhere/shield hook ` + name:   false,
			`false`:                          false,
			`true`:                           false,
			`printf 'no answer\n'`:           false,
			`sh -c 'kill -9 $$'`:             false,
			`printf '{}\n'`:                  false,
			`printf '2{}\n'`:                 false,
			`printf '0{}'`:                   false,
			`printf '0{"a":\n'`:              false,
			`printf '1{"a":1}\n'`:            false,
		} {
			out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", shell.wrapCommand("", command, []string{"/bin/sleep", "20"})).Output()
			want := string(lost)
			if passes && len(lost) > 0 {
				want = `{"a":"it\\n $x"}`
			}
			if err != nil || strings.TrimSuffix(string(out), "\n") != want {
				t.Errorf("%s: %s: %q, %v; want %q", name, command, out, err, want)
			}
		}
	}
}
