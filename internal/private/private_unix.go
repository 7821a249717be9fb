//go:build unix

package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a file for reading without following a link at its end and without
// waiting for the other side of a pipe.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("a symbolic link; put the file itself there")
	}
	return f, err
}

// Check refuses what belongs to another user or has one of the mode bits
// in denied.
func Check(info fs.FileInfo, denied fs.FileMode) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return errors.New("belongs to another user")
	}
	if mode := info.Mode().Perm(); mode&denied != 0 {
		return fmt.Errorf("mode %04o lets others in; run 'chmod %04o' on it", mode, mode&^0o077)
	}
	return nil
}

// CheckSystem is [Check] for a file that may also be the administrator's.
func CheckSystem(info fs.FileInfo, denied fs.FileMode) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == 0 && info.Mode().Perm()&denied == 0 {
		return nil
	}
	return Check(info, denied)
}
