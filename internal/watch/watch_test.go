package watch

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestInstalled holds which command lines begin ahead: nothing else may be taken
// for a hook, and a judge has no judge.
func TestInstalled(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"hook claude-code":                           true,
		"hook claude-code --timeout 50s":             true,
		"hook claude-code --timeout 1m30s":           true,
		"hook codex --timeout 50s":                   true,
		"hook codex --timeout 50s --alone":           true,
		"hook codex --alone":                         false,
		"hook codex --alone --timeout 50s":           false,
		"hook codex --timeout 50s --alone=true":      false,
		"hook codex --timeout 50s --line 12":         true,
		"hook codex --timeout 50s --line":            false,
		"hook codex --timeout 50s --line 0":          false,
		"hook codex --timeout 50s --line -1":         false,
		"hook codex --timeout 50s --line x":          false,
		"hook codex --line 12":                       false,
		"hook codex --timeout 50s --line 12 --judge": false,
		"":                                          false,
		"hook":                                      false,
		"run":                                       false,
		"hook install":                              false,
		"hook status claude-code":                   false,
		"hook unknown":                              false,
		"hook claude-code --judge":                  false,
		"hook claude-code --judge --timeout 50s":    false,
		"hook claude-code --timeout 50s --judge":    false,
		"hook claude-code --timeout":                false,
		"hook claude-code --timeout --judge":        false,
		"hook claude-code --timeout 50":             false,
		"hook claude-code --help":                   false,
		"hook claude-code --policy x":               false,
		"hook claude-code operand":                  false,
		"--timeout 50s hook claude-code":            false,
		"hook claude-code --timeout 50s operand":    false,
		"exec hook claude-code":                     false,
		"hook claude-code --timeout=50s":            false,
		"explain hook claude-code":                  false,
		"hook claude-code --timeout 1s --timeout 2": false,
	} {
		args := strings.Fields(line)
		if got := isInstalledHookCommand(args); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
		if want && strings.Join(insertJudgeFlag(args), " ") != strings.Replace(line, args[1], args[1]+" --judge", 1) {
			t.Errorf("%q: the judge is started with %q", line, insertJudgeFlag(args))
		}
	}
}

// TestSettled holds that nothing but the neutral answer of the very host, byte for
// byte, ends a hook before the whole program is there.
func TestSettled(t *testing.T) {
	t.Parallel()
	for _, h := range AgentHosts {
		neutral := strings.Replace(h.DeferToHostPermissionsJSON, ActionIDPlaceholder, "call_1", 1)
		want := neutral + "\n"
		if answer, ok := deferToHostResponse(h.Name, judgeReply{line: []byte(FormatJudgeAllowAnswerLine(neutral))}); answer != want || !ok {
			t.Errorf("%s: %q, %v; want %q", h.Name, answer, ok, want)
		}
	}
	neutral := FormatJudgeAllowAnswerLine("{}")
	for _, tt := range []struct {
		host, line string
		err        error
	}{
		{"claude-code", "", nil},
		{"claude-code", neutral[:len(neutral)-1], nil},
		{"claude-code", neutral + neutral, nil},
		{"claude-code", " " + neutral, nil},
		{"claude-code", `{"allow":true,"failed":false}` + "\n", nil},
		{"claude-code", `{"allow":true,"answer":{}}` + "\n", nil},
		{"claude-code", `{"allow":true,"failed":true,"answer":{}}` + "\n", nil},
		{"claude-code", `{"allow":false,"failed":false,"answer":{}}` + "\n", nil},
		{"claude-code", `{"allow":true,"failed":false,"answer":{},"reason":"x"}` + "\n", nil},
		{"claude-code", FormatJudgeAllowAnswerLine(`{"hookSpecificOutput":{"permissionDecision":"allow"}}`), nil},
		{"claude-code", FormatJudgeAllowAnswerLine(`{"permission":"allow"}`), nil},
		{"claude-code", neutral, errors.New("late")},
		{"cursor", neutral, nil},
		{"opencode", neutral, nil},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"1"}`), errors.New("late")},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":""}`), nil},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"@"}`), nil},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"1\u0022"}`), nil},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"1","decision":"deny"}`), nil},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"é"}`), nil},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"1"}`) + FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"1"}`), nil},
		{"opencode", FormatJudgeAllowAnswerLine(`{"decision":"replace","id":"1"}`), nil},
		{"opencode", `{"allow":true,"failed":true,"answer":{"decision":"allow","id":"1"}}` + "\n", nil},
		{"claude-code", FormatJudgeAllowAnswerLine(`{"decision":"allow","id":"1"}`), nil},
		{"nobody", neutral, nil},
	} {
		if answer, ok := deferToHostResponse(tt.host, judgeReply{[]byte(tt.line), tt.err}); answer != "" || ok {
			t.Errorf("%s, %q, %v: settled with %q", tt.host, tt.line, tt.err, answer)
		}
	}
}

// A closer says when it was closed.
type closer struct {
	io.Writer
	closed chan struct{}
}

func (c closer) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return nil
}

// TestWaitGivesUp holds that every judge that does not answer is an error, that it
// is told, and that End kills it.
func TestWaitGivesUp(t *testing.T) {
	t.Parallel()
	blocked, unblock := io.Pipe()
	t.Cleanup(func() { unblock.Close() })
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	for name, tt := range map[string]struct {
		in      io.Reader
		ctx     context.Context
		signals chan os.Signal
		out     io.Reader
		start   error
		late    bool
		want    string
	}{
		"silent":          {in: strings.NewReader("{}"), out: blocked, late: true, want: "no verdict in time"},
		"dead":            {in: strings.NewReader("{}"), out: strings.NewReader(""), want: "ended without an answer"},
		"half a line":     {in: strings.NewReader("{}"), out: strings.NewReader(FormatJudgeAllowAnswerLine("{}")[:10]), want: "ended without an answer"},
		"too much":        {in: strings.NewReader("{}"), out: io.LimitReader(endless{}, 2*MaxAnswerBytes), want: "ended without an answer"},
		"not started":     {in: strings.NewReader("{}"), start: io.ErrUnexpectedEOF, want: "hook: the second shield process does not start:"},
		"no end of input": {in: blocked, out: blocked, late: true, want: "hook: the host did not close standard input in time; run 'shield hook status'"},
		"no input":        {in: strings.NewReader(" \n"), out: blocked, want: "is empty"},
		"broken input":    {in: io.MultiReader(strings.NewReader("{"), failing{}), out: blocked, want: "read standard input"},
		"too much input":  {in: endless{}, out: blocked, want: "larger than"},
		"interrupted":     {in: strings.NewReader("{}"), ctx: cancelled, out: blocked, want: "interrupted"},
		"a signal ahead":  {in: strings.NewReader("{}"), signals: signals, out: blocked, want: "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended, killed := make(chan struct{}), make(chan struct{})
			w := StartEventWatch(tt.in, 1, noService, func() (*Judge, error) {
				return &Judge{closer{io.Discard, ended}, tt.out, func() { close(killed) }}, tt.start
			})
			w.signalsDuringInit = tt.signals
			for tt.start == nil && w.judge.Load() == nil || tt.want == "interrupted" && w.eventIncomplete.Load() {
				time.Sleep(time.Millisecond)
			}
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			deadline := time.Hour
			if tt.late {
				deadline = 0
			}
			line, err := w.WaitForJudgeAnswer(ctx, deadline)
			if line != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q, %v; want %q", line, err, tt.want)
			}
			w.ReleaseOrKillJudge(false)
			if tt.start == nil {
				<-ended
				<-killed
			}
		})
	}
}

// TestWaitAnswers holds that an answer in time comes back as it is, and that what
// the judge was asked is the event.
func TestWaitAnswers(t *testing.T) {
	t.Parallel()
	var asked strings.Builder
	ended := make(chan struct{})
	w := StartEventWatch(strings.NewReader("{ }\n"), 1, noService, func() (*Judge, error) {
		return &Judge{closer{&asked, ended}, strings.NewReader(FormatJudgeAllowAnswerLine("{}") + "more"), func() { t.Error("killed") }}, nil
	})
	line, err := w.WaitForJudgeAnswer(t.Context(), time.Minute)
	w.ReleaseOrKillJudge(true)
	<-ended
	if string(line) != FormatJudgeAllowAnswerLine("{}") || err != nil || !strings.HasPrefix(asked.String(), `{"bytes":4,"parent":`) || !strings.HasSuffix(asked.String(), "}\n{ }\n") {
		t.Errorf("%q, %v to %q", line, err, asked.String())
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func noService() ServiceCall { return nil }
