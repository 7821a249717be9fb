package host

import (
	"encoding/json"
	"strings"
	"testing"
)

// after returns an event in which a tool has returned a result.
func after(t *testing.T, name, tool string, result any) (*Host, Event) {
	t.Helper()
	in := map[string]any{
		"claude-code": map[string]any{"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": map[string]any{"command": "x"}, "tool_response": result},
		"codex":       map[string]any{"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": map[string]any{"command": "x"}, "tool_response": result},
		"gemini-cli":  map[string]any{"hook_event_name": "AfterTool", "tool_name": tool, "tool_input": map[string]any{"command": "x"}, "tool_response": map[string]any{"llmContent": result}},
		"copilot":     map[string]any{"toolName": tool, "toolArgs": map[string]any{"command": "x"}, "toolResult": map[string]any{"resultType": "success", "textResultForLlm": result}},
		"opencode":    map[string]any{"event": "result", "tool": tool, "input": map[string]any{"command": "x"}, "id": "7", "result": result},
		"amp":         map[string]any{"event": "result", "tool": tool, "input": map[string]any{"command": "x"}, "id": "7", "result": result},
		"openclaw":    map[string]any{"event": "result", "tool": tool, "input": map[string]any{"command": "x"}, "id": "7", "result": result},
		"pi":          map[string]any{"event": "result", "tool": tool, "input": map[string]any{"command": "x"}, "id": "7", "result": result},
	}[name]
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	h := named(t, name)
	e, err := h.Event(t.Context(), text)
	if err != nil || e.ToolResult == nil || e.ToolResult.Result == nil {
		t.Fatalf("%s: %+v, %v", text, e, err)
	}
	return h, e
}

// TestReplace holds what each host that can be given another result is told.
func TestReplace(t *testing.T) {
	t.Parallel()
	shell := map[string]any{"stdout": "a <!-- b -->", "stderr": "", "interrupted": false, "isImage": false}
	for _, c := range []struct {
		host, tool       string
		result, now      any
		replaced, denied string
	}{
		{"claude-code", "Bash", shell, map[string]any{"stdout": "a ", "stderr": "", "interrupted": false, "isImage": false},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"interrupted":false,"isImage":false,"stderr":"","stdout":"a "}}}`,
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"interrupted":false,"isImage":false,"stderr":"","stdout":"why"}}}`},
		{"claude-code", "WebFetch", map[string]any{"code": 200.0, "url": "http://x", "result": "a"}, map[string]any{"code": 200.0, "url": "http://x", "result": "b"},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"code":200,"result":"b","url":"http://x"}}}`,
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"code":200,"result":"why","url":""}}}`},
		{"claude-code", "mcp__a__b", []any{map[string]any{"type": "text", "text": "a"}}, []any{map[string]any{"type": "text", "text": "b"}},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":[{"text":"b","type":"text"}]}}`,
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":[{"text":"why","type":"text"}]}}`},
		{"claude-code", "New", map[string]any{"what": "a"}, map[string]any{"what": "b"},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"what":"b"}}}`,
			`{"continue":false,"stopReason":"why"}`},
		{"codex", "Bash", "a", "b", `{"decision":"block","reason":"b"}`, `{"decision":"block","reason":"why"}`},
		{"codex", "mcp__a__b", []any{"a"}, []any{"b"}, `{"decision":"block","reason":"[\"b\"]"}`, `{"decision":"block","reason":"why"}`},
		{"gemini-cli", "run_shell_command", "a", "b", `{"decision":"deny","reason":"shield: the tool ran and returned this, from which shield has taken something out:\nb"}`, `{"decision":"deny","reason":"why"}`},
		{"copilot", "bash", "a", "b", `{"modifiedResult":{"resultType":"success","textResultForLlm":"b"}}`, `{"modifiedResult":{"resultType":"success","textResultForLlm":"why"}}`},
		{"opencode", "bash", []any{"a"}, []any{"b"}, `{"decision":"replace","id":"7","result":["b"]}`, `{"decision":"replace","id":"7","result":"why"}`},
		{"amp", "shell_command", map[string]any{"output": "a", "error": nil}, map[string]any{"output": "b", "error": nil}, `{"decision":"replace","id":"7","result":{"error":null,"output":"b"}}`, `{"decision":"replace","id":"7","result":"why"}`},
		{"openclaw", "exec", []any{"a", "c"}, []any{"b", "c"}, `{"decision":"replace","id":"7","result":["b","c"]}`, `{"decision":"replace","id":"7","result":"why"}`},
		{"pi", "bash", []any{"a", "c"}, []any{"b", "c"}, `{"decision":"replace","id":"7","result":["b","c"]}`, `{"decision":"replace","id":"7","result":"why"}`},
	} {
		h, e := after(t, c.host, c.tool, c.result)
		if got, err := h.ReplaceResultResponse(t.Context(), e, c.now, ""); err != nil || string(got) != c.replaced {
			t.Errorf("%s %s: %s, %v; want %s", c.host, c.tool, got, err, c.replaced)
		}
		if got, err := h.ReplaceResultResponse(t.Context(), e, nil, "why"); err != nil || string(got) != c.denied {
			t.Errorf("%s %s, withheld: %s, %v; want %s", c.host, c.tool, got, err, c.denied)
		}
	}
	h, e := after(t, "codex", "Bash", "a")
	if got, err := h.ReplaceResultResponse(t.Context(), Event{Name: e.Name}, "b", ""); err == nil {
		t.Errorf("an event before a tool runs is answered with a result: %s", got)
	}
}

// TestLost holds that a host which can be given another result is never told that
// one which was not examined may be read, and that others get what is neutral.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		h := named(t, name)
		got, err := h.UnexaminedResultResponse(t.Context(), "not examined")
		if err != nil || strings.Contains(string(got), "'") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if h.CanReplaceResult("") != strings.Contains(string(got), "not examined") {
			t.Errorf("%s, which replaces results: %v, is told %s", name, h.CanReplaceResult(""), got)
		}
		if _, err := h.ReplaceResultResponse(t.Context(), Event{ToolResult: &ToolResult{}}, "x", ""); (err == nil) != h.CanReplaceResult("") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
