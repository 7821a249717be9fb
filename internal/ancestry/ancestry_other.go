//go:build !linux

package ancestry

import (
	"fmt"
	"runtime"
)

// Of returns a process and its ancestors, nearest first, on Linux.
func Of(int) ([]Process, error) {
	return nil, fmt.Errorf("the ancestors of a process cannot be read on %s", runtime.GOOS)
}
