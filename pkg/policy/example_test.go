package policy_test

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/shell"
)

func Example() {
	p, err := policy.Load("site.yaml", []byte(`
extends: offline
deny:
  - name: production
    reason: production data is not for agents; use the copy in testdata
    action_types: [read_file]
    paths: [/srv/production/**]
`), policy.Options{FoldersByGlobVariable: map[string][]string{"WORKSPACE": {"/work/app"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := action.Parse([]byte(`{"type":"execute_command","payload":{"command":"head -3 /srv/production/users.csv"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	an := analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, DefaultExecutionContext: effect.PathContext{CWD: "/work/app", WorkspaceRoots: []string{"/work/app"}}}
	v, err := p.Judge(context.Background(), an.AnalyzeAction(a))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Decision, v.Reasoning)
	// Output: BLOCK policy deny [production]: production data is not for agents; use the copy in testdata (read_file /srv/production/users.csv)
}
