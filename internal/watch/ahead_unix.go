//go:build unix

package watch

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/shieldcli/shield/internal/peer"
)

// earlyWait is how long a process that begins ahead waits for its judge. One that
// asks a person or a language model is waited for by the whole program.
const earlyWait = 250 * time.Millisecond

// init begins before the packages that shield judges with are there: an action that
// is allowed needs nothing of them here. A process that judges by itself begins only to
// ask the service. Whatever else comes, and whatever is
// unclear, is left to the whole program, which finds it in [EarlyWatch].
func init() {
	program, err := os.Executable()
	if err != nil || len(os.Args) == 0 || !isInstalledLine(os.Args[1:]) || onTerminal(os.Stdin) {
		return
	}
	args := judgeArgs(os.Args[1:])
	dir, _ := os.Getwd()
	parent := AskingPID(args)
	lined := parent != 0
	if !lined {
		parent = os.Getppid()
	}
	dial := func() ServiceCall {
		return DialService(peer.StateFolder(os.Getenv), peer.Question{Program: program, Dir: dir, Parent: parent, Args: args, Environ: os.Environ()})
	}
	if judgesInProcess(os.Args[1:]) {
		ask := dial()
		if ask == nil {
			return
		}
		dial = func() ServiceCall { return ask }
	}
	earlyWatch = Start(os.Stdin, parent, dial, func() (*Judge, error) { return startJudge(program, args) })
	earlyWatch.earlySignals = make(chan os.Signal, 1)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(earlyWatch.earlySignals, ends...)
	late := time.NewTimer(earlyWait)
	defer late.Stop()
	select {
	case got := <-earlyWatch.replies:
		if answer, ok := finalAnswer(os.Args[2], got); ok {
			if lined {
				answer = "0" + answer
			}
			// Unlike with os.Stdout, a reader that is gone is an error, which the
			// whole program denies for, and no death by a signal.
			if n, err := syscall.Write(1, []byte(answer)); n == len(answer) && err == nil {
				if lined {
					WaitUntilRead(1, AskingPID(os.Args))
				}
				os.Exit(0)
			}
		}
		earlyWatch.replies <- got
	case sig := <-earlyWatch.earlySignals:
		earlyWatch.earlySignals <- sig
	case <-late.C:
	}
}

// onTerminal reports whether a person may have to be told what to type.
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
	// Unlike os.StartProcess, which tries out first how this system can wait for
	// a process: nothing waits for this one.
	pid, err := syscall.ForkExec(program, append([]string{"shield"}, args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{question.Fd(), answer.Fd(), os.Stderr.Fd()},
	})
	if err != nil {
		return nil, err
	}
	return &Judge{in, out, func() { _ = syscall.Kill(pid, syscall.SIGKILL) }}, nil
}
