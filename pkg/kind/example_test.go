package kind_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/kind"
	"github.com/shieldcli/shield/pkg/shell"
)

func ExampleOfAction() {
	an := analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, DefaultExecutionContext: effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}}}
	of := func(command string) (kind.ActionKind, error) {
		a, err := action.Parse(fmt.Appendf(nil, `{"type":"execute_command","payload":{"command":%q}}`, command))
		if err != nil {
			return kind.ActionKind{}, err
		}
		return kind.OfAction(an.AnalyzeAction(a), nil, func(int) bool { return true })
	}
	answered, err := of("git push origin main")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, command := range []string{"git push origin main", "git push --force origin main", "cat ~/.ssh/id_rsa"} {
		k, err := of(command)
		fmt.Println(command, answered.Covers(&k), err)
	}
	// Output:
	// git push origin main true <nil>
	// git push --force origin main false <nil>
	// cat ~/.ssh/id_rsa false the action touches a folder with credentials, settings that run code, or files of shield
}
