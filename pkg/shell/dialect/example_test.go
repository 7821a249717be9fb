package dialect_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/shell/dialect"
)

func ExampleConvertFishToPOSIX() {
	fmt.Println(dialect.ConvertFishToPOSIX("set -x A b"))
	// Output:
	// export A=b true
}
