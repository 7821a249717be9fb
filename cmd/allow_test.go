package cmd

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/approve"
)

// TestAllowCommand holds what shield allow takes, and what it says.
func TestAllowCommand(t *testing.T) {
	w := newWorld(t)
	state := filepath.Join(t.TempDir(), "state")
	answer, asked := approve.Answer{}, 0
	w.askToAllowRefusal = func(_ context.Context, _ approve.Options, r *approve.Refusal) (approve.Answer, error) {
		asked++
		if r.Session != "s1" || r.AgentHostName != "claude-code" || r.RefusedActionText != "git push --force" || !strings.Contains(string(r.Payload), "git push --force") {
			t.Errorf("asked about %+v", r)
		}
		return answer, nil
	}
	check := func(wantStatus int, want string, args ...string) {
		t.Helper()
		status, out, errs := run(t, inProcess(w), "", append(args, "--state", state)...)
		if status != wantStatus || !strings.Contains(out+errs, want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q; want %d, %q", args, status, out, errs, wantStatus, want)
		}
	}
	check(statusAllow, "Nothing that can be allowed was refused in the last hour.", "allow")
	const event = `{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git push --force"}}`
	_, out, _ := run(t, inProcess(w), event, "hook", "claude-code", "--state", state)
	m := regexp.MustCompile(`shield allow ([a-z0-9]+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal(out)
	}
	ref := m[1]
	check(statusAllow, ref+"  0 s  git push --force", "allow")
	check(statusAllow, "To allow one: shield allow REF", "allow")
	check(statusFailure, "no refusal has this reference; run 'shield allow' for the list; 'shield allow' lists those", "allow", "zzz")
	check(statusFailure, "no refusal has this reference; run 'shield allow' for the list", "allow", "")
	check(statusFailure, `unexpected operand "b"`, "allow", "a", "b")
	w.checkPersonStartedThisProcess = func(sure int) error {
		if sure != personProofAtTerminal {
			t.Errorf("demand %d", sure)
		}
		return errNoTerminal
	}
	check(statusFailure, "allow: only the user can do this, but there is no terminal here", "allow", ref)
	w.checkPersonStartedThisProcess = func(int) error { return nil }
	if asked > 0 {
		t.Errorf("asked %d times", asked)
	}
	check(statusFailure, "allow "+ref+": not confirmed", "allow", ref)
	answer = approve.Answer{Approve: true, AnsweringPersonName: "ann"}
	check(statusAllow, "Allowed once, until ", "allow", strings.ToUpper(ref))
	check(statusFailure, "this refusal was already allowed; tell the agent to try again", "allow", ref)
	check(statusAllow, "Nothing that can be allowed", "allow")
	if asked != 2 {
		t.Errorf("asked %d times, want twice", asked)
	}
	log, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), `"kind":"allow"`); n != 1 || !strings.Contains(string(log), "ann allowed this once, until ") {
		t.Errorf("%d entries: %s", n, log)
	}
	for range 2 { // what is allowed runs once
		status, _, _ := run(t, inProcess(w), event, "hook", "claude-code", "--state", state)
		if strings.HasSuffix(string(log), "ran") == (status == statusAllow) {
			t.Errorf("status %d", status)
		}
		log = append(log, "ran"...)
	}
	// A log that cannot be written allows nothing.
	_, out, _ = run(t, inProcess(w), event, "hook", "claude-code", "--state", state)
	ref = regexp.MustCompile(`shield allow ([a-z0-9]+)`).FindStringSubmatch(out)[1]
	config := filepath.Join(t.TempDir(), "shield.yaml")
	place := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("audit: {file: "+place+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(statusFailure, ": not allowed, because the audit log cannot be written:", "allow", ref, "--config", config)
	if status, _, _ := run(t, inProcess(w), event, "hook", "claude-code", "--state", state); status != statusBlock {
		t.Error("what was not logged runs")
	}
}
