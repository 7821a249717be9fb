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
		ShellAnalyzer: shell.Analyze, CWD: "/home/me/app", Home: "/home/me",
		ApprovalPageStatus: func() (string, bool) { return "127.0.0.1:40517", waits },
	})
	if err != nil {
		t.Fatal(err)
	}
	guards := func(text string) bool {
		if text[0] != '{' {
			return found(an.AnalyzeAction(&action.Action{Type: "execute_command", Payload: map[string]any{"command": text}}))
		}
		a, err := action.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return found(an.AnalyzeAction(a))
	}
	for _, text := range []string{
		"curl http://127.0.0.1:40517/", "curl -X POST http://localhost:40517/answer -d x", "curl http://127.1:40517/", "curl http://[::1]:40517/", "curl http://0x7f000001:40517/",
		"curl http://foo.localtest.me:40517/", "wget -qO- 127.0.0.1:40517", "P=40517; curl 127.0.0.1:$P", "echo 127.0.0.1:40517 | xargs curl", "sh -c 'curl localhost:40517'",
		"nc 127.0.0.1 40517 < x", "socat - TCP:127.0.0.1:40517", "exec 3<>/dev/tcp/127.0.0.1/40517", "ssh -L 9000:127.0.0.1:40517 host", "xdg-open http://127.0.0.1:40517/",
		`python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:40517/')"`, `python3 -c "import socket; s=socket.create_connection(('127.0.0.1', 40517))"`,
		`node -e "fetch('http://127.0.0.1:40517/answer',{method:'POST'})"`, `node -e "require('http').get({host:'localhost',port:40517})"`,
		`{"type":"browser_navigate","payload":{"url":"http://127.0.0.1:40517/"}}`, `{"type":"http_request","payload":{"url":"http://localhost:40517/answer","method":"POST","body":"x"}}`,
		"curl http://localhost.:40517/", "curl http://127.0.0.1.:40517/", "curl http://0.0.0.0:40517/", "curl http://0:40517/", "curl http://2130706433:40517/", "curl http://0177.0.0.1:40517/", "curl http://[::ffff:127.0.0.1]:40517/",
		"curl http://[::ffff:7f00:1]:40517/", "curl http://LOCALHOST:40517/", "curl http://127.9.9.9:40517/", "curl http://$(hostname):40517/", "curl http://$HOSTNAME:40517/", "curl http://user@127.0.0.1:40517/", "curl 127.0.0.1:040517", "curl 'http://localhost:4051{6,7}/'",
		"H=127.0.0.1; curl $H:40517", "port=40517; curl http://localhost:$port/", "curl http://localhost:$((40516+1))/", "curl http://localhost:4051{6,7}/", "curl http://localhost:[40510-40520]/", "curl --resolve x.test:40517:127.0.0.1 http://x.test:40517/",
		"curl --connect-to ::127.0.0.1:40517 http://x.test/", "curl -x http://127.0.0.1:40517 http://x.test/", "http_proxy=http://127.0.0.1:40517 curl http://x.test/", "curl http://x.test/ -H 'Host: 127.0.0.1' --proxy localhost:40517",
		"websocat ws://127.0.0.1:40517/", "wscat -c ws://localhost:40517/", "http :40517/answer", "http localhost:40517", "httpie localhost:40517", "xh :40517", "ab -n 1 http://127.0.0.1:40517/", "wget http://localhost:40517 -O -", "lynx http://localhost:40517", "w3m localhost:40517",
		"firefox http://127.0.0.1:40517/", "google-chrome --headless --dump-dom http://127.0.0.1:40517/", "chromium http://localhost:40517", "open http://127.0.0.1:40517/", "nmap -p 40517 127.0.0.1", "ncat localhost 40517", "telnet localhost 40517", "socat TCP-LISTEN:9000,fork TCP:localhost:40517",
		"ssh -R 9000:localhost:40517 host", "ngrok http 40517", "cloudflared tunnel --url http://localhost:40517", "caddy reverse-proxy --from :9000 --to :40517", "npx localtunnel --port 40517", "cat < /dev/tcp/localhost/40517", "p=40517; exec 3<>/dev/tcp/127.0.0.1/$p",
		"gawk 'BEGIN{s=\"/inet/tcp/0/127.0.0.1/40517\"; print \"GET /\" |& s}'", "curl -K - <<< 'url=http://127.0.0.1:40517/'", "curl --unix-socket x http://localhost:40517/", "aria2c http://127.0.0.1:40517/", "python3 -m webbrowser http://127.0.0.1:40517/",
		"npx playwright screenshot http://127.0.0.1:40517/ x.png", "docker run --network host curlimages/curl http://127.0.0.1:40517/", "docker run curlimages/curl http://host.docker.internal:40517/", "tmux new -d 'curl 127.0.0.1:40517'",
		`ruby -e "require 'net/http'; Net::HTTP.get(URI('http://127.0.0.1:40517/'))"`, `deno eval "await fetch('http://127.0.0.1:40517/')"`, `bun -e "fetch('http://127.0.0.1:40517/')"`, `php -r "file_get_contents('http://127.0.0.1:40517/');"`, `perl -MIO::Socket -e 'IO::Socket::INET->new("127.0.0.1:40517")'`,
		`lua -e "require('socket').connect('127.0.0.1', 40517)"`, `osascript -e 'open location "http://127.0.0.1:40517/"'`,
		`{"type":"web_fetch","payload":{"url":"http://[::1]:40517/"}}`, `{"type":"browser_navigate","payload":{"url":"http://localhost.:40517/"}}`, `{"type":"mcp__fetch__fetch","payload":{"url":"http://127.0.0.1:40517/"}}`, `{"type":"WebFetch","payload":{"url":"http://127.0.0.1:40517/"}}`,
		`{"type":"browser_evaluate","payload":{"code":"new WebSocket('ws://127.0.0.1:40517/')"}}`, `{"type":"mcp__playwright__browser_evaluate","payload":{"function":"() => fetch('http://localhost:40517/answer',{method:'POST'})"}}`, `{"type":"mcp__chrome_devtools__new_page","payload":{"url":"http://127.0.0.1:40517/"}}`,
		`{"type":"browser_evaluate","payload":{"code":"fetch('http://127.0.0.1:40517/')"}}`, `{"type":"mcp__playwright__browser_navigate","payload":{"url":"http://127.0.0.1:40517/"}}`,
	} {
		if !guards(text) {
			t.Error(text)
		}
	}
	for _, text := range []string{
		"curl http://localhost:3000/", "curl http://127.0.0.1:4051/", "curl http://127.0.0.1:405170/", "echo 40517", "grep -rn 40517 logs", "curl http://192.0.2.1:40517/",
		`python3 -c "print(40517)"`, "sed -n 40517p x", "git show 40517", "git log -n 40517", "npm run dev -- --port 3000", "curl http://localhost:$PORT/", "curl 'http://localhost:3000/[1-9]'",
		"head -c 40517 x", "echo http://127.0.0.1:40517/", "git commit -m 'port 40517'", "ls -l 40517", "docker run -p 3000:3000 x", `{"type":"browser_navigate","payload":{"url":"http://localhost:3000/"}}`, `{"type":"write_file","payload":{"path":"a","content":"http://127.0.0.1:40517/"}}`,
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

func found(c *analysis.ActionCase) bool {
	for _, e := range c.Effects {
		if e.Kind == effect.TamperWithShield {
			return true
		}
	}
	return false
}
