package flock

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
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
				if err := l.Lock(); err != nil {
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
