package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/host"
)

// TestGoldenHook compares the answers to each payload of each host.
func TestGoldenHook(t *testing.T) {
	w, state, config := goldenWorld(t)
	for _, name := range host.Names() {
		payloads, err := filepath.Glob("../testdata/hosts/" + name + "/*.json")
		if err != nil || len(payloads) < 20 {
			t.Fatalf("%s: %d payloads: %v", name, len(payloads), err)
		}
		for _, payload := range payloads {
			in, err := os.ReadFile(payload)
			if err != nil {
				t.Fatal(err)
			}
			status, out, errs := run(t, w, string(in), "hook", name, "--config", config, "--state", state)
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

const hookRead = `{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"notes.md"}}`

// TestHookFailuresDeny gives the hook what it cannot judge. Each ends with 2,
// which hosts take for a denial, and says nothing on standard output.
func TestHookFailuresDeny(t *testing.T) {
	w := newWorld(t)
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
		{"larger than the limit", io.LimitReader(endless{}, host.MaxBytes+1), nil},
		{"endless", endless{}, nil},
		{"deep", strings.NewReader(strings.Repeat(`{"tool_input":`, 100_000)), nil},
		{"an error", broken{}, nil},
		{"never a byte", blocked, []string{"--timeout", "50ms"}},
		{"a byte at a time", &slow{text: hookRead}, []string{"--timeout", "50ms"}},
		{"no time", strings.NewReader(hookRead), []string{"--timeout", "0s"}},
		{"negative time", strings.NewReader(hookRead), []string{"--timeout", "-1s"}},
		{"a policy that is not there", strings.NewReader(hookRead), []string{"--policy", "none"}},
		{"settings that are not there", strings.NewReader(hookRead), []string{"--config", "/nowhere"}},
		{"a state folder that is a file", strings.NewReader(hookRead), []string{"--state", "/dev/null"}},
		{"an operand", strings.NewReader(hookRead), []string{"operand"}},
	} {
		var out, errs bytes.Buffer
		w.In, w.Out, w.Err = c.in, &out, &errs
		start := time.Now()
		status := Run(context.Background(), append([]string{"hook", "claude-code"}, c.args...), w)
		denied := status == statusBlock && out.Len() == 0 && strings.HasPrefix(errs.String(), "shield: ")
		if !denied && (status != statusAllow || !denies(out.Bytes())) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", c.name, status, out.String(), errs.String())
		}
		if errs.Len() > 1000 {
			t.Errorf("%s: %d bytes on stderr", c.name, errs.Len())
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: took %s", c.name, took)
		}
	}
	w.In, w.Out, w.Err = strings.NewReader(hookRead), broken{}, io.Discard
	if status := Run(context.Background(), []string{"hook", "claude-code"}, w); status != statusBlock {
		t.Errorf("an answer that cannot be written: status %d, want %d", status, statusBlock)
	}
}

// denies reports whether an answer is the host's own denial.
func denies(out []byte) bool {
	var answer struct {
		HookSpecificOutput struct{ PermissionDecision string }
	}
	return json.Unmarshal(out, &answer) == nil && answer.HookSpecificOutput.PermissionDecision == "deny"
}

// TestHookKeepsItsDeadline holds the deadline while something that knows
// nothing of it is waited for: hosts that give up waiting run the tool.
func TestHookKeepsItsDeadline(t *testing.T) {
	w := newWorld(t)
	stuck := make(chan struct{})
	defer close(stuck)
	w.Getenv = func(string) string { <-stuck; return "" } // as a lock that is never freed
	var out bytes.Buffer
	w.In, w.Out = strings.NewReader(hookRead), &out
	done := make(chan int, 1)
	go func() {
		done <- Run(context.Background(), []string{"hook", "claude-code", "--config", "/nowhere", "--timeout", "50ms"}, w)
	}()
	select {
	case status := <-done:
		if status != statusBlock || out.Len() > 0 {
			t.Errorf("status %d, stdout %q", status, out.String())
		}
	case <-time.After(20 * time.Second):
		t.Error("the hook waits beyond its deadline")
	}
}

func BenchmarkHook(b *testing.B) {
	w := newWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		if status, _, errs := run(b, w, hookRead, "hook", "claude-code"); status != statusAllow {
			b.Fatal(errs)
		}
	}
}
