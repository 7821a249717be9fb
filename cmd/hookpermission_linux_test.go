package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	permitted = `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}` + "\n"
	unsaid    = "{}\n"
)

// permission is a hook's input before a person is asked about a command.
func permission(command string) string {
	return fmt.Sprintf(`{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":%q}}`, command)
}

// TestHookPermission holds when a host that is about to ask a person is told that it
// may go on: never where a rule of the person's own may mention the call.
func TestHookPermission(t *testing.T) {
	const asks = `{"permissions":{"ask":["Bash(ls:*)"]}}`
	for _, c := range []struct {
		name, settings, in string
		files              map[string]string // below HOME or WORK
		want               string            // "" is a denial
	}{
		{"switched off", "", permission("ls"), nil, unsaid},
		{"harmless", "on", permission("ls"), nil, permitted},
		{"a person has to decide", "on", permission("git push --force"), nil, unsaid},
		{"refused", "on", permission("rm -rf /"), nil, ""},
		{"refused, and switched off", "", permission("rm -rf /"), nil, ""},
		{"a tool within the host", "on", `{"hook_event_name":"PermissionRequest","tool_name":"ExitPlanMode","tool_input":{}}`, nil, unsaid},
		{"a tool that is not known", "on", `{"hook_event_name":"PermissionRequest","tool_name":"Frob","tool_input":{}}`, nil, unsaid},
		{"another event", "on", hookRead, nil, ""},
		{"not JSON", "on", "x", nil, ""},
		{"the user's rule", "on", permission("ls"), map[string]string{"HOME/.claude/settings.json": asks}, unsaid},
		{"the user's rule about another command", "on", permission("ls"), map[string]string{"HOME/.claude/settings.json": `{"permissions":{"ask":["Bash(git push:*)"]}}`}, permitted},
		{"the user's denial", "on", permission("ls"), map[string]string{"HOME/.claude/settings.json": `{"permissions":{"deny":["Bash(ls)"]}}`}, unsaid},
		{"the project's rule", "on", permission("ls"), map[string]string{"WORK/.claude/settings.json": asks}, unsaid},
		{"the rule of this project alone", "on", permission("ls"), map[string]string{"WORK/.claude/settings.local.json": asks}, unsaid},
		{"the rule of a project above", "on", permission("ls"), map[string]string{"WORK/../.claude/settings.json": asks}, unsaid},
		{"the rule of a project elsewhere", "on", permission("ls"), map[string]string{"HOME/project/.claude/settings.json": asks}, unsaid},
		{"settings elsewhere", "on", permission("ls"), map[string]string{"HOME/elsewhere/settings.json": asks}, unsaid},
		{"settings that are broken", "on", permission("ls"), map[string]string{"HOME/.claude/settings.json": `{"permissions":`}, unsaid},
		{"settings with comments", "on", permission("ls"), map[string]string{"HOME/.claude/settings.json": "{} // mine"}, unsaid},
		{"settings that are too large", "on", permission("ls"), map[string]string{"HOME/.claude/settings.json": `{"x":"` + strings.Repeat("x", 4<<20) + `"}`}, unsaid},
	} {
		w := newWorld(t)
		getenv := w.Getenv
		w.Getenv = func(name string) string {
			switch name {
			case "CLAUDE_PROJECT_DIR":
				return filepath.Join(w.Home, "project")
			case "CLAUDE_CONFIG_DIR":
				return filepath.Join(w.Home, "elsewhere")
			}
			return getenv(name)
		}
		config := filepath.Join(t.TempDir(), "shield.yaml")
		text := "classifier: {model: none}\n"
		if c.settings != "" {
			text += "hook: {permission_request: \"" + c.settings + "\"}\n"
		}
		place(t, config, text)
		for name, text := range c.files {
			place(t, filepath.Clean(strings.NewReplacer("HOME", w.Home, "WORK", w.WorkingDir).Replace(name)), text)
		}
		status, out, errs := run(t, inProcess(w), c.in, "hook", "claude-code", "--config", config, "--permission-request")
		if c.want != "" {
			if status != statusAllow || out != c.want {
				t.Errorf("%s: status %d, stdout %q, stderr %q; want %q", c.name, status, out, errs, c.want)
			}
			continue
		}
		var a struct {
			HookSpecificOutput struct {
				HookEventName string
				Decision      struct{ Behavior, Message string }
			}
		}
		if err := json.Unmarshal([]byte(out), &a); err != nil || status != statusBlock || a.HookSpecificOutput.HookEventName != "PermissionRequest" ||
			a.HookSpecificOutput.Decision.Behavior != "deny" || a.HookSpecificOutput.Decision.Message == "" || !strings.Contains(errs, "shield: ") {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want a denial", c.name, status, out, errs)
		}
	}
	// A host without the event gets what it understands.
	status, out, _ := run(t, inProcess(newWorld(t)), hookRead, "hook", "gemini-cli", "--permission-request")
	if status != statusAllow || !strings.HasPrefix(out, `{"decision":"deny"`) {
		t.Errorf("a host without the event: status %d, %q", status, out)
	}
}

func place(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBringsRules holds that an option with rules is found on the command line of the
// process that asks and of those that have started it.
func TestBringsRules(t *testing.T) {
	t.Parallel()
	options := []string{"--settings", "--rules"}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--setting", "x"}, false},
		{[]string{"-p", "tell me about --settings"}, false},
		{[]string{"--settings", "x.json"}, true},
		{[]string{"--settings={}"}, true},
		{[]string{"-p", "x", "--rules"}, true},
	} {
		// A child of a child, which waits for the end of its input.
		cmd := exec.Command("sh", append([]string{"-c", `sh -c 'echo $$; read x; :'; :`, "host"}, c.args...)...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		if err := checkNotStartedWithOptions(pid, options); (err != nil) != c.want {
			t.Errorf("%q: %v, want an error: %v", c.args, err, c.want)
		}
		in.Close()
		_ = cmd.Wait()
		if err := checkNotStartedWithOptions(pid, options); err == nil {
			t.Errorf("%q: a process that is gone brings no rules", c.args)
		}
	}
	if err := checkNotStartedWithOptions(1<<30, nil); err != nil {
		t.Errorf("a host without such options: %v", err)
	}
}
