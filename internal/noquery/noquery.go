// Package noquery keeps a terminal library from querying the terminal's colours each time shield
// starts. A terminal that does not answer, for example on a build server, would delay the start by
// five seconds. The library sends no query while the environment variable CI is set, so this
// package sets it during initialization.
//
// Go initializes packages in the order of their import paths, each after the packages that it
// imports. So this package is initialized after internal/watch, whose child processes must not
// inherit the variable, and before github.com/charmbracelet/bubbletea, which has to wait for
// golang.org/x/sync, a dependency with a later import path.
package noquery

import (
	"os"

	_ "github.com/shieldcli/shield/internal/watch"
)

var (
	ciVariableValueToRestore string
	wasCIVariableSet         bool // the variable was set, possibly to the empty string
)

func init() {
	if ciVariableValueToRestore, wasCIVariableSet = os.LookupEnv("CI"); ciVariableValueToRestore == "" {
		_ = os.Setenv("CI", "true")
	}
}

// RestoreCIEnvironmentVariable restores the environment, once all packages are initialized.
func RestoreCIEnvironmentVariable() {
	if wasCIVariableSet {
		_ = os.Setenv("CI", ciVariableValueToRestore)
	} else {
		_ = os.Unsetenv("CI")
	}
}
