//go:build unix

package cmd

import (
	"os/exec"
	"syscall"
)

// detach has a command run in a session of its own, so that it outlives the host's group.
func detach(cmd *exec.Cmd) bool {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return true
}
