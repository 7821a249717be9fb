package classify

import (
	"testing"

	"github.com/shieldcli/shield/pkg/shell"
)

func TestExamples(t *testing.T) {
	results, err := RunRuleExamples(t.Context(), shell.Analyze, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range results {
		if !e.MatchedAsExpected() {
			t.Errorf("%s: %s\n\tmatches: %v, want %v, error: %v", e.RuleID, e.CommandOrActionJSON, e.RuleMatched, e.WantMatch, e.Err)
		}
	}
}
