package scripttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestParams is not parallel: it sets the environment, which scripts must not see.
func TestParams(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "/of/the/tests")
	}
	said := 0
	params := Params(t, "../..", map[string]Command{"say": func(ts *testscript.TestScript, _ bool, args []string) {
		said++
		fmt.Fprintln(ts.Stdout(), strings.Join(args, " "))
		for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"} {
			if ts.Getenv(name) == "/of/the/tests" {
				ts.Fatalf("%s is that of the tests", name)
			}
		}
	}})
	t.Run("scripts", func(t *testing.T) { testscript.Run(t, params) })
	if said != 2 {
		t.Errorf("%d commands ran, want 2", said)
	}
	if _, err := params.Condition("weather"); err == nil {
		t.Error("a condition that there is not is accepted")
	}
}
