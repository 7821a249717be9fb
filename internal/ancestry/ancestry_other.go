//go:build !linux

package ancestry

// ProcessAndAncestors always returns [ErrUnsupported] on this system; on Linux it returns a process and its
// ancestors.
func ProcessAndAncestors(int) ([]Process, error) { return nil, ErrUnsupported }

// Running always returns [ErrUnsupported] on this system; on Linux it returns the running
// processes.
func Running() ([]Process, error) { return nil, ErrUnsupported }

// Environ always returns [ErrUnsupported] on this system; on Linux it returns the environment with
// which a process was started.
func Environ(int) ([]string, error) { return nil, ErrUnsupported }
