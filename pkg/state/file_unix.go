//go:build unix

package state

import (
	"os"
	"syscall"
)

// noFollow rejects a state file that is a symbolic link, and does not block on a FIFO.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncFolder makes a new file name in the folder survive a crash.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: err}
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: err}
	}
	return nil
}
