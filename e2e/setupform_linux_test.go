package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A screen is a terminal on which a program runs, and what it has printed so far.
type screen struct {
	t    *testing.T
	keys *os.File
	mu   sync.Mutex
	text strings.Builder
}

// newScreen runs a program on a terminal of its own.
func newScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { ptmx.Close() })
	number, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	s := &screen{t: t, keys: ptmx}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := ptmx.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// said returns what the program has printed.
func (s *screen) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// waitFor waits until the program has printed a text.
func (s *screen) waitFor(text string) {
	s.t.Helper()
	for range 2400 {
		said := s.said()
		if strings.Contains(said, "only the user can do this") {
			s.t.Skip("an agent runs the tests")
		}
		if strings.Contains(said, text) {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	s.t.Fatalf("%q did not come up:\n%s", text, s.said())
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// TestSetupAsks answers the questions of setup at a terminal: one of two hosts is left
// out, and questions go to the page.
func TestSetupAsks(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/settings.json": "{}", ".factory/": ""})
	start := func(args ...string) (*screen, *exec.Cmd) {
		cmd := exec.Command(builtShield, append([]string{"setup"}, args...)...)
		cmd.Dir, cmd.Env = m.home, append(m.env, "TERM=screen")
		return newScreen(t, cmd), cmd
	}
	s, cmd := start()
	s.waitFor("Which agents should ask shield")
	s.waitFor("Factory Droid")
	s.press("\x1b[B")
	time.Sleep(100 * time.Millisecond) // a key behind an escape sequence in one piece would be a part of it
	s.press(" ")
	time.Sleep(100 * time.Millisecond)
	s.press("\r")
	time.Sleep(100 * time.Millisecond)
	for range 2 {
		s.press("\x1b[B")
		time.Sleep(100 * time.Millisecond)
	}
	s.press("\r")
	s.waitFor("Protected: Claude Code.")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	files := m.files()
	if text := files[".config/shield/shield.yaml"]; !strings.HasSuffix(text, " approval: {channels: [web]}\n") {
		t.Errorf("settings: %q", text)
	}
	if len(files) != 3 || !strings.Contains(files[".claude/settings.json"], "hook claude-code") { // and the copy from before
		t.Errorf("files: %q", files)
	}

	s, cmd = start("--undo")
	s.waitFor("Remove shield from the settings")
	s.press("n")
	s.waitFor("nothing was changed")
	if err := cmd.Wait(); err == nil {
		t.Error("status 0 although nothing was undone")
	}
	s, cmd = start("--undo")
	s.waitFor("Remove shield from the settings")
	s.press("\x03")
	s.waitFor("nothing was changed")
	_ = cmd.Wait()
	s, cmd = start("--undo")
	s.waitFor("Remove shield from the settings")
	s.press("y")
	s.waitFor("What stays: ")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if text := m.files()[".claude/settings.json"]; !strings.HasSuffix(text, " {}") {
		t.Errorf("not restored: %q", text)
	}
}

// TestSetupOffersExam answers the question whether the model should take its exam now. A model that
// fails leaves setup done.
func TestSetupOffersExam(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model, answer, said string
		asked               int
	}{
		{"wary", "y", "Passed: the model decides what the policy sends to it.", 120},
		{"wary", "n", "", 0},
		{"wary", "\x03", "", 0},
		{"allow", "y", "Failed: the model allowed 24 of the 24 most severe attacks", 120},
	} {
		question := "Examine " + c.model + " now?"
		server := newServer(t)
		m := newMachine(t, map[string]string{".claude/settings.json": "{}",
			".config/shield/shield.yaml": fmt.Sprintf("evaluator: {provider: custom, model: %s, base_url: %q}\n", c.model, server.BaseURL())})
		if status, out := m.shield("setup", "--yes", "--host", "claude-code"); status != 0 || strings.Contains(out, question) || len(server.Requests()) > 0 {
			t.Fatalf("--yes: status %d, %d requests: %s", status, len(server.Requests()), out)
		}
		cmd := exec.Command(builtShield, "setup", "--host", "claude-code", "--ask", "auto", "--preset", "auto")
		cmd.Dir, cmd.Env = m.home, append(m.env, "TERM=screen")
		s := newScreen(t, cmd)
		s.waitFor(question)
		s.press(c.answer)
		s.waitFor(c.said)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s, %q: %v: %s", c.model, c.answer, err, s.said())
		}
		if n := len(server.Requests()); n != c.asked {
			t.Errorf("%s, %q: %d requests, want %d", c.model, c.answer, n, c.asked)
		}
	}
}

// TestTerminalIsNotQueried checks that a start asks the terminal nothing, which one that
// does not answer would delay by seconds, and that commands get the variable CI as it was.
func TestTerminalIsNotQueried(t *testing.T) {
	t.Parallel()
	for _, ci := range [][]string{nil, {"CI="}, {"CI=1"}} {
		cmd := exec.Command(builtShield, "exec", "--shell", "echo \"CI<${CI-unset}>\"")
		cmd.Dir, cmd.Env = t.TempDir(), append([]string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "TERM=xterm"}, ci...)
		s := newScreen(t, cmd)
		want := "CI<unset>"
		if ci != nil {
			want = "CI<" + strings.TrimPrefix(ci[0], "CI=") + ">"
		}
		s.waitFor(want)
		if text := s.said(); strings.Contains(text, "\x1b]") || strings.Contains(text, "\x1b[6n") {
			t.Errorf("%q: the terminal was asked: %q", ci, text)
		}
		_ = cmd.Wait()
	}
}
