package classify

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// What the expressions of rules read of 1,000 real actions. A rule that reads much
// more needs a literal, or a beginning, that few texts have.
func TestExpressionReads(t *testing.T) {
	const mostOfAll, mostOfOne = 30_000, 5_000 // bytes
	eng := newEngine(ruleTable[:], exampleHome, []string{exampleWorkspaceRoot})
	reads := map[string]int{}
	s := newRuleMatchBuffers(eng)
	for _, c := range sampleCases(t) {
		texts := c.TextVariants()
		for i := range eng.rules {
			texts = append(texts, c.FieldTextVariants(eng.rules[i].payloadFields...)...)
		}
		seen := map[analysis.PayloadTextVariant]bool{}
		for _, v := range texts {
			if seen[v] {
				continue
			}
			seen[v] = true
			clear(s.foundTextLiterals)
			prefilter.ScanForLiterals(eng.textLiterals, v.Text, s.foundTextLiterals)
			for id := range eng.patterns {
				p := &eng.patterns[id]
				if s.foundTextLiterals[id/64]&(1<<(id%64)) != 0 && s.containsAllRequiredLiterals(p) && eng.rules[p.ruleIndex].appliesToTextVariant(c, v) {
					_, read := p.re.get(prefilter.NewRegexpFinder).Match(v.Text)
					reads[p.re.expr] += read
				}
			}
		}
	}
	all := 0
	for expr, n := range reads {
		if all += n; n > mostOfOne {
			t.Errorf("%d bytes are read by %s", n, expr)
		}
	}
	t.Logf("%d bytes are read by %d expressions", all, len(reads))
	if all > mostOfAll {
		t.Errorf("%d bytes are read, want at most %d", all, mostOfAll)
	}
}

// sampleCases returns the cases of the sample of real actions.
func sampleCases(t *testing.T) (cases []*analysis.ActionCase) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "sample", "actions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	an := analysis.Analyzer{ShellAnalyzer: shell.Analyze, DefaultExecutionContext: effect.PathContext{CWD: exampleWorkspaceRoot, Home: exampleHome, WorkspaceRoots: []string{exampleWorkspaceRoot}}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		a, err := action.Parse(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, an.AnalyzeAction(a))
	}
	if len(cases) < 1000 || lines.Err() != nil {
		t.Fatalf("%d actions, %v", len(cases), lines.Err())
	}
	return cases
}
