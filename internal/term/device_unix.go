//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

func openTerminal() (in, out *os.File, err error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	return f, f, err
}

// isForeground reports whether this process may read from the terminal. One that
// is not in its foreground would be stopped.
func isForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func isRaw(f *os.File) bool {
	t, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err != nil || t.Lflag&unix.ICANON == 0
}

// setLineMode sets what a shell expects: lines, echo, and keys that interrupt.
func setLineMode(f *os.File) error {
	t, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return err
	}
	t.Iflag |= unix.ICRNL | unix.IXON | unix.BRKINT
	t.Iflag &^= unix.IGNCR | unix.INLCR
	t.Oflag |= unix.OPOST | unix.ONLCR
	t.Lflag |= unix.ISIG | unix.ICANON | unix.IEXTEN | unix.ECHO | unix.ECHOE | unix.ECHOK
	return unix.IoctlSetTermios(int(f.Fd()), setTermios, t)
}

// setCbreakMode sets the terminal modes that [setLineMode] sets, but turns off line buffering and
// echo.
func setCbreakMode(f *os.File) error {
	if err := setLineMode(f); err != nil {
		return err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ICANON | unix.ECHO
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(int(f.Fd()), setTermios, t)
}
