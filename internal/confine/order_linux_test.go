//go:build amd64 || arm64

package confine

import (
	"errors"
	"os/exec"
	"reflect"
	"testing"
)

// TestOrder: an order is read as it was written, and one that is not whole is no order.
func TestOrder(t *testing.T) {
	t.Parallel()
	o := &ContainmentInstructions{
		HiddenPaths: []string{"/h/.ssh", "/h/a b\n"}, VisibleTmpPaths: []string{}, WritablePaths: []string{"/w"}, ReadOnlyPaths: []string{}, ProgramPath: "/bin/true", WorkingFolder: "/", Argv: []string{"true", ""}, Env: []string{"A="}, TmpFolder: "/tmp/x",
		SeccompFilterHex: "00ff", PathSyscallsReportedToWatcher: []PathSyscall{{257, 0, 1, 2, false}, {87, -1, 0, -1, true}}, ReadablePathLandlockRights: 5, WritablePathLandlockRights: 1 << 14, UsesNamespaces: true, OnlyTestsContainment: true,
	}
	text := o.Encode()
	var got ContainmentInstructions
	if err := got.decode(text); err != nil || !reflect.DeepEqual(&got, o) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, *o)
	}
	for i := range text {
		if text[i] == 0 && new(ContainmentInstructions).decode(text[:i]) == nil {
			t.Errorf("the first %d bytes of %d were taken for an order", i, len(text))
		}
	}
	if new(ContainmentInstructions).decode(append(text, 0)) == nil {
		t.Error("an order with more behind it was taken")
	}
}

// TestCalled: nothing in the environment makes a program this process.
func TestCalled(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{Argv0: true, "other": false, Argv0 + "x": false} {
		for _, args := range [][]string{{name}, {name, "-test.run=^$"}} {
			if len(args) == 1 && !alone {
				continue // it would run the tests
			}
			cmd := exec.Command("/proc/self/exe")
			cmd.Args, cmd.Env = args, []string{ContainedEnvVarName + "=1"}
			var exit *exec.ExitError
			if err, want := cmd.Run(), len(args) == 1; want != (errors.As(err, &exit) && exit.ExitCode() == statusNotStarted) {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}
