//go:build unix && !linux

package undo

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const pathFlags = unix.O_RDONLY

func clone(to, from *os.File) error { return errors.ErrUnsupported }

func nextData(_ *os.File, at int64) (int64, error) { return at, nil }

// isOpen reports true, since it cannot be known here; so databases are not kept.
func isOpen(*os.File, *unix.Stat_t) bool { return true }

func diskSize(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(st.Blocks) * int64(st.Bsize)
}
