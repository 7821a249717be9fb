// Package ancestry finds the parent processes of a process.
package ancestry

import "errors"

// Limits of what is read; exceeding one is an error.
const (
	maxAncestors          = 64
	maxRunningProcesses   = 16 << 10
	maxArgsOrEnvironBytes = 1 << 20 // bytes, of arguments or of an environment
)

// ErrUnsupported is the error on systems where processes cannot be examined.
var ErrUnsupported = errors.New("parent processes can be read on Linux only")

// A Process is a running program, as the kernel reports it. A program can change its own Name and
// Args; only the kernel sets the other fields.
type Process struct {
	PID        int
	Parent     int      // 0 if the parent is outside of this PID namespace
	Name       string   // at most 15 bytes
	Exe        string   // path of the executable; "" if this user may not read it
	Args       []string // the command line, including the program name
	StartTicks uint64   // start time in clock ticks since boot; distinguishes processes that reuse a PID
	TTY        int      // device number of its controlling terminal; 0 if it has none
}
