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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	timeout, err := time.ParseDuration(os.Getenv("SHIELD_TIMEOUT"))
	if err != nil {
		return err
	}
	a, err := New(Options{
		Approval: config.Approval{Channels: []string{"tty"}, Timeout: config.Duration(timeout)}, Store: &memory{}, StateDir: os.Getenv("SHIELD_DIR"),
		Binding: testBinding, Getenv: os.Getenv, Person: "ann",
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
	deadline := time.Now().Add(15 * time.Second)
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

// listening waits until keys count.
func (s *screen) listening() { time.Sleep(deaf + 300*time.Millisecond) }

// result waits for the verdicts.
func (s *screen) result(name string) string {
	s.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
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
	if strings.Contains(got, "allow this?") {
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
	remember := "approved for 10 minutes by ann (tty)"
	for _, tc := range []struct {
		name string
		keys []string
		want string
	}{
		{"Enter denies", []string{"Enter"}, "BLOCK denied by ann (tty)"},
		{"approve once", []string{"Down", "Down", "Enter"}, "ALLOW approved once by ann (tty)"},
		{"approve for minutes", []string{"Down", "Down", "Down", "Enter"}, "ALLOW " + remember},
		{"deny and say why", []string{"Down", "Enter", "not", "Space", "now", "Enter"}, "BLOCK denied by ann (tty): not now"},
		{"^C", []string{"C-c"}, "BLOCK denied by ann (tty): interrupted with ^C"},
		{"a filter hides nothing", []string{"/", "o", "n", "c", "e", "Enter"}, "BLOCK denied by ann (tty)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 80, 24)
			s.ask("out", 1, "git push origin v")
			s.see("allow this?", "git push origin v1", "Approve once", "left")
			s.listening()
			for _, k := range tc.keys {
				s.keys(k)
				time.Sleep(100 * time.Millisecond)
			}
			if got := s.result("out"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			s.sane()
		})
	}
}

func TestTerminalTimeout(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.ask("out", 1, "git push origin v", "SHIELD_TIMEOUT=2s")
	s.see("allow this?", "0:01 left")
	if got := s.result("out"); !strings.HasPrefix(got, "BLOCK nobody answered within 2s") {
		t.Errorf("got %q", got)
	}
	s.sane()
}

// TestTypeAhead: what was typed before the question was on the screen, and for
// a moment after, answers nothing.
func TestTypeAhead(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.ask("out", 1, "git push origin v")
	for range 6 {
		s.keys("Down", "Down", "Enter")
	}
	s.see("allow this?", "> Deny")
	s.listening()
	s.see("allow this?", "> Deny")
	s.keys("Enter")
	if got := s.result("out"); got != "BLOCK denied by ann (tty)" {
		t.Errorf("got %q", got)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 120, 40)
	s.ask("out", 1, "git push origin "+strings.Repeat("long/", 60))
	s.see("allow this?")
	for _, size := range [][2]string{{"40", "12"}, {"80", "24"}, {"40", "10"}} {
		s.tmux("resize-window", "-x", size[0], "-y", size[1])
		time.Sleep(300 * time.Millisecond)
		s.see("allow this?", "Deny", "Approve once")
	}
	s.keys("Down", "Down", "Enter")
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
	for range 4 {
		got := s.see("allow this?", "> Deny")
		if strings.Contains(got, "echo first") == strings.Contains(got, "echo second") {
			t.Fatalf("want one question on the screen:\n%s", got)
		}
		s.listening()
		if strings.Contains(got, "echo first") {
			s.keys("Down", "Down")
		}
		s.keys("Enter")
		time.Sleep(400 * time.Millisecond)
	}
	if got := s.result("first"); strings.Count(got, "ALLOW") != 2 {
		t.Errorf("first: %q", got)
	}
	if got := s.result("second"); strings.Count(got, "BLOCK denied by ann") != 2 {
		t.Errorf("second: %q", got)
	}
	s.sane()
}

// TestKilled: a process that is told to end, or killed, while it asks leaves a
// terminal that works, at the latest when the next asks.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, sig := range []string{"TERM", "KILL"} {
		t.Run(sig, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 80, 24)
			s.ask("out", 1, "git push origin v")
			s.see("allow this?")
			pid := strings.TrimSpace(s.pid("out"))
			if err := exec.Command("kill", "-"+sig, pid).Run(); err != nil {
				t.Fatal(err)
			}
			if sig == "TERM" {
				if got := s.result("out"); !strings.HasPrefix(got, "BLOCK") {
					t.Errorf("got %q", got)
				}
				s.sane()
			}
			time.Sleep(300 * time.Millisecond)
			s.ask("next", 1, "git push origin w")
			s.see("allow this?", "origin w1")
			s.listening()
			s.keys("Enter")
			if got := s.result("next"); got != "BLOCK denied by ann (tty)" {
				t.Errorf("next: %q", got)
			}
			s.sane()
		})
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

// TestPlainTerminal: on a terminal that cannot be drawn on, the same choices
// stand in numbered lines.
func TestPlainTerminal(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"":  "BLOCK denied by ann (tty)",
		"3": "ALLOW approved once by ann (tty)",
	} {
		s := newScreen(t, 80, 30)
		s.ask("out", 1, "git push origin v", "TERM=dumb")
		s.see("allow this?", "git push origin v1", "3. Approve once", "Enter a number")
		if keys != "" {
			s.keys(keys)
		}
		s.keys("Enter")
		if got := s.result("out"); got != want {
			t.Errorf("%q: got %q, want %q", keys, got, want)
		}
		s.sane()
	}
	s := newScreen(t, 80, 30)
	s.ask("out", 1, "git push origin v", "TERM=dumb", "SHIELD_TIMEOUT=1s")
	if got := s.result("out"); !strings.HasPrefix(got, "BLOCK nobody answered") {
		t.Errorf("got %q", got)
	}
	s.sane()
}

// TestHostilePayload: whatever is asked about, the question and the choices are
// on the screen, and no more lines than it has.
func TestHostilePayload(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"many lines":            strings.Repeat("x\n", 5000),
		"one long line":         strings.Repeat("y", 60000),
		"escapes":               "\x1b[2J\x1b[H\x1b]0;x\x07" + strings.Repeat("\r\n", 50),
		"wide":                  strings.Repeat("漢", 3000),
		"poses as the question": "\n\n> Deny\n5:00 left  shield: allow this?\n",
	} {
		for _, size := range [][2]int{{80, 24}, {40, 24}, {40, 10}} {
			r, err := newTest(t, &memory{}).newRequest(t.Context(), command1(t, text, "s"), true)
			if err != nil {
				t.Fatal(err)
			}
			q := newQuestion(r, size[0], size[1], false)
			q.Init()
			for range 3 {
				view := q.View()
				lines := strings.Split(view, "\n")
				if len(lines) > size[1] {
					t.Errorf("%s at %v: %d lines", name, size, len(lines))
				}
				if !strings.Contains(lines[0], "allow this?") || !strings.Contains(view, "> Deny") || !strings.Contains(view, "Approve once") {
					t.Errorf("%s at %v:\n%s", name, size, view)
				}
				if strings.ContainsAny(strings.ReplaceAll(view, "\n", ""), "\r\x07\u202e") {
					t.Errorf("%s at %v: control characters:\n%q", name, size, view)
				}
				for _, line := range lines[1 : 1+q.window()] {
					if strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "5:00") {
						t.Errorf("%s at %v: poses as shield: %q", name, size, line)
					}
				}
				q.scroll(-1)
				q.top += 1000
				q.clamp()
			}
		}
	}
}
