//go:build !unix

package cmd

import "os/exec"

// detach reports that a command cannot be started apart here.
func detach(*exec.Cmd) bool { return false }
