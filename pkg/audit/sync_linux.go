package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData syncs a file's data and size, but not its times.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
