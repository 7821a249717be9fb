package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/host"
)

// TestStartedByHost holds which processes above shield show that a host has sent an event.
func TestStartedByHost(t *testing.T) {
	t.Parallel()
	const judge = "SHIELD_CONFIG= HOME=/root XDG_CONFIG_HOME= XDG_STATE_HOME= XDG_DATA_HOME= XDG_CACHE_HOME= /usr/bin/shield hook NAME --timeout 50s"
	proc := func(exe string, args ...string) ancestry.Process {
		return ancestry.Process{PID: 7, Parent: 1, Name: exe[strings.LastIndex(exe, "/")+1:], Exe: exe, Args: args}
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, host string
		sent       bool
		above      func(line string) []ancestry.Process // line is the installed one
	}{
		{"a native host", "claude-code", true, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", line), proc("/opt/claude.exe", "claude", "-p", "x"), proc("/usr/bin/bash", "bash")}
		}},
		{"a script of node", "gemini-cli", true, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/bash", "bash", "-c", line), proc("/usr/bin/node", "node", "--max-old-space-size=4096", "/usr/local/bin/gemini", "-p", "x")}
		}},
		{"a package of node", "qwen-code", true, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/bash", "bash", "-c", line), proc("/usr/bin/node", "node", "--expose-gc", "/opt/node_modules/@qwen-code/qwen-code/cli.js", "-p", "x")}
		}},
		{"bash without its files", "copilot", true, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/bash", "/bin/bash", "--norc", "--noprofile", "-c", line), proc("/opt/copilot", "/opt/copilot", "-p", "x")}
		}},
		{"through the user's shell", "codex", true, func(line string) []ancestry.Process {
			inner := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(line, "/bin/sh -c '"), "'"), `'\''`, "'")
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", inner), proc("/usr/bin/zsh", "zsh", "-c", line), proc("/opt/codex", "codex", "exec")}
		}},
		{"the user's shell became sh", "codex", true, func(line string) []ancestry.Process {
			inner := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(line, "/bin/sh -c '"), "'"), `'\''`, "'")
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", inner), proc("/opt/codex", "codex", "exec")}
		}},
		{"a file", "cline", true, func(line string) []ancestry.Process {
			file := filepath.Join(dir, "PostToolUse")
			write(file, "#!/bin/sh\n# written by shield hook install cline\n"+line+"\n")
			return []ancestry.Process{proc("/usr/bin/sh", "sh", file), proc("/opt/cline", "cline")}
		}},
		{"a file with more", "cline", false, func(line string) []ancestry.Process {
			file := filepath.Join(dir, "Other")
			write(file, "#!/bin/sh\n# written by shield hook install cline\nexec 0<forged\n"+line+"\n")
			return []ancestry.Process{proc("/usr/bin/sh", "sh", file), proc("/opt/cline", "cline")}
		}},
		{"the agent's own shell", "claude-code", false, func(string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/bash", "/bin/bash", "-c", "echo '{}' | shield hook claude-code"), proc("/opt/claude", "claude")}
		}},
		{"the line in the agent's shell", "claude-code", false, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", line), proc("/usr/bin/bash", "/bin/bash", "-c", "sh -c x"), proc("/opt/claude", "claude")}
		}},
		{"more than the line", "claude-code", false, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", "echo '{}' | { "+line+"; }"), proc("/opt/claude", "claude")}
		}},
		{"the line with words behind it", "claude-code", false, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", line, "x"), proc("/opt/claude", "claude")}
		}},
		{"another program between", "claude-code", false, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/python3", "python3", "-c", line), proc("/opt/claude", "claude")}
		}},
		{"another host", "claude-code", false, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", line), proc("/opt/codex", "codex")}
		}},
		{"an argument behind others", "claude-code", false, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", line), proc("/usr/bin/python3", "python3", "x.py", "claude")}
		}},
		{"the end of a chain", "claude-code", false, func(line string) []ancestry.Process {
			return []ancestry.Process{proc("/usr/bin/dash", "/bin/sh", "-c", line)}
		}},
	} {
		h, err := host.Named(c.host)
		if err != nil {
			t.Fatal(err)
		}
		shell, err := newToolResultWrapperShellScript(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		err = checkShieldStartedByHost(c.above(shell.wrapCommand("", strings.ReplaceAll(judge, "NAME", c.host), []string{"/usr/bin/sleep", "55"})), h, shell)
		if (err == nil) != c.sent {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
