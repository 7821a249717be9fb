// Package watch is the side of a hook that its host waits for: it has another
// process, the judge, judge one event, and gives up on a judge that is late, dies
// or hangs. A process of its own can be killed when it is stopped, which nothing
// inside it could do.
//
// A host runs two processes of shield for each action of its agent, so what the
// first one does before it has started the second is waited for twice. Hence this
// package needs little of the standard library and package peer: Go initializes
// packages in the order of their paths, as far as what they import allows, so this
// one is ready before most of what shield is made of, and [Ahead] begins there.
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

// Bounds of what is forwarded, in bytes.
const (
	MaxEvent  = 4 << 20
	MaxAnswer = 2 * MaxEvent // it may hold the event's result
)

// How long after a hook's deadline each process waits for the one before it: the
// judge for the verdict that the deadline makes, the watchdog for the judge, and
// the judge, which is done by then, for the watchdog to end.
const (
	JudgeGrace = time.Second
	Grace      = 2 * time.Second
	GuardGrace = 4 * time.Second
)

// Flag makes a hook the judge that its watchdog has started. Line has it judge in the
// process that an installed command line started, whose shell is the process with the
// number that follows; it answers in lines, see [Lines]. Alone is what older versions
// installed: shield judges in the process that the host waits for, which timeout(1) ends.
const (
	Flag  = "judge"
	Alone = "alone"
	Line  = "line"
)

// Asker returns the process that asks, as a command line with [Line] names it; 0 if it
// names none.
func Asker(args []string) int {
	for i, arg := range args {
		if arg == "--"+Line && i+1 < len(args) {
			pid, err := strconv.Atoi(args[i+1])
			if err == nil && pid > 0 {
				return pid
			}
		}
	}
	return 0
}

// A Judge is a process of shield that judges one event. It is given a line with the
// length of the event and the process that asks, and the event; its standard input
// then stays open for as long as the watchdog lives. It answers one line.
type Judge struct {
	In   io.WriteCloser // ends the judge when it is closed
	Out  io.Reader
	Kill func()
}

// Ask puts an event to the judge and returns the line that it answers. parent is
// the process that asks: the host, or its shell.
func (j *Judge) Ask(event []byte, parent int) (line []byte, err error) {
	question := []byte(`{"bytes":` + strconv.Itoa(len(event)) + `,"parent":` + strconv.Itoa(parent) + "}\n")
	if _, err := j.In.Write(append(question, event...)); err != nil {
		return nil, fmt.Errorf("hook: the second shield process ended before it read the call: %w; run 'shield doctor'", err)
	}
	if line, err = bufio.NewReader(io.LimitReader(j.Out, MaxAnswer)).ReadBytes('\n'); err != nil {
		return nil, errors.New("hook: the second shield process ended without an answer; run 'shield doctor'")
	}
	return line, nil
}

// A Watch is one event on its way to a judge and back.
type Watch struct {
	judge   atomic.Pointer[Judge] // nil until it has started
	unread  atomic.Bool           // the judge has started, and the event does not end
	said    chan reply
	parent  int            // the process that asks
	signals chan os.Signal // that have arrived ahead of the rest of shield; nil if it was there
}

type reply struct {
	line []byte
	err  error
}

// ServiceWait is how long a running service is waited for.
const ServiceWait = 200 * time.Millisecond

// An ServiceCall puts an event to the user's service, and returns the line that a judge would
// answer. ok is false if the service leaves that to a judge.
type ServiceCall func(event []byte) (line []byte, ok bool)

// Start forwards the event that in holds, to the service that dial finds, or to a
// judge that it starts where dial finds none. parent is the process that asks. It waits
// for nothing.
func Start(in io.Reader, parent int, dial func() ServiceCall, start func() (*Judge, error)) *Watch {
	w := &Watch{said: make(chan reply, 1), parent: parent}
	go func() {
		line, err := w.pass(in, dial(), start)
		w.said <- reply{line, err}
	}()
	return w
}

func (w *Watch) pass(in io.Reader, ask ServiceCall, start func() (*Judge, error)) ([]byte, error) {
	var judge *Judge
	begin := func() (err error) {
		if judge, err = start(); err != nil {
			return fmt.Errorf("hook: the second shield process does not start: %w; run 'shield doctor'", err)
		}
		w.judge.Store(judge)
		return nil
	}
	if ask == nil { // it gets ready while the event comes
		if err := begin(); err != nil {
			return nil, err
		}
	}
	w.unread.Store(true)
	event, err := ReadEvent(in)
	w.unread.Store(false)
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
	return judge.Ask(event, w.parent)
}

// ReadEvent reads the event that a host asks about.
func ReadEvent(in io.Reader) ([]byte, error) {
	event, err := io.ReadAll(io.LimitReader(in, MaxEvent+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("hook: read standard input: %w", err)
	case len(bytes.TrimSpace(event)) == 0:
		return nil, errors.New("hook: standard input is empty; the host must write one JSON object to it")
	case len(event) > MaxEvent:
		return nil, fmt.Errorf("hook: the call is larger than %d MiB; split it", MaxEvent>>20)
	}
	return event, nil
}

// Service returns how the service of this user is asked, in the place of a judge with
// a command line; nil if none listens.
func Service(state string, q peer.Question) ServiceCall {
	if state == "" {
		return nil
	}
	line, err := peer.Dial(peer.Folder(state))
	if err != nil {
		return nil
	}
	return func(event []byte) ([]byte, bool) {
		q.Input = event
		answer, err := line.Ask(&q, ServiceWait)
		return answer.Output, err == nil && answer.Decided
	}
}

// ErrUnread is the error of an event that does not end.
var ErrUnread = errors.New("hook: the host did not close standard input in time; run 'shield hook status'")

// Wait returns the line that the judge answers within the time that a hook may
// take. If ctx ends, the judge has a second to take back a question from a screen.
func (w *Watch) Wait(ctx context.Context, deadline time.Duration) (line []byte, err error) {
	unread, late := time.NewTimer(deadline), time.NewTimer(deadline+Grace)
	defer unread.Stop()
	defer late.Stop()
	ended, interrupted := ctx.Done(), false
	for {
		select {
		case got := <-w.said:
			return got.line, got.err
		case <-unread.C:
			if w.unread.Load() {
				return nil, ErrUnread
			}
			continue
		case <-late.C:
			if interrupted {
				return nil, errors.New("hook: interrupted")
			}
			return nil, errors.New("hook: no verdict in time; raise hook.timeout, or run 'shield doctor'")
		case <-ended:
			ended = nil
		case <-w.signals:
		}
		if w.unread.Load() {
			return nil, ErrUnread
		}
		interrupted = true
		w.hangUp()
		late.Reset(JudgeGrace)
	}
}

// End lets go of the judge: one that has not answered is killed.
func (w *Watch) End(answered bool) {
	w.hangUp()
	if judge := w.judge.Load(); judge != nil && !answered {
		judge.Kill()
	}
}

func (w *Watch) hangUp() {
	if judge := w.judge.Load(); judge != nil {
		_ = judge.In.Close()
	}
}
