//go:build !linux

package ancestry

// Of returns a process and its ancestors, nearest first, on Linux.
func Of(int) ([]Process, error) { return nil, ErrUnsupported }

// Running returns the processes that run, on Linux.
func Running() ([]Process, error) { return nil, ErrUnsupported }

// Environ returns the environment with which a process was started, on Linux.
func Environ(int) ([]string, error) { return nil, ErrUnsupported }
