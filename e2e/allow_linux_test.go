package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A keyboard is a terminal at which a person answers, and what it shows.
type keyboard struct {
	person *os.File
	mu     sync.Mutex
	shown  strings.Builder
}

func (k *keyboard) screen() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown.String()
}

// until waits until the screen matches an expression, and returns its match.
func (k *keyboard) until(t *testing.T, expr *regexp.Regexp) []string {
	t.Helper()
	for range 2400 {
		if m := expr.FindStringSubmatch(k.screen()); m != nil {
			return m
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("%s does not appear:\n%s", expr, k.screen())
	return nil
}

// atKeyboard starts a command as the only program of a new terminal.
func atKeyboard(t *testing.T, cmd *exec.Cmd) *keyboard {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	k := &keyboard{person: person}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := person.Read(b)
			k.mu.Lock()
			k.shown.Write(b[:n])
			k.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return k
}

var approveCode = regexp.MustCompile(`\b([a-z]{3}) Enter: approve once`)

// TestAllow holds that a person at a terminal lets a refused action run once, and only it.
func TestAllow(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	work := filepath.Join(home, "app")
	settings := filepath.Join(home, ".config", "shield")
	for _, dir := range []string{work, settings} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(settings, "shield.yaml"), []byte("approval: {channels: []}\nclassifier: {model: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "TERM=dumb")
	hook := func(session, command string) (status int, said string) {
		t.Helper()
		cmd := exec.Command(builtShield, "hook", "claude-code")
		cmd.Dir, cmd.Env = work, env
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":"t"}`, session, work, command))
		out, _ := cmd.Output()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	reference := regexp.MustCompile(`To allow it: shield allow ([a-z0-9]+)`)
	refused := func(session, command string) string {
		t.Helper()
		status, said := hook(session, command)
		m := reference.FindStringSubmatch(said)
		if status != 2 || m == nil {
			t.Fatalf("%s: status %d, %s", command, status, said)
		}
		return m[1]
	}
	const push = "git push --force origin main"
	ref := refused("s1", push)
	if again := refused("s1", push); again != ref {
		t.Errorf("the same action has the references %s and %s", ref, again)
	}
	if other := refused("s2", push); other == ref {
		t.Errorf("another session has the reference %s too", ref)
	}

	cmd := exec.Command(builtShield, "allow", ref)
	cmd.Dir, cmd.Env = work, env
	k := atKeyboard(t, cmd)
	defer cmd.Wait()
	for range 2400 {
		if s := k.screen(); strings.Contains(s, "only the user can do this") {
			t.Skip(s) // an agent runs the tests
		} else if approveCode.MatchString(s) {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	code := k.until(t, approveCode)[1]
	for _, want := range []string{"Allow this once: “" + push + "”", "asked by: claude-code, less than a minute ago", "folder: " + work, "session: s1"} {
		if !strings.Contains(k.screen(), want) {
			t.Errorf("the question lacks %q:\n%s", want, k.screen())
		}
	}
	k.until(t, regexp.MustCompile(`> $`)) // it takes keys
	if _, err := io.WriteString(k.person, code+"\r"); err != nil {
		t.Fatal(err)
	}
	k.until(t, regexp.MustCompile(`Allowed once, until \d\d:\d\d\. Tell the agent to try again\.`))
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}

	if status, said := hook("s1", push+" "); status != 2 {
		t.Errorf("another action ran: %s", said)
	}
	if status, said := hook("s2", push); status != 2 {
		t.Errorf("it ran in another session: %s", said)
	}
	if status, said := hook("s1", push); status != 0 || said != "{}\n" {
		t.Errorf("it does not run: %d %s", status, said)
	}
	if status, said := hook("s1", push); status != 2 {
		t.Errorf("it ran twice: %s", said)
	}
	log, err := os.ReadFile(filepath.Join(home, ".local", "state", "shield", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kind":"allow"`, `"ref":"` + ref + `"`, `allowed this once, until `, `allowed once by `, `"channel":"allow"`} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}
