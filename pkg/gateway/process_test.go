//go:build unix

package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string, errs io.Writer) *ServerProcess {
	t.Helper()
	p, err := StartServerProcess("/bin/sh", []string{"sh", "-c", script}, os.Environ(), t.TempDir(), errs, nil, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.End(true) })
	return p
}

// TestProcessEnds holds that a server ends when its input does, with what it has
// started, and whose status it is.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	p := shell(t, "sleep 600 & echo $!; cat; exit 3", io.Discard)
	var b [32]byte
	n, err := p.FromPeer.Read(b[:])
	if err != nil {
		t.Fatal(err)
	}
	left, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.End(false); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("it ends with %v", err)
	}
	for range 3000 {
		state, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(left), "stat"))
		if syscall.Kill(left, 0) != nil || err == nil && strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d is still there", left)
}

// TestProcessIsHurried holds that a server that ignores all is ended.
func TestProcessIsHurried(t *testing.T) {
	t.Parallel()
	p := shell(t, `trap "" TERM INT HUP; echo up; while :; do sleep 1; done`, io.Discard)
	var b [3]byte
	if _, err := io.ReadFull(p.FromPeer, b[:]); err != nil {
		t.Fatal(err)
	}
	if err := p.End(true); err == nil {
		t.Error("it ends by itself")
	}
	if _, err := io.ReadAll(p.FromPeer); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestErrorsOfServerAreVisible(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := shell(t, `printf 'a\033[2Jb\r\nc\tde\n' >&2; printf '%9000s\n' x >&2`, &b)
	if err := p.End(false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if lines[0] != "a<U+001B>[2Jb" || lines[1] != "c    de" || len(lines[2]) > maxStderrLineBytes+10 || !strings.HasSuffix(lines[2], "…") {
		t.Errorf("%q", b.String())
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	t.Parallel()
	if _, err := StartServerProcess(filepath.Join(t.TempDir(), "none"), []string{"none"}, nil, "", io.Discard, nil, 0, nil); err == nil {
		t.Error("it has started")
	}
}

// TestPooledProcesses holds that the processes for requests without a session are no
// more than the limit, busy and idle together, and that a client gets its own again.
func TestPooledProcesses(t *testing.T) {
	t.Parallel()
	var started []*ServerProcess
	opts := Options{Judge: &fakeJudge{}, Server: Server{Name: "s"}, AcceptedToolPins: openTestPins(t, t.TempDir(), "s")}
	e := NewEndpointForStdioServer(opts, func() (*ServerProcess, error) {
		started = append(started, shell(t, "cat >/dev/null", io.Discard))
		return started[len(started)-1], nil
	})
	defer e.Close()
	l := e.backend.(*localServer)
	take := func(client string, n int) (taken []*localProcess) {
		t.Helper()
		for range n {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/s", nil)
			if err != nil {
				t.Fatal(err)
			}
			one, err := l.reuseOrStartProcess(&httpExchange{endpoint: e, clientName: client, req: req})
			if err != nil {
				t.Fatal(err)
			}
			if taken = append(taken, one); len(l.idle)+len(l.processSlots) > maxPooledProcesses {
				t.Errorf("%s: %d processes are idle and %d busy", client, len(l.idle), len(l.processSlots))
			}
		}
		return taken
	}
	giveBack := func(list []*localProcess) {
		for _, one := range list {
			l.returnProcessToPool(one)
		}
	}
	giveBack(take("ann", maxPooledProcesses))
	bobs := take("bob", 1)
	giveBack(take("ann", maxPooledProcesses-1)) // all of which wait for her
	if len(started) != maxPooledProcesses+1 {
		t.Errorf("%d processes were started", len(started))
	}
	giveBack(append(bobs, take("bob", maxPooledProcesses-1)...))
	giveBack(take("ann", maxPooledProcesses))
	if len(l.idle) != maxPooledProcesses || l.busy != 0 {
		t.Errorf("%d processes are idle and %d busy in the end", len(l.idle), l.busy)
	}
	for i, p := range started[:len(started)-maxPooledProcesses] {
		select {
		case <-p.done:
		case <-time.After(time.Minute):
			t.Fatalf("process %d has not ended", i)
		}
	}
}
