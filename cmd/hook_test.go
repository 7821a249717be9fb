package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/host"
)

// inProcess has the hooks of a world judged in this process, by the command
// line that another process would run.
func inProcess(w Environment) Environment {
	w.judgeProcessStarter = func(args []string) (*watch.Judge, error) {
		questions, in := io.Pipe()
		out, answers := io.Pipe()
		of := w
		of.In, of.Out, of.Err = questions, answers, io.Discard
		of.killParent = func() error { return nil }
		go func() {
			_ = answers.CloseWithError(fmt.Errorf("status %d", Run(context.Background(), args, of)))
		}()
		return &watch.Judge{Stdin: in, Stdout: out, Kill: func() { _ = in.Close(); _ = out.Close() }}, nil
	}
	return w
}

// TestGoldenHook compares the answers to each payload of each host.
func TestGoldenHook(t *testing.T) {
	w, state, config := goldenWorld(t)
	w = inProcess(w)
	f, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("hook: {answer: allow}\n") // so that the reason of what is allowed is shown
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range host.Names() {
		payloads, err := filepath.Glob("../testdata/hosts/" + name + "/*.json")
		if err != nil || len(payloads) < 5 {
			t.Fatalf("%s: %d payloads: %v", name, len(payloads), err)
		}
		for _, payload := range payloads {
			in, err := os.ReadFile(payload)
			if err != nil {
				t.Fatal(err)
			}
			status, out, errs := goldenRun(t, w, string(in), "hook", name, "--config", config, "--state", state)
			golden(t, filepath.Join("hook", name, strings.TrimSuffix(filepath.Base(payload), ".json")+".txt"), fmt.Sprintf("status %d\n%s%s", status, out, errs))
		}
	}
}

// endless is a standard input that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// slow gives its input a byte at a time, and never ends.
type slow struct{ text string }

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	if s.text == "" {
		return 0, nil
	}
	n := copy(p[:1], s.text)
	s.text = s.text[n:]
	return n, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, io.ErrUnexpectedEOF }
func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (broken) Close() error              { return nil }

const hookRead = `{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"notes.md"}}`

// hookDenied demands a denial as every host takes it: the host's own form alone
// on standard output, with a reason, the same reason on standard error, and the
// status of a denial.
func hookDenied(t *testing.T, name string, status int, out, errs string) {
	t.Helper()
	var answer struct {
		HookSpecificOutput struct{ HookEventName, PermissionDecision, PermissionDecisionReason string }
		SystemMessage      string
	}
	dec := json.NewDecoder(strings.NewReader(out))
	err := dec.Decode(&answer)
	a := answer.HookSpecificOutput
	switch {
	case status != statusBlock, err != nil, a.HookEventName != "PreToolUse", a.PermissionDecision != "deny",
		!refusalForm.MatchString(a.PermissionDecisionReason) || utf8.RuneCountInString(a.PermissionDecisionReason) > 240,
		!strings.HasPrefix(errs, "shield: "+a.PermissionDecisionReason+"\n"), answer.SystemMessage == "", !strings.HasSuffix(errs, answer.SystemMessage+"\n"), dec.More(), strings.Count(out, "\n") != 1, len(errs) > 5000:
		t.Errorf("%s: status %d, stdout %q, stderr %q", name, status, out, errs)
	}
}

// refusalForm is what an agent is told about a refusal: what and why, and that it is not to
// retry.
var refusalForm = regexp.MustCompile(`^\S.*[.!?…] Do not retry( unless the user allows it)?\. \[shield(: [A-Za-z0-9_-]+)?(, ref [a-z0-9]{3,6})?\]$`)

// refs are the references in texts, which are drawn at random.
var refs = regexp.MustCompile(`\b(ref|shield allow|shield tools set) [a-z0-9]{3,6}\b`)

// TestHookFailuresDeny gives the hook what it cannot judge.
func TestHookFailuresDeny(t *testing.T) {
	w := inProcess(newWorld(t))
	blocked, unblock := io.Pipe()
	defer unblock.Close()
	for _, c := range []struct {
		name string
		in   io.Reader
		args []string
	}{
		{"nothing", strings.NewReader(""), nil},
		{"spaces", strings.NewReader(" \n\t"), nil},
		{"garbage", strings.NewReader("\x00\xff{]"), nil},
		{"text", strings.NewReader("allow"), nil},
		{"two objects", strings.NewReader(hookRead + "\n" + hookRead), nil},
		{"an object and more", strings.NewReader(hookRead + "x"), nil},
		{"half an object", strings.NewReader(hookRead[:40]), nil},
		{"another event", strings.NewReader(`{"hook_event_name":"Stop"}`), nil},
		{"larger than the limit", io.LimitReader(endless{}, host.MaxHookInputBytes+1), nil},
		{"endless", endless{}, nil},
		{"deep", strings.NewReader(strings.Repeat(`{"tool_input":`, 100_000)), nil},
		{"an error", broken{}, nil},
		{"never a byte", blocked, []string{"--timeout", "50ms"}},
		{"a byte at a time", &slow{text: hookRead}, []string{"--timeout", "50ms"}},
		{"no time", strings.NewReader(hookRead), []string{"--timeout", "0s"}},
		{"negative time", strings.NewReader(hookRead), []string{"--timeout", "-1s"}},
		{"a time without a unit", strings.NewReader(hookRead), []string{"--timeout", "50"}},
		{"an unknown flag", strings.NewReader(hookRead), []string{"--bogus"}},
		{"a flag without its value", strings.NewReader(hookRead), []string{"--policy"}},
		{"an unknown colour", strings.NewReader(hookRead), []string{"--color", "purple"}},
		{"a policy that is not there", strings.NewReader(hookRead), []string{"--policy", "none"}},
		{"settings that are not there", strings.NewReader(hookRead), []string{"--config", "/nowhere"}},
		{"a state folder that is a file", strings.NewReader(hookRead), []string{"--state", "/dev/null"}},
		{"an operand", strings.NewReader(hookRead), []string{"operand"}},
		{"an operand behind --", strings.NewReader(hookRead), []string{"--", "--help"}},
		{"the judge without its watchdog", strings.NewReader(hookRead), []string{"--judge"}},
		{"an action that is refused", strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf /"}}`), nil},
		{"an action that nobody can decide", strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git push --force"}}`), nil},
		{"a command that speaks to terminals", strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"\u001b[2J\u202e","tool_input":{"command":"\u001b]0;x\u0007"}}`), nil},
	} {
		var out, errs bytes.Buffer
		w.In, w.Out, w.Err = c.in, &out, &errs
		status := Run(context.Background(), append([]string{"hook", "claude-code"}, c.args...), w)
		hookDenied(t, c.name, status, out.String(), errs.String())
		if strings.ContainsAny(errs.String(), "\x1b\x07\u202e") {
			t.Errorf("%s: control characters on standard error: %q", c.name, errs.String())
		}
	}
	for _, args := range [][]string{{"--bogus", "hook", "claude-code"}, {"--config", "x", "hook", "claude-code"}} {
		status, out, errs := run(t, w, hookRead, args...)
		hookDenied(t, strings.Join(args, " "), status, out, errs)
	}
	// Where no host is known there is no form to answer in.
	for _, args := range [][]string{{"hook", "nobody"}, {"hook"}, {"hook", "--bogus"}, {"--bogus", "hook"}} {
		status, out, errs := run(t, w, hookRead, args...)
		if status != statusBlock || out != "" || !strings.HasPrefix(errs, "shield: ") {
			t.Errorf("%s: status %d, stdout %q, stderr %q", args, status, out, errs)
		}
	}
	w.In, w.Out, w.Err = strings.NewReader(hookRead+"x"), broken{}, io.Discard
	if status := Run(context.Background(), []string{"hook", "claude-code"}, w); status != statusBlock {
		t.Errorf("an answer that cannot be written: status %d, want %d", status, statusBlock)
	}
}

// TestHookJudgeFails has the judge fail in every way in which a process can.
func TestHookJudgeFails(t *testing.T) {
	answers := func(text string) func([]string) (*watch.Judge, error) {
		return func([]string) (*watch.Judge, error) {
			_, in := io.Pipe()
			return &watch.Judge{Stdin: discard{in}, Stdout: strings.NewReader(text), Kill: func() {}}, nil
		}
	}
	for name, start := range map[string]func([]string) (*watch.Judge, error){
		"cannot be started": func([]string) (*watch.Judge, error) { return nil, io.ErrUnexpectedEOF },
		"ends at once": func([]string) (*watch.Judge, error) {
			return &watch.Judge{Stdin: broken{}, Stdout: strings.NewReader(""), Kill: func() {}}, nil
		},
		"says nothing":        answers(""),
		"a line without end":  answers(`{"allow":true}`),
		"an empty line":       answers("\n"),
		"no object":           answers("true\n"),
		"text":                answers("allow\n"),
		"an empty object":     answers("{}\n"),
		"allow as text":       answers(`{"allow":"true"}` + "\n"),
		"allow and a reason":  answers(`{"allow":true,"reason":"x"}` + "\n"),
		"allow and a failure": answers(`{"allow":true,"failed":true}` + "\n"),
		"a failure":           answers(`{"allow":false,"failed":true,"reason":"x"}` + "\n"),
		"deny without reason": answers(`{"allow":false}` + "\n"),
		"two members":         answers(`{"allow":false,"allow":true}` + "\n"),
		"another case":        answers(`{"Allow":true}` + "\n"),
		"more members":        answers(`{"allow":true,"x":1}` + "\n"),
		"an answer of text":   answers(`{"allow":true,"answer":"x"}` + "\n"),
		"a list of answers":   answers(`{"allow":true,"answer":[{}]}` + "\n"),
		"two answers":         answers(`{"allow":true}{"allow":true}` + "\n"),
		"a log line first":    answers("log\n" + `{"allow":true}` + "\n"),
		"the host's own form": answers(`{"hookSpecificOutput":{"permissionDecision":"allow"}}` + "\n"),
		"more than is read":   answers(strings.Repeat(" ", watch.MaxAnswerBytes) + `{"allow":true}` + "\n"),
	} {
		w := newWorld(t)
		w.judgeProcessStarter = start
		status, out, errs := run(t, w, hookRead, "hook", "claude-code")
		hookDenied(t, name, status, out, errs)
	}
}

// TestAllowedAhead holds that each host begins ahead, and that the one answer which the
// watchdog takes before the rest of shield is there is what the judge says about an action
// that is left to the host, and what the whole program would tell the host.
func TestAllowedAhead(t *testing.T) {
	t.Parallel()
	var want []watch.AgentHost
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		neutral, err := h.ResponseToAllowedEvent(t.Context(), host.Event{Name: "a", ToolCallID: watch.ActionIDPlaceholder}, true, "")
		if err != nil {
			t.Fatal(err)
		}
		other, err := h.ResponseToAllowedEvent(t.Context(), host.Event{Name: "b", ToolCallID: "2"}, true, "why")
		if err != nil || string(other) != strings.Replace(string(neutral), watch.ActionIDPlaceholder, "2", 1) {
			t.Fatalf("%s: is told %s or %s, %v: it depends on more than the id", name, neutral, other, err)
		}
		want = append(want, watch.AgentHost{Name: name, DeferToHostPermissionsJSON: string(neutral)})
		text, err := jsonv2.Marshal(hookAnswer{Allow: true, HostResponseJSON: neutral})
		if err != nil || string(text)+"\n" != watch.FormatJudgeAllowAnswerLine(string(neutral)) {
			t.Errorf("%s: a judge says %s, %v; the watchdog waits for %q", name, text, err, watch.FormatJudgeAllowAnswerLine(string(neutral)))
		}
		var out strings.Builder
		answer, err := parseJudgeProcessAnswer([]byte(watch.FormatJudgeAllowAnswerLine(string(neutral))))
		if err != nil || answer.writeAllowOrReturnDenial(&out) != nil || out.String() != string(neutral)+"\n" {
			t.Errorf("%s: the whole program tells the host %q, %v", name, out.String(), err)
		}
	}
	if diff := cmp.Diff(want, watch.AgentHosts); diff != "" {
		t.Errorf("watch.Hosts (-hosts +there):\n%s", diff)
	}
}

type discard struct{ io.Closer }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestHookAnswersAllow holds what a host is told about an ALLOW.
func TestHookAnswersAllow(t *testing.T) {
	const said = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"shield: tier `
	for answer, want := range map[string]string{"delegate": "{}\n", "allow": said} {
		w := inProcess(newWorld(t))
		config := filepath.Join(t.TempDir(), "shield.yaml")
		if err := os.WriteFile(config, []byte("classifier: {model: none}\nhook: {answer: "+answer+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, errs := run(t, w, hookRead, "hook", "claude-code", "--config", config)
		if status != statusAllow || errs != "" || !strings.HasPrefix(out, want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %q", answer, status, out, errs, want)
		}
	}
}

// TestHookKeepsItsDeadline holds the deadline while something that knows
// nothing of it is waited for: hosts that give up waiting run the tool.
func TestHookKeepsItsDeadline(t *testing.T) {
	w := newWorld(t)
	stuck := make(chan struct{})
	defer close(stuck)
	w.Getenv = func(string) string { <-stuck; return "" } // as a lock that is never freed
	status, out, errs := run(t, inProcess(w), hookRead, "hook", "claude-code", "--config", "/nowhere", "--timeout", "50ms")
	hookDenied(t, "stuck", status, out, errs)
}

func BenchmarkHook(b *testing.B) {
	w := inProcess(newWorld(b))
	b.ReportAllocs()
	for b.Loop() {
		if status, _, errs := run(b, w, hookRead, "hook", "claude-code"); status != statusAllow {
			b.Fatal(errs)
		}
	}
}

// TestBrokenSettingsAfterATool holds that a host is notified of a result that was not examined in
// the form of the event that brought it: what withholds it, or else what is neutral, and never
// a denial of a call.
func TestBrokenSettingsAfterATool(t *testing.T) {
	t.Parallel()
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob("../testdata/hosts/" + name + "/*.json")
		if err != nil {
			t.Fatal(err)
		}
		denied, err := h.DenialResponse(t.Context(), "shield: x", "")
		if err != nil {
			t.Fatal(err)
		}
		before, _, _ := strings.Cut(string(denied), "shield: x")
		for _, file := range files {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			e, err := h.Event(t.Context(), in)
			if err != nil || e.ToolResult == nil || e.Host.Name != name {
				continue
			}
			status, out, errs := run(t, inProcess(newWorld(t)), string(in), "hook", name, "--config", "/nowhere")
			lost, err := h.UnexaminedResultResponse(t.Context(), "shield: x")
			if err != nil {
				t.Fatal(err)
			}
			begin, _, _ := strings.Cut(string(lost), "shield: x")
			switch {
			case h.CanReplaceResult(e.Name) && strings.Contains(out, "withheld"):
				if name == "claude-code" && !strings.Contains(out, `"hookEventName":"`+e.Name+`"`) && !strings.HasPrefix(out, begin) {
					t.Errorf("%s: status %d, %s", file, status, out)
				}
			case !strings.HasPrefix(out, begin) || begin != before && strings.HasPrefix(out, before):
				t.Errorf("%s: status %d, stdout %q, stderr %q; want %s…", file, status, out, errs, begin)
			}
		}
	}
}
