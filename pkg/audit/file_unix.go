//go:build unix

package audit

import (
	"os"
	"syscall"
)

// noFollow refuses a log that is a symbolic link, and one whose opening would
// wait (a FIFO).
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncFolder makes a new name in a folder survive a crash.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func othersMayRead(info os.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
