package approve_test

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
)

func ExampleApprover_Judge() {
	a, err := approve.New(approve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := a.Judge(context.Background(), (&analysis.Analyzer{}).AnalyzeAction(&action.Action{Type: "delete_file"}))
	fmt.Println(v.Decision, v.Reasoning, err)
	// Output: BLOCK the user must decide, but cannot be asked (no approval channel is configured; set approval.channels); tell the user to run 'shield doctor' <nil>
}
