//go:build unix

package audit

import (
	"os"
	"syscall"
)

// noFollow makes open fail for a symbolic link, and not block for a FIFO.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncFolder syncs a folder, so that a new name in it survives a crash.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func othersMayRead(info os.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
