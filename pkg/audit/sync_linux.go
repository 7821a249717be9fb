package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData has what was written, and the file's new size, on the disk; its times may be older.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
