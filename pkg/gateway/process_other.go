//go:build !linux

package gateway

import "os/exec"

// setKillOnParentDeath does nothing: if shield is killed, the server's input is closed.
func setKillOnParentDeath(*exec.Cmd) {}
