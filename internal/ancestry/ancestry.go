// Package ancestry reads which processes have started a process.
package ancestry

import "errors"

// Bounds of what is read. What is longer is an error.
const (
	maxProcesses   = 64
	maxRunning     = 16 << 10
	maxCommandLine = 1 << 20 // bytes, of arguments or of an environment
)

// ErrUnsupported is the error on systems where processes cannot be read.
var ErrUnsupported = errors.New("parent processes can be read on Linux only")

// A Process is a running program, as the kernel describes it. Every program can change
// its own Name and Args; nothing but the kernel sets the rest.
type Process struct {
	PID    int
	Parent int      // 0 if no process of this PID namespace has started it
	Name   string   // at most 15 bytes
	Exe    string   // path of the program file; "" if the kernel does not tell this user
	Args   []string // the command line, with the name of the program
	Start  uint64   // when it started, in ticks since the machine did; the same PID later has another
	TTY    int      // device number of its controlling terminal; 0 if it has none
}
