package classify

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/shell"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestNoModelClears judges real actions with a model that calls everything safe,
// and is sure of it. What no model can know better than the analysis is not
// allowed, and nothing that is asked about or blocked without a model is allowed
// by its word alone.
func TestNoModelClears(t *testing.T) {
	t.Parallel()
	an, err := analysis.New(analysis.Options{Shell: shell.Analyze, Written: shell.Written, Home: "/home/dev", CWD: "/home/dev/project", Roots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	sure := New(Options{Model: scorer{score: Score{Confidence: 1}}, Home: "/home/dev", Roots: []string{"/home/dev/project"}})
	alone := New(Options{Home: "/home/dev", Roots: []string{"/home/dev/project"}})
	rows, final, cleared := 0, 0, map[string]int{}
	for _, name := range []string{"sample/actions.jsonl", "structured/cases.jsonl", "everyday/actions.jsonl"} {
		f, err := os.Open(filepath.Join("..", "..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
			var row struct{ Action json.RawMessage }
			raw := lines.Bytes()
			if json.Unmarshal(raw, &row) == nil && row.Action != nil {
				raw = row.Action
			}
			a, err := action.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			d := doubts(an.Case(a), clearable)
			without, err := alone.Judge(t.Context(), an.Case(a))
			if err != nil {
				t.Fatal(err)
			}
			with, err := sure.Judge(t.Context(), an.Case(a))
			if err != nil {
				t.Fatal(err)
			}
			if d.final {
				final++
			}
			switch {
			case with.Decision != verdict.Allow:
			case d.final:
				t.Errorf("%.200s: allowed though %s", raw, d.reason)
			case without.Rule != "":
				t.Errorf("%.200s: allowed though the rule %s matches", raw, without.Rule)
			case without.Decision != verdict.Allow:
				cleared[without.Reasoning]++
			}
		}
	}
	t.Logf("%d actions, %d with a doubt that nothing clears; %d reasons that SAFE clears", rows, final, len(cleared))
	if rows < 2000 || final < 100 || len(cleared) == 0 {
		t.Error("the rows no longer show it")
	}
}
