// Package e2e tests shield as what starts it meets it: shells, agent hosts,
// terminals, servers of language models.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/internal/built"
)

// builtShield is shield itself. It is in PATH too.
var builtShield string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "shield-e2e")
	if err == nil {
		err = build(dir)
	}
	status := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		status = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// build builds shield, where the folders of tests can link to it: in a folder for
// temporary files, if these lie on another file system.
func build(dir string) error {
	path, err := built.BuildShield()
	if err != nil {
		return err
	}
	if err := os.Link(path, filepath.Join(dir, "probe")); err != nil {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path = filepath.Join(dir, "shield")
		if err := os.WriteFile(path, text, 0o755); err != nil {
			return err
		}
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
