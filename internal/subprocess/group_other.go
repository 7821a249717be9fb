//go:build !unix

package subprocess

import "os/exec"

// SetOwnProcessGroup does nothing: only the command itself is ended here.
func SetOwnProcessGroup(*exec.Cmd) {}

// KillGroup does nothing: on this system shield does not put a command into a process group.
func KillGroup(*exec.Cmd) {}

// TerminateGroup kills only the command itself: on this system shield does not put it into a process group.
func TerminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
