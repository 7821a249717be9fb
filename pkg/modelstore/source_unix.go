//go:build unix

package modelstore

import "syscall"

// noWait keeps a named pipe from blocking the open.
const openNonblocking = syscall.O_NONBLOCK
