package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/shieldcli/shield/internal/built"
	"github.com/shieldcli/shield/internal/scripttest"
)

func TestMain(m *testing.M) {
	testscript.Main(withShield{m}, map[string]func(){"without": without})
}

// A withShield runs the tests with shield in PATH.
type withShield struct{ *testing.M }

func (m withShield) Run() int {
	shield, err := built.BuildShield()
	if err == nil {
		err = os.Setenv("PATH", filepath.Dir(shield)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}

// TestScripts runs what needs a process of its own as a person would: one
// behaviour a script. All other scripts are those of cmd.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripttest.Params(t, ".", map[string]scripttest.Command{"status": status}))
}

// status N CMD ARG... runs CMD and demands exit status N.
func status(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: status N CMD ARG...")
	}
	var exit *exec.ExitError
	got := 0
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}
