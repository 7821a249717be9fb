// Package built builds the program shield for tests that start it. All packages share one build,
// without the race detector, since with it each process takes five times as long and a second more to
// exit.
package built

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/shieldcli/shield/internal/flock"
)

// buildTimeout is how long a test waits for the lock while the tests of another package build
// shield.
const buildTimeout = 10 * time.Minute

// BuildShield builds shield from the sources of this module, and returns the program's path. Its folder
// contains no other program.
func BuildShield() (programPath string, err error) {
	root, err := moduleFolder()
	if err != nil {
		return "", err
	}
	programPath = filepath.Join(root, "build", "test", "bin", "shield")
	if runtime.GOOS == "windows" {
		programPath += ".exe"
	}
	if err := os.MkdirAll(filepath.Dir(programPath), 0o755); err != nil {
		return "", err
	}
	lock, err := flock.New(filepath.Join(root, "build", "test", "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := lock.Lock(context.Background(), buildTimeout); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", programPath, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build shield: %w\n%s", err, out)
	}
	return programPath, nil
}

// moduleFolder returns the folder of the sources.
func moduleFolder() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no parent folder has a go.mod; run this inside the Go module")
		}
		dir = up
	}
	return "", err
}
