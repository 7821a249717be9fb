// Package scripttest sets up the environment and the conditions of the test scripts in
// testdata/script.
package scripttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/internal/contain"
	"github.com/shieldcli/shield/internal/ortlib"
	"github.com/shieldcli/shield/pkg/host"
)

// A Command is a command of scripts. With negate, it has to fail.
type Command = func(ts *testscript.TestScript, negate bool, args []string)

// Params returns the parameters of the scripts in testdata/script: $HOME is a new folder beside the
// working folder, its shield configuration disables the classifier model, and $REPO is the path of
// the repository.
func Params(t *testing.T, repo string, commands map[string]Command) testscript.Params {
	t.Helper()
	repo, err := filepath.Abs(repo)
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return setUpScript(env, repo) },
		Cmds:                commands,
		Condition: func(name string) (bool, error) {
			switch name {
			case "runtime":
				return ortlib.Available(), nil
			case "contain", "namespaces":
				return isKernelContainmentConditionMet(name), nil
			case "person":
				return isTestRunStartedByPerson(), nil
			}
			return false, fmt.Errorf("no condition is called %q", name)
		},
	}
}

// isKernelContainmentConditionMet reports whether this machine can contain programs by Landlock and seccomp, or for the
// name "namespaces", by namespaces as well.
func isKernelContainmentConditionMet(scriptConditionName string) bool {
	all := contain.ProbeKernelFeatures()
	if scriptConditionName == "contain" {
		all = all[:min(2, len(all))]
	}
	return !slices.ContainsFunc(all, func(m contain.KernelFeature) bool { return !m.Works })
}

// isTestRunStartedByPerson reports whether shield would accept that a person started the tests: no
// ancestor process is an agent host. It is true on systems where shield cannot list the ancestors.
func isTestRunStartedByPerson() bool {
	all, err := ancestry.ProcessAndAncestors(os.Getpid())
	for i := range all {
		environ, _ := ancestry.Environ(all[i].PID)
		if host.OfProcess(&all[i]) != nil || host.OfEnvironment(environ) != nil {
			return false
		}
	}
	return err == nil || errors.Is(err, ancestry.ErrUnsupported)
}

func setUpScript(env *testscript.Env, repo string) error {
	// The home folder is beside the working directory, not in it: shield rejects a workspace that contains the
	// home folder.
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
	// No model is configured: the output of a script must not depend on a model, unless the script
	// itself names one.
	return os.WriteFile(filepath.Join(settings, "shield.yaml"), []byte("classifier: {model: none}\n"), 0o600)
}
