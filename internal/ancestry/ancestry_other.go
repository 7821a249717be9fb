//go:build !linux

package ancestry

// Of always returns [ErrUnsupported] on this system; on Linux it returns a process and its
// ancestors.
func Of(int) ([]Process, error) { return nil, ErrUnsupported }

// Running always returns [ErrUnsupported] on this system; on Linux it returns the running
// processes.
func Running() ([]Process, error) { return nil, ErrUnsupported }

// Environ always returns [ErrUnsupported] on this system; on Linux it returns the environment with
// which a process was started.
func Environ(int) ([]string, error) { return nil, ErrUnsupported }
