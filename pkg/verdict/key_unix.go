//go:build unix

package verdict

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openKey opens a key file without following a link at its end and without
// waiting for the other side of a pipe.
func openKey(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("a symbolic link; put the file itself there")
	}
	return f, err
}

// checkOwner refuses what belongs to another user or has one of the mode bits
// in denied.
func checkOwner(info fs.FileInfo, denied fs.FileMode) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return errors.New("belongs to another user")
	}
	if mode := info.Mode().Perm(); mode&denied != 0 {
		return fmt.Errorf("mode %04o lets others in; run 'chmod %04o' on it", mode, mode&^0o077)
	}
	return nil
}
