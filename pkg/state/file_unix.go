//go:build unix

package state

import (
	"os"
	"syscall"
)

// noFollow refuses a state file that is a symbolic link, and one whose opening
// would wait (a FIFO).
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncFolder makes a new name in the folder survive a crash.
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
