//go:build unix

package cmd

import (
	"os/exec"
	"syscall"
)

// tryPrepareDetachedStart prepares a command to start in a session of its own, so that it outlives the host's process
// group, and reports that this is possible. It starts nothing.
func tryPrepareDetachedStart(cmd *exec.Cmd) bool {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return true
}
