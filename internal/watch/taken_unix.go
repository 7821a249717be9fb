//go:build unix

package watch

import (
	"time"

	"golang.org/x/sys/unix"
)

// Time limits for the process that reads the answer from the pipe: the wait after which that
// process counts as stopped, the interval between the SIGCONT signals that are then sent to it, and
// the maximum wait for its exit.
const (
	maxWaitBeforeSIGCONT  = 200 * time.Millisecond
	sigcontInterval       = 20 * time.Millisecond
	pipeReaderExitTimeout = time.Minute
	hookShellExitTimeout  = 2 * time.Second // maximum wait for the exit of the hook's shell, which the host waits for; after the pipe's reader has exited
)

// WaitForPipeFDReaderThenPIDExit waits up to a minute until the process that reads the pipe has exited. Then it
// waits up to two seconds until the process with the ID shellPID has exited, which is the shell that the host
// waits for. Meanwhile it sends SIGCONT to the process group, so that stopped processes continue, since the host
// treats a hook that does not exit as permission. It returns at once if pipeFD is not a pipe.
func WaitForPipeFDReaderThenPIDExit(pipeFD, shellPID int) {
	var info unix.Stat_t
	if unix.Fstat(pipeFD, &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFIFO {
		return
	}
	for wait, waited := maxWaitBeforeSIGCONT, time.Duration(0); waited < pipeReaderExitTimeout; wait, waited = sigcontInterval, waited+wait {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pipeFD)}}, int(wait.Milliseconds()))
		if n > 0 || err != nil && err != unix.EINTR {
			break
		}
		_ = unix.Kill(0, unix.SIGCONT) // no error: this process is in the group
	}
	for waited := time.Duration(0); waited < hookShellExitTimeout && unix.Kill(shellPID, 0) == nil; waited += sigcontInterval {
		time.Sleep(sigcontInterval)
		_ = unix.Kill(0, unix.SIGCONT)
	}
}
