// Package noquery keeps a library for terminals from asking the terminal for its colours
// when any shield starts: a terminal that does not answer, as on a build server, would cost
// five seconds. It asks nothing while the variable CI is set.
//
// Packages are initialized in the order of their paths, once those that they import are:
// this one after internal/watch, whose processes must not inherit the variable, and
// before github.com/charmbracelet/bubbletea, which waits for golang.org/x/sync.
package noquery

import (
	"os"

	_ "github.com/shieldcli/shield/internal/watch"
)

var (
	before string
	given  bool // the variable was set, if only to nothing
)

func init() {
	if before, given = os.LookupEnv("CI"); before == "" {
		_ = os.Setenv("CI", "true")
	}
}

// End restores the environment, once all packages are initialized.
func End() {
	if given {
		_ = os.Setenv("CI", before)
	} else {
		_ = os.Unsetenv("CI")
	}
}
