package objects_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/grounding"
	"github.com/shieldcli/shield/pkg/grounding/objects"
	"github.com/shieldcli/shield/pkg/shell"
)

func ExampleForbiddenObjectName() {
	an := analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, DefaultExecutionContext: effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}}}
	a, err := action.Parse([]byte(`{"type":"execute_command","payload":{"command":"git push --delete origin release-2"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	named, _ := grounding.ExtractObjectsAndNames("Delete the branch fix-retries, but do not delete the branch release-2.", 10)
	fmt.Printf("%q\n", objects.ForbiddenObjectName(an.AnalyzeAction(a), named, func(name string) string { return name }))
	// Output:
	// "release-2"
}
