//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// SetOwnProcessGroup makes a command the leader of a process group, so that what it has
// started can be ended with it.
func SetOwnProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// KillGroup ends what is left of a command's group.
func KillGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// TerminateGroup tells a command's group to end.
func TerminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
