// Package flock locks a file between processes. A waiting process sleeps in
// the kernel until the lock is free, and the kernel frees the lock of a
// process that dies. No wait is without end.
package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// A Lock is a lock file. It excludes other processes and other Locks of this
// process, but not goroutines that share the Lock.
type Lock struct {
	f *os.File

	mu      sync.Mutex
	pending chan error // of a goroutine that waits in the kernel; nil if there is none
	left    bool       // no one waits for pending: what it gets is to be given back
	closed  bool       // by Close, which leaves the file to that goroutine
}

// New opens the lock file at path and creates it if need be, for this user
// alone. The file stays when the Lock is closed. Who removes it must hold the
// lock, and who locks it must then ask [Lock.Named]: otherwise two processes
// hold locks on two files of the same name.
func New(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("open lock file: %s is not a regular file; remove it", path)
	}
	return &Lock{f: f}, nil
}

// A HeldError says that a lock was not free in time.
type HeldError struct {
	Path   string
	Waited time.Duration // 0 if the wait was ended early
	Holder string        // the process that holds it, such as "process 12 (shield)"; "" if unknown
	Err    error         // [ErrHeld], or why the wait ended early
}

// ErrHeld is the cause of a [HeldError] whose time was up.
var ErrHeld = errors.New("another process holds the lock; wait until it ends")

func (e *HeldError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	if e.Waited == 0 {
		return fmt.Sprintf("%s holds the lock %s: %v", holder, e.Path, e.Err)
	}
	return fmt.Sprintf("%s has held the lock %s for over %v; end it and try again", holder, e.Path, e.Waited)
}

// Unwrap returns the cause.
func (e *HeldError) Unwrap() error { return e.Err }

// Lock waits until no other process holds the lock, for wait at most, or until
// ctx ends. The error is a [*HeldError] then.
func (l *Lock) Lock(ctx context.Context, wait time.Duration) error {
	got, err := l.startLocking()
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.f.Name(), err)
	}
	if got == nil {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	held := HeldError{Path: l.f.Name()}
	select {
	case err = <-got:
		l.mu.Lock()
		l.pending = nil
		l.mu.Unlock()
		if err != nil {
			return fmt.Errorf("lock %s: %w", l.f.Name(), err)
		}
		return nil
	case <-timer.C:
		held.Waited, held.Err = wait, ErrHeld
	case <-ctx.Done():
		held.Err = ctx.Err()
	}
	held.Holder = Holder(l.f)
	l.releaseLater(got)
	return &held
}

// releaseLater gives back what the wait got, now or later.
func (l *Lock) releaseLater(got <-chan error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case err := <-got: // just now
		l.pending = nil
		if err == nil {
			_ = unlock(l.f)
		}
	default:
		l.left = true
	}
}

// startLocking takes the lock if it is free, or returns where its being free is told.
func (l *Lock) startLocking() (<-chan error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = false
	if l.pending != nil { // an earlier wait, which the kernel does not end
		return l.pending, nil
	}
	if ok, err := tryLock(l.f); ok || err != nil {
		return nil, err
	}
	got := make(chan error, 1)
	l.pending = got
	go func() {
		err := lock(l.f)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.left {
			l.pending = nil
			switch {
			case l.closed:
				_ = l.f.Close()
			case err == nil:
				_ = unlock(l.f) // as closing would, later
			}
			return
		}
		got <- err
	}()
	return got, nil
}

// Held returns the error for a lock file that another process holds now, for which
// someone has waited that long; nil if it is free, this process's own, or not there.
func Held(path string, waited time.Duration) *HeldError {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if taken, err := tryLock(f); taken || err != nil {
		return nil // closing frees it
	}
	holder := Holder(f)
	own := fmt.Sprintf("process %d", os.Getpid())
	if holder == own || strings.HasPrefix(holder, own+" ") {
		return nil
	}
	return &HeldError{Path: path, Waited: waited, Holder: holder, Err: ErrHeld}
}

// TryLock takes the lock if no one else holds it, and does not wait.
func (l *Lock) TryLock() (taken bool, err error) {
	if taken, err = tryLock(l.f); err != nil {
		return false, fmt.Errorf("lock %s: %w", l.f.Name(), err)
	}
	return taken, nil
}

// Named reports whether the lock file is still the one at path: a process that
// held the lock may have removed it.
func (l *Lock) Named(path string) bool {
	mine, err := l.f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

// Unlock frees the lock.
func (l *Lock) Unlock() error {
	if err := unlock(l.f); err != nil {
		return fmt.Errorf("unlock %s: %w", l.f.Name(), err)
	}
	return nil
}

// Close frees the lock and closes its file. A wait that was given up is still
// one in the kernel; the file is closed when that ends.
func (l *Lock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending != nil {
		l.left, l.closed = true, true
		return nil
	}
	return l.f.Close()
}

// Free frees a lock that something else took on f, where closing f would not:
// a file that is mapped into memory keeps its lock.
func Free(f *os.File) error { return unlock(f) }
