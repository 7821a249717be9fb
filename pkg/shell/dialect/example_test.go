package dialect_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/shell/dialect"
)

func ExampleSameInFish() {
	fmt.Println(dialect.SameInFish("make && ls build"), dialect.SameInFish("make; and ls build"))
	// Output: true false
}
