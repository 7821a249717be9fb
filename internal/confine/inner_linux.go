//go:build amd64 || arm64

package confine

import (
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// Argv0 is the only argument of a containing process, a shield process that starts and restricts a program. A
// process looks for Argv0 in its own arguments only if the environment variable ContainedEnvVarName is set.
const (
	Argv0               = "shield-contained"
	ContainedEnvVarName = "SHIELD_CONTAINED"
)

// Descriptors that the process inherits beyond the standard ones.
const (
	containmentInstructionsFD = 3 + iota // an [ContainmentInstructions]
	parentSocketFD                       // a message socket to the parent
	landlockRulesetFD                    // the Landlock ruleset
)

func init() {
	if v, _ := syscall.Getenv(ContainedEnvVarName); v != "" && isContainedChild() {
		syscall.Exit(runContainedProgram()) // in a test with the race detector, os.Exit would wait for a second
	}
}

// isContainedChild reports whether this process was started as a containing process, which starts and restricts
// a program. It cannot use package os, which has the arguments, since that package is not initialized yet.
func isContainedChild() bool {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	var b [64]byte
	n, err := syscall.Read(fd, b[:])
	return err == nil && string(b[:n]) == Argv0+"\x00"
}

// sigtermToSigkillDelaySeconds is the time in seconds that the program has between SIGTERM and SIGKILL if the
// parent process is about to kill this process.
const sigtermToSigkillDelaySeconds = 1

// statusNotStarted is the exit status if the program did not start.
const statusNotStarted = 126

// sendMessageToParent sends a message to the parent.
func sendMessageToParent(childMessageKind byte, text string) {
	for message := append([]byte{childMessageKind}, text...); ; {
		if _, err := syscall.Write(parentSocketFD, message); err != syscall.EINTR {
			return
		}
	}
}

func exitStatusAfterReportingFailure(stage string, err error) int {
	sendMessageToParent(ChildMessageContainmentFailed, stage+"\x00"+err.Error())
	return statusNotStarted
}

// wrapError adds to an error what failed.
func wrapError(what string, err error) error { return &operationError{what, err} }

type operationError struct {
	operation string
	err       error
}

func (w *operationError) Error() string { return w.operation + ": " + w.err.Error() }
func (w *operationError) Unwrap() error { return w.err }

func runContainedProgram() int {
	// Mark all descriptors but the standard streams to be closed when the program starts: open folders
	// and sockets would bypass path rules.
	if _, err := systemCall(sysCloseRange, containmentInstructionsFD, 1<<31-1, closeRangeCloexec); err != nil {
		return exitStatusAfterReportingFailure("files", err)
	}
	o, err := readInstructions()
	if err != nil {
		return exitStatusAfterReportingFailure("order", err)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} { // a terminal sends them to the whole process group; the program handles them itself
		if err := ignoreSignal(s); err != nil {
			return exitStatusAfterReportingFailure("signals", err)
		}
	}
	if syscall.Getpid() != 1 {
		if err := prctl(prChildSubreaper, 1); err != nil {
			return exitStatusAfterReportingFailure("processes", err)
		}
	}
	own := o.TmpFolder + "/own"
	if o.UsesNamespaces {
		if stage, err := mountRestrictedFileSystem(o); err != nil {
			return exitStatusAfterReportingFailure(stage, err)
		}
		if o.HasPrivateTmp() {
			own = tmp + "/own"
		}
	}
	// Keep the contained program from tracing (ptrace) this process. Landlock permits tracing of the thread that
	// starts the program, which is in the same Landlock domain, and through it of the unrestricted threads.
	// execve makes the program itself dumpable again.
	if err := prctl(prSetDumpable, 0); err != nil {
		return exitStatusAfterReportingFailure("processes", err)
	}
	o.Env = slices.DeleteFunc(o.Env, func(v string) bool { return hasPrefix(v, "TMPDIR=") })
	o.Env = append(o.Env, "TMPDIR="+own)
	if receiveParentMessage() != ParentMessageRulesetComplete {
		return statusNotStarted
	}
	type result struct {
		pid   int
		watch int
		stage string
		err   error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the restricted thread must not run other goroutines
		fd, stage, err := restrictCallingThread(o)
		if err != nil || o.OnlyTestsContainment {
			started <- result{0, fd, stage, err}
			return
		}
		pid, err := syscall.ForkExec(o.ProgramPath, o.Argv, &syscall.ProcAttr{
			Dir: o.WorkingFolder, Env: o.Env, Files: []uintptr{0, 1, 2},
			Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, // kill the program when this thread ends
		})
		started <- result{pid, fd, "exec", err}
		select {}
	}()
	got := <-started
	if errno, ok := got.err.(syscall.Errno); ok && got.stage == "exec" {
		sendMessageToParent(ChildMessageExecFailed, strconv.Itoa(int(errno)))
		return statusNotStarted
	}
	if got.err != nil {
		return exitStatusAfterReportingFailure(got.stage, got.err)
	}
	sendMessageToParent(ChildMessageProgramRuns, "")                      // must precede reports of denied accesses
	go (&syscallWatcher{o, got.watch, map[string]bool{}}).answerNotices() // a watched system call of the program waits until this goroutine answers
	if o.OnlyTestsContainment {
		return 0
	}
	go func() {
		for {
			switch receiveParentMessage() {
			case ParentMessageEndProgram:
				_ = syscall.Kill(got.pid, syscall.SIGTERM)
				if o.MustKillProgramAfterSIGTERM { // kill the program in time: the parent soon kills this process, which must first end all descendants
					go func() {
						_ = syscall.Nanosleep(&syscall.Timespec{Sec: sigtermToSigkillDelaySeconds}, nil)
						_ = syscall.Kill(got.pid, syscall.SIGKILL)
					}()
				}
			case 0:
				_ = syscall.Kill(got.pid, syscall.SIGKILL)
				return
			}
		}
	}()
	status := waitExitStatusReapingOrphans(got.pid)
	if syscall.Getpid() != 1 { // as PID 1 of its namespace, its exit kills all others
		killDescendants()
	}
	return status
}

// readInstructions reads the instructions that the parent process wrote to an in-memory file.
func readInstructions() (*ContainmentInstructions, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(containmentInstructionsFD, &st); err != nil {
		return nil, err
	}
	b := make([]byte, st.Size)
	n, err := syscall.Pread(containmentInstructionsFD, b, 0)
	if err != nil {
		return nil, err
	}
	o := &ContainmentInstructions{}
	return o, o.decode(b[:n])
}

// receiveParentMessage waits for a byte from the parent; 0 if the parent is gone.
func receiveParentMessage() byte {
	var b [1]byte
	for {
		switch n, err := syscall.Read(parentSocketFD, b[:]); {
		case err == syscall.EINTR:
		case err != nil || n == 0:
			return 0
		default:
			return b[0]
		}
	}
}

// ignoreSignal makes this process ignore a signal. Its children start with the default action.
func ignoreSignal(s syscall.Signal) error {
	action := struct{ handler, flags, restorer, mask uintptr }{handler: 1} // SIG_IGN
	_, err := systemCall(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8)
	return err
}

// waitExitStatusReapingOrphans waits for a process to exit, and reaps orphaned processes meanwhile.
func waitExitStatusReapingOrphans(pid int) int {
	for {
		var status syscall.WaitStatus
		switch got, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return statusNotStarted
		case got != pid:
		case status.Signaled():
			return 128 + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}

// killDescendants kills all processes that a contained program has left: orphans become children of this
// process.
func killDescendants() {
	for {
		switch got, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case err == syscall.ECHILD:
			return
		case got > 0 || err == syscall.EINTR:
			continue
		}
		for _, pid := range childPIDs() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			return
		}
	}
}

// childPIDs returns the child processes of this process.
func childPIDs() (out []int) {
	proc, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(proc)
	parent := strconv.Itoa(syscall.Getpid())
	forEachEntry(proc, func(name string) {
		pid, err := strconv.Atoi(name)
		if err != nil {
			return
		}
		fd, err := syscall.Openat(proc, name+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		defer syscall.Close(fd)
		var b [512]byte
		n, _ := syscall.Read(fd, b[:])
		stat := string(b[:max(n, 0)])
		for i := indexByte(stat, ')'); i >= 0; i = indexByte(stat, ')') {
			stat = stat[i+1:] // the process name can contain anything
		}
		if parts := splitAtByte(stat, ' '); len(parts) > 2 && parts[2] == parent {
			out = append(out, pid)
		}
	})
	return out
}

// forEachEntry calls each for the names in an open folder.
func forEachEntry(folderFD int, each func(name string)) {
	buf := make([]byte, 1<<15)
	for {
		n, err := syscall.ReadDirent(folderFD, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for b := buf[:n]; len(b) > 19; { // struct linux_dirent64
			size := int(b[16]) | int(b[17])<<8
			if size < 19 || size > len(b) {
				return
			}
			if name := string(b[19 : 19+max(indexByte(b[19:size], 0), 0)]); name != "." && name != ".." {
				each(name)
			}
			b = b[size:]
		}
	}
}
