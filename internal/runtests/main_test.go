package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const events = `{"Action":"start","Package":"github.com/shieldcli/shield/pkg/a"}
{"Action":"output","Package":"github.com/shieldcli/shield/pkg/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"github.com/shieldcli/shield/pkg/a","Test":"TestOne","Output":"    a_test.go:3: noise\n"}
{"Action":"pass","Package":"github.com/shieldcli/shield/pkg/a","Test":"TestOne"}
{"Action":"output","Package":"github.com/shieldcli/shield/pkg/a","Test":"TestTwo","Output":"    a_test.go:9: fish is not\n"}
{"Action":"output","Package":"github.com/shieldcli/shield/pkg/a","Test":"TestTwo","Output":"        installed\n"}
{"Action":"output","Package":"github.com/shieldcli/shield/pkg/a","Test":"TestTwo","Output":"--- SKIP: TestTwo (0.00s)\n"}
{"Action":"skip","Package":"github.com/shieldcli/shield/pkg/a","Test":"TestTwo"}
{"Action":"output","Package":"github.com/shieldcli/shield/pkg/a","Output":"ok  \tgithub.com/shieldcli/shield/pkg/a\t1.5s\n"}
{"Action":"pass","Package":"github.com/shieldcli/shield/pkg/a","Elapsed":1.5}
`

const failing = `{"Action":"output","Package":"github.com/shieldcli/shield/pkg/b","Test":"TestBad","Output":"    b_test.go:3: wrong\n"}
{"Action":"fail","Package":"github.com/shieldcli/shield/pkg/b","Test":"TestBad"}
{"Action":"output","Package":"github.com/shieldcli/shield/pkg/b","Output":"FAIL\tgithub.com/shieldcli/shield/pkg/b\t2s\n"}
{"Action":"fail","Package":"github.com/shieldcli/shield/pkg/b","Elapsed":2}
not an event
{"ImportPath":"c","Action":"build-output","Output":"c.go:1: syntax error\n"}
{"Action":"output","Package":"c","Output":"FAIL\tc [build failed]\n"}
{"Action":"fail","Package":"c"}
`

// TestSummary checks what is printed of a run, and when it counts as failed.
func TestSummary(t *testing.T) {
	t.Parallel()
	fish := []*regexp.Regexp{regexp.MustCompile("^fish is not installed$")}
	for _, c := range []struct {
		name, in string
		strict   bool
		allowed  []*regexp.Regexp
		bad      bool
		want     []string
	}{
		{"passed", events, false, nil, false, []string{"ok  \tgithub.com/shieldcli/shield/pkg/a\t1.5s\n",
			"1 tests passed, 0 failed, 1 skipped. Slowest: pkg/a 2 s\n", "skipped: fish is not installed: pkg/a TestTwo\n"}},
		{"a skip that is allowed", events, true, fish, false, []string{"\nskipped: fish"}},
		{"a skip that is not", events, true, nil, true, []string{"SKIPPED, which is not allowed here: fish"}},
		{"failed", events + failing, false, nil, true, []string{"b_test.go:3: wrong\n", "not an event\n", "c.go:1: syntax error\n", "c [build failed]\n",
			"FAILED: pkg/b TestBad\nFAILED: c\n"}},
	} {
		var out strings.Builder
		r := &testRun{out: &out, packages: map[string]*testedPackage{}}
		if err := r.readEvents(strings.NewReader(c.in)); err != nil {
			t.Fatal(err)
		}
		if bad := r.printSummary(c.strict, c.allowed); bad != c.bad {
			t.Errorf("%s: failed: %v", c.name, bad)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, out.String())
			}
		}
		if strings.Contains(out.String(), "noise") {
			t.Errorf("%s: the output of a test that passed is shown:\n%s", c.name, out.String())
		}
	}
}

// TestReason checks which words of a skipped test are the reason.
func TestReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "no reason given",
		"=== nothing said\n": "no reason given",
		"    a_test.go:3: first\n    a_test.go:4: tmux is not installed\n--- SKIP: TestA (0.00s)\n":                                  "tmux is not installed",
		"    a_test.go:3: exec: \"node\": executable file not found in $PATH\n":                                                      "node is not installed",
		"    testscript.go:609: WORK=$WORK\n        PATH=/x\n        \n        # a deletion\n        > [!exec:git] skip\n        \n": "git is not installed",
		"    testscript.go:609: WORK=$WORK\n        > [windows] skip 'signals of Unix'\n        > [!linux] skip 'only here'\n":       "only here",
	} {
		if got := skipReason(bytes.NewBufferString(text)); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// TestRetry runs tests that fail beside the others: what passes alone is listed, and
// what fails again, races or ends the program stays a failure.
func TestRetry(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	for _, c := range []struct {
		name, body string
		most       int
		passes     bool
	}{
		{"passes alone", `if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); t.Run("part", func(t *testing.T) { t.Error("once") }) }`, 1, true},
		{"not tried", `if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); t.Error("once") }`, 0, false},
		{"fails again", `t.Error("always", os.Args[0])`, 1, false},
		{"skips", `if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); t.Error("once") } else { t.Skip() }`, 1, false},
		{"skips beside one with parts", `if _, err := os.Stat("tried"); err != nil { t.Error("once") } else { t.Skip() } }
func TestC(t *testing.T) { t.Run("part", func(t *testing.T) {}); if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); t.Error("once") }`, 2, false},
		{"a part skips", `_, err := os.Stat("tried"); os.WriteFile("tried", nil, 0o600); t.Run("part", func(t *testing.T) { if err != nil { t.Error("once") } else { t.Skip() } })`, 1, false},
		{"a part skips both times", `t.Run("part", func(t *testing.T) { t.Skip() }); if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); t.Error("once") }`, 1, true},
		{"panics", `if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); panic("once") }`, 1, false},
		{"exits", `if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); os.Exit(1) }`, 1, false},
		{"races", `if _, err := os.Stat("tried"); err != nil { os.WriteFile("tried", nil, 0o600); t.Error("WARNING: DATA RACE") }`, 1, false},
	} {
		dir := t.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("go.mod", "module m\n")
		write("a_test.go", "package m\n\nimport (\n\"os\"\n\"testing\"\n)\n\nfunc TestA(t *testing.T) { "+c.body+" }\n\nfunc TestB(t *testing.T) {}\n")
		t.Chdir(dir)
		var out strings.Builder
		r := &testRun{out: &out, packages: map[string]*testedPackage{}}
		args := []string{"-vet=off", "./..."}
		if err := r.runGoTest(args); err == nil {
			t.Fatalf("%s: the first run passed:\n%s", c.name, out.String())
		}
		if got := r.retryFailedTests(c.most, args); got != c.passes {
			t.Errorf("%s: %v, want %v\n%s", c.name, got, c.passes, out.String())
		}
		if bad := r.printSummary(false, nil); bad == c.passes {
			t.Errorf("%s: failed: %v\n%s", c.name, bad, out.String())
		}
		if c.passes && !strings.Contains(out.String(), "FLAKY: failed beside the others, passed alone: m TestA\n") {
			t.Errorf("%s:\n%s", c.name, out.String())
		}
	}
}
