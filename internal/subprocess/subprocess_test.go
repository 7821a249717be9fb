//go:build unix

package subprocess

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	o := LimitedOutput{MaxBytes: 5}
	for _, part := range []string{"abc", "def", "ghi"} {
		if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%q: %d, %v", part, n, err)
		}
	}
	if o.String() != "abcde" || string(o.Bytes()) != "abcde" {
		t.Errorf("kept %q", o.String())
	}
}

// TestGroupEndsWithItsLeader starts a program that leaves another behind.
func TestGroupEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!")
	SetOwnProcessGroup(cmd)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	left, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(left, 0); err != nil {
		t.Fatalf("the program left behind is gone already: %v", err)
	}
	KillGroup(cmd)
	for range 3000 {
		if err := syscall.Kill(left, 0); errors.Is(err, syscall.ESRCH) || zombie(left) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d is still there", left)
}

// zombie reports whether a process has ended and its status was not asked for.
func zombie(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
