// Package flock locks a file between processes. A waiting process sleeps in
// the kernel until the lock is free, and the kernel frees the lock of a
// process that dies.
package flock

import (
	"fmt"
	"os"
)

// A Lock is a lock file. It excludes other processes and other Locks of this
// process, but not goroutines that share the Lock.
type Lock struct {
	f *os.File
}

// New opens the lock file at path and creates it if need be, for this user
// alone. The file stays when the Lock is closed. Who removes it must hold the
// lock, and who locks it must then ask [Lock.Named]: otherwise two processes
// hold locks on two files of the same name.
func New(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("open lock: %s is not a regular file", path)
	}
	return &Lock{f}, nil
}

// Lock waits until no other process holds the lock.
func (l *Lock) Lock() error {
	if err := lock(l.f); err != nil {
		return fmt.Errorf("lock %s: %w", l.f.Name(), err)
	}
	return nil
}

// TryLock takes the lock if nobody else holds it, and does not wait.
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

// Close frees the lock and closes its file.
func (l *Lock) Close() error { return l.f.Close() }

// Free frees a lock that something else took on f, where closing f would not:
// a file that is mapped into memory keeps its lock.
func Free(f *os.File) error { return unlock(f) }
