package analysis_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
)

func ExampleAnalyzer_AnalyzeAction() {
	an, err := analysis.New(analysis.Options{CWD: "/home/me/app", Home: "/home/me"})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := an.AnalyzeAction(&action.Action{Type: "move_file", Payload: map[string]any{"source": "notes", "destination": "~/.bashrc"}})
	for _, e := range c.Effects {
		fmt.Println(e.KindForPolicies(), e.Path)
	}
	fmt.Println(c.MinAllowTier, c.HasOnlyHarmlessEffects())
	// Output:
	// move_file /home/me/app/notes
	// write_file /home/me/.bashrc
	// write_file /home/me/.bashrc/notes
	// persist /home/me/.bashrc
	// 2 false
}
