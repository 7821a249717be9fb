//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow refuses a lock file that is a symbolic link, and one that would
// block the open (a FIFO).
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

func lock(f *os.File) error   { return flock(f, unix.LOCK_EX) }
func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func tryLock(f *os.File) (bool, error) {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err
		}
	}
}
