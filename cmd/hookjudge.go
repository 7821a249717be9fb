package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A hookQuestion is the line that a judge process reads, followed by Bytes bytes of the host's input.
// Its standard input stays open until the watchdog ends.
type hookQuestion struct {
	Bytes  int `json:"bytes"`
	Parent int `json:"parent"` // the asking process: the host, or its shell
}

// A hookAnswer is the line that a judge process writes.
type hookAnswer struct {
	Allow  bool           `json:"allow"`
	Ask    bool           `json:"ask,omitzero"`     // the host must ask its user, for Reason, in the form of Answer
	Failed bool           `json:"failed,omitempty"` // not judged; Reason says why
	Answer jsontext.Value `json:"answer,omitzero"`  // the text for a host whose call is allowed; may be nil
	Reason string         `json:"reason,omitempty"` // the reason of a refusal, for the agent
	User   string         `json:"user,omitempty"`   // the reason of a refusal, for the user
	Host   string         `json:"host,omitzero"`    // the host whose format the answer must have, if it is not the host of the command line
	After  bool           `json:"after,omitzero"`   // not judged; the tool has already run, or the agent ends its turn
}

// judgeHook answers the watchdog that started this process, and then makes sure that the watchdog
// ends: the host would wait for a stopped watchdog and in the end run the tool.
func judgeHook(c *cli.Context, w *World, name string, deadline time.Duration) error {
	ended := make(chan error, 2)
	guard := time.AfterFunc(deadline+watch.GuardGrace, func() { ended <- w.endParent() })
	defer guard.Stop()
	in := bufio.NewReader(w.In)
	event, err := readQuestion(in, w)
	if err != nil {
		return fmt.Errorf("hook --%s: %w; leave the flag out: only shield itself uses it", watch.Flag, err)
	}
	ctx, cancel := context.WithTimeout(c.Context, deadline)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends when the watchdog ends
		ended <- nil
		cancel()
	}()
	if err := judgeInTime(ctx, c, w, name, event).write(w.Out); err != nil {
		return err
	}
	err = <-ended
	if err == nil {
		w.probeLater(c)
	}
	return err
}

// judgeAlone judges one event of a host in the process that the host waits for.
func judgeAlone(c *cli.Context, w *World, name string, deadline time.Duration) error {
	noteTerminalInput(w, "one event of the host from the terminal, a JSON object")
	ctx, cancel := context.WithTimeout(c.Context, deadline)
	defer cancel()
	event, err := inTime(ctx.Done(), func() ([]byte, error) { return watch.ReadEvent(w.In) })
	if errors.Is(err, errLate) {
		return watch.ErrUnread
	}
	if err != nil {
		return err
	}
	return judgeInTime(ctx, c, w, name, event).writeOrFail(w.Out)
}

// answerHook answers the question of a hook's watchdog, unless a later tier must decide.
func answerHook(c *cli.Context, w *World, name string) error {
	if !c.Bool(watch.Flag) || c.Bool(permissionFlag) {
		return errUndecided
	}
	answer, err := judgeEvent(c.Context, c, w, name, w.served.input)
	if err != nil {
		return err
	}
	return answer.write(w.Out)
}

// write writes an answer as one line.
func (a hookAnswer) write(out io.Writer) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// readQuestion reads a host's input as passed on by the watchdog.
func readQuestion(in *bufio.Reader, w *World) (event []byte, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	var q hookQuestion
	if err := json.Unmarshal(line, &q, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if q.Bytes < 0 || q.Bytes > watch.MaxEvent {
		return nil, fmt.Errorf("%d bytes", q.Bytes)
	}
	w.parent = q.Parent
	event = make([]byte, q.Bytes)
	_, err = io.ReadFull(in, event)
	return event, err
}

// judgeInTime judges one event of a host before the deadline, whatever judging waits for, such as a
// lock.
func judgeInTime(ctx context.Context, c *cli.Context, w *World, name string, event []byte) hookAnswer {
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(watch.JudgeGrace, func() { close(late) }) })
	defer stop()
	answer, err := inTime(late, func() (hookAnswer, error) { return judgeEvent(ctx, c, w, name, event) })
	switch {
	case errors.Is(err, errLate):
		return hookAnswer{Failed: true, Reason: "no verdict in time; raise hook.timeout, or run 'shield doctor'"}
	case err != nil:
		return hookAnswer{Failed: true, Reason: err.Error(), Host: answer.Host, After: answer.After}
	}
	return answer
}

// errLate is the error of [inTime] for a call that has not returned.
var errLate = errors.New("it took too long; raise hook.timeout")

// inTime returns what f returns, or errLate as soon as late can be received from; f then continues in
// the background.
func inTime[T, L any](late <-chan L, f func() (T, error)) (value T, err error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-late:
		return value, errLate
	}
}

// judgeEvent judges one event of a host. The answer beside an error contains the event's host.
func judgeEvent(ctx context.Context, c *cli.Context, w *World, name string, in []byte) (hookAnswer, error) {
	h, err := hookedHost(name, c.Bool(permissionFlag))
	if err != nil {
		return hookAnswer{}, err
	}
	event, err := h.Event(ctx, in)
	from := hookAnswer{After: event.Returned != nil || event.Ended != "" || event.Prompt != nil}
	if event.Host.Name != name {
		from.Host = event.Host.Name
	}
	if err != nil {
		return from, err
	}
	answer, err := judgeRead(ctx, c, w, event.Host, event, in)
	answer.Host = from.Host
	if err != nil {
		return from, err
	}
	return answer, nil
}

// judgeRead judges a decoded event of a host.
func judgeRead(ctx context.Context, c *cli.Context, w *World, h *host.Host, event host.Event, in []byte) (hookAnswer, error) {
	if event.Returned != nil {
		return examineResult(ctx, c, w, h, event)
	}
	if event.Ended != "" {
		return tellKept(ctx, c, w, h, event)
	}
	if event.Prompt != nil {
		return rememberPrompt(ctx, c, w, h, event)
	}
	if len(event.Actions) == 0 {
		answer, err := h.Answer(ctx, event, true, "")
		return hookAnswer{Allow: true, Answer: answer}, err
	}
	asked := newHostQuestion(w, h, event)
	w.calling = h
	w.hostAsks = func() error {
		version, err := hostAsks(ctx, w, h, foldersOf(w, h, event), in)
		if err == nil {
			err = asked.checkVersionAsks(c, version)
		}
		return err
	}
	set, p, err := pipelineOf(c, w, func(cfg *shield.Config) {
		cfg.Single, cfg.Once, cfg.Keeps = true, true, !c.Bool(permissionFlag)
		sessionsOf(cfg, w, h.Name, event.Parent)
		cfg.Which = hostTools(w, h.Name)
	})
	if err != nil {
		return hookAnswer{}, err
	}
	w.judged = p
	if c.Bool(permissionFlag) {
		// A question that the host must ask is for the user, so an ESCALATE is no refusal here.
		_, asked := approve.HostAsked(stateDir(&set.Settings, w), questionKey(event))
		return judgePermission(ctx, w, h, p, set.Hook.PermissionRequest == "on" && !asked, event, in)
	}
	settlePrompts(ctx, w, h, p, event, in)
	refused, decision, reason, err := judgeAll(ctx, w, p, event)
	switch {
	case err != nil:
		return hookAnswer{}, err
	case refused != nil:
		return refusedBy(refused), nil
	case ctx.Err() != nil: // the host may have stopped waiting
		return hookAnswer{}, errors.New("no verdict in time; raise hook.timeout, or run 'shield doctor'")
	case decision == verdict.Escalate:
		if err := asked.recordAsked(); err != nil {
			return hookAnswer{}, err
		}
		answer, err := h.Ask(ctx, event, reason)
		return hookAnswer{Ask: true, Answer: answer, Reason: reason}, err
	}
	answer, err := h.Answer(ctx, event, set.Hook.Answer == "delegate", "shield: "+reason)
	return hookAnswer{Allow: true, Answer: answer}, err
}

// judgeAll judges the actions of an event until one is refused, and returns that refusal. After an
// ESCALATE the host must ask its user, with the reasons of all actions that need it.
func judgeAll(ctx context.Context, w *World, p *shield.Pipeline, event host.Event) (refused *verdict.Verdict, decision verdict.Decision, reason string, err error) {
	if w.served != nil && len(event.Actions) > 1 { // a later tier may have to decide one of these
		return nil, verdict.Block, "", errUndecided
	}
	var asked []string
	for _, raw := range event.Actions {
		a, err := action.Parse(raw)
		if err != nil {
			return nil, verdict.Block, "", fmt.Errorf("hook: %w", err)
		}
		v, err := w.evaluate(ctx, p, a)
		if err != nil {
			return nil, verdict.Block, "", err
		}
		reason = fmt.Sprintf("tier %d: %s", v.Tier, v.Reasoning)
		switch {
		case v.Decision == verdict.Escalate && v.Channel == approve.HostChannel:
			asked = append(asked, v.Reasoning)
		case v.Decision != verdict.Allow:
			return &v, verdict.Block, "", nil
		}
	}
	if len(asked) > 0 {
		return nil, verdict.Escalate, strings.Join(asked, "\n"), nil
	}
	return nil, verdict.Allow, reason, nil
}

// refusedBy returns the answer for a refusal.
func refusedBy(v *verdict.Verdict) hookAnswer {
	return hookAnswer{Reason: v.ForAgent(), User: "shield stopped: " + v.ForUser()}
}
