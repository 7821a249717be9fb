//go:build !unix

package cmd

import "os/exec"

// detach reports that a detached start is not possible on this system.
func detach(*exec.Cmd) bool { return false }
