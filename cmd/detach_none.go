//go:build !unix

package cmd

import "os/exec"

// tryPrepareDetachedStart reports that a detached start is not possible on this system.
func tryPrepareDetachedStart(*exec.Cmd) bool { return false }
