package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestAssignedAhead says what is known of a folder for temporary files in a command before which
// its variable is assigned, which comes too late for the words of that command.
func TestAssignedAhead(t *testing.T) {
	t.Parallel()
	for text, known := range map[string]bool{
		"rm -rf $TMPDIR/a":                     true,
		"TMPDIR=/tmp/x rm -rf $TMPDIR/a":       true,
		"TMPDIR=/tmp/x/ rm -rf $TMPDIR/a":      true,
		"FOO=/opt rm -rf $TMPDIR/a":            true,
		"TMPDIR=/tmp/../root rm -rf $TMPDIR/a": false,
		"TMPDIR=/opt rm -rf $TMPDIR/a":         false,
		"TMPDIR= rm -rf $TMPDIR/a":             false,
		"TMPDIR=$X rm -rf $TMPDIR/a":           false,
		"TMPDIR=/opt; rm -rf $TMPDIR/a":        false,
	} {
		res := Analyze(text, &effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}})
		got := slices.ContainsFunc(res.Effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.DeleteFile && e.Path == "/tmp/a" })
		if got != known {
			t.Errorf("%s: deletes /tmp/a: %v; effects %+v", text, got, res.Effects)
		}
	}
}
