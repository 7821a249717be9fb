package report_test

import (
	"fmt"
	"os"

	"github.com/shieldcli/shield/pkg/report"
)

func ExampleNewRowShareWithInterval() {
	r := report.NewRowShareWithInterval(58, 60)
	fmt.Printf("%.0f %% (%.0f to %.0f)\n", 100*r.Share, 100*r.IntervalLowerBound, 100*r.IntervalUpperBound)
	// Output:
	// 97 % (89 to 99)
}

func ExampleWritePolicyTestResults() {
	err := report.WritePolicyTestResults(os.Stdout, "tap", []report.PolicyTestResult{
		{Suite: "site", Name: "reads", File: "site.yaml", Line: 3, Want: "ALLOW", Got: "ALLOW", OK: true},
		{Suite: "site", Name: "production", File: "site.yaml", Line: 7, Want: "BLOCK", Got: "ALLOW", DecidingRule: "workspace_reads"},
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// TAP version 14
	// 1..2
	// ok 1 - site: reads
	// not ok 2 - site: production
	//   ---
	//   at: "site.yaml:7"
	//   want: "BLOCK"
	//   got: "ALLOW"
	//   why: ""
	//   ...
}
