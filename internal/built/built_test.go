package built

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestShield holds that packages that begin together get one program.
func TestShield(t *testing.T) {
	t.Parallel()
	type result struct {
		path string
		err  error
	}
	results := make(chan result)
	const together = 3
	for range together {
		go func() {
			path, err := BuildShield()
			results <- result{path, err}
		}()
	}
	paths := map[string]bool{}
	for range together {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		paths[r.path] = true
	}
	for path := range paths {
		out, err := exec.Command(path, "--version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "shield ") || !filepath.IsAbs(path) || len(paths) != 1 {
			t.Errorf("%v: %v, %q", paths, err, out)
		}
	}
}

// TestNoSources is not parallel: the working folder is the process's.
func TestNoSources(t *testing.T) {
	t.Chdir("/")
	if path, err := BuildShield(); err == nil {
		t.Errorf("%s is built from nothing", path)
	}
}
