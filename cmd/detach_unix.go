//go:build unix

package cmd

import (
	"os/exec"
	"syscall"
)

// detach starts a command in a session of its own, so that it outlives the host's process group.
func detach(cmd *exec.Cmd) bool {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return true
}
