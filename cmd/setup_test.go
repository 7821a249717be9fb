package cmd

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestSetupIsForPersons checks that an agent cannot set up or undo anything, and can only
// look at what that would change.
func TestSetupIsForPersons(t *testing.T) {
	w := newWorld(t)
	asked := map[int]int{}
	w.checkPersonStartedThisProcess = func(sure int) error {
		asked[sure]++
		return errors.New("an agent started it")
	}
	if err := os.Mkdir(filepath.Join(w.Home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"setup", "--yes"}, {"setup", "--undo", "--yes"}, {"setup", "--yes", "--preset", "permissive"}} {
		if status, _, errs := run(t, w, "", args...); status != statusFailure || !strings.Contains(errs, "only the user can do this, but an agent started it") {
			t.Errorf("%q: status %d, %s", args, status, errs)
		}
	}
	if asked[personProofNoAgentAncestor] != 3 {
		t.Errorf("asked %v", asked)
	}
	for _, args := range [][]string{{"hook", "uninstall", "claude-code"}, {"hook", "uninstall", "--all"}, {"mcp", "uninstall", "claude-code"}} {
		if status, _, errs := run(t, w, "", args...); status != statusFailure || !strings.Contains(errs, "only the user can do this, but an agent started it") {
			t.Errorf("%q: status %d, %s", args, status, errs)
		}
	}
	if asked[personProofNoAgentAncestor] != 6 {
		t.Errorf("asked %v", asked)
	}
	if below, err := os.ReadDir(filepath.Join(w.Home, ".claude")); err != nil || len(below) > 0 {
		t.Errorf("%v, %v", below, err)
	}
	if status, out, errs := run(t, w, "", "setup", "--dry-run"); status != 0 || !strings.HasSuffix(out, "Nothing was changed.\n") {
		t.Errorf("a dry run: status %d, %s%s", status, out, errs)
	}
}

// TestSetupPlansAgain checks that a setup that waited for an answer keeps settings written meanwhile, also if
// they already have the value that it would set.
func TestSetupPlansAgain(t *testing.T) {
	w := newWorld(t)
	c := cli.NewContext(cli.NewApp(), flag.NewFlagSet("setup", flag.ContinueOnError), nil)
	c.Context = t.Context()
	s := &setupPlan{environment: &w, policyPresetName: "strict"}
	plan := func() {
		t.Helper()
		var err error
		if s.currentSettings, err = loadSettings(c, &w); err != nil {
			t.Fatal(err)
		}
		if err := s.planSettings(c); err != nil {
			t.Fatal(err)
		}
	}
	if plan(); !s.settingsChanged {
		t.Fatal("the preset is not set")
	}
	if err := os.MkdirAll(filepath.Dir(s.shieldSettingsFile.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.shieldSettingsFile.path, []byte("policy: strict\nrate_limit: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if plan(); s.settingsChanged {
		t.Errorf("the file would be replaced by %q", s.newSettingsText)
	}
}
