//go:build unix

package shield

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// What is in the place of one of shield's own files, and is none, is
// refused at once, without waiting for the other side of a FIFO.
func TestPipesForFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"seal.key", "state.db", "state.lock", "log.head", "log.head.lock", "audit.jsonl", "audit.jsonl.lock"} {
		for kind, make := range map[string]func(string) error{
			"FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"folder": func(path string) error { return os.Mkdir(path, 0o700) },
			"link":   func(path string) error { return os.Symlink(path+".elsewhere", path) },
		} {
			cfg := stateful(t.TempDir())
			p := pipelineOf(t, cfg)
			if v := p.Evaluate(t.Context(), parse(t, note)); v.Decision != verdict.Allow {
				t.Fatalf("%s: %s", v.Decision, v.Reasoning)
			}
			p.Close()
			path := filepath.Join(cfg.StateDir, name)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := make(path); err != nil {
				t.Skip(err)
			}
			var reason string
			if p, err := NewPipeline(cfg); err != nil {
				reason = err.Error()
			} else {
				v := p.Evaluate(t.Context(), parse(t, note))
				p.Close()
				if v.Decision != verdict.Block {
					t.Errorf("%s for %s: %s", kind, name, v.Decision)
				}
				reason = v.Reasoning
			}
			if !strings.Contains(reason, name) {
				t.Errorf("%s for %s: %q does not name it", kind, name, reason)
			}
		}
	}
}

// TestLockIsNamed holds that an entry which another process keeps from the log is said to
// wait for that process's lock.
func TestLockIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock")
	}
	for _, name := range []string{"audit.jsonl.lock", "log.head.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := config.Default()
			s.Approval.Channels, s.Classifier.ModelNameOrDir = nil, "none"
			cfg := Config{Settings: &s, Home: "/home/me", WorkingDir: "/work/app", StateDir: t.TempDir(), IgnoresFileSystem: true, Clock: instant}
			p := pipelineOf(t, cfg)
			read := parse(t, `{"type":"read_file","payload":{"path":"a.txt"}}`)
			if v := p.Evaluate(t.Context(), read); v.Decision != verdict.Allow {
				t.Fatal(v.Reasoning)
			}
			path := filepath.Join(cfg.StateDir, name)
			cmd := exec.Command("flock", "-x", path, "sh", "-c", "echo held; exec cat")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				in.Close()
				_ = cmd.Wait()
				p.Evaluate(context.Background(), read) // when it is logged, nothing waits any more
			}()
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			v := p.Evaluate(t.Context(), read)
			if v.Decision != verdict.Block || !strings.Contains(v.Reasoning, path) || !strings.Contains(v.Reasoning, "end it and try again") {
				t.Errorf("%s %s: %s", v.Decision, v.ErrorCode, v.Reasoning)
			}
		})
	}
}
