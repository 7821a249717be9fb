package reexec

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	Main(m, func(arg string) error {
		fmt.Printf("child %q\n", arg)
		if arg == "fails" {
			return errors.New("as asked")
		}
		return nil
	})
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]int{"": 0, "a\nb": 0, "fails": 1} {
		cmd := Command(t, arg)
		cmd.Stderr = nil
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want || string(out) != fmt.Sprintf("child %q\n", arg) {
			t.Errorf("%q: status %d, printed %q; want %d", arg, got, out, want)
		}
	}
}
