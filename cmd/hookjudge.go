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

	"github.com/shieldcli/shield/internal/stack"
	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A judgeRequestHeader is the line that a judge process reads, followed by InputBytes bytes of the host's input.
// Its standard input stays open until the watchdog ends.
type judgeRequestHeader struct {
	InputBytes          int `json:"bytes"`
	VerdictRequesterPID int `json:"parent"` // the asking process: the host, or its shell
}

// A hookAnswer is the line that a judge process writes.
type hookAnswer struct {
	Allow            bool           `json:"allow"`
	AskUser          bool           `json:"ask,omitzero"`     // the host must ask its user: HostResponseJSON is the request to the host
	JudgingFailed    bool           `json:"failed,omitempty"` // the action was not judged; ReasonForAgent says why
	HostResponseJSON jsontext.Value `json:"answer,omitzero"`  // the response to a host whose call is allowed or must be asked about; nil if the host gets no response
	ReasonForAgent   string         `json:"reason,omitempty"` // the reason of a refusal, for the agent
	ReasonForUser    string         `json:"user,omitempty"`   // the reason of a refusal, for the user
	HostName         string         `json:"host,omitzero"`    // the host whose format the answer must have, if it is not the host of the command line
	AfterToolRan     bool           `json:"after,omitzero"`   // there is no judgement: the tool has already run, or the agent ends its turn
}

// judgeHookEventForWatchdog answers the watchdog that started this process, and then makes sure that the watchdog
// ends: the host would wait for a stopped watchdog and in the end run the tool.
func judgeHookEventForWatchdog(c *cli.Context, w *Environment, hostName string, deadline time.Duration) error {
	ended := make(chan error, 2)
	guard := time.AfterFunc(deadline+watch.WatchdogKillDelay, func() { ended <- w.killParent() })
	defer guard.Stop()
	in := bufio.NewReader(w.In)
	event, err := readHookInput(in, w)
	if err != nil {
		return fmt.Errorf("hook --%s: %w; leave the flag out: only shield itself uses it", watch.JudgeFlagName, err)
	}
	ctx, cancel := context.WithTimeout(c.Context, deadline)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends when the watchdog ends
		ended <- nil
		cancel()
	}()
	if err := judgeBeforeDeadline(ctx, c, w, hostName, event).write(w.Out); err != nil {
		return err
	}
	err = <-ended
	if err == nil {
		w.startDueModelProbes(c)
	}
	return err
}

// judgeHostEventInProcess judges one event of a host in the process that the host waits for.
func judgeHostEventInProcess(c *cli.Context, w *Environment, hostName string, deadline time.Duration) error {
	printTerminalInputHint(w, "one event of the host from the terminal, a JSON object")
	ctx, cancel := context.WithTimeout(c.Context, deadline)
	defer cancel()
	event, err := callWithDeadline(ctx.Done(), func() ([]byte, error) { return watch.ReadEvent(w.In) })
	if errors.Is(err, errJudgingTimeout) {
		return watch.ErrEventIncomplete
	}
	if err != nil {
		return err
	}
	return judgeBeforeDeadline(ctx, c, w, hostName, event).writeAllowOrReturnDenial(w.Out)
}

// answerQuestionFromHookWatchdog answers the question of a hook's watchdog, unless a later tier must decide.
func answerQuestionFromHookWatchdog(c *cli.Context, w *Environment, hostName string) error {
	if !c.Bool(watch.JudgeFlagName) || c.Bool(permissionRequestEventFlagName) {
		return errUndecided
	}
	answer, err := judgeEvent(c.Context, c, w, hostName, w.requestFromServiceClient.input)
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

// readHookInput reads a host's input as passed on by the watchdog.
func readHookInput(in *bufio.Reader, w *Environment) (event []byte, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	var q judgeRequestHeader
	if err := json.Unmarshal(line, &q, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if q.InputBytes < 0 || q.InputBytes > watch.MaxEventBytes {
		return nil, fmt.Errorf("%d bytes", q.InputBytes)
	}
	w.verdictRequesterPID = q.VerdictRequesterPID
	event = make([]byte, q.InputBytes)
	_, err = io.ReadFull(in, event)
	return event, err
}

// judgeBeforeDeadline judges one event of a host. It returns a failure shortly after ctx ends, even
// if judging still blocks, for example on a lock.
func judgeBeforeDeadline(ctx context.Context, c *cli.Context, w *Environment, name string, event []byte) hookAnswer {
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(watch.JudgeGraceAfterHookDeadline, func() { close(late) }) })
	defer stop()
	answer, err := callWithDeadline(late, func() (hookAnswer, error) { return judgeEvent(ctx, c, w, name, event) })
	switch {
	case errors.Is(err, errJudgingTimeout):
		return hookAnswer{JudgingFailed: true, ReasonForAgent: "no verdict in time; raise hook.timeout, or run 'shield doctor'"}
	case err != nil:
		return hookAnswer{JudgingFailed: true, ReasonForAgent: err.Error(), HostName: answer.HostName, AfterToolRan: answer.AfterToolRan}
	}
	return answer
}

// errJudgingTimeout is the error of [callWithDeadline] for a call that has not returned.
var errJudgingTimeout = errors.New("judging the action took too long; raise hook.timeout")

// callWithDeadline returns the result of f. If the channel deadlinePassed delivers a value or is closed first,
// callWithDeadline returns errJudgingTimeout, and f continues in the background.
func callWithDeadline[T, L any](deadlinePassed <-chan L, f func() (T, error)) (value T, err error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		stack.GrowToReservedBytes()
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-deadlinePassed:
		return value, errJudgingTimeout
	}
}

// judgeEvent judges one event of a host. If judging fails, the returned answer still says which
// host sent the event and whether the tool already ran.
func judgeEvent(ctx context.Context, c *cli.Context, w *Environment, name string, in []byte) (hookAnswer, error) {
	h, err := hostForHookCommand(name, c.Bool(permissionRequestEventFlagName))
	if err != nil {
		return hookAnswer{}, err
	}
	event, err := h.Event(ctx, in)
	from := hookAnswer{AfterToolRan: event.ToolResult != nil || event.EndedSessionID != "" || event.Prompt != nil}
	if event.Host.Name != name {
		from.HostName = event.Host.Name
	}
	if err != nil {
		return from, err
	}
	answer, err := judgeDecodedEvent(ctx, c, w, event.Host, event, in)
	answer.HostName = from.HostName
	if err != nil {
		return from, err
	}
	return answer, nil
}

// judgeDecodedEvent judges a decoded event of a host.
func judgeDecodedEvent(ctx context.Context, c *cli.Context, w *Environment, h *host.Host, event host.Event, in []byte) (hookAnswer, error) {
	if event.ToolResult != nil {
		return examineToolResult(ctx, c, w, h, event)
	}
	if event.EndedSessionID != "" {
		return reportBackedUpFiles(ctx, c, w, h, event)
	}
	if event.Prompt != nil {
		return rememberPrompt(ctx, c, w, h, event)
	}
	if len(event.Actions) == 0 {
		answer, err := h.ResponseToAllowedEvent(ctx, event, true, "")
		return hookAnswer{Allow: true, HostResponseJSON: answer}, err
	}
	asked := newHostApprovalPrompt(w, h, event)
	w.callingHost = h
	w.checkHostAsksUser = func() error {
		version, err := checkHostWillAskUser(ctx, w, h, possibleProjectFolders(w, h, event), in)
		if err == nil {
			err = asked.checkHostVersionAsksUser(c, version)
		}
		return err
	}
	set, p, err := newPipelineWithConfigChange(c, w, func(cfg *shield.Config) {
		cfg.JudgesSingleAction, cfg.OffersAllowOnce, cfg.BacksUpLostFiles = true, true, !c.Bool(permissionRequestEventFlagName)
		setSessionOrigin(cfg, w, h.Name, event.ParentSessionID)
		cfg.LookUpUnknownTool = hostToolDescriber(w, h.Name)
	})
	if err != nil {
		return hookAnswer{}, err
	}
	w.judgingPipeline = p
	if c.Bool(permissionRequestEventFlagName) {
		// If shield told the host to ask this question, the user must answer it: shield does not
		// answer the prompt.
		_, asked := approve.FindHostQuestion(stateDir(&set.Settings, w), eventActionsDigest(event))
		return judgePermissionRequest(ctx, w, h, p, set.Hook.AnswerPermissionPromptsOnOff == "on" && !asked, event, in)
	}
	recordAuthorsOfPendingPrompts(ctx, w, h, p, event, in)
	refused, decision, reason, err := judgeActions(ctx, w, p, event)
	switch {
	case err != nil:
		return hookAnswer{}, err
	case refused != nil:
		return refusalAnswer(refused), nil
	case ctx.Err() != nil: // the host may have stopped waiting
		return hookAnswer{}, errors.New("no verdict in time; raise hook.timeout, or run 'shield doctor'")
	case decision == verdict.Escalate:
		if err := asked.recordHostToldToAsk(); err != nil {
			return hookAnswer{}, err
		}
		answer, err := h.ResponseAskingUser(ctx, event, reason)
		return hookAnswer{AskUser: true, HostResponseJSON: answer, ReasonForAgent: reason}, err
	}
	answer, err := h.ResponseToAllowedEvent(ctx, event, set.Hook.AnswerToHostOnAllow == "delegate", "shield: "+reason)
	return hookAnswer{Allow: true, HostResponseJSON: answer}, err
}

// judgeActions judges the actions of an event until one is refused, and returns that refusal. After an
// ESCALATE the host must ask its user, with the reasons of all actions that need it.
func judgeActions(ctx context.Context, w *Environment, p *shield.Pipeline, event host.Event) (refused *verdict.Verdict, decision verdict.Decision, reason string, err error) {
	if w.requestFromServiceClient != nil && len(event.Actions) > 1 { // a later tier may have to decide one of these
		return nil, verdict.Block, "", errUndecided
	}
	var asked []string
	for _, raw := range event.Actions {
		a, err := action.Parse(raw)
		if err != nil {
			return nil, verdict.Block, "", fmt.Errorf("hook: %w", err)
		}
		v, err := w.evaluateAction(ctx, p, a)
		if err != nil {
			return nil, verdict.Block, "", err
		}
		reason = fmt.Sprintf("tier %d: %s", v.Tier, v.Reasoning)
		switch {
		case v.Decision == verdict.Escalate && v.AnswerChannel == approve.HostChannel:
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

// refusalAnswer returns the answer for a refusal.
func refusalAnswer(v *verdict.Verdict) hookAnswer {
	return hookAnswer{ReasonForAgent: v.TextForAgent(), ReasonForUser: "shield stopped: " + v.TextForUser()}
}
