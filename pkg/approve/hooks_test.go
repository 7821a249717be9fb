//go:build unix

package approve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/shieldcli/shield/internal/built"
	"github.com/shieldcli/shield/pkg/audit"
)

// An install is the real program with settings of its own, as a user has it.
type install struct {
	t       *testing.T
	program string
	home    string
	env     []string
}

// builtShield builds shield, once for all tests, and returns where it is.
var builtShield = sync.OnceValues(built.BuildShield)

func newInstall(t *testing.T, env ...string) *install {
	t.Helper()
	program, err := builtShield()
	if err != nil {
		t.Fatal(err)
	}
	in := &install{t: t, program: program, home: t.TempDir()}
	settings := "classifier: {model: none}\napproval: {channels: [web], timeout: 120s}\n"
	if err := os.WriteFile(filepath.Join(in.home, "shield.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	in.env = append([]string{"HOME=" + in.home, "USER=ann", "PATH=" + os.Getenv("PATH"), "SHIELD_CONFIG=" + filepath.Join(in.home, "shield.yaml"), "XDG_STATE_HOME=" + in.home + "/state"}, env...)
	return in
}

func (in *install) command(args ...string) *exec.Cmd {
	cmd := exec.Command(in.program, args...)
	cmd.Env, cmd.Dir = in.env, in.home
	return cmd
}

// A hook is a running shield that judges what an agent's host is about to do.
type hook struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	ended          chan struct{}
}

// hook starts one, and waits until its question is the n-th that waits.
func (in *install) hook(command string, n int) *hook {
	in.t.Helper()
	event, err := json.Marshal(map[string]any{
		"session_id": "s1", "transcript_path": "/x", "cwd": in.home, "hook_event_name": "PreToolUse",
		"tool_name": "Bash", "tool_input": map[string]string{"command": command},
	})
	if err != nil {
		in.t.Fatal(err)
	}
	h := &hook{cmd: in.command("hook", "claude-code", "--timeout", "120s"), ended: make(chan struct{})}
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = bytes.NewReader(event), &h.stdout, &h.stderr
	if err := h.cmd.Start(); err != nil {
		in.t.Fatal(err)
	}
	go func() {
		_ = h.cmd.Wait()
		close(h.ended)
	}()
	in.t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		<-h.ended
	})
	until(in.t, func() bool { return len(in.approvals().Waiting) == n })
	return h
}

// approvals is what "shield approvals" prints in a terminal.
func (in *install) approvals() ApprovalPageState {
	in.t.Helper()
	q, err := ReadApprovalPageState(filepath.Join(in.home, "state", "shield"), time.Now())
	if err != nil {
		in.t.Fatal(err)
	}
	return q
}

// page returns the address of the page, with the code as its fragment.
func (in *install) page() *url.URL {
	in.t.Helper()
	var q ApprovalPageState
	until(in.t, func() bool { q = in.approvals(); return q.PageLink != "" })
	return withCode(in.t, q.PageLink+" with the code "+q.PageLoginCode)
}

// said waits until a hook has ended, and returns what it told its host.
func (h *hook) said(t *testing.T) string {
	t.Helper()
	select {
	case <-h.ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the hook has not ended")
	}
	if strings.Contains(h.stderr.String(), "http") {
		t.Errorf("the host is told the link: %s", &h.stderr)
	}
	return h.stdout.String()
}

// TestHooks has several hooks wait at once and answers them on one page, in a
// browser, with the mouse. The process that serves the page is killed on the
// way.
func TestHooks(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	in := newInstall(t)
	first := in.hook("git push --force origin main", 1)
	second := in.hook("git reset --hard HEAD~3", 2)
	link := in.page()
	b.enter(link)
	b.wait(`document.querySelectorAll("article").length === 2`)
	b.wait(enabled)
	b.pictures("two-waiting")
	// The first process serves the page and has to bring this answer to the second.
	b.keys("article:nth-child(2) .reason", "commit first")
	b.click(`article:nth-child(2) [data-choice="deny"]`)
	if got := second.said(t); !strings.Contains(got, `"deny"`) || !strings.Contains(got, "denied by ann on the approval page (web): commit first") {
		t.Errorf("the second hook said %s", got)
	}
	b.wait(`document.querySelectorAll("article:nth-child(2).receipt").length === 1`)
	third := in.hook("git clean -fdx", 2)
	fourth := in.hook("git push --delete origin dev", 3)
	b.wait(`document.querySelectorAll("article").length === 4`)
	if got := b.eval(`return [...document.querySelectorAll(".number")].map((n) => n.textContent).join()`); got != "1,2,3,4" {
		t.Errorf("numbers %v", got)
	}
	b.wait(enabled)
	b.pictures("receipt-and-waiting")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	b.wait(`document.querySelector("article").dataset.outcome === "gone" && document.querySelectorAll("article:not(.receipt)").length === 2`)
	now := in.approvals()
	for now.PageLink == "" { // until a process that waits has taken the page over
		now = in.approvals()
	}
	if now.PageLink != "http://"+link.Host+"/" || now.PageLoginCode != link.Fragment || len(now.Waiting) != 2 {
		t.Errorf("after the kill: %+v, the link was %s", now, link)
	}
	b.wait(enabled)
	b.click(`article:nth-child(3) [data-choice="once"]`)
	// A host that asks for no answer gets none, so an approval may be silent.
	if got := third.said(t); strings.Contains(got, "deny") || third.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the third hook said %s, status %d", got, third.cmd.ProcessState.ExitCode())
	}
	b.wait(`document.querySelectorAll("article:not(.receipt)").length === 1`)
	b.wait(enabled)
	b.click(`article:nth-child(4) [data-choice="deny"]`)
	if got := fourth.said(t); !strings.Contains(got, `"deny"`) {
		t.Errorf("the fourth hook said %s", got)
	}
	b.wait(`document.getElementById("status").textContent.startsWith("Nothing is waiting.")`)
	b.pictures("receipts")
	for i, want := range []string{"No longer waiting", "Denied by ann at", "Approved once by ann at", "Denied by ann at"} {
		if got := b.text(fmt.Sprintf("article:nth-child(%d) .said", i+1)); !strings.HasPrefix(got, want) {
			t.Errorf("receipt %d: %q, want %q", i+1, got, want)
		}
	}
	// The page is still open when the next hook comes.
	fifth := in.hook("git push --force origin main", 1)
	b.wait(`document.querySelectorAll("article:not(.receipt)").length === 1`)
	b.wait(enabled)
	b.click(`[data-choice="deny"]`)
	if got := fifth.said(t); !strings.Contains(got, `"deny"`) {
		t.Errorf("the fifth hook said %s", got)
	}
	log, err := os.ReadFile(filepath.Join(in.home, "state", "shield", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	answered := 0
	for _, line := range lines {
		var e audit.Entry
		switch err := json.Unmarshal([]byte(line), &e); {
		case err != nil:
			t.Error(err)
		case e.Error == "interrupted": // the judge of the hook that was killed
		case strings.Contains(e.Reasoning, "by ann on the approval page (web)"):
			answered++
		default:
			t.Errorf("the log does not name the person:\n%s", line)
		}
	}
	if answered != 4 {
		t.Errorf("%d answers in the log", answered)
	}
}

// TestHookNotifies has a hook tell a desktop, which is a session bus of its own.
func TestHookNotifies(t *testing.T) {
	t.Parallel()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("dbus-daemon is not installed: no desktop is told")
	}
	socket := filepath.Join(t.TempDir(), "bus")
	address := "unix:path=" + socket
	bus := exec.Command(daemon, "--session", "--nofork", "--address="+address)
	if err := bus.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bus.Process.Kill()
		_ = bus.Wait()
	})
	until(t, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	told := make(notifier, 4)
	if err := conn.Export(told, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName("org.freedesktop.Notifications", dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
	in := newInstall(t, "DBUS_SESSION_BUS_ADDRESS="+address, "DISPLAY=:99")
	in.hook("git push --force https://ann:hunter2hunter2@git.test/x main", 1)
	select {
	case got := <-told:
		if want := "shield: shield is waiting for your answer: shield asks whether to run git push --force https://"; !strings.HasPrefix(got, want) || strings.Contains(got, "hunter2") || !strings.Contains(got, ". Answer at http://127.0.0.1:") || !strings.HasSuffix(got, "/ with the code "+in.page().Fragment) {
			t.Errorf("told %q", got)
		}
	case <-time.After(30 * time.Second):
		t.Error("nobody was told")
	}
}

// A notifier is a desktop: it is called over the bus.
type notifier chan string

func (n notifier) Notify(app string, _ uint32, _, summary, body string, _ []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	n <- app + ": " + summary + ": " + body
	return 1, nil
}
