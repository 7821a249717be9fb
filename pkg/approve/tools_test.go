package approve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/state"
)

// TestToolRead: the class of a tool is read again once any class has changed, by whichever
// process, and not before.
func TestToolRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	opened := func() *DecisionStore {
		file, err := state.Open(dir, state.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return &DecisionStore{Store: file, Clock: clock}
	}
	one, other := opened(), opened()
	class := func(binding string) analysis.ToolClass {
		t.Helper()
		said, _, err := one.FindToolClass(t.Context(), binding)
		if err != nil {
			t.Fatal(err)
		}
		return said.Class
	}
	for _, want := range []analysis.ToolClass{"", analysis.ToolClassReadOnly, analysis.ToolClassForbidden} {
		if want != "" {
			if err := other.SetToolClass(t.Context(), "a", ToolClassAnswer{Tool: "a", Class: want}); err != nil {
				t.Fatal(err)
			}
		}
		if got, b := class("a"), class("b"); got != want || b != "" {
			t.Errorf("classes %q and %q, want %q and none", got, b, want)
		}
	}
	if err := os.Remove(filepath.Join(dir, "state.db")); err != nil {
		t.Fatal(err)
	}
	if got := class("a"); got != analysis.ToolClassForbidden {
		t.Errorf("class %q: it was read again", got)
	}
}
