package dialect_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/shell/dialect"
)

func ExampleFromFish() {
	fmt.Println(dialect.FromFish("set -x A b"))
	// Output:
	// export A=b true
}
