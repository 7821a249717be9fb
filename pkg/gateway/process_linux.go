package gateway

import (
	"os/exec"
	"syscall"
)

// setKillOnParentDeath makes the kernel kill a process when the thread that started it ends, as when shield is killed.
func setKillOnParentDeath(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
