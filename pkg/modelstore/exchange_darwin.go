package modelstore

import "golang.org/x/sys/unix"

// swapPaths lets two paths change places in one step.
func swapPaths(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
