package modelstore

import "golang.org/x/sys/unix"

// swapPaths lets two paths change places in one step.
func swapPaths(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
