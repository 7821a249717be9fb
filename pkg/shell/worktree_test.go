package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestWorktree holds that git removes a working tree only where nothing in it is lost,
// unless it is forced to.
func TestWorktree(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"git worktree remove wt":              true,
		"git -C . worktree remove wt":         true,
		"git worktree remove --force wt":      false,
		"git worktree remove wt -f":           false,
		"git worktree remove -ff wt":          false,
		"rm -rf wt":                           false,
		"git worktree remove wt; rm -rf wt":   false,
		"rm -rf wt && git worktree remove wt": false,
	} {
		var lost, kept bool
		for _, e := range Analyze(text, here()).Effects {
			if e.KindForPolicies() == effect.DeleteFile {
				lost, kept = lost || !e.IsRestorableWithoutBackup, true
			}
		}
		if got := kept && !lost; got != want {
			t.Errorf("%s: loses nothing: %t", text, got)
		}
	}
	if !slices.ContainsFunc(Analyze("git worktree remove wt", here()).Effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.DeleteFile && e.Recursive }) {
		t.Error("a working tree that is removed is not deleted")
	}
}
