//go:build unix

package cmd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shell"
)

// always is a store that remembers nothing and limits nothing.
type always struct{}

func (always) ChargeApprovalRequest(context.Context, int) error     { return nil }
func (always) Get(context.Context, string) ([]byte, bool, error)    { return nil, false, nil }
func (always) Put(context.Context, string, []byte, time.Time) error { return nil }

// ask puts a command to a person on the page of a state folder until the test
// ends.
func ask(t *testing.T, dir, command string) {
	t.Helper()
	a, err := approve.New(approve.Options{
		Approval: config.Approval{Channels: []string{"web"}}, Store: always{}, RememberedAnswerKey: func(*analysis.ActionCase) string { return "" },
		StateDir: dir, Clock: clock, AnsweringPersonName: "ann",
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"type": "execute_command", "cwd": "/work", "payload": map[string]string{"command": command}})
	if err != nil {
		t.Fatal(err)
	}
	act, err := action.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, CWD: "/work", Home: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = a.Judge(ctx, an.AnalyzeAction(act))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		a.Close()
	})
}

func TestApprovals(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.Home, "state")
	args := []string{"approvals", "--state", dir}
	if status, out, errs := run(t, w, "", args...); status != statusAllow || errs != "" ||
		out != "Nothing is waiting for an answer.\n" {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	var q approve.ApprovalPageState
	for i, command := range []string{"git push --force origin main", "rm -rf build # \x1b[2J"} {
		ask(t, dir, command)
		for tries := 0; len(q.Waiting) <= i && tries < 1000; tries++ {
			_, out, _ := run(t, w, "", append(args, "--json")...)
			if err := json.Unmarshal([]byte(out), &q); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if q.PageLink != "" || q.PageLoginCode != "" {
		t.Errorf("a pipe is given %q with the code %q", q.PageLink, q.PageLoginCode)
	}
	want := `2 questions wait for your answer:

  1  shield asks whether to run “git push --force origin main”: no earlier tier judged it
     asked 0 s ago, denied in 5 min, in /work
  2  shield asks whether to run “rm -rf build # <U+001B>[2J”: no earlier tier judged it
     asked 0 s ago, denied in 5 min, in /work

Run 'shield approvals' in a terminal to see where to answer these questions.
`
	if status, out, errs := run(t, w, "", args...); status != statusAllow || out != want || errs != "" {
		t.Errorf("status %d, want\n%s, got\n%s%s", status, want, out, errs)
	}
}

func TestApprovalsRemembered(t *testing.T) {
	w, _ := askingWorld(t)
	file := filepath.Join(w.Home, "minutes.yaml")
	config := "classifier: {model: none}\napproval: {channels: [command], command: [/bin/sh, -c, 'echo ''{\"decision\":\"approve\",\"by\":\"ann\",\"minutes\":10}''']}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	on := func(args ...string) []string { return append(args, "--config", file) }
	const in = `{"type":"execute_command","payload":{"command":"git push --force origin one"}}` + "\n"
	check := func(args []string, in string, wantStatus int, want ...string) string {
		t.Helper()
		status, out, errs := run(t, w, in, args...)
		if status != wantStatus {
			t.Errorf("%q: status %d, want %d", args, status, wantStatus)
		}
		for _, text := range want {
			if !strings.Contains(out+errs, text) {
				t.Errorf("%q lacks %q:\n%s%s", args, text, out, errs)
			}
		}
		return out
	}
	check(on("approvals", "list"), "", statusAllow, "No approval is remembered.")
	check(on("run"), in, statusAllow, "approved for 10 minutes by ann (command)")
	check(on("run"), in, statusAllow, "this exact action is approved until")
	list := check(on("approvals", "list"), "", statusAllow, "10 min", "ann (command)", "git push --force origin one")
	_, list, _ = strings.Cut(list, "\n") // the heading
	id, _, _ := strings.Cut(list, " ")
	check(on("approvals", "revoke"), "", statusFailure, "ID is missing")
	check(append(on("approvals", "revoke"), ""), "", statusFailure, "the ID is empty")
	check(append(on("approvals", "revoke"), "abc"), "", statusFailure, "no remembered approval has the ID")
	check(append(on("approvals", "revoke", "--all"), id), "", statusFailure, "unexpected operand")
	check(on("run"), in, statusAllow, "this exact action is approved until")
	check(append(on("approvals", "revoke"), id), "", statusAllow, "Forgotten:", "git push --force origin one")
	check(on("run"), in, statusAllow, "approved for 10 minutes by ann (command)")
	check(on("approvals", "revoke", "--all", "--json"), "", statusAllow, `"subject":"git push --force origin one"`)
	check(on("approvals", "list", "--json"), "", statusAllow, "[]")
}

// What only looks at a new installation leaves it one: the first action is
// judged and logged after it.
func TestLooksLeaveANewInstallation(t *testing.T) {
	for _, args := range [][]string{
		{"approvals"}, {"approvals", "list"}, {"approvals", "revoke", "--all"}, {"status"}, {"doctor"}, {"audit", "verify"}, {"explain", "ls"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			w := newWorld(t)
			on := []string{"--state", filepath.Join(w.Home, "state")}
			run(t, w, "", append(args[:len(args):len(args)], on...)...)
			status, out, errs := run(t, w, `{"type":"execute_command","payload":{"command":"ls"}}`, append([]string{"run"}, on...)...)
			if status != statusAllow {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
}
