//go:build unix && !linux

package undo

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const folderTraversalOpenFlags = unix.O_RDONLY

func reflinkFile(to, from *os.File) error { return errors.ErrUnsupported }

func nextDataOffset(_ *os.File, offset int64) (int64, error) { return offset, nil }

// isOpenInOtherProcess reports true, since it cannot be known here; so databases are not kept.
func isOpenInOtherProcess(*os.File, *unix.Stat_t) bool { return true }

func totalFileSystemBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(st.Blocks) * int64(st.Bsize)
}
