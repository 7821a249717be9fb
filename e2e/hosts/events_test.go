//go:build unix

package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/host"
)

// recorder is in the place of shield, and keeps what a host asks.
const recorder = `in=$(mktemp DIR/questions/XXXXXX)
cat >"$in"
exec DIR/shield.real "$@" <"$in"`

// TestHostsEvents has hosts raise each event that shield's file of them knows, with a
// command that ends well and one that fails, and holds that shield reads what they send.
func TestHostsEvents(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			installed(t, d)
			h, err := host.Named(d.name)
			if err != nil {
				t.Fatal(err)
			}
			raised, failed := map[string]bool{}, false
			for _, renamed := range append([][]string{nil}, d.renamed...) {
				_, questions := asked(t, d, renamed, call{"shell", "touch wanted"}, call{"shell", "cat missing"})
				for _, in := range questions {
					e, err := h.Event(t.Context(), in)
					if err != nil {
						t.Errorf("%v: %s", err, in)
						continue
					}
					if !raised[e.Name] {
						t.Logf("%s", in)
					}
					raised[e.Name] = true
					failed = failed || e.ToolResult != nil && e.ToolResult.Result != nil && strings.Contains(string(in), "cat missing")
				}
			}
			if failed == d.fails {
				t.Errorf("what a command that failed has returned is handed over: %v", failed)
			}
			for _, name := range h.HandledEventNames() {
				if !raised[name] && !slices.Contains(d.elsewhere, name) {
					t.Errorf("event %s was not raised", name)
				}
			}
		})
	}
}

// asked returns what a host asks, where names of events are replaced in the file that
// installs shield, and the run.
func asked(t *testing.T, d driver, renamed []string, calls ...call) (r *run, questions [][]byte) {
	r = newRun(t, d, calls, "20s")
	r.origin()
	dir := filepath.Dir(r.shield)
	if err := errors.Join(os.Rename(r.shield, r.real()), os.Mkdir(filepath.Join(dir, "questions"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r.script(strings.ReplaceAll(recorder, "DIR", dir))
	if renamed != nil {
		settings := filepath.Join(r.home, renamed[0])
		text, err := os.ReadFile(settings)
		if err != nil {
			t.Fatal(err)
		}
		r.write(settings, strings.NewReplacer(renamed[1:]...).Replace(string(text)))
	}
	out := r.start()
	names, err := filepath.Glob(filepath.Join(dir, "questions", "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("shield was not asked: %v, %.800s", err, out)
	}
	for _, name := range names {
		in, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		questions = append(questions, in)
	}
	return r, questions
}
