package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestLocksExclude(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside, most atomic.Int32
	done := make(chan error)
	for range 4 {
		go func() {
			l, err := New(path)
			if err != nil {
				done <- err
				return
			}
			defer l.Close()
			for range 200 {
				if err := l.Lock(t.Context(), time.Minute); err != nil {
					done <- err
					return
				}
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				inside.Add(-1)
				if err := l.Unlock(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d held the lock at once", n)
	}
}

// A lock that is held is not waited for without end, the error says which it is
// and who holds it, and what was given up is not taken later.
func TestLockIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *Lock {
		l, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	holder, waiter, third := open(), open(), open()
	if err := holder.Lock(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	for range 3 { // one wait in the kernel serves them all
		err := waiter.Lock(t.Context(), time.Nanosecond)
		var held *HeldError
		if !errors.As(err, &held) || !errors.Is(err, ErrHeld) || held.Path != path {
			t.Fatalf("error %v", err)
		}
		if name := fmt.Sprintf("process %d (", os.Getpid()); runtime.GOOS == "linux" && !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name the holder, %q", err, name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waiter.Lock(ended, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v with a context that has ended", err)
	}
	if err := holder.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := third.Lock(t.Context(), time.Minute); err != nil {
		t.Errorf("a wait that was given up keeps the lock: %v", err)
	}
	if err := third.Unlock(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := waiter.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := third.Lock(t.Context(), time.Nanosecond); !errors.Is(err, ErrHeld) {
			t.Fatalf("the lock excludes no other process: %v", err)
		}
		if err := waiter.Unlock(); err != nil {
			t.Fatal(err)
		}
		if err := third.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := third.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "target"), link); err != nil {
		t.Skip(err)
	}
	for name, path := range map[string]string{"symbolic link": link, "folder": dir, "no folder": filepath.Join(dir, "a", "b")} {
		if l, err := New(path); err == nil {
			l.Close()
			t.Errorf("%s: opened", name)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "target")); err == nil {
		t.Error("the link's target was created")
	}
}

func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *Lock {
		t.Helper()
		l, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	try := func(l *Lock, want bool) {
		t.Helper()
		if got, err := l.TryLock(); got != want || err != nil {
			t.Errorf("taken: %v, %v; want %v", got, err, want)
		}
	}
	one, two := open(), open()
	try(one, true)
	try(two, false)
	if err := one.Unlock(); err != nil {
		t.Fatal(err)
	}
	try(two, true)
	try(one, false)
	two.Close()
	try(one, true)
}

// TestNamed holds that a lock knows whether its file is still the one of that
// name: a process that held it may have removed it.
func TestNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	l, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	if !l.IsFileAt(path) {
		t.Error("a lock that was just made is not the one of its name")
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Skip(err)
	}
	if l.IsFileAt(path) {
		t.Error("the lock counts although nothing has its name")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if l.IsFileAt(path) || !l.IsFileAt(path+".old") {
		t.Error("the lock is taken for another file")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l.IsFileAt(path + ".old") {
		t.Error("a closed lock counts")
	}
	for name, do := range map[string]func() error{
		"unlock": l.Unlock,
		"try":    func() error { _, err := l.TryLock(); return err },
		"lock":   func() error { return l.Lock(t.Context(), 1) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s of a closed lock: %v", name, err)
		}
	}
}

// TestFree holds that a lock which something else took on a file is freed
// without closing it.
func TestFree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	other, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if taken, err := held.TryLock(); !taken || err != nil {
		t.Fatal(taken, err)
	}
	if err := UnlockFile(held.file); err != nil {
		t.Fatal(err)
	}
	if taken, err := other.TryLock(); !taken || err != nil {
		t.Errorf("taken: %t, %v", taken, err)
	}
}
