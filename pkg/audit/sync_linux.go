package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData writes the data of a file and its new size to the disk; its times may be older.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
