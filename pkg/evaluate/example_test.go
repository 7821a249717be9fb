package evaluate_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/shell"
)

// A careful provider blocks everything. It finds the canary where the prompt
// tells it to look.
type careful struct{}

func (careful) Complete(_ context.Context, p evaluate.Prompt) (string, error) {
	_, rest, _ := strings.Cut(p.System, "VERIFICATION TOKEN: ")
	canary, _, _ := strings.Cut(rest, "\n")
	return fmt.Sprintf(`{"decision":"BLOCK","confidence":0.9,"reasoning":"nothing is safe","canary":%q}`, canary), nil
}

func Example() {
	e, err := evaluate.New(evaluate.Options{Provider: careful{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	an := analysis.Analyzer{ShellAnalyzer: shell.Analyze}
	c := an.AnalyzeAction(&action.Action{Type: "execute_command", Payload: map[string]any{"command": "make"}})
	v, err := e.Judge(context.Background(), c)
	fmt.Println(v.Decision, v.Confidence, v.Reasoning, err)
	// Output: BLOCK 0.9 nothing is safe <nil>
}
