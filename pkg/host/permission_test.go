package host

import (
	"encoding/json"
	"errors"
	"testing"
)

// TestPermission holds that the event before a person is asked is of its hook alone,
// and is answered in its own form.
func TestPermission(t *testing.T) {
	t.Parallel()
	const asks = `{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/w"}`
	const proposes = `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/w"}`
	for _, name := range []string{"claude-code", "codex"} {
		h := named(t, name)
		p, err := h.ForPermissionPromptEvents()
		if err != nil {
			t.Fatal(err)
		}
		if e, err := p.Event(t.Context(), []byte(asks)); err != nil || len(e.Actions) != 1 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if _, err := p.Event(t.Context(), []byte(proposes)); err == nil {
			t.Errorf("%s: a hook for questions takes another event", name)
		}
		if _, err := h.Event(t.Context(), []byte(asks)); err == nil {
			t.Errorf("%s: a hook for tools takes a question", name)
		}
		deny, err := p.DenialResponse(t.Context(), "no", "")
		if want := `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"no"},"hookEventName":"PermissionRequest"}}`; err != nil || string(deny) != want {
			t.Errorf("%s denies with %s, %v", name, deny, err)
		}
		e := Event{Name: "PermissionRequest", Actions: nil}
		for _, delegate := range []bool{true, false} {
			if got, err := p.ResponseToAllowedEvent(t.Context(), e, delegate, ""); err != nil || string(got) != "{}" {
				t.Errorf("%s: an event without actions is answered with %s, %v", name, got, err)
			}
		}
		e.Actions = append(e.Actions, []byte("{}"))
		for delegate, want := range map[bool]string{true: "{}", false: `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}`} {
			if got, err := p.ResponseToAllowedEvent(t.Context(), e, delegate, ""); err != nil || string(got) != want {
				t.Errorf("%s: %s, %v; want %s", name, got, err, want)
			}
		}
	}
	if _, err := named(t, "gemini-cli").ForPermissionPromptEvents(); !errors.Is(err, ErrNoPermissionPromptHook) {
		t.Errorf("a host without the event: %v", err)
	}
}

// asked asks a host's first file of rules about a call.
func asked(t *testing.T, name, tool, input, rules string) (bool, error) {
	t.Helper()
	in, err := json.Marshal(map[string]any{"hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": json.RawMessage(input)})
	if err != nil {
		t.Fatal(err)
	}
	_, _, files := named(t, name).PermissionRuleSources()
	return files[0].HasAskRuleForCall(t.Context(), in, []byte(rules))
}

// TestAsked holds that a rule of a person's own counts wherever it may mention a call.
func TestAsked(t *testing.T) {
	t.Parallel()
	const command = `{"command":"npm test"}`
	for _, c := range []struct {
		tool, input, rules string
		want               bool
	}{
		{"Bash", command, ``, true}, // not JSON
		{"Bash", command, `{}`, false},
		{"Bash", command, `null`, false},
		{"Bash", command, `{"permissions":{"allow":["Bash"],"defaultMode":"default"}}`, false},
		{"Bash", command, `{"permissions":{"ask":[],"deny":[]}}`, false},
		{"Bash", command, `{"permissions":{"ask":["Bash(git push:*)"],"deny":["Bash(rm:*)","Read(./.env)","Read(./secrets/**)","WebFetch","Edit(/etc/**)"]}}`, false},
		{"Bash", command, `{"permissions":{"ask":["Bash"]}}`, true},
		{"Bash", command, `{"permissions":{"deny":["Bash"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["Bash(npm test)"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["Bash(npm:*)"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["Bash(npm *)"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["Bash(* test)"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["Bash(*)"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["Bash()"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["*"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["B*(git)"]}}`, true},
		{"Bash", command, `{"permissions":{"ask":[" Bash "]}}`, true},
		{"Bash", command, `{"permissions":{"ask":["Edit"]}}`, false},
		{"Bash", `{"command":"\"git\" push"}`, `{"permissions":{"ask":["Bash(git push:*)"]}}`, true},
		{"Bash", `{"command":"g'i't push"}`, `{"permissions":{"ask":["Bash(git push:*)"]}}`, true},
		{"Bash", `{"command":"gi\\t push"}`, `{"permissions":{"ask":["Bash(git push:*)"]}}`, true},
		{"Bash", `{"command":"$X push"}`, `{"permissions":{"ask":["Bash(git push:*)"]}}`, true},
		{"Bash", "{\"command\":\"`x` push\"}", `{"permissions":{"ask":["Bash(git push:*)"]}}`, true},
		{"Bash", `{"command":"npm test && git push"}`, `{"permissions":{"ask":["Bash(git push:*)"]}}`, true},
		{"Bash", `{"command":"cat .env"}`, `{"permissions":{"deny":["Read(./.env)"]}}`, true},
		{"Bash", `{"command":"cat .e*"}`, `{"permissions":{"deny":["Read(./.env)"]}}`, true},
		{"Bash", `{"command":"cat secrets/a"}`, `{"permissions":{"deny":["Read(./secrets/**)"]}}`, true},
		{"Bash", `{"command":"cat a"}`, `{"permissions":{"deny":["Read(**)"]}}`, true},
		{"Bash", `{"command":7}`, `{"permissions":{"ask":["Bash(git)"]}}`, true},
		{"Write", `{"file_path":"a"}`, `{"permissions":{"ask":["Edit(/etc/**)"]}}`, true},
		{"Write", `{"file_path":"a"}`, `{"permissions":{"ask":["Write"]}}`, true},
		{"Write", `{"file_path":"a"}`, `{"permissions":{"ask":["Bash(git)","WebFetch"]}}`, false},
		{"WebFetch", `{"url":"http://x.test"}`, `{"permissions":{"ask":["WebFetch(domain:y.test)"]}}`, true},
		{"mcp__a__b", `{}`, `{"permissions":{"ask":["mcp__a"]}}`, true},
		{"mcp__a__b", `{}`, `{"permissions":{"ask":["Bash"]}}`, false},
		{"Bash", command, `{"permissions":{"ask":"Bash"}}`, true},
		{"Bash", command, `{"permissions":{"ask":[7]}}`, true},
		{"Bash", command, `{"permissions":{"ask":{"a":"Bash"}}}`, true},
		{"Bash", command, `{"permissions":[]}`, true},
		{"Bash", command, `{"permissions":"x"}`, true},
		{"Bash", command, `[]`, true},
		{"Bash", command, `{"permissions":{"ask":["Bash(git)"]},"permissions":{}}`, true},
	} {
		if got, err := asked(t, "claude-code", c.tool, c.input, c.rules); (got || err != nil) != c.want {
			t.Errorf("%s %s under %s: %v, %v; want %v", c.tool, c.input, c.rules, got, err, c.want)
		}
	}
	for _, c := range []struct {
		tool, rules string
		want        bool
	}{
		{"Bash", "", false},
		{"Bash", `prefix_rule(pattern = ["npm"], decision = "allow")`, false},
		{"Bash", `prefix_rule(pattern = ["git", "push"], decision = "prompt")`, true},
		{"Bash", `prefix_rule(pattern = ["rm"], decision = "forbidden")`, true},
		{"mcp__a__b", "", true},
	} {
		if got, err := asked(t, "codex", c.tool, command, c.rules); err != nil || got != c.want {
			t.Errorf("%s under %s: %v, %v; want %v", c.tool, c.rules, got, err, c.want)
		}
	}
}
