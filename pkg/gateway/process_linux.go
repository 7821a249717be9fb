package gateway

import (
	"os/exec"
	"syscall"
)

// tie has the kernel end a process when the thread that started it ends, as it
// does when shield is killed.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
