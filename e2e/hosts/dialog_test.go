//go:build unix

package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/ttytest"
)

// A dialog is how a host asks its person at a terminal.
type dialog struct {
	args  []string       // that start it with a first message; @MODE@ is the mode
	modes []string       // in which the host is told to ask; none where it is told to deny
	call  map[string]any // more arguments of a shell call, with which the host asks by itself
	own   string         // what the screen shows of a question that comes before and that Enter approves; "" where none comes
	asks  string         // what the screen shows while it asks
	no    []string       // keys that answer, and then go on with a second message
	more  bool           // after a no the agent goes on by itself, and the question comes again
	yes   []string
	rule  switched // a rule of the person's own by which the host asks
}

// A screen is a host that runs in tmux.
type screen struct {
	r    *run
	sock string
}

// terminal starts the host at a terminal.
func (r *run) terminal(mode string) *screen {
	r.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		r.t.Skip("tmux is not installed")
	}
	s := &screen{r, filepath.Join(filepath.Dir(r.home), "tmux")}
	command := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "50", "-c", r.work, "env", "-i"}, r.env...)
	command = append(command, "TERM=screen-256color", r.program())
	for _, a := range r.driver.dialog.args {
		command = append(command, strings.ReplaceAll(r.fill.Replace(a), "@MODE@", mode))
	}
	s.tmux(command...)
	ttytest.AttachTmuxClient(r.t, s.sock, 50)
	r.t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.sock, "kill-server").Run() })
	return s
}

func (s *screen) tmux(args ...string) string {
	s.r.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.sock}, args...)...).CombinedOutput()
	if err != nil {
		s.r.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// until waits for something, and reports whether it came.
func (s *screen) until(came func(text string) bool) bool {
	s.r.t.Helper()
	for range 1200 {
		if came(s.tmux("capture-pane", "-p")) {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// question waits until the host asks, and a little longer, in which it must wait.
func (s *screen) question(c call) {
	s.r.t.Helper()
	d, approved := s.r.driver.dialog, false
	asks := func(text string) bool { return strings.Contains(text, d.asks) }
	came := s.until(func(text string) bool {
		if !approved && d.own != "" && strings.Contains(text, d.own) {
			approved = true
			s.tmux("send-keys", "Enter")
		}
		return asks(text)
	})
	if !came {
		s.r.t.Fatalf("the host does not ask:\n%s\n%s", s.tmux("capture-pane", "-p"), s.r.model.told("shield"))
	}
	time.Sleep(3 * time.Second)
	if text := s.tmux("capture-pane", "-p"); !asks(text) || s.r.ran(c) {
		s.r.t.Fatalf("the host does not wait, ran %v:\n%s", s.r.ran(c), text)
	}
}

func (s *screen) press(keys []string) {
	s.r.t.Helper()
	for _, key := range keys {
		s.tmux("send-keys", key)
		time.Sleep(time.Second)
	}
}

// answer presses keys, which must end the question.
func (s *screen) answer(keys []string) {
	s.r.t.Helper()
	s.press(keys)
	if !s.until(func(text string) bool { return !strings.Contains(text, s.r.driver.dialog.asks) }) {
		s.r.t.Fatalf("the question stays:\n%s", s.tmux("capture-pane", "-p"))
	}
}

// TestHostsAsk has shield leave questions to the hosts that wait for a person: no stops
// the command, yes runs it, and the log claims no approval.
func TestHostsAsk(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			installed(t, d)
			if len(d.dialog.modes) == 0 {
				record(t, d.name, map[string]string{"ask": "told to deny"})
				return
			}
			for _, mode := range d.dialog.modes {
				t.Run(mode, func(t *testing.T) { asks(t, d, mode) })
			}
			if !t.Failed() {
				record(t, d.name, map[string]string{"ask": "waits in " + strings.Join(d.dialog.modes, ", ") + "; no stops it, yes runs it"})
			}
		})
	}
}

func asks(t *testing.T, d driver, mode string) {
	c := call{"shell", "touch asked"}
	r := newRun(t, d, []call{c, c}, "20s")
	r.configure("approval: {channels: [host]}\n")
	s := r.terminal(mode)
	s.question(c)
	if text := s.tmux("capture-pane", "-p"); !strings.Contains(text, "shield asks whether to") {
		t.Errorf("the person is not told why:\n%s", text)
	}
	if d.dialog.more {
		s.press(d.dialog.no)
		if !s.until(func(string) bool { return strings.Count(r.log(), `"channel":"host"`) == 2 }) {
			t.Fatalf("the agent does not go on:\n%s", s.tmux("capture-pane", "-p"))
		}
	} else {
		s.answer(d.dialog.no)
	}
	if r.ran(c) {
		t.Fatal("the command ran although the person said no")
	}
	if !d.dialog.more {
		s.tmux("send-keys", "-l", "go on")
		time.Sleep(time.Second)
		s.tmux("send-keys", "Enter")
	}
	s.question(c)
	s.press(d.dialog.yes) // the model may call again at once
	if !s.until(func(string) bool { return r.ran(c) }) {
		t.Errorf("the command did not run although the person said yes:\n%s", s.tmux("capture-pane", "-p"))
	}
	if log := r.log(); strings.Count(log, `"channel":"host"`) < 2 || strings.Contains(log, `"decision":"ALLOW","tier":3`) {
		t.Errorf("the log does not say that the host asked twice, or says that the user approved:\n%s", log)
	}
}

// TestHostsPermission has shield answer hosts before they ask a person, and leave the
// question to the person where a rule of theirs asks for it.
func TestHostsPermission(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			installed(t, d)
			if d.dialog.rule.file == "" {
				record(t, d.name, map[string]string{"permission": "not used"})
				return
			}
			ran := 0 // fewer where the command line leaves some out
			for _, ruled := range []bool{false, true} {
				t.Run(fmt.Sprintf("ruled %v", ruled), func(t *testing.T) { permits(t, d, ruled); ran++ })
			}
			if !t.Failed() && ran == 2 {
				record(t, d.name, map[string]string{"permission": "answered; the person's own rule still asks"})
			}
		})
	}
}

func permits(t *testing.T, d driver, ruled bool) {
	c := call{"shell", "touch wanted"}
	r := newRun(t, d, []call{c}, "20s")
	r.model.more = d.dialog.call
	r.configure("approval: {channels: []}\nhook: {permission_request: \"on\"}\n")
	if out, err := r.command(time.Minute, r.shield, "hook", "install", "--permission-request", "--timeout", "20s", d.name); err != nil {
		t.Fatal(out)
	}
	if ruled {
		d.dialog.rule.apply(r)
	}
	s := r.terminal("default")
	if ruled { // the question may be there before the hook has answered
		if !s.until(func(string) bool { return strings.Count(r.log(), `"type":"execute_command"`) == 2 }) {
			t.Fatalf("the hook was not asked:\n%s", s.tmux("capture-pane", "-p"))
		}
		s.question(c)
		return
	}
	if !s.until(func(string) bool { return r.ran(c) }) {
		t.Errorf("the command did not run by itself:\n%s", s.tmux("capture-pane", "-p"))
	}
}

// log returns shield's audit log.
func (r *run) log() string {
	text, _ := os.ReadFile(filepath.Join(r.home, ".local/state/shield/audit.jsonl"))
	return string(text)
}

// installed skips a test of a host that is not there.
func installed(t *testing.T, d driver) {
	t.Helper()
	if hostsFolder == "" {
		t.Skip("SHIELD_HOSTS names no folder of hosts; run 'make hosts'")
	}
	if _, err := os.Stat((&run{driver: d}).program()); err != nil {
		t.Skipf("not installed: %v", err)
	}
}

// driverOf returns the driver of a host.
func driverOf(name string) driver {
	return drivers[slices.IndexFunc(drivers, func(d driver) bool { return d.name == name })]
}
