//go:build unix

package approve

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestMain lets the test binary be the program that asks: with SHIELD_ASK set
// it judges so many cases at its terminal and writes the verdicts to a file.
func TestMain(m *testing.M) {
	n, err := strconv.Atoi(os.Getenv("SHIELD_ASK"))
	if err != nil {
		os.Exit(m.Run())
	}
	if err := askAtTerminal(n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func askAtTerminal(n int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	timeout, err := time.ParseDuration(os.Getenv("SHIELD_TIMEOUT"))
	if err != nil {
		return err
	}
	a, err := New(Options{
		Approval: config.Approval{Channels: []string{"tty"}, Timeout: config.Duration(timeout)}, Store: &memory{}, StateDir: os.Getenv("SHIELD_DIR"),
		RememberedAnswerKey: testBinding, Getenv: os.Getenv, AnsweringPersonName: "ann", AskingProgramDescription: "a test",
	})
	if err != nil {
		return err
	}
	payload := os.Getenv("SHIELD_COMMAND")
	var out []string
	for i := range n {
		b, err := json.Marshal(map[string]any{"type": "execute_command", "payload": map[string]string{"command": fmt.Sprintf("%s%d", payload, i+1)}})
		if err != nil {
			return err
		}
		c, err := parseCase(b)
		if err != nil {
			return err
		}
		v, err := a.Judge(ctx, c)
		if err != nil {
			v = verdict.Verdict{Decision: verdict.Block, Reasoning: err.Error()}
		}
		out = append(out, v.Decision.String()+" "+v.Reasoning)
	}
	tmp := os.Getenv("SHIELD_OUT") + ".tmp"
	if err := os.WriteFile(tmp, []byte(strings.Join(out, "\n")), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, os.Getenv("SHIELD_OUT"))
}

// A screen is a terminal in tmux in which a shell runs.
type screen struct {
	t      *testing.T
	socket string
	dir    string
}

func newScreen(t *testing.T, columns, lines int) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: the terminal is not tested")
	}
	s := &screen{t: t, dir: t.TempDir()}
	s.socket = filepath.Join(s.dir, "tmux")
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(lines), "env PS1='$ ' /bin/sh")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	s.see("$")
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// ask has the shell start the program that asks n times.
func (s *screen) ask(name string, n int, command string, env ...string) {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	set := append([]string{
		"SHIELD_ASK=" + strconv.Itoa(n), "SHIELD_TIMEOUT=60s", "SHIELD_DIR=" + s.dir,
		"SHIELD_OUT=" + filepath.Join(s.dir, name), "SHIELD_COMMAND='" + command + "'",
	}, env...)
	script := filepath.Join(s.dir, name+".sh")
	if err := os.WriteFile(script, []byte("exec env "+strings.Join(set, " ")+" "+exe+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.keys("sh "+script, "C-j") // also where a killed process has left Enter a carriage return
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

func (s *screen) text() string { s.t.Helper(); return s.tmux("capture-pane", "-p") }

// see waits until the screen shows all of the texts.
func (s *screen) see(texts ...string) string {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute) // of a machine that is busy
	for {
		got, all := s.text(), true
		for _, text := range texts {
			all = all && strings.Contains(got, text)
		}
		if all {
			return got
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen does not show %q:\n%s", texts, got)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// code waits until keys count, and returns the code of the question.
func (s *screen) code() string {
	s.t.Helper()
	return shownCode(s.t, s.see("type your answer"))
}

var codeShown = regexp.MustCompile(`\b([` + approvalCodeLetters + `]{3}) Enter: approve once`)

func shownCode(t *testing.T, text string) string {
	t.Helper()
	m := codeShown.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the screen shows no code:\n%s", text)
	}
	return m[1]
}

// line types a line, with CODE in it replaced, once keys count.
func (s *screen) line(text string) {
	s.t.Helper()
	s.tmux("send-keys", "-l", strings.ReplaceAll(text, "CODE", s.code()))
	s.keys("Enter")
}

// result waits for the verdicts.
func (s *screen) result(name string) string {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute) // of a machine that is busy
	for time.Now().Before(deadline) {
		if b, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil {
			return string(b)
		}
		time.Sleep(30 * time.Millisecond)
	}
	s.t.Fatalf("no verdict; the screen shows:\n%s", s.text())
	return ""
}

// sane checks that the terminal takes and shows a line, and has its screen
// back.
func (s *screen) sane() {
	s.t.Helper()
	s.keys("clear; echo typed-$((1+1)); stty -a", "Enter")
	got := s.see("typed-2", "icanon", "opost", "isig")
	if strings.Contains(got, "asks whether") {
		s.t.Errorf("the question is still there:\n%s", got)
	}
	for _, flag := range []string{" -icanon", " -echo ", " -isig", "-opost", "-icrnl"} {
		if strings.Contains(got, flag) {
			s.t.Errorf("the terminal was left with %s:\n%s", flag, got)
		}
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, line string
		keys       []string
		want       string
		stays      string // on the screen
	}{
		{"Enter denies", "", nil, "BLOCK denied by ann (tty)", "shield: denied: git push origin v1"},
		{"approve once", "CODE", nil, "ALLOW approved once by ann (tty)", "shield: approved once: git push origin v1"},
		{"approve for minutes", "CODE 10", nil, "ALLOW approved for 10 minutes by ann (tty)", "shield: approved for 10 min: git push origin v1"},
		{"deny and say why", "no not now", nil, "BLOCK denied by ann (tty): not now", "shield: denied: git push origin v1"},
		{"after a mistake", "CODE", []string{"y", "e", "s", "Enter"}, "ALLOW approved once by ann (tty)", "shield: approved once: git push origin v1"},
		{"^C", "-", []string{"C-c"}, "BLOCK denied by ann (tty): interrupted with ^C", "shield: interrupted: git push origin v1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 80, 24)
			s.ask("out", 1, "git push origin v")
			s.see("shield asks whether to run “git push origin v1”: a push overwrites history",
				"confidence 0.85", "asked by: a test", "Enter: approve once", "Enter: deny", "left")
			if len(tc.keys) > 0 {
				s.code() // keys count
				s.keys(tc.keys...)
			}
			if len(tc.keys) > 1 {
				s.see("stop typing for one second")
			}
			if tc.line != "-" {
				s.line(tc.line)
			}
			if got := s.result("out"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			s.see(tc.stays)
			s.sane()
			if left, _ := filepath.Glob(filepath.Join(s.dir, "tty-*")); len(left) > 0 {
				t.Errorf("files of the terminal are left: %q", left)
			}
		})
	}
}

func TestTerminalTimeout(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.ask("out", 1, "git push origin v", "SHIELD_TIMEOUT=2s")
	if got := s.result("out"); !strings.HasPrefix(got, "BLOCK the user did not answer within 2s") {
		t.Errorf("got %q", got)
	}
	s.see("shield: not answered in time: git push origin v1")
	s.sane()
}

// TestTypeAhead: what was typed before the question was on the screen answers
// nothing.
func TestTypeAhead(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.ask("out", 1, "git push origin v")
	for range 6 {
		s.keys("c", "d", "m", "Enter")
	}
	s.line("")
	if got := s.result("out"); got != "BLOCK denied by ann (tty)" {
		t.Errorf("got %q", got)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 120, 40)
	s.ask("out", 1, "git push origin "+strings.Repeat("long/", 60))
	code := s.code()
	for _, size := range [][2]string{{"40", "12"}, {"80", "24"}, {"40", "6"}, {"30", "3"}} {
		s.tmux("resize-window", "-x", size[0], "-y", size[1])
		s.see("shield asks", "> Deny", code+" Enter: approve once")
	}
	s.tmux("send-keys", "-l", code)
	s.see("> Approve once: press Enter")
	s.keys("Enter")
	if got := s.result("out"); !strings.HasPrefix(got, "ALLOW") {
		t.Errorf("got %q", got)
	}
}

// TestTwoProcesses: two ask at one terminal; one question is on the screen at a
// time, and each answer goes to its own.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	script := filepath.Join(s.dir, "both.sh")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	one := func(name string) string {
		return fmt.Sprintf("SHIELD_ASK=2 SHIELD_TIMEOUT=60s SHIELD_DIR=%s SHIELD_OUT=%s SHIELD_COMMAND='echo %s >/etc/%s' %s", s.dir, filepath.Join(s.dir, name), name, name, exe)
	}
	// A pipe is one process group, as the stages of a pipe are.
	if err := os.WriteFile(script, []byte(one("first")+" | "+one("second")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.keys("sh "+script, "Enter")
	seen := ""
	for range 4 {
		for { // until the answered question has gone
			if code := s.code(); code != seen {
				seen = code
				break
			}
		}
		got := s.text()
		if strings.Contains(got, "echo first") == strings.Contains(got, "echo second") {
			t.Fatalf("want one question on the screen:\n%s", got)
		}
		if strings.Contains(got, "echo first") {
			s.line("CODE")
		} else {
			s.line("")
		}
	}
	if got := s.result("first"); strings.Count(got, "ALLOW") != 2 {
		t.Errorf("first: %q", got)
	}
	if got := s.result("second"); strings.Count(got, "BLOCK denied by ann") != 2 {
		t.Errorf("second: %q", got)
	}
	s.sane()
	if left, _ := filepath.Glob(filepath.Join(s.dir, "tty-*")); len(left) > 0 {
		t.Errorf("files of the terminal are left: %q", left)
	}
}

// TestKilled: a process that is told to end, or killed, while it asks leaves a
// terminal that works, at the latest when the next asks.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, sig := range []string{"TERM", "HUP", "KILL"} {
		for _, kind := range []string{"xterm", "dumb"} {
			t.Run(sig+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := newScreen(t, 80, 24)
				s.ask("out", 1, "git push origin v", "TERM="+kind)
				s.see("asks whether", "Enter: approve once")
				pid := strings.TrimSpace(s.pid("out"))
				if err := exec.Command("kill", "-"+sig, pid).Run(); err != nil {
					t.Fatal(err)
				}
				if sig != "KILL" {
					if got := s.result("out"); !strings.HasPrefix(got, "BLOCK context canceled") {
						t.Errorf("got %q", got)
					}
					s.see("shield: interrupted: git push origin v1")
					s.sane()
				} else {
					s.see("Killed") // the shell has the terminal again
				}
				s.ask("next", 1, "git push origin w")
				s.see("asks whether", "origin w1")
				s.line("")
				if got := s.result("next"); got != "BLOCK denied by ann (tty)" {
					t.Errorf("next: %q", got)
				}
				s.sane()
			})
		}
	}
}

// pid returns the number of the process that asks under a name.
func (s *screen) pid(name string) string {
	s.t.Helper()
	want := []byte("SHIELD_OUT=" + filepath.Join(s.dir, name) + "\x00")
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if b, err := os.ReadFile(e); err == nil && strings.Contains(string(b), string(want)) {
			return filepath.Base(filepath.Dir(e))
		}
	}
	s.t.Skip("no /proc to find the process in")
	return ""
}

// TestPlainTerminal: a terminal that cannot be drawn on takes the same lines.
func TestPlainTerminal(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":           "BLOCK denied by ann (tty)",
		"CODE":       "ALLOW approved once by ann (tty)",
		"CODE 10":    "ALLOW approved for 10 minutes by ann (tty)",
		"no not now": "BLOCK denied by ann (tty): not now",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 80, 40)
			s.ask("out", 1, "git push origin v", "TERM=dumb")
			got := s.see("shield asks whether to run “git push origin v1”", "confidence 0.85", "Enter: deny", "\n>")
			s.keys("y")
			s.see("That is not an answer")
			s.see("before you answer.\n>") // keys count again
			s.tmux("send-keys", "-l", strings.ReplaceAll(line, "CODE", shownCode(t, got)))
			s.keys("Enter")
			if got := s.result("out"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			s.see(": git push origin v1")
			s.sane()
		})
	}
	s := newScreen(t, 80, 30)
	s.ask("out", 1, "git push origin v", "TERM=dumb", "SHIELD_TIMEOUT=1s")
	if got := s.result("out"); !strings.HasPrefix(got, "BLOCK the user did not answer within ") {
		t.Errorf("got %q", got)
	}
	s.sane()
}

// TestHostilePayload: whatever is asked about and however small the screen is,
// the sentence, the choice and the keys are on it, and no more lines than it
// has.
func TestHostilePayload(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"many lines":            strings.Repeat("x\n", 4900),
		"lines that are cut":    strings.Repeat("x\n", 6000),
		"one long line":         strings.Repeat("y", 60000),
		"escapes":               "\x1b[2J\x1b[H\x1b]0;x\x07" + strings.Repeat("\r\n", 50),
		"wide":                  strings.Repeat("漢", 3000),
		"poses as the question": "\n\n> Deny\nshield asks whether to sit: fine\ncdm Enter: approve once\n",
		"closes the quote":      "ls”: nothing happens “",
	} {
		for _, size := range [][2]int{{80, 24}, {40, 24}, {40, 10}, {40, 7}, {80, 5}, {30, 3}, {30, 2}, {30, 1}, {4, 2}, {1, 1}} {
			r, err := newTest(t, &memory{}).newRequest(t.Context(), command1(t, text, "s"), true, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			clock := &fakeClock{time.Now()}
			q := newFullScreenQuestion(r, testGate(clock, true), size[0], size[1], false)
			q.Init()
			for range 3 {
				view := q.View()
				lines := strings.Split(view, "\n")
				if len(lines) > max(size[1], 1) {
					t.Errorf("%s at %v: %d lines", name, size, len(lines))
				}
				for _, line := range lines {
					if term.Width(line) >= max(size[0], 4) {
						t.Errorf("%s at %v: line %q is too long", name, size, line)
					}
				}
				partial := q.interpreter.denyOnly
				if partial && strings.Contains(view, "cdm") || partial != (name == "lines that are cut") && size[0] >= 30 {
					t.Errorf("%s at %v: can be approved:\n%s", name, size, view)
				}
				if !partial && !strings.Contains(view, "cdm"[:min(3, max(size[0], 4)-2)]) {
					t.Errorf("%s at %v: no code:\n%s", name, size, view)
				}
				if size[1] >= 3 && (!strings.HasPrefix(lines[0], "shield asks whether") || !strings.Contains(view, "\n> Deny") || !strings.Contains(view, map[bool]string{false: "\ncdm Enter: approve", true: "\nEnter: deny"}[partial])) {
					t.Errorf("%s at %v:\n%s", name, size, view)
				}
				if strings.ContainsAny(strings.ReplaceAll(view, "\n", ""), "\r\x07\u202e\x1b") {
					t.Errorf("%s at %v: control characters:\n%q", name, size, view)
				}
				if n := len(q.visibleSummaryLines()); size[1] >= 3 {
					for _, line := range lines[n : n+min(q.visibleRequestLineCount(), len(q.requestLines))] {
						if strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "shield") || strings.HasPrefix(line, "cdm") {
							t.Errorf("%s at %v: poses as shield: %q", name, size, line)
						}
					}
				}
				if strings.Count(strings.Join(q.visibleSummaryLines(), ""), "”") > 1 {
					t.Errorf("%s at %v: the quotation does not end where it seems to: %q", name, size, q.visibleSummaryLines())
				}
				q.firstVisibleLine += 1000
				q.clampScroll()
			}
		}
	}
}
