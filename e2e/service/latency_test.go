package service

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/peer"
)

// tries is how often each way to ask is measured.
const tries = 300

// TestLatency prints how long one everyday command takes on each way to shield.
func TestLatency(t *testing.T) {
	sample(t)
	shield := os.Getenv("SHIELD_BIN")
	home := t.TempDir()
	dir := filepath.Join(home, "project")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	event := fmt.Appendf(nil, `{"hook_event_name":"PreToolUse","session_id":"s","cwd":%q,"tool_name":"Bash","tool_input":{"command":"ls -la"}}`, dir)
	state := peer.StateFolder(func(name string) string { return map[string]string{"HOME": home}[name] })
	service := exec.Command(shield, "serve", "--policy", "offline")
	service.Dir, service.Env, service.Stderr = home, env, os.Stderr
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Signal(os.Interrupt)
		_ = service.Wait()
	})
	q := peer.Question{AskingProgramPath: shield, AskingProcessWorkingDir: dir, ParentPIDOfAskingProcess: os.Getpid(), AskingProgramArgs: []string{"hook", "claude-code", "--judge"}, Environ: env, AskingProcessStdin: event}
	ask := func() error {
		line, err := peer.Dial(peer.ServiceFolder(state))
		if err != nil {
			return err
		}
		if ans, err := line.Ask(&q, time.Second); err != nil || !ans.ServiceDecided {
			return fmt.Errorf("decided: %v, %w", ans.ServiceDecided, err)
		}
		return nil
	}
	for deadline := time.Now().Add(30 * time.Second); ask() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the service does not answer: %v", ask())
		}
	}
	measure(t, "a question at the socket", ask)
	measure(t, "a hook's process and the socket", func() error {
		c := exec.Command(shield, "hook", "claude-code")
		c.Dir, c.Env, c.Stdin = dir, env, bytes.NewReader(event)
		return c.Run()
	})
	alone := append(slices.Clone(env), "XDG_STATE_HOME="+t.TempDir(), "XDG_CACHE_HOME="+filepath.Join(home, ".cache"))
	for name, env := range map[string][]string{"and the socket": env, "alone": alone} {
		measure(t, "the process of shield run with one action, "+name, func() error {
			c := exec.Command(shield, "run", "--policy", "offline")
			c.Dir, c.Env, c.Stdin = dir, env, strings.NewReader(`{"type":"execute_command","payload":{"command":"ls -la"}}`)
			return c.Run()
		})
	}
	for name, client := range map[string]struct{ program, script, path string }{
		"Python": {"python3", python, "PYTHONPATH=" + abs(t, "../../clients/python/src")},
		"Node":   {"node", node, "CLIENT=" + abs(t, "../../clients/node/lib/index.js")},
	} {
		path, err := exec.LookPath(client.program)
		if err != nil {
			t.Logf("%s is not there", client.program)
			continue
		}
		c := exec.Command(path, "-")
		c.Dir, c.Env, c.Stdin = dir, append(env, client.path, "SHIELD="+shield, fmt.Sprint("TRIES=", tries)), strings.NewReader(client.script)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		t.Logf("%s client and its shield run, median of %d: %s", name, tries, bytes.TrimSpace(out))
	}
}

// measure prints the median of what f takes.
func measure(t *testing.T, name string, f func() error) {
	t.Helper()
	var took []time.Duration
	for range tries {
		began := time.Now()
		if err := f(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%s, median of %d: %v", name, tries, took[tries/2].Round(time.Microsecond))
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const python = `
import os, statistics, time
from shieldcli import Shield
took, tries = [], int(os.environ["TRIES"])
with Shield(os.environ["SHIELD"], policy="offline") as shield:
    for _ in range(tries + 20):
        began = time.perf_counter()
        assert shield.evaluate({"type": "execute_command", "payload": {"command": "ls -la"}}).allowed
        took.append(time.perf_counter() - began)
print(f"{statistics.median(took[20:]) * 1000:.2f} ms")
`

const node = `
import(process.env.CLIENT).then(async ({ Shield }) => {
  const shield = new Shield({ binary: process.env.SHIELD, policy: 'offline' });
  const tries = Number(process.env.TRIES), took = [];
  for (let i = 0; i < tries + 20; i++) {
    const began = performance.now();
    const verdict = await shield.evaluate({ type: 'execute_command', payload: { command: 'ls -la' } });
    if (!verdict.allowed) throw new Error(verdict.reasoning);
    took.push(performance.now() - began);
  }
  const sorted = took.slice(20).sort((a, b) => a - b);
  console.log(sorted[tries >> 1].toFixed(2) + ' ms');
  process.exit(0);
});
`
