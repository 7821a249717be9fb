//go:build amd64 || arm64

package contain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// init is the containing process: it makes the view that the program gets, starts it from a
// thread that is held to the profile, and stays until the program has ended, whose children
// end with it.
func init() {
	if len(os.Args) == 1 && os.Args[0] == argv0 {
		syscall.Exit(inner()) // in a test with the race detector os.Exit waits for a second
	}
}

// hurry is how long a program may take to end that is in a hurry.
const hurry = time.Second

// failed is the status where the program did not start.
const failed = 126

func inner() int {
	unix.CloseOnExec(specFile)
	unix.CloseOnExec(reportFile)
	report := os.NewFile(reportFile, "report")
	fail := func(stage string, err error) int {
		fmt.Fprintln(report, stage, err)
		return failed
	}
	// What the standard streams are not, the program does not get: folders and sockets
	// that are open reach around every path.
	if err := unix.CloseRange(specFile, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail("files", err)
	}
	var o order
	data, err := io.ReadAll(os.NewFile(specFile, "order"))
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		return fail("order", err)
	}
	ends := make(chan os.Signal, 8)
	signal.Notify(ends, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	if os.Getpid() != 1 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fail("processes", err)
		}
	}
	if o.Namespaces {
		if err := view(&o); err != nil {
			return fail("namespaces", err)
		}
	}
	o.Env = slices.DeleteFunc(o.Env, func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") })
	o.Env = append(o.Env, "TMPDIR="+o.Tmp)
	type result struct {
		pid   int
		watch int
		stage string
		err   error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: it is no thread for anything else
		fd, stage, err := restrict(&o)
		if err != nil || o.Probe {
			started <- result{0, fd, stage, err}
			return
		}
		pid, err := syscall.ForkExec(o.Path, o.Argv, &syscall.ProcAttr{
			Dir: o.Dir, Env: o.Env, Files: []uintptr{0, 1, 2},
			Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, // when this thread ends
		})
		started <- result{pid, fd, "exec", err}
		select {}
	}()
	got := <-started
	if errno, ok := got.err.(syscall.Errno); ok && got.stage == "exec" {
		fmt.Fprintln(report, "exec", int(errno))
		return failed
	}
	if got.err != nil {
		return fail(got.stage, got.err)
	}
	fmt.Fprintln(report, "ready")
	go (&watcher{&o, got.watch, report, map[Refusal]bool{}}).run() // until then the program waits
	if o.Probe {
		return 0
	}
	go func() {
		for s := range ends {
			if s == unix.SIGTERM || s == unix.SIGHUP { // a terminal sends the others to all
				_ = unix.Kill(got.pid, s.(syscall.Signal))
				if o.Hurry { // or this process is killed before it has ended what the program leaves
					time.AfterFunc(hurry, func() { _ = unix.Kill(got.pid, unix.SIGKILL) })
				}
			}
		}
	}()
	status := wait(got.pid)
	if os.Getpid() != 1 { // as the first of its namespace it takes all with it
		endAll()
	}
	return status
}

// wait waits for a process, and for those that have lost their parent.
func wait(pid int) int {
	for {
		var status unix.WaitStatus
		switch got, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil:
			return failed
		case got != pid:
		case status.Signaled():
			return 128 + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}

// endAll ends all that a contained program has left: whoever loses its parent becomes a
// child of this process.
func endAll() {
	for {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			got, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.ECHILD {
				return
			}
			if got <= 0 && err != unix.EINTR {
				break
			}
		}
		if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
			return
		}
	}
}

// children returns the processes whose parent this one is.
func children() (out []int) {
	names, _ := os.ReadDir("/proc")
	for _, e := range names {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may hold anything
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(os.Getpid()) {
			out = append(out, pid)
		}
	}
	return out
}
