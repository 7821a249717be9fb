package cmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// clock stands still, so that verdicts of two runs are equal byte for byte.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }

// newWorld returns a world with folders of its own: a home, and a workspace
// that is the working directory.
func newWorld(t testing.TB) Environment {
	t.Helper()
	dir := t.TempDir()
	home, work := filepath.Join(dir, "home", "me"), filepath.Join(dir, "home", "me", "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	return Environment{Now: clock, Home: home, WorkingDir: work, ShieldExecutablePath: "/usr/local/bin/shield", OS: "linux", Getenv: rulesAlone(t), checkPersonStartedThisProcess: func(int) error { return nil }}
}

// rulesAlone returns an environment with a settings file in which Tier 1 has no
// model: what these tests hold must not depend on one.
func rulesAlone(t testing.TB) func(string) string {
	t.Helper()
	return withSettings(t, "classifier: {model: none}\n")
}

// withSettings returns an environment with a settings file.
func withSettings(t testing.TB, text string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "shield"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shield", "shield.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return dir
		}
		return ""
	}
}

// testCache is the cache of all worlds: a process loads ONNX Runtime once, from
// one place.
func testCache() string { return filepath.Join(os.TempDir(), "shield-test-cache") }

// run runs a command line over an input.
func run(t testing.TB, w Environment, in string, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	w.In, w.Out, w.Err = strings.NewReader(in), &o, &e
	status = Run(context.Background(), args, w)
	return status, o.String(), e.String()
}

// actionFiles returns the inputs of testdata/actions by name.
func actionFiles(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../testdata/actions/*.jsonl")
	if err != nil || len(names) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	files := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(text)
	}
	return files
}

var presets = []string{"default", "strict", "permissive", "offline"}

// TestPipeEqualsChain holds the invariant that stages in a pipe give what run
// gives, seals included: the clock stands still.
func TestPipeEqualsChain(t *testing.T) {
	w := newWorld(t)
	for name, in := range actionFiles(t) {
		for _, preset := range presets {
			for _, flags := range [][]string{{}, {"--no-action"}, {"--jobs", "4"}} {
				status, whole, _ := run(t, w, in, append([]string{"run", "--until", "classify", "--policy", preset}, flags...)...)
				piped := in
				for _, stage := range []string{"policy", "classify"} {
					args := []string{stage, "--policy", preset}
					if stage == "classify" {
						args = append(args, flags...)
					}
					var got int
					got, piped, _ = run(t, w, piped, args...)
					if stage == "classify" && got != status {
						t.Errorf("%s, %s: the pipe ends with %d, run with %d", name, preset, got, status)
					}
				}
				if diff := cmp.Diff(whole, piped); diff != "" {
					t.Errorf("%s, %s %v: run (-) and pipe (+) differ:\n%s", name, preset, flags, diff)
				}
			}
		}
	}
}

// TestPipeLeavesTheActionOut holds the same for all four stages where the last
// leaves the action out, and that what is left is still sealed.
func TestPipeLeavesTheActionOut(t *testing.T) {
	w := newWorld(t)
	for name, in := range actionFiles(t) {
		for _, preset := range []string{"default", "offline"} {
			status, whole, _ := run(t, w, in, "run", "--policy", preset, "--no-action")
			got, piped := 0, in
			for _, stage := range []string{"policy", "classify", "evaluate", "approve"} {
				args := []string{stage, "--policy", preset}
				if stage == "approve" {
					args = append(args, "--no-action")
				}
				got, piped, _ = run(t, w, piped, args...)
			}
			if diff := cmp.Diff(whole, piped); diff != "" || got != status {
				t.Errorf("%s, %s: run (-), status %d, and pipe (+), status %d, differ:\n%s", name, preset, status, got, diff)
			}
			if strings.Contains(piped, `,"action":`) {
				t.Errorf("%s, %s: an action is left:\n%s", name, preset, piped)
			}
			if _, again, _ := run(t, w, piped, "approve", "--policy", preset); again != piped {
				t.Errorf("%s, %s: what is left is not sealed: %s", name, preset, cmp.Diff(piped, again))
			}
		}
	}
}

func FuzzPipeEqualsChain(f *testing.F) {
	for _, in := range actionFiles(f) {
		for line := range strings.Lines(in) {
			f.Add([]byte(line), uint8(len(line)))
		}
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, in []byte, preset uint8) {
		policy := presets[int(preset)%len(presets)]
		_, whole, _ := run(t, w, string(in), "run", "--until", "classify", "--policy", policy)
		_, piped, _ := run(t, w, string(in), "policy", "--policy", policy)
		if n := strings.Count(piped, "\n"); n != strings.Count(whole, "\n") {
			t.Fatalf("policy wrote %d lines, run %d", n, strings.Count(whole, "\n"))
		}
		_, piped, _ = run(t, w, piped, "classify", "--policy", policy)
		if diff := cmp.Diff(whole, piped); diff != "" && len(strings.TrimSpace(string(in))) > 0 {
			t.Errorf("run (-) and pipe (+) differ:\n%s", diff)
		}
	})
}

// TestCommandsByName holds that a command line which names a command gets it, and
// that every other gets all.
func TestCommandsByName(t *testing.T) {
	t.Parallel()
	all := commands(&Environment{}, nil)
	for _, c := range all {
		if alone := commands(&Environment{}, []string{c.Name, "--help"}); len(alone) != 1 || alone[0].Name != c.Name {
			t.Errorf("%s: %d commands, the first is %s", c.Name, len(alone), alone[0].Name)
		}
	}
	for _, args := range [][]string{{"--version"}, {"polic"}, {""}, {"--", "run"}} {
		if got := commands(&Environment{}, args); len(got) != len(all) {
			t.Errorf("%q: %d commands, want %d", args, len(got), len(all))
		}
	}
}
