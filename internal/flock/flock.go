// Package flock locks a file between processes. A waiting process sleeps in the kernel until the lock
// is free, and the kernel releases the lock of a process that dies. Every wait has a time limit.
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
	file *os.File

	mu            sync.Mutex
	pendingWait   chan error // result of a goroutine that waits in the kernel; nil if there is none
	waitAbandoned bool       // the wait was given up: the lock must be released when it is obtained
	closed        bool       // Close was called; the goroutine closes the file
}

// New opens the lock file at path and creates it if needed, accessible to this user only. The file
// remains when the Lock is closed. A process that removes it must hold the lock, and after locking
// every process must check [Lock.IsFileAt]; otherwise two processes can lock different files of the same
// name.
func New(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("open lock file: %s is not a regular file; remove it", path)
	}
	return &Lock{file: f}, nil
}

// A HeldError says that a lock was not free within the time limit.
type HeldError struct {
	Path                     string
	Waited                   time.Duration // the time limit that passed; 0 if the context ended the wait earlier
	HolderProcessDescription string        // the process that holds it, such as "process 12 (shield)"; "" if unknown
	Err                      error         // [ErrHeld], or why the wait ended early
}

// ErrHeld is the cause of a [HeldError] after a timeout.
var ErrHeld = errors.New("another process holds the lock file; wait until that process ends")

func (e *HeldError) Error() string {
	holder := e.HolderProcessDescription
	if holder == "" {
		holder = "another process"
	}
	if e.Waited == 0 {
		return fmt.Sprintf("%s holds the lock %s (%v); wait until it ends", holder, e.Path, e.Err)
	}
	return fmt.Sprintf("%s has held the lock %s for over %v; end it and try again", holder, e.Path, e.Waited)
}

// Unwrap returns the cause.
func (e *HeldError) Unwrap() error { return e.Err }

// Lock waits until no other process holds the lock, at most for wait or until ctx ends; the error is
// then a [*HeldError].
func (l *Lock) Lock(ctx context.Context, wait time.Duration) error {
	got, err := l.startLocking()
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.file.Name(), err)
	}
	if got == nil {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	held := HeldError{Path: l.file.Name()}
	select {
	case err = <-got:
		l.mu.Lock()
		l.pendingWait = nil
		l.mu.Unlock()
		if err != nil {
			return fmt.Errorf("lock %s: %w", l.file.Name(), err)
		}
		return nil
	case <-timer.C:
		held.Waited, held.Err = wait, ErrHeld
	case <-ctx.Done():
		held.Err = ctx.Err()
	}
	held.HolderProcessDescription = DescribeLockHolderProcess(l.file)
	l.releaseWhenWaitObtainsLock(got)
	return &held
}

// releaseWhenWaitObtainsLock releases the lock when the abandoned wait obtains it.
func (l *Lock) releaseWhenWaitObtainsLock(waitResult <-chan error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case err := <-waitResult: // just now
		l.pendingWait = nil
		if err == nil {
			_ = unlock(l.file)
		}
	default:
		l.waitAbandoned = true
	}
}

// startLocking takes the lock if it is free; otherwise it returns a channel that receives the result
// of waiting.
func (l *Lock) startLocking() (<-chan error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waitAbandoned = false
	if l.pendingWait != nil { // an earlier wait, which cannot be cancelled in the kernel
		return l.pendingWait, nil
	}
	if ok, err := tryLock(l.file); ok || err != nil {
		return nil, err
	}
	got := make(chan error, 1)
	l.pendingWait = got
	go func() {
		err := lock(l.file)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waitAbandoned {
			l.pendingWait = nil
			switch {
			case l.closed:
				_ = l.file.Close()
			case err == nil:
				_ = unlock(l.file) // the caller stopped waiting: release the lock now, and not only on Close
			}
			return
		}
		got <- err
	}()
	return got, nil
}

// CheckLockNotHeld returns an error if another process holds a lock file. It returns nil if the lock is free, or
// if the file cannot be opened, for example because it does not exist. A lock that this process holds is no
// error on Linux; other systems do not report the holder, so there it is one. waited is how long the caller has
// waited; it is stored in the error.
func CheckLockNotHeld(path string, waited time.Duration) *HeldError {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if taken, err := tryLock(f); taken || err != nil {
		return nil // closing f releases the lock
	}
	holder := DescribeLockHolderProcess(f)
	own := fmt.Sprintf("process %d", os.Getpid())
	if holder == own || strings.HasPrefix(holder, own+" ") {
		return nil
	}
	return &HeldError{Path: path, Waited: waited, HolderProcessDescription: holder, Err: ErrHeld}
}

// TryLock takes the lock if it is free, without waiting.
func (l *Lock) TryLock() (taken bool, err error) {
	if taken, err = tryLock(l.file); err != nil {
		return false, fmt.Errorf("lock %s: %w", l.file.Name(), err)
	}
	return taken, nil
}

// IsFileAt reports whether the lock file is still the one at path; a previous holder can have removed it.
func (l *Lock) IsFileAt(path string) bool {
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

// Unlock frees the lock.
func (l *Lock) Unlock() error {
	if err := unlock(l.file); err != nil {
		return fmt.Errorf("unlock %s: %w", l.file.Name(), err)
	}
	return nil
}

// Close releases the lock and closes the file. If an abandoned wait is still blocked in the kernel,
// the file is closed after it.
func (l *Lock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pendingWait != nil {
		l.waitAbandoned, l.closed = true, true
		return nil
	}
	return l.file.Close()
}

// UnlockFile releases a lock on f that other code took, where closing f does not: a memory-mapped file keeps
// its lock.
func UnlockFile(f *os.File) error { return unlock(f) }
