package grounding_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/grounding"
)

func ExampleExtractObjectsAndNames() {
	named, _ := grounding.ExtractObjectsAndNames("Delete the branch fix-retries, but do not delete the branch release-2.", 10)
	for _, n := range named {
		fmt.Println(n.Name, n.WantedOrForbiddenOperations == grounding.OperationDelete, n.AreOperationsForbidden)
	}
	// Output:
	// fix-retries true false
	// release-2 true true
}
