//go:build !unix

package subprocess

import "os/exec"

// SetOwnProcessGroup does nothing: only the command itself is ended here.
func SetOwnProcessGroup(*exec.Cmd) {}

// KillGroup does nothing.
func KillGroup(*exec.Cmd) {}

// TerminateGroup ends the command itself.
func TerminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
