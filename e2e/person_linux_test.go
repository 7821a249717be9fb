package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAgentCannotAnswer holds that no way in which an agent starts a command that answers
// is treated as a person's. Each line is what a host's shell runs; OUT is where the command
// says its result.
func TestAgentCannotAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs, line string
	}{
		"directly":                   {"sh", `ANSWER >OUT 2>&1`},
		"as another program":         {"sh", `cp BIN ./helper && ./helper session resume --all >OUT 2>&1`},
		"without its environment":    {"env", `env -i HOME="$HOME" ANSWER >OUT 2>&1`},
		"with another environment":   {"env", `env SHIELD_JUDGED= CLAUDECODE= SSH_TTY=/dev/pts/0 ANSWER >OUT 2>&1`},
		"in another session":         {"setsid", `setsid ANSWER >OUT 2>&1`},
		"as an orphan":               {"setsid", `(setsid ANSWER >OUT 2>&1 &)`},
		"in a terminal of script":    {"script", `script -qec 'ANSWER >OUT 2>&1' /dev/null </dev/null`},
		"in an orphan's terminal":    {"script", `(setsid env -i HOME="$HOME" PATH="$PATH" script -qec 'ANSWER >OUT 2>&1' /dev/null </dev/null >/dev/null 2>&1 &)`},
		"in tmux":                    {"tmux", `tmux -S "$PWD/sock" -f /dev/null new-session -d 'ANSWER >OUT 2>&1'`},
		"in tmux of no host":         {"tmux", `setsid -f env -i HOME="$HOME" PATH="$PATH" tmux -S "$PWD/sock" -f /dev/null new-session -d 'ANSWER >OUT 2>&1'`},
		"typed into tmux":            {"tmux", `setsid -f env -i HOME="$HOME" PATH="$PATH" tmux -S "$PWD/sock" -f /dev/null new-session -d sh; until tmux -S "$PWD/sock" send-keys 'ANSWER >OUT 2>&1' Enter 2>/dev/null; do sleep 0.05; done`},
		"in tmux that is attached":   {"script", `tmux -S "$PWD/sock" -f /dev/null new-session -d 'sleep 1; ANSWER >OUT 2>&1'; (setsid script -qec "tmux -S '$PWD/sock' attach" /dev/null </dev/null >/dev/null 2>&1 &)`},
		"in a terminal of a program": {"python3", `(setsid env -i HOME="$HOME" PATH="$PATH" python3 -c 'import pty; pty.spawn(["sh", "-c", "ANSWER >OUT 2>&1"])' </dev/null >/dev/null 2>&1 &)`},
		"in a terminal without a maker": {"python3", `(setsid env -i HOME="$HOME" PATH="$PATH" python3 -c 'import os,pty,time
keeper, shown = pty.openpty()
if os.fork() == 0:
	if os.fork() == 0:
		os.setsid(); os.close(os.open(os.ttyname(shown), os.O_RDWR)); time.sleep(0.5)
		os.execvp("sh", ["sh", "-c", "ANSWER >OUT 2>&1"])
	os._exit(0)
os.wait(); time.sleep(20)' </dev/null >/dev/null 2>&1 &)`},
		"by a hook of git":    {"git", `git init -q . && printf '#!/bin/sh\nANSWER >OUT 2>&1\n' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x`},
		"as a job of at":      {"setsid", `setsid -f env -i HOME="$HOME" sh -c 'cd /; ANSWER >"'"$PWD"'/OUT" 2>&1' </dev/null >/dev/null 2>&1`},
		"as a judged command": {"sh", `(setsid env -i SHIELD_JUDGED=1 HOME="$HOME" PATH="$PATH" script -qec "env -u SHIELD_JUDGED ANSWER >OUT 2>&1" /dev/null </dev/null >/dev/null 2>&1 &)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, program := range strings.Fields("sh tmux setsid " + c.needs) {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed", program)
				}
			}
			dir, err := os.MkdirTemp("", "agent") // short: the path of a socket is bounded
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = exec.Command("tmux", "-S", filepath.Join(dir, "sock"), "kill-server").Run()
				_ = os.RemoveAll(dir)
			})
			sh, err := exec.LookPath("sh")
			if err != nil {
				t.Fatal(err)
			}
			agent := filepath.Join(dir, "claude")
			if err := os.Symlink(sh, agent); err != nil {
				t.Fatal(err)
			}
			line := strings.NewReplacer("ANSWER", builtShield+" session resume --all", "BIN", builtShield, "OUT", "said").Replace(c.line)
			cmd := exec.Command(agent, "-c", line+"\n:")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=")
			if out, err := cmd.CombinedOutput(); err != nil && len(out) > 0 {
				t.Logf("%v: %s", err, out)
			}
			said := ""
			for range 2400 {
				text, _ := os.ReadFile(filepath.Join(dir, "said"))
				if said = string(text); strings.HasSuffix(said, "\n") {
					break
				}
				time.Sleep(25 * time.Millisecond)
			}
			t.Log(said)
			if !strings.Contains(said, "only the user can do this") {
				t.Errorf("%q", said)
			}
		})
	}
}
