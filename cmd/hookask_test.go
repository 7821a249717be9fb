package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHookLeavesQuestionToHost holds that a host is told to ask its person only where
// it was seen to wait for one, that it is told to deny elsewhere, and that the log says
// that the host asked and claims no approval.
func TestHookLeavesQuestionToHost(t *testing.T) {
	const channel = "approval: {channels: [host]}\n"
	for _, c := range []struct {
		name, settings, host, agent, attended, command, more string
		asks                                                 bool
	}{
		{"seen", channel, "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"default"`, true},
		{"another channel beside", "approval: {channels: [tty, host]}\n", "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"auto"`, true},
		{"the default", "", "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"default"`, true},
		{"another channel alone", "approval: {channels: [tty]}\n", "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"default"`, false},
		{"refused", channel, "claude-code", "claude-code_2-1-330_harness", "1", "rm -rf /", `"permission_mode":"default"`, false},
		{"another version", channel, "claude-code", "claude-code_2-1-331_harness", "1", "git push --force", `"permission_mode":"default"`, false},
		{"a version behind another", channel, "claude-code", "claude-code_12-1-330_harness", "1", "git push --force", `"permission_mode":"default"`, false},
		{"no version", channel, "claude-code", "", "1", "git push --force", `"permission_mode":"default"`, false},
		{"another mode", channel, "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"bypassPermissions"`, false},
		{"no mode", channel, "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"x":1`, false},
		{"nobody attends", channel, "claude-code", "claude-code_2-1-330_harness", "", "git push --force", `"permission_mode":"default"`, false},
		{"a sub-agent", channel, "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"default","agent_id":"a1"`, false},
		{"a project that sets the version", channel, "claude-code", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"default","cwd":"WORK/.settings"`, false},
		{"a host that asks nobody", channel, "codex", "claude-code_2-1-330_harness", "1", "git push --force", `"permission_mode":"default"`, false},
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
		dir := t.TempDir()
		config, state := filepath.Join(dir, "shield.yaml"), filepath.Join(dir, "state")
		if err := os.WriteFile(config, []byte("classifier: {model: none}\n"+c.settings), 0o600); err != nil {
			t.Fatal(err)
		}
		place := filepath.Join(w.Dir, ".settings", ".claude", "settings.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(place), 0o700), os.WriteFile(place, []byte(`{"env":{"AI_AGENT":"claude-code_2-1-330_x"}}`), 0o600)); err != nil {
			t.Fatal(err)
		}
		c.more = strings.ReplaceAll(c.more, "WORK", w.Dir)
		in := fmt.Sprintf(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q},%s}`, c.command, c.more)
		status, out, errs := run(t, inProcess(w), in, "hook", c.host, "--config", config, "--state", state)
		logged, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if !c.asks {
			hookDenied(t, c.name, status, out, errs)
			if strings.Contains(string(logged), `"channel"`) {
				t.Errorf("%s: the log says that somebody was asked: %s", c.name, logged)
			}
			continue
		}
		var answer struct {
			HookSpecificOutput struct{ HookEventName, PermissionDecision, PermissionDecisionReason string }
		}
		a := &answer.HookSpecificOutput
		if err := json.Unmarshal([]byte(out), &answer); err != nil || status != statusAllow || errs != "" || a.HookEventName != "PreToolUse" ||
			a.PermissionDecision != "ask" || !strings.HasPrefix(a.PermissionDecisionReason, "shield asks whether to") {
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
