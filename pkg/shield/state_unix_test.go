//go:build unix

package shield

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// What stands in the place of one of shield's own files, and is none, is
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
			if v := p.Evaluate(t.Context(), parse(t, mail)); v.Decision != verdict.Allow {
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
				v := p.Evaluate(t.Context(), parse(t, mail))
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
