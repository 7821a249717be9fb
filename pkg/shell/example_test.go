package shell_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

func ExampleAnalyze() {
	at := &effect.PathContext{CWD: "/home/me/app", Home: "/home/me"}
	for _, e := range shell.Analyze("X=rm; $X -rf ~/.ssh", at).Effects {
		fmt.Println(e.KindForPolicies(), e.Program, e.Args, e.Path, e.Recursive)
	}
	// Output:
	// execute rm [-rf ~/.ssh]  false
	// delete_file  [] /home/me/.ssh true
}
