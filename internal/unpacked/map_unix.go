//go:build unix

package unpacked

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapOrReadFile maps a file for reading. It is never unmapped.
func mapOrReadFile(f *os.File, size int64) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
}
