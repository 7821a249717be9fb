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

	"github.com/shieldcli/shield/internal/ortlib"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"shield": main}) }

// TestScripts runs the command line as a person would: one behaviour a script.
func TestScripts(t *testing.T) {
	t.Parallel()
	repo, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// Beside the working directory: a folder that holds a home is no workspace.
			home := env.WorkDir + "-home"
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", "")
			env.Setenv("XDG_STATE_HOME", "")
			env.Setenv("XDG_DATA_HOME", "")
			env.Setenv("XDG_CACHE_HOME", "")
			env.Setenv("REPO", repo)
			settings := filepath.Join(home, ".config", "shield")
			if err := os.MkdirAll(settings, 0o700); err != nil {
				return err
			}
			// What a script shows must not depend on a model, but where it names one.
			return os.WriteFile(filepath.Join(settings, "shield.yaml"), []byte("classifier: {model: none}\n"), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
		Condition: func(name string) (bool, error) {
			if name != "runtime" {
				return false, fmt.Errorf("no condition is called %q", name)
			}
			return ortlib.Available(), nil
		},
	})
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
