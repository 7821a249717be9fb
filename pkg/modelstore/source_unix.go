//go:build unix

package modelstore

import "syscall"

// openNonblocking keeps a named pipe from blocking the open.
const openNonblocking = syscall.O_NONBLOCK
