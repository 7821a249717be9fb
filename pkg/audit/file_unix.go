//go:build unix

package audit

import (
	"os"
	"syscall"
)

// noFollow refuses a log that is a symbolic link, and one whose opening would
// wait (a FIFO).
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func othersMayWrite(info os.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

func othersMayRead(info os.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
