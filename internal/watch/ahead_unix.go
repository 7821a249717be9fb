//go:build unix

package watch

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/shieldcli/shield/internal/peer"
)

// initJudgeAnswerTimeout is how long a hook process waits for its judge during package initialization. If the
// judge asks a person or a language model, the fully initialized program continues to wait.
const initJudgeAnswerTimeout = 250 * time.Millisecond

// init handles a hook event before the other packages of shield are initialized, because an allowed action needs
// none of them in this process. If the hook command judges in its own process and no service runs, init does
// nothing. For any answer other than permission, a signal or a timeout, the main program continues with
// [HookEventWatchFromPackageInit].
func init() {
	program, err := os.Executable()
	if err != nil || len(os.Args) == 0 || !isInstalledHookCommand(os.Args[1:]) || onTerminal(os.Stdin) {
		return
	}
	args := insertJudgeFlag(os.Args[1:])
	dir, _ := os.Getwd()
	parent := ParseInvokerPID(args)
	lined := parent != 0
	if !lined {
		parent = os.Getppid()
	}
	dial := func() ServiceCall {
		return DialService(peer.StateFolder(os.Getenv), peer.Question{AskingProgramPath: program, AskingProcessWorkingDir: dir, ParentPIDOfAskingProcess: parent, AskingProgramArgs: args, Environ: os.Environ()})
	}
	if isHookCommandJudgingInProcess(os.Args[1:]) {
		ask := dial()
		if ask == nil {
			return
		}
		dial = func() ServiceCall { return ask }
	}
	hookEventWatchFromPackageInit = StartEventWatch(os.Stdin, parent, dial, func() (*Judge, error) { return startJudge(program, args) })
	hookEventWatchFromPackageInit.signalsDuringInit = make(chan os.Signal, 1)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup, SIGHUP stays ignored
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(hookEventWatchFromPackageInit.signalsDuringInit, ends...)
	late := time.NewTimer(initJudgeAnswerTimeout)
	defer late.Stop()
	select {
	case got := <-hookEventWatchFromPackageInit.replies:
		if answer, ok := deferToHostResponse(os.Args[2], got); ok {
			if lined {
				answer = "0" + answer
			}
			// If the reader has exited, writing to os.Stdout would end the process with SIGPIPE. syscall.Write
			// returns an error instead, and the fully initialized program continues: if the host is the reader,
			// it denies the action by its exit status; if the hook's shell script is, the script itself denies.
			if n, err := syscall.Write(1, []byte(answer)); n == len(answer) && err == nil {
				if lined {
					WaitForPipeFDReaderThenPIDExit(1, ParseInvokerPID(os.Args))
				}
				os.Exit(0)
			}
		}
		hookEventWatchFromPackageInit.replies <- got
	case sig := <-hookEventWatchFromPackageInit.signalsDuringInit:
		hookEventWatchFromPackageInit.signalsDuringInit <- sig
	case <-late.C:
	}
}

// onTerminal reports whether a file is a terminal or another character device, or cannot be
// examined. Then a person may have started the hook by hand, and the main program prints what to
// type instead.
func onTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err != nil || info.Mode()&os.ModeCharDevice != 0
}

// startJudge starts shield itself. It stays in the group of this process, since a
// person may have to be asked at the terminal.
func startJudge(program string, args []string) (*Judge, error) {
	question, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer question.Close()
	out, answer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	// ForkExec is faster than os.StartProcess, which first tests how this system can wait for a
	// process. shield does not wait for this process.
	pid, err := syscall.ForkExec(program, append([]string{"shield"}, args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{question.Fd(), answer.Fd(), os.Stderr.Fd()},
	})
	if err != nil {
		return nil, err
	}
	return &Judge{in, out, func() { _ = syscall.Kill(pid, syscall.SIGKILL) }}, nil
}
