//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// deviceName returns the ID of this process's session, which identifies the terminal: a session has one
// terminal, and a terminal has one session. It returns "unknown" if the system does not tell the ID.
func deviceName(*os.File) string {
	sid, err := unix.Getsid(0)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprint(sid)
}

func discardInput(f *os.File) error {
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, 1) // 1 is FREAD
}
