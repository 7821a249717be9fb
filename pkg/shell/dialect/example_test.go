package dialect_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/shell/dialect"
)

func ExampleConvertFishToPOSIXIfEquivalent() {
	fmt.Println(dialect.ConvertFishToPOSIXIfEquivalent("set -x A b"))
	// Output:
	// export A=b true
}
