// Package reexec lets a test start its own binary as another process: for tests
// of what several processes share, and of what a killed one leaves behind.
package reexec

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// testChildEnvVariable tells a process that [Command] has started it, and holds its argument.
const testChildEnvVariable = "SHIELD_TEST_CHILD"

// Main is the body of a TestMain function. In a process that [Command] started, it calls child with
// the argument; in any other process it runs the tests. If child returns an error, Main prints it
// and exits with status 1.
func Main(m *testing.M, child func(arg string) error) {
	arg, ok := os.LookupEnv(testChildEnvVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := child(arg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Command returns the command of a process that runs the child of [Main] with an
// argument. It writes its errors where the test does.
func Command(t testing.TB, arg string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), testChildEnvVariable+"="+arg)
	cmd.Stderr = os.Stderr
	return cmd
}
