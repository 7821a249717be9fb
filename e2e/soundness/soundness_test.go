//go:build unix

// Package soundness compares what pkg/shell says about scripts with what shells
// make of them. The scripts are made by chance of harmless words, and run in an
// empty folder with programs that only write down how they were called.
package soundness

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// shells are the shells, each with the letter that the grammar has for it.
var shells = []struct {
	letter string
	argv   []string
}{
	{"b", []string{"bash", "--norc"}},
	{"d", []string{"dash"}},
	{"z", []string{"zsh", "-f"}},
	{"u", []string{"busybox", "sh"}},
}

// TestSound demands that every call a script makes was predicted with its
// arguments, or that the analysis says it does not know. SHIELD_SCRIPTS is how
// many scripts each shell runs, SHIELD_SEED the seed of the first.
func TestSound(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs")
	}
	scripts, first := number(t, "SHIELD_SCRIPTS", 75), seed(t)
	for _, sh := range shells {
		t.Run(sh.argv[0], func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, sh.argv)
			g := readGrammar(t, sh.letter)
			var n tally
			for seed := first; seed < first+scripts; seed++ {
				script := g.script(seed)
				calls := r.run(t, script.String())
				if n.judge(r.work(), script.String(), calls) {
					continue
				}
				if n.missed > mostShown {
					t.Fail()
					continue
				}
				script = g.shrink(script, func(s *node) bool {
					text := s.String()
					_, missed := compare(r.work(), text, r.run(t, text))
					return missed != nil
				})
				t.Errorf("seed %d: %s", seed, explain(r.work(), script.String(), r.run(t, script.String())))
			}
			t.Log(n.String())
		})
	}
}

// mostShown is how many misses of a shell are made small and shown.
const mostShown = 8

// seed returns the seed of the first script: a fresh one, if the environment has none. It is logged, so that what fails can
// be run again.
func seed(t *testing.T) uint64 {
	first := number(t, "SHIELD_SEED", uint64(rand.Uint32()))
	t.Logf("SHIELD_SEED=%d", first)
	return first
}

// number returns a number of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// An answer is how an analysis covers the calls of a script.
type answer int

const (
	exact   answer = iota // each with its arguments
	partly                // each, some of them with arguments that are not known
	dynamic               // the analysis says that it does not know
)

// compare returns how an analysis covers calls, and the first that it misses.
func compare(dir, script string, calls []call) (answer, call) {
	effects := analyze(dir, script)
	if slices.ContainsFunc(effects, func(e effect.Effect) bool { return e.Certainty == effect.Unknown }) {
		return dynamic, nil
	}
	out := exact
	for _, c := range calls {
		best, found := partly, false
		for _, e := range effects {
			if e.Kind == effect.Execute && e.Program == c[0] && covers(e.Args, c[1:]) {
				found = true
				if slices.Equal(e.Args, c[1:]) {
					best = exact
				}
			}
		}
		if !found {
			return out, c
		}
		out = max(out, best)
	}
	return out, nil
}

func analyze(dir, script string) []effect.Effect {
	return shell.Analyze(script, &effect.PathContext{CWD: dir, Home: dir, WorkspaceRoots: []string{filepath.Dir(dir)}}).Effects
}

// covers reports whether arguments are those of a prediction. A predicted one
// that is not known shows what it comes from, by signs that no script
// forwards, and may be any number of words.
func covers(predicted, args []string) bool {
	if len(predicted) == 0 {
		return len(args) == 0
	}
	if !strings.ContainsAny(predicted[0], "$*?[…{") {
		return len(args) > 0 && predicted[0] == args[0] && covers(predicted[1:], args[1:])
	}
	for n := range len(args) + 1 {
		if covers(predicted[1:], args[n:]) {
			return true
		}
	}
	return false
}

// explain says what was missed.
func explain(dir, script string, calls []call) string {
	_, missed := compare(dir, script, calls)
	var b strings.Builder
	fmt.Fprintf(&b, "missed %q\n---\n%s\n---\n", missed, script)
	for _, e := range analyze(dir, script) {
		if e.Kind == effect.Execute && slices.Contains(stubs[:], e.Program) {
			fmt.Fprintf(&b, "predicted %s %q\n", e.Program, e.Args)
		}
	}
	return b.String()
}

// A tally counts answers.
type tally struct{ scripts, calls, exact, partly, dynamic, missed int }

// judge counts a script and reports whether nothing was missed.
func (n *tally) judge(dir, script string, calls []call) bool {
	n.scripts++
	n.calls += len(calls)
	a, missed := compare(dir, script, calls)
	switch {
	case missed != nil:
		n.missed++
		return false
	case a == dynamic:
		n.dynamic++
	case a == partly:
		n.partly++
	default:
		n.exact++
	}
	return true
}

func (n *tally) String() string {
	return fmt.Sprintf("%d scripts, %d calls: %d predicted, %d predicted with arguments that are not known, %d marked unknown, %d missed",
		n.scripts, n.calls, n.exact, n.partly, n.dynamic, n.missed)
}
