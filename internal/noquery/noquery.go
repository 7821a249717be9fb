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
	originalCI string
	wasSet     bool // the variable was set, if only to nothing
)

func init() {
	if originalCI, wasSet = os.LookupEnv("CI"); originalCI == "" {
		_ = os.Setenv("CI", "true")
	}
}

// RestoreCI restores the environment, once all packages are initialized.
func RestoreCI() {
	if wasSet {
		_ = os.Setenv("CI", originalCI)
	} else {
		_ = os.Unsetenv("CI")
	}
}
