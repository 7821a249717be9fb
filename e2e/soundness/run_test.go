//go:build unix

package soundness

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// stubs are the programs that scripts call. Each writes down its name, the
// number of its arguments and these, with a NUL behind each.
var stubs = [...]string{"a0", "a1", "a2"}

// helpers are the other programs that scripts may call: they read and print,
// or write into the folder that the script runs in.
var helpers = [...]string{"cat", "xargs", "find", "env", "tr", "cut", "head", "tail", "sort", "grep", "basename", "tee", "mkdir"}

// A call is one run of a stub: its name and arguments.
type call []string

// A runner runs scripts, one at a time, in a folder that is empty before each.
type runner struct {
	argv []string // the shell, up to the script
	home string   // with bin, work and log in it
}

// newRunner returns a runner of a shell.
func newRunner(t *testing.T, argv []string) *runner {
	t.Helper()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skipf("%s is not installed", argv[0]) // which the gate does not allow
	}
	r := &runner{argv: append([]string{program}, argv[1:]...), home: t.TempDir()}
	bin := filepath.Join(r.home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	stub := "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" $# \"$@\" >>" + r.log() + "\n"
	for _, name := range stubs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"sh": program, argv[0]: program}
	for _, name := range helpers {
		if links[name], err = exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *runner) log() string  { return filepath.Join(r.home, "log") }
func (r *runner) work() string { return filepath.Join(r.home, "work") }

// run runs a script and returns the calls that it made.
func (r *runner) run(t *testing.T, script string) []call {
	t.Helper()
	for _, path := range [...]string{r.work(), r.log()} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(r.work(), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	// Seconds of CPU, blocks of a file, kilobytes of stack.
	limited := append([]string{"-c", `ulimit -t 2; ulimit -f 64; ulimit -s 1024; exec "$0" "$@"`}, r.argv...)
	cmd := exec.CommandContext(ctx, "/bin/sh", append(limited, "-c", script)...)
	cmd.Dir = r.work()
	cmd.Env = []string{"PATH=" + filepath.Join(r.home, "bin"), "HOME=" + r.work(), "LC_ALL=C", "FUNCNEST=40"}
	// Wait returns when no one holds the output any more: what the script left
	// in the background has made its calls then.
	cmd.Stdout = writer{io.Discard}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // its status does not matter
	data, err := os.ReadFile(r.log())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return parseLog(data)
}

// A writer hides what else its writer can do, so that exec makes a pipe.
type writer struct{ io.Writer }

// parseLog reads what the stubs wrote. A script that calls itself without end is stopped, and its
// last call may not be whole.
func parseLog(data []byte) []call {
	words := bytes.Split(data, []byte{0})
	words = words[:len(words)-1]
	var calls []call
	for len(words) >= 2 {
		n, err := strconv.Atoi(string(words[1]))
		if err != nil || n < 0 || len(words) < 2+n {
			break
		}
		c := call{string(words[0])}
		for _, w := range words[2 : 2+n] {
			c = append(c, string(w))
		}
		calls = append(calls, c)
		words = words[2+n:]
	}
	return calls
}
