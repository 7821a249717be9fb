//go:build unix

package analysis

import (
	"io/fs"
	"syscall"
)

// inode returns the device and inode numbers of a file.
func inode(info fs.FileInfo) (device, number uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino)
	}
	return 0, 0
}
