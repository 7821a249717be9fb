package flock

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair returns two locks on one file, of which the first is held.
func pair(t *testing.T) (held, other *Lock) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lock")
	var locks [2]*Lock
	for i := range locks {
		l, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		locks[i] = l
	}
	if taken, err := locks[0].TryLock(); !taken || err != nil {
		t.Fatal(taken, err)
	}
	return locks[0], locks[1]
}

// TestHeldError holds what a person reads who has to find out which process to end.
func TestHeldError(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		err  HeldError
		want string
	}{
		{HeldError{Path: "/a", Waited: time.Second, HolderProcessDescription: "process 1 (x)", Err: ErrHeld}, "process 1 (x) has held the lock /a for over 1s; end it and try again"},
		{HeldError{Path: "/a", Waited: time.Second, Err: ErrHeld}, "another process has held the lock /a for over 1s; end it and try again"},
		{HeldError{Path: "/a", Err: context.Canceled}, "another process holds the lock /a (context canceled); wait until it ends"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestClosedLock holds that a lock which was closed says so, and that it was free for
// others from then on.
func TestClosedLock(t *testing.T) {
	t.Parallel()
	held, other := pair(t)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if taken, err := other.TryLock(); !taken || err != nil {
		t.Errorf("closing did not free the lock: %t, %v", taken, err)
	}
	_, tried := held.TryLock()
	for name, err := range map[string]error{
		"TryLock": tried, "Lock": held.Lock(t.Context(), time.Minute), "Unlock": held.Unlock(),
	} {
		if err == nil || errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), other.file.Name()) {
			t.Errorf("%s of a closed lock: %v", name, err)
		}
	}
	if held.IsFileAt(other.file.Name()) || DescribeLockHolderProcess(held.file) != "" {
		t.Error("a closed lock knows its file")
	}
}

// TestCloseWhileWaiting holds that a lock which is closed while a wait of it is in the
// kernel does not keep the lock once that wait ends.
func TestCloseWhileWaiting(t *testing.T) {
	t.Parallel()
	held, waiter := pair(t)
	if err := waiter.Lock(t.Context(), time.Nanosecond); !errors.Is(err, ErrHeld) {
		t.Fatalf("error %v", err)
	}
	if err := waiter.Close(); err != nil {
		t.Fatal(err)
	}
	if taken, err := held.TryLock(); !taken || err != nil {
		t.Errorf("the holder lost its lock: %t, %v", taken, err)
	}
	third, err := New(held.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := third.Lock(t.Context(), time.Minute); err != nil {
		t.Errorf("a closed lock keeps others out: %v", err)
	}
}

// TestHolderOfFree holds that no one is named who does not hold the lock.
func TestHolderOfFree(t *testing.T) {
	t.Parallel()
	held, other := pair(t)
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if name := DescribeLockHolderProcess(other.file); name != "" {
		t.Errorf("%s holds a free lock", name)
	}
}
