package facts_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/kind/facts"
)

func ExampleActionKind_Covers() {
	push := facts.ActionKind{ActionFactTexts: []string{"object:main", "program:git", "verb:push"}}
	forced := facts.ActionKind{ActionFactTexts: []string{"object:main", "option:--force", "program:git", "verb:push"}}
	fmt.Println(push.Covers(&forced), forced.Covers(&push))
	// Output:
	// false true
}
