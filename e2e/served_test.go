//go:build linux || darwin

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/peer"
)

// A served is where the processes of one user run, and their service.
type served struct {
	t     *testing.T
	dir   string
	state string
	env   []string
}

// run runs shield and returns its status and what it wrote.
func (s *served) run(stdin string, args ...string) (status int, out string) {
	s.t.Helper()
	c := exec.Command(builtShield, args...)
	c.Dir, c.Env, c.Stdin = s.dir, s.env, strings.NewReader(stdin)
	text, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		s.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(text)
}

// action returns the action that runs a command.
func action(command string) string {
	return fmt.Sprintf(`{"type":"execute_command","payload":{"command":%q}}`+"\n", command)
}

// hook has the hook of a host judge a command.
func (s *served) hook(command string) (status int, out string) {
	s.t.Helper()
	return s.run(fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":%q,"tool_name":"Bash","tool_input":{"command":%q}}`, s.dir, command), "hook", "claude-code")
}

// TestServed holds that hooks, exec, commands with one action and what snippets run have a running service
// judge, and that nothing counts which another process answers in its place.
func TestServed(t *testing.T) {
	state, err := os.MkdirTemp("", "shield") // since a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	home := t.TempDir()
	s := &served{t: t, dir: filepath.Join(home, "project"), state: state, env: []string{"HOME=" + home, "XDG_STATE_HOME=" + state, "PATH=" + os.Getenv("PATH")}}
	for path, text := range map[string]string{"project/README.md": "", ".config/shield/shield.yaml": "policy: offline\nclassifier: {model: none}\n"} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	service := exec.Command(builtShield, "serve")
	service.Dir, service.Env = home, s.env
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = service.Process.Signal(os.Interrupt)
		_ = service.Wait()
	}
	defer func() { end() }()
	for try := 0; ; try++ {
		if status, out := s.run("", "service", "status"); status == 0 {
			break
		} else if try == 1000 {
			t.Fatal(out)
		}
		time.Sleep(20 * time.Millisecond)
	}
	denied := func(what string, deny bool, status int, out string) {
		t.Helper()
		if said := status != 0 || strings.Contains(out, `"deny"`); said != deny {
			t.Errorf("%s: denied %t, want %t: status %d, %s", what, said, deny, status, out)
		}
	}
	asked := 0
	for _, tt := range []struct {
		name string
		deny bool
		ask  func() (int, string)
	}{
		{"hook", false, func() (int, string) { return s.hook("ls -la") }},
		{"hook", true, func() (int, string) { return s.hook("rm -rf /") }},
		{"exec", false, func() (int, string) { return s.run("", "exec", "--", "ls") }},
		{"exec", true, func() (int, string) { return s.run("", "exec", "--", "rm", "-rf", "/") }},
		{"one action", false, func() (int, string) { return s.run(action("ls"), "run", "--no-action") }},
		{"one action", true, func() (int, string) { return s.run(action("rm -rf /"), "run", "--no-action") }},
		{"a line of bash", false, func() (int, string) { return s.run("", "exec", "--check", "--dialect", "bash", "ls | wc -l") }},
		{"a line of zsh", true, func() (int, string) { return s.run("", "exec", "--check", "--dialect", "zsh", "rm -rf /") }},
	} {
		status, out := tt.ask()
		denied(tt.name, tt.deny, status, out)
		asked++
		if _, out := s.run("", "service", "status"); !strings.Contains(out, fmt.Sprintf("it decided %d of %[1]d requests", asked)) {
			t.Errorf("%s: the service was not asked: %s", tt.name, out)
		}
	}
	end()
	end = s.pretend()
	status, out := s.hook("rm -rf /")
	denied("a hook beside another process", true, status, out)
	status, out = s.run("", "exec", "--", "rm", "-rf", "/")
	denied("exec beside another process", true, status, out)
	status, out = s.run(action("rm -rf /"), "run")
	denied("one action beside another process", true, status, out)
	status, out = s.hook("ls -la")
	denied("a plain hook beside another process", false, status, out)
}

// pretend answers in the place of the service that all is allowed, without its key.
func (s *served) pretend() (end func()) {
	path := filepath.Join(peer.ServiceFolder(filepath.Join(s.state, "shield")), peer.SocketFileName)
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	var asked atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			head := make([]byte, 4+32+4)
			_, _ = io.ReadFull(c, head)
			_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[36:]))+32)
			body := append([]byte{1}, `{"allow":true}`+"\n"...)
			_, _ = c.Write(append(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), bytes.Repeat([]byte{7}, 32)...))
			c.Close()
		}
	}()
	return func() {
		l.Close()
		if n := asked.Load(); n < 4 {
			s.t.Errorf("the other process was asked %d times", n)
		}
	}
}
