package host

import (
	"testing"

	"github.com/shieldcli/shield/internal/ancestry"
)

func TestOfProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    ancestry.Process
		want string // "" for no host
	}{
		{ancestry.Process{Name: "claude", Exe: "/home/me/.local/share/claude/versions/2.1.332"}, "claude-code"},
		{ancestry.Process{Name: "node", Exe: "/usr/bin/node", Args: []string{"claude"}}, "claude-code"},
		{ancestry.Process{Name: "node", Exe: "/usr/bin/node", Args: []string{"node", "/usr/local/bin/gemini", "-p", "x"}}, "gemini-cli"},
		{ancestry.Process{Name: "node", Exe: "/usr/bin/node", Args: []string{"node", "--max-old-space-size=8192", "/usr/lib/node_modules/@google/gemini-cli/dist/index.js"}}, "gemini-cli"},
		{ancestry.Process{Name: "MainThread", Exe: "/usr/bin/node", Args: []string{"/usr/bin/node", "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js"}}, "qwen-code"},
		{ancestry.Process{Name: "node", Exe: "/usr/bin/node", Args: []string{"node", "/home/me/node_modules/opencode-ai/x.js"}}, ""},
		{ancestry.Process{Name: "codex", Exe: "/usr/lib/node_modules/@openai/codex/vendor/codex"}, "codex"},
		{ancestry.Process{Name: "cursor", Exe: "/usr/share/cursor/cursor"}, "cursor"},
		{ancestry.Process{Name: "Cursor.exe", Exe: `C:/Users/me/Cursor.exe`}, "cursor"},
		{ancestry.Process{Name: "code", Exe: "/usr/share/code/code", Args: []string{"/usr/share/code/code", "--type=utility"}}, "copilot"},
		{ancestry.Process{Name: "bash", Exe: "/usr/bin/bash", Args: []string{"-bash"}}, ""},
		{ancestry.Process{Name: "vim", Exe: "/usr/bin/vim", Args: []string{"vim", "/home/me/claude"}}, ""},
		{ancestry.Process{Name: "sshd", Args: []string{"sshd: pi@pts/0"}}, ""},
		{ancestry.Process{}, ""},
	} {
		got := ""
		if h := OfProcess(&c.p); h != nil {
			got = h.Name
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}

func TestMarked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"CLAUDECODE=1": "claude-code", "GEMINI_CLI=1": "gemini-cli", "CLAUDECODE=": "", "CLAUDECODE": "", "HOME=/home/CLAUDECODE=1": "", "": ""} {
		got := ""
		if h := OfEnvironment([]string{"A=b", text}); h != nil {
			got = h.Name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
