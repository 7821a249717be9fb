// Package e2e tests shield as what starts it meets it: shells, agent hosts,
// terminals, servers of language models.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// builtShield is shield itself, which every run of the tests builds. It is in
// PATH too.
var builtShield string

func TestMain(m *testing.M) {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func build() error {
	path, err := filepath.Abs(filepath.Join("..", "build", "test", "shield"))
	if err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", path, "..").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	builtShield = path
	return os.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// needs skips a test where a program is not installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}
