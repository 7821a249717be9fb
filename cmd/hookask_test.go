package cmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/host"
)

// TestHookLeavesQuestionToHost holds that a host is told to ask its person only where
// it was seen to wait for one, that it is told to deny elsewhere, and that the log says
// that the host asked and claims no approval.
func TestHookLeavesQuestionToHost(t *testing.T) {
	const (
		channel  = "approval: {channels: [host]}\n"
		claude   = "claude-code_2-1-332_agent"
		plain    = `"permission_mode":"default"`
		push     = "git push --force"
		answered = `{"hooks":{"PermissionRequest":[{"matcher":"*","hooks":[{"type":"command","command":"/bin/yes"}]}]}}`
	)
	for _, c := range []struct {
		name, settings, host, agent, attended, command, more string
		running                                              *host.HostProcess
		asks                                                 bool
	}{
		{"seen", channel, "claude-code", claude, "1", push, plain, nil, true},
		{"another channel beside", "approval: {channels: [tty, host]}\n", "claude-code", claude, "1", push, `"permission_mode":"auto"`, nil, true},
		{"the default", "", "claude-code", claude, "1", push, plain, nil, true},
		{"every mode", channel, "claude-code", claude, "1", push, `"permission_mode":"bypassPermissions"`, nil, true},
		{"a sub-agent", channel, "claude-code", claude, "1", push, `"permission_mode":"plan","agent_id":"a1"`, nil, true},
		{"a later minor version", channel, "claude-code", "claude-code_2-7-0_agent", "1", push, plain, nil, true},
		{"started with other options", channel, "claude-code", claude, "1", push, plain, &host.HostProcess{Args: []string{"--model", "x"}, IsStdioTerminal: true}, true},
		{"another channel alone", "approval: {channels: [tty]}\n", "claude-code", claude, "1", push, plain, nil, false},
		{"refused", channel, "claude-code", claude, "1", "rm -rf /", plain, nil, false},
		{"a new major version", channel, "claude-code", "claude-code_3-0-0_agent", "1", push, plain, nil, false},
		{"an earlier version", channel, "claude-code", "claude-code_2-1-274_agent", "1", push, plain, nil, false},
		{"a version that is a text", channel, "claude-code", "claude-code_2-1-x_agent", "1", push, plain, nil, false},
		{"a version behind another", channel, "claude-code", "claude-code_12-1-330_agent", "1", push, plain, nil, false},
		{"no version", channel, "claude-code", "", "1", push, plain, nil, false},
		{"a new mode", channel, "claude-code", claude, "1", push, `"permission_mode":"future"`, nil, false},
		{"no mode", channel, "claude-code", claude, "1", push, `"x":1`, nil, false},
		{"nobody attends", channel, "claude-code", claude, "0", push, plain, nil, false},
		{"nobody attends, says the event otherwise", channel, "claude-code", claude, "", push, plain + `,"attended":true,"env":{"CLAUDE_CODE_SESSION_ATTENDED":"1"},"process":{"terminal":true}`, nil, false},
		{"a program that answers", channel, "claude-code", claude, "1", push, plain, &host.HostProcess{Args: []string{"--permission-prompt-tool", "mcp__x__yes"}, IsStdioTerminal: true}, false},
		{"settings of the command line", channel, "claude-code", claude, "1", push, plain, &host.HostProcess{Args: []string{"--settings={}"}, IsStdioTerminal: true}, false},
		{"a project that sets the version", channel, "claude-code", claude, "1", push, plain + `,"cwd":"WORK/.settings"`, nil, false},
		{"a hook that answers", channel, "claude-code", claude, "1", push, plain + `,"cwd":"WORK/.answered"`, nil, false},
		{"an agent whose hook answers", channel, "claude-code", claude, "1", push, plain + `,"cwd":"WORK/.agents"`, nil, false},

		{"Codex runs it", channel, "codex", claude, "1", push, plain, nil, false},
		{"Droid runs it", channel, "droid", claude, "1", push, plain, nil, false},
		{"Cline runs it", channel, "cline", claude, "1", push, plain, nil, false},

		{"Copilot", channel, "copilot", "", "", push, "", &host.HostProcess{IsStdioTerminal: true, Version: "1.0.102"}, true},
		{"Copilot with all allowed", channel, "copilot", "", "", push, "", &host.HostProcess{Args: []string{"--allow-all"}, IsStdioTerminal: true, Version: "1.1.0"}, true},
		{"Copilot without a terminal", channel, "copilot", "", "", push, "", &host.HostProcess{Version: "1.0.102"}, false},
		{"Copilot with a prompt", channel, "copilot", "", "", push, "", &host.HostProcess{Args: []string{"--prompt=x"}, IsStdioTerminal: true, Version: "1.0.102"}, false},
		{"Copilot on its own", channel, "copilot", "", "", push, "", &host.HostProcess{Args: []string{"--autopilot"}, IsStdioTerminal: true, Version: "1.0.102"}, false},
		{"Copilot, which is unknown", channel, "copilot", claude, "1", push, `"terminal":true`, nil, false},
		{"Copilot of a new major version", channel, "copilot", "", "", push, "", &host.HostProcess{IsStdioTerminal: true, Version: "2.0.0"}, false},

		{"Gemini", channel, "gemini-cli", "", "", push, "", &host.HostProcess{IsStdioTerminal: true, Version: "0.61.0"}, true},
		{"Gemini with options", channel, "gemini-cli", "", "", push, "", &host.HostProcess{Args: []string{"--yolo", "-i", "hello", "--model=x"}, IsStdioTerminal: true, Version: "0.61.0"}, true},
		{"Gemini with a prompt", channel, "gemini-cli", "", "", push, "", &host.HostProcess{Args: []string{"-p", "x"}, IsStdioTerminal: true, Version: "0.61.0"}, false},
		{"Gemini with a first message", channel, "gemini-cli", "", "", push, "", &host.HostProcess{Args: []string{"--yolo", "hello"}, IsStdioTerminal: true, Version: "0.61.0"}, false},
		{"Gemini with a new option", channel, "gemini-cli", "", "", push, "", &host.HostProcess{Args: []string{"--acp"}, IsStdioTerminal: true, Version: "0.61.0"}, false},
		{"Gemini in a pipe", channel, "gemini-cli", "", "", push, "", &host.HostProcess{Version: "0.61.0"}, false},
		{"Gemini, which is unknown", channel, "gemini-cli", "", "", push, "", nil, false},
	} {
		w := newWorld(t)
		getenv := w.Getenv
		w.Getenv = func(name string) string {
			switch name {
			case "AI_AGENT":
				return c.agent
			case "CLAUDE_CODE_SESSION_ATTENDED":
				return c.attended
			}
			return getenv(name)
		}
		w.findRunningHost = func(*Environment, *host.Host) (*host.HostProcess, error) { return c.running, nil }
		dir := t.TempDir()
		config, state := filepath.Join(dir, "shield.yaml"), filepath.Join(dir, "state")
		if err := os.WriteFile(config, []byte("classifier: {model: none}\n"+c.settings), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			".settings/.claude/settings.json": `{"env":{"AI_AGENT":"claude-code_2-1-332_x"}}`, ".answered/.claude/settings.local.json": answered,
			".agents/.claude/agents/a/b.md": "---\nhooks:\n  PermissionRequest: [{hooks: [{type: command, command: yes}]}]\n---\n",
		} {
			place := filepath.Join(w.WorkingDir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(place), 0o700), os.WriteFile(place, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		c.more = strings.ReplaceAll(c.more, "WORK", w.WorkingDir)
		in := fmt.Sprintf(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q},%s}`, c.command, cmp.Or(c.more, `"x":1`))
		switch c.host {
		case "copilot":
			in = fmt.Sprintf(`{"sessionId":"s","toolName":"bash","toolArgs":{"command":%q},%s}`, c.command, cmp.Or(c.more, `"x":1`))
		case "cline":
			in = fmt.Sprintf(`{"hookName":"tool_call","tool_call":{"name":"run_commands","input":{"commands":[%q]}},%s}`, c.command, cmp.Or(c.more, `"x":1`))
		case "gemini-cli":
			in = fmt.Sprintf(`{"session_id":"s","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":%q},%s}`, c.command, cmp.Or(c.more, `"x":1`))
		}
		status, out, errs := run(t, inProcess(w), in, "hook", c.host, "--config", config, "--state", state)
		logged, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
		if err != nil {
			t.Fatal(c.name, status, out, errs, err)
		}
		if !c.asks {
			if denied := strings.Contains(out, `"deny"`) || strings.Contains(out, `"cancel":true`); !denied || strings.Contains(out, `"ask"`) {
				t.Errorf("%s: status %d, stdout %q, stderr %q", c.name, status, out, errs)
			}
			if strings.Contains(string(logged), `"channel"`) {
				t.Errorf("%s: the log says that somebody was asked: %s", c.name, logged)
			}
			continue
		}
		if status != statusAllow || errs != "" || !strings.Contains(out, `"ask"`) || !strings.Contains(out, `shield asks whether to`) || c.host == "gemini-cli" && !strings.Contains(out, `"systemMessage":"shield asks`) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", c.name, status, out, errs)
		}
		var entry struct {
			Decision, Channel, By string
			Tier                  int
		}
		if err := json.Unmarshal(logged, &entry); err != nil || entry.Decision != "ESCALATE" || entry.Tier != 3 || entry.Channel != "host" || entry.By != "" {
			t.Errorf("%s: the log says %s, %v", c.name, logged, err)
		}
	}
}

// TestHostThatAsksNobody holds that a host whose user cannot have answered yet when the
// call has run is not told to ask again, that the log says so, and that a user's answer
// changes nothing.
func TestHostThatAsksNobody(t *testing.T) {
	w := newWorld(t)
	getenv := w.Getenv
	agent := "claude-code_2-1-332_agent"
	w.Getenv = func(name string) string {
		switch name {
		case "AI_AGENT":
			return agent
		case "CLAUDE_CODE_SESSION_ATTENDED":
			return "1"
		}
		return getenv(name)
	}
	w.findRunningHost = func(*Environment, *host.Host) (*host.HostProcess, error) { return nil, nil }
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.Now = func() time.Time { return now }
	dir := t.TempDir()
	config, state := filepath.Join(dir, "shield.yaml"), filepath.Join(dir, "state")
	if err := os.WriteFile(config, []byte("classifier: {model: none}\napproval: {channels: [host]}\nhook: {permission_request: \"on\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	event := func(name, command, more string) (status int, out string) {
		in := fmt.Sprintf(`{"session_id":"s","hook_event_name":%q,"permission_mode":"default","tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":%q}%s}`, name, command, more)
		args := []string{"hook", "claude-code", "--config", config, "--state", state}
		if name == "PermissionRequest" {
			args = append(args, "--permission-request")
		}
		status, out, _ = run(t, inProcess(w), in, args...)
		return status, out
	}
	asks := func(when string, want bool) {
		t.Helper()
		if _, out := event("PreToolUse", "git push --force", ""); strings.Contains(out, `"ask"`) != want {
			t.Errorf("%s: %s", when, out)
		}
	}
	const ran = `,"tool_response":{"stdout":""}`
	asks("at first", true)
	now = now.Add(500 * time.Millisecond)
	event("PostToolUse", "git push --force", ran)
	asks("after an answer", true)
	now = now.Add(300 * time.Millisecond)
	event("PostToolUse", "ls", ran)
	asks("after another call", true)

	// What shield has the host ask is not answered in the user's place, whatever allows it.
	if err := os.WriteFile(config, []byte("classifier: {model: none}\nhook: {permission_request: \"on\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out := event("PermissionRequest", "ls", ""); !strings.Contains(out, `"allow"`) {
		t.Errorf("a call that nobody was asked about: %s", out)
	}
	if err := approve.RecordHostQuestion(state, questionKeyOf(t, "claude-code", `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`), approve.HostQuestion{Host: "claude-code", AskedAt: now}); err != nil {
		t.Fatal(err)
	}
	if _, out := event("PermissionRequest", "ls", ""); strings.Contains(out, `"allow"`) {
		t.Errorf("shield answers what it asks: %s", out)
	}

	event("PostToolUse", "git push --force", ran)
	asks("after a call that ran at once", false)
	agent = "claude-code_2-1-333_agent"
	asks("in another version", true)
	logged, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
	if err != nil || strings.Count(string(logged), "Claude Code 2.1.332 ran a call without asking its user") < 1 || !strings.Contains(string(logged), `"kind":"host"`) {
		t.Errorf("%v: %s", err, logged)
	}
}

func questionKeyOf(t *testing.T, name, in string) string {
	t.Helper()
	h, err := host.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	event, err := h.Event(t.Context(), []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	return eventActionsDigest(event)
}
