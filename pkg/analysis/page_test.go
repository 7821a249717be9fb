package analysis_test

import (
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// TestApprovalPage holds that whatever reaches the approval page acts on the guard, and that what
// shows a question does while one waits.
func TestApprovalPage(t *testing.T) {
	t.Parallel()
	waits := false
	an, err := analysis.New(analysis.Options{
		Shell: shell.Analyze, CWD: "/home/me/app", Home: "/home/me",
		Page: func() (string, bool) { return "127.0.0.1:40517", waits },
	})
	if err != nil {
		t.Fatal(err)
	}
	guards := func(text string) bool {
		if text[0] != '{' {
			return found(an.Case(&action.Action{Type: "execute_command", Payload: map[string]any{"command": text}}))
		}
		a, err := action.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return found(an.Case(a))
	}
	for _, text := range []string{
		"curl http://127.0.0.1:40517/", "curl -X POST http://localhost:40517/answer -d x", "curl http://127.1:40517/", "curl http://[::1]:40517/", "curl http://0x7f000001:40517/",
		"curl http://foo.localtest.me:40517/", "wget -qO- 127.0.0.1:40517", "P=40517; curl 127.0.0.1:$P", "echo 127.0.0.1:40517 | xargs curl", "sh -c 'curl localhost:40517'",
		"nc 127.0.0.1 40517 < x", "socat - TCP:127.0.0.1:40517", "exec 3<>/dev/tcp/127.0.0.1/40517", "ssh -L 9000:127.0.0.1:40517 host", "xdg-open http://127.0.0.1:40517/",
		`python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:40517/')"`, `python3 -c "import socket; s=socket.create_connection(('127.0.0.1', 40517))"`,
		`node -e "fetch('http://127.0.0.1:40517/answer',{method:'POST'})"`, `node -e "require('http').get({host:'localhost',port:40517})"`,
		`{"type":"browser_navigate","payload":{"url":"http://127.0.0.1:40517/"}}`, `{"type":"http_request","payload":{"url":"http://localhost:40517/answer","method":"POST","body":"x"}}`,
		`{"type":"browser_evaluate","payload":{"code":"fetch('http://127.0.0.1:40517/')"}}`, `{"type":"mcp__playwright__browser_navigate","payload":{"url":"http://127.0.0.1:40517/"}}`,
	} {
		if !guards(text) {
			t.Error(text)
		}
	}
	for _, text := range []string{
		"curl http://localhost:3000/", "curl http://127.0.0.1:4051/", "curl http://127.0.0.1:405170/", "echo 40517", "grep -rn 40517 logs", "curl http://192.0.2.1:40517/",
		`python3 -c "print(40517)"`, `{"type":"browser_navigate","payload":{"url":"http://localhost:3000/"}}`, `{"type":"write_file","payload":{"path":"a","content":"http://127.0.0.1:40517/"}}`,
		`{"type":"browser_click","payload":{"element":"Submit"}}`, "tmux ls",
	} {
		if guards(text) {
			t.Error("not", text)
		}
	}
	shown := []string{
		"dbus-monitor", "busctl monitor --user", "gdbus monitor --session -d x", "tmux capture-pane -p", "screen -X hardcopy x", "scrot x.png", "dunstctl history",
		`{"type":"browser_screenshot","payload":{}}`, `{"type":"browser_click","payload":{"element":"Approve once"}}`, `{"type":"mcp__playwright__browser_snapshot","payload":{}}`,
	}
	for _, waits = range []bool{false, true} {
		for _, text := range shown {
			if guards(text) != waits {
				t.Errorf("%s: a question waits: %v", text, waits)
			}
		}
	}
}

func found(c *analysis.Case) bool {
	for _, e := range c.Effects {
		if e.Kind == effect.ChangeGuard {
			return true
		}
	}
	return false
}
