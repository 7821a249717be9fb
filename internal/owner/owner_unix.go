//go:build unix

package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Known reports whether this system shows who owns a file. Where it does not,
// [Check] accepts everything.
const Known = true

// Check refuses what belongs neither to this user nor to root, or has one of
// the mode bits in denied.
func Check(info fs.FileInfo, denied fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return errors.New("belongs to another user")
	}
	if mode := info.Mode().Perm(); mode&denied != 0 {
		return fmt.Errorf("mode %04o lets others in; run 'chmod %04o' on it", mode, mode&^Access)
	}
	return nil
}

// Open opens a file for reading without following a link at its end and without
// waiting for the other side of a pipe.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("a symbolic link; put the file itself there")
	}
	return f, err
}
