package term

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// deviceName returns the number of the terminal device, in hex; "unknown" if the system does not tell it. For
// the file /dev/tty it is the number of the terminal that /dev/tty stands for.
func deviceName(f *os.File) string {
	dev, err := unix.IoctlGetUint32(int(f.Fd()), unix.TIOCGDEV)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%x", dev)
}

func discardInput(f *os.File) error {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
