package classify

import (
	"testing"

	"github.com/shieldcli/shield/pkg/shell"
)

func TestExamples(t *testing.T) {
	results, err := Examples(t.Context(), shell.Analyze, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range results {
		if !e.OK() {
			t.Errorf("%s: %s\n\tmatches: %v, want %v, error: %v", e.Rule, e.CommandOrActionJSON, e.Matched, e.WantMatch, e.Err)
		}
	}
}
