package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
