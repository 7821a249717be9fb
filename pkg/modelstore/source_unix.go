//go:build unix

package modelstore

import "syscall"

// noWait keeps a named pipe from blocking the open.
const noWait = syscall.O_NONBLOCK
