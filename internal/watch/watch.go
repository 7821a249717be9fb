// Package watch is the process of a hook that the host waits for (the watchdog): it lets another process, the
// judge, judge one event, and gives up on a judge that is late, dies or hangs. A separate process can be killed
// even if it is stopped.
//
// A host starts a hook for each action, and start time delays the agent. Hence this package imports little of
// the standard library, package peer and, on Unix, golang.org/x/sys/unix: Go initializes packages in the order
// of their paths after their imports, so this one is initialized before most of shield, and
// [HookEventWatchFromPackageInit] starts there.
package watch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/shieldcli/shield/internal/peer"
)

// Limits of forwarded data, in bytes.
const (
	MaxEventBytes  = 4 << 20
	MaxAnswerBytes = 2 * MaxEventBytes // an answer may contain the tool result that the event holds
)

// How long after a hook's deadline each process waits for another: the judge for the verdict due at
// the deadline, the watchdog for the judge, and the finished judge for the watchdog to exit.
const (
	JudgeGraceAfterHookDeadline    = time.Second
	WatchdogGraceAfterHookDeadline = 2 * time.Second
	WatchdogKillDelay              = 4 * time.Second
)

// Flags of the processes that judge an action. [JudgeFlagName] marks the judge process that a
// watchdog started.
//
// [HookShellPIDFlagName] is in the hook commands that shield installs now: the process that the
// command starts judges the action, and answers in the format of [HookScriptProtocolWriter]. The flag's
// value is the PID of the shell that runs the command.
//
// [JudgeInProcessFlagName] is in the hook commands that older versions installed: the process that
// the host waits for judges the action, and timeout(1) limits its time.
const (
	JudgeFlagName          = "judge"
	JudgeInProcessFlagName = "alone"
	HookShellPIDFlagName   = "line"
)

// ParseInvokerPID returns the PID of the asking process from a command line with [HookShellPIDFlagName]; 0 if it names none.
func ParseInvokerPID(args []string) int {
	for i, arg := range args {
		if arg == "--"+HookShellPIDFlagName && i+1 < len(args) {
			pid, err := strconv.Atoi(args[i+1])
			if err == nil && pid > 0 {
				return pid
			}
		}
	}
	return 0
}

// A Judge is a shield process that judges one event. Its input is a line with the event's length and
// the asking process's PID, and then the event; its standard input stays open while the watchdog
// lives. It answers with one line.
type Judge struct {
	Stdin  io.WriteCloser // closing it ends the judge
	Stdout io.Reader
	Kill   func()
}

// Ask sends an event to the judge and returns its answer line. invokerPID is the PID of the asking process: the
// host or its shell.
func (j *Judge) Ask(event []byte, invokerPID int) (line []byte, err error) {
	question := []byte(`{"bytes":` + strconv.Itoa(len(event)) + `,"parent":` + strconv.Itoa(invokerPID) + "}\n")
	if _, err := j.Stdin.Write(append(question, event...)); err != nil {
		return nil, fmt.Errorf("hook: the second shield process ended before it read the call: %w; run 'shield doctor'", err)
	}
	if line, err = bufio.NewReader(io.LimitReader(j.Stdout, MaxAnswerBytes)).ReadBytes('\n'); err != nil {
		return nil, errors.New("hook: the second shield process ended without an answer; run 'shield doctor'")
	}
	return line, nil
}

// An EventWatch is one event being judged.
type EventWatch struct {
	judge             atomic.Pointer[Judge] // nil until it has started
	eventIncomplete   atomic.Bool           // the judge has started, but the event is incomplete
	replies           chan judgeReply
	invokerPID        int            // PID of the asking process
	signalsDuringInit chan os.Signal // signals received during package initialization; nil if judging started only after it
}

type judgeReply struct {
	line []byte
	err  error
}

// ServiceAnswerTimeout is the time limit for a running service.
const ServiceAnswerTimeout = 200 * time.Millisecond

// A ServiceCall sends an event to the user's service, and returns the line that a judge would answer.
// ok is false if a judge must answer instead.
type ServiceCall func(event []byte) (line []byte, ok bool)

// StartEventWatch sends the event read from in to the service that dialService connects to, or else
// to a judge that startJudge starts. invokerPID is the PID of the asking process. StartEventWatch
// does not block.
func StartEventWatch(in io.Reader, invokerPID int, dialService func() ServiceCall, startJudge func() (*Judge, error)) *EventWatch {
	w := &EventWatch{replies: make(chan judgeReply, 1), invokerPID: invokerPID}
	go func() {
		line, err := w.judgeEvent(in, dialService(), startJudge)
		w.replies <- judgeReply{line, err}
	}()
	return w
}

func (w *EventWatch) judgeEvent(in io.Reader, ask ServiceCall, start func() (*Judge, error)) ([]byte, error) {
	var judge *Judge
	begin := func() (err error) {
		if judge, err = start(); err != nil {
			return fmt.Errorf("hook: the second shield process does not start: %w; run 'shield doctor'", err)
		}
		w.judge.Store(judge)
		return nil
	}
	if ask == nil { // start the judge while the event is being read
		if err := begin(); err != nil {
			return nil, err
		}
	}
	w.eventIncomplete.Store(true)
	event, err := ReadEvent(in)
	w.eventIncomplete.Store(false)
	if err != nil {
		return nil, err
	}
	if ask != nil {
		if line, ok := ask(event); ok {
			return line, nil
		}
		if err := begin(); err != nil {
			return nil, err
		}
	}
	return judge.Ask(event, w.invokerPID)
}

// ReadEvent reads a host's event.
func ReadEvent(in io.Reader) ([]byte, error) {
	event, err := io.ReadAll(io.LimitReader(in, MaxEventBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("hook: read standard input: %w; check that the host writes the whole call", err)
	case len(bytes.TrimSpace(event)) == 0:
		return nil, errors.New("hook: standard input is empty; the host must write one JSON object to it")
	case len(event) > MaxEventBytes:
		return nil, fmt.Errorf("hook: the call is larger than %d MiB; split it", MaxEventBytes>>20)
	}
	return event, nil
}

// DialService returns a function that asks this user's service instead of a judge; nil if no service
// listens.
func DialService(state string, q peer.Question) ServiceCall {
	if state == "" {
		return nil
	}
	line, err := peer.Dial(peer.ServiceFolder(state))
	if err != nil {
		return nil
	}
	return func(event []byte) ([]byte, bool) {
		q.AskingProcessStdin = event
		answer, err := line.Ask(&q, ServiceAnswerTimeout)
		return answer.CommandStdout, err == nil && answer.ServiceDecided
	}
}

// ErrEventIncomplete is the error for an event without an end.
var ErrEventIncomplete = errors.New("hook: the host did not close standard input in time; run 'shield hook status'")

// WaitForJudgeAnswer returns the judge's answer line, at the latest [WatchdogGraceAfterHookDeadline] after the hook's deadline. If ctx ends,
// the judge has a second to withdraw a question from the screen.
func (w *EventWatch) WaitForJudgeAnswer(ctx context.Context, deadline time.Duration) (line []byte, err error) {
	unread, late := time.NewTimer(deadline), time.NewTimer(deadline+WatchdogGraceAfterHookDeadline)
	defer unread.Stop()
	defer late.Stop()
	ended, interrupted := ctx.Done(), false
	for {
		select {
		case got := <-w.replies:
			return got.line, got.err
		case <-unread.C:
			if w.eventIncomplete.Load() {
				return nil, ErrEventIncomplete
			}
			continue
		case <-late.C:
			if interrupted {
				return nil, errors.New("hook: interrupted")
			}
			return nil, errors.New("hook: no verdict in time; raise hook.timeout, or run 'shield doctor'")
		case <-ended:
			ended = nil
		case <-w.signalsDuringInit:
		}
		if w.eventIncomplete.Load() {
			return nil, ErrEventIncomplete
		}
		interrupted = true
		w.closeJudgeInput()
		late.Reset(JudgeGraceAfterHookDeadline)
	}
}

// ReleaseOrKillJudge releases the judge; a judge that has not answered is killed.
func (w *EventWatch) ReleaseOrKillJudge(hasJudgeAnswered bool) {
	w.closeJudgeInput()
	if judge := w.judge.Load(); judge != nil && !hasJudgeAnswered {
		judge.Kill()
	}
}

func (w *EventWatch) closeJudgeInput() {
	if judge := w.judge.Load(); judge != nil {
		_ = judge.Stdin.Close()
	}
}
