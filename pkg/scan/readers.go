package scan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/shell/command"
)

// decode parses JSON leniently, since hosts write malformed JSON; judged actions are parsed strictly
// later.
func decode(raw jsontext.Value, to any) error {
	return json.Unmarshal(raw, to, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// readers are the constructors of the readers named in hosts.yaml.
var readers = map[string]func(*source) reader{
	"claude":  func(s *source) reader { return claude{s, []string{"assistant", "user"}} },
	"droid":   func(s *source) reader { return claude{s, []string{"message"}} },
	"codex":   func(s *source) reader { return codex{s} },
	"gemini":  func(s *source) reader { return &gemini{s, map[string]bool{}} },
	"qwen":    func(s *source) reader { return qwen{s} },
	"copilot": func(s *source) reader { return copilot{s} },
	"cline":   func(*source) reader { return cline{} },
	"pi":      func(s *source) reader { return pi{s} },

	"opencode": func(s *source) reader { return opencode{s} },
}

// skip counts a record of an unknown kind, unless hosts.yaml says that it contains no call.
func (s *source) skip(kind string, to sink) {
	if !slices.Contains(s.Ignored, kind) && !strings.HasPrefix(kind, "api-request") {
		to.unknown(kind)
	}
}

// A part is one part of a message, with the fields of several hosts' formats.
type part struct {
	Type       string         `json:"type"`
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Input      jsontext.Value `json:"input"`
	Arguments  jsontext.Value `json:"arguments"`
	ToolUseID  string         `json:"tool_use_id"`
	Content    jsontext.Value `json:"content"`
	IsError    bool           `json:"is_error"`
	Call       *functionCall  `json:"functionCall"`
	Response   *functionReply `json:"functionResponse"`
	IsErrorToo bool           `json:"isError"`
}

type functionCall struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Args jsontext.Value `json:"args"`
}

type functionReply struct {
	ID       string         `json:"id"`
	Response jsontext.Value `json:"response"`
}

// parts returns the parts of a message's content; none if the content is a string.
func parts(content jsontext.Value) (out []part) {
	if content.Kind() == '[' {
		_ = decode(content, &out) // content in another format has no parts
	}
	return out
}

// value decodes a JSON value as package json does, but a list of texts becomes one string.
func value(raw jsontext.Value) any {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if decode(raw, &v) != nil {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		return v
	}
	var texts []string
	for _, one := range list {
		object, _ := one.(map[string]any)
		text, isText := object["text"].(string)
		if !isText {
			return v
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// refusals are texts in the results of calls that did not run, because a person, the host or a hook
// refused them.
var refusals = []string{
	"doesn't want to proceed with this tool use", "doesn't want to take this action", "requested permissions to", "has been denied", "blocked by hook", "hook blocking error",
	"hook error: [", "Permission to use", "rejected by user", "rejected by the user", "exec command rejected", "patch rejected", "denied by policy", "Tool execution blocked",
	"The user did not approve", "The user rejected", "user denied", "operation was cancelled", "Operation cancelled", "was blocked by", "permission denied by", "shield:",
}

// outcome returns the status of a call, from its result and whether that is an error.
func outcome(isError bool, v any) status {
	if !isError {
		return ran
	}
	text, isText := v.(string)
	if !isText {
		if raw, err := json.Marshal(v); err == nil {
			text = string(raw)
		}
	}
	if len(text) > 2000 {
		text = text[:2000]
	}
	if slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(text, r) }) {
		return denied
	}
	return failed
}

// instant parses a time; it returns the zero time for an invalid text.
func instant(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// claude reads the transcripts of Claude Code, and those of Droid, which have only one kind of
// message.
type claude struct {
	from  *source
	kinds []string // kinds of records that are messages
}

func (h claude) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Type    string `json:"type"`
		CWD     string `json:"cwd"`
		Time    string `json:"timestamp"`
		Message struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"message"`
	}
	if decode(raw, &r) != nil || r.Type == "" {
		return false
	}
	if r.CWD != "" {
		to.folder(r.CWD)
	}
	if !slices.Contains(h.kinds, r.Type) {
		h.from.skip(r.Type, to)
		return true
	}
	toolParts(r.Message.Content, instant(r.Time), at, to)
	return true
}

// toolParts forwards the calls and results in a message's content in the format of Anthropic's API.
func toolParts(content jsontext.Value, when time.Time, at place, to sink) {
	for _, p := range parts(content) {
		switch p.Type {
		case "tool_use":
			to.call(call{id: p.ID, tool: p.Name, input: p.Input, at: when, place: at})
		case "tool_result":
			v := value(p.Content)
			to.result(result{id: p.ToolUseID, value: v, status: outcome(p.IsError, v), place: at})
		}
	}
}

// codex reads the transcripts of Codex.
type codex struct{ from *source }

func (h codex) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Type    string `json:"type"`
		Time    string `json:"timestamp"`
		Payload struct {
			Type      string         `json:"type"`
			CWD       string         `json:"cwd"`
			Name      string         `json:"name"`
			Namespace string         `json:"namespace"`
			CallID    string         `json:"call_id"`
			Arguments jsontext.Value `json:"arguments"` // arguments, as a JSON string
			Input     jsontext.Value `json:"input"`
			Action    jsontext.Value `json:"action"`
			Output    jsontext.Value `json:"output"`
		} `json:"payload"`
	}
	if decode(raw, &r) != nil || r.Type == "" {
		return false
	}
	p := &r.Payload
	one := call{id: p.CallID, tool: p.Name, at: instant(r.Time), place: at}
	switch r.Type {
	case "session_meta", "turn_context":
		if p.CWD != "" {
			to.folder(p.CWD)
		}
		return true
	case "response_item":
	default:
		h.from.skip(r.Type, to)
		return true
	}
	switch p.Type {
	case "function_call":
		one.input = p.Arguments
		if text, isText := value(p.Arguments).(string); isText {
			one.input = jsontext.Value(text)
		}
		if strings.HasPrefix(p.Namespace, "mcp__") {
			one.tool = strings.TrimSuffix(p.Namespace, "__") + "__" + p.Name
		}
	case "custom_tool_call":
		text, _ := value(p.Input).(string)
		one.input, _ = json.Marshal(map[string]string{"input": text})
	case "local_shell_call":
		one.tool, one.input = "shell", p.Action
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		v := value(p.Output)
		if object, is := v.(map[string]any); is && object["content"] != nil {
			v = object["content"]
		}
		st := outcome(true, v)
		if st == failed { // the output does not show whether it is an error
			st = ran
		}
		to.result(result{id: p.CallID, value: v, status: st, place: at})
		return true
	default:
		h.from.skip(p.Type, to)
		return true
	}
	if one, ok := shellCall(one); ok {
		to.call(one)
	} else {
		to.unknown("call of " + p.Name + " that cannot be read")
	}
	return true
}

// shellCall converts a Codex call of a shell tool to the form that its hooks use.
func shellCall(c call) (call, bool) {
	var in struct {
		Cmd              string         `json:"cmd"`
		Command          jsontext.Value `json:"command"`
		Workdir          string         `json:"workdir"`
		WorkingDirectory string         `json:"working_directory"`
		Chars            string         `json:"chars"`
	}
	switch c.tool {
	case "exec_command", "shell", "shell_command", "container.exec":
	default:
		return c, len(c.input) == 0 || c.input.Kind() == '{'
	}
	if decode(c.input, &in) != nil {
		return c, false
	}
	command := in.Cmd
	switch v := value(in.Command).(type) {
	case string:
		command = cmp.Or(command, v)
	case []any:
		words := make([]string, len(v))
		for i, one := range v {
			words[i], _ = one.(string)
		}
		command = commandLine(words)
	}
	c.cwd = cmp.Or(in.Workdir, in.WorkingDirectory)
	c.tool = "Bash"
	c.input, _ = json.Marshal(map[string]string{"command": command})
	return c, command != ""
}

// commandLine returns the command line for a list of words: the script of "sh -c", or the quoted
// words.
func commandLine(words []string) string {
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") && (strings.HasSuffix(words[0], "sh")) {
		return words[2]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = command.QuoteWord(w)
	}
	return strings.Join(quoted, " ")
}

// gemini reads the transcripts of Gemini CLI, which repeat a message each time it grows.
type gemini struct {
	from *source
	seen map[string]bool
}

// maxSeen is the maximum number of remembered calls of a conversation.
const maxSeen = 1 << 16

func (g *gemini) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Type      string `json:"type"`
		SessionID string `json:"sessionId"`
		Set       any    `json:"$set"`
		RewindTo  any    `json:"$rewindTo"`
		ToolCalls []struct {
			ID     string         `json:"id"`
			Name   string         `json:"name"`
			Args   jsontext.Value `json:"args"`
			Result jsontext.Value `json:"result"`
			Status string         `json:"status"`
			Time   string         `json:"timestamp"`
		} `json:"toolCalls"`
	}
	if decode(raw, &r) != nil {
		return false
	}
	switch {
	case r.Type == "" && (r.SessionID != "" || r.Set != nil || r.RewindTo != nil):
		return true
	case r.Type == "":
		return false
	case r.Type != "gemini":
		g.from.skip(r.Type, to)
		return true
	}
	for _, c := range r.ToolCalls {
		if c.Result == nil && c.Status == "" || g.seen[c.ID] && c.ID != "" {
			continue
		}
		if len(g.seen) < maxSeen {
			g.seen[c.ID] = true
		}
		to.call(call{id: c.ID, tool: c.Name, input: c.Args, at: instant(c.Time), place: at})
		v := value(c.Result)
		st := outcome(c.Status == "error", v)
		if c.Status == "cancelled" {
			st = denied
		}
		to.result(result{id: c.ID, value: v, status: st, place: at})
	}
	return true
}

// qwen reads the transcripts of Qwen Code.
type qwen struct{ from *source }

func (h qwen) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Type    string `json:"type"`
		CWD     string `json:"cwd"`
		Time    string `json:"timestamp"`
		Message struct {
			Parts []part `json:"parts"`
		} `json:"message"`
		ToolCallResult struct {
			Status string `json:"status"`
		} `json:"toolCallResult"`
	}
	if decode(raw, &r) != nil || r.Type == "" {
		return false
	}
	if r.CWD != "" {
		to.folder(r.CWD)
	}
	switch r.Type {
	case "assistant", "user", "tool_result":
	default:
		h.from.skip(r.Type, to)
		return true
	}
	for _, p := range r.Message.Parts {
		if f := p.Call; f != nil {
			one := call{id: f.ID, tool: f.Name, input: f.Args, at: instant(r.Time), place: at}
			if f.Name == "tool_call" { // the subcommand runs another tool
				var in struct {
					Name      string         `json:"name"`
					Arguments jsontext.Value `json:"arguments"`
				}
				if decode(f.Args, &in) == nil && in.Name != "" {
					one.tool, one.input = in.Name, in.Arguments
					if text, isText := value(in.Arguments).(string); isText {
						one.input = jsontext.Value(text)
					}
				}
			}
			to.call(one)
		}
		if f := p.Response; f != nil {
			v := value(f.Response)
			object, _ := v.(map[string]any)
			st := outcome(object["error"] != nil || r.ToolCallResult.Status == "error", v)
			if r.ToolCallResult.Status == "cancelled" {
				st = denied
			}
			if object["output"] != nil {
				v = object["output"]
			}
			to.result(result{id: f.ID, value: v, status: st, place: at})
		}
	}
	return true
}

// copilot reads the transcripts of Copilot CLI.
type copilot struct{ from *source }

func (h copilot) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Type string `json:"type"`
		Time string `json:"timestamp"`
		Data struct {
			ID        string         `json:"toolCallId"`
			Tool      string         `json:"toolName"`
			Arguments jsontext.Value `json:"arguments"`
			Success   bool           `json:"success"`
			Result    jsontext.Value `json:"result"`
			Error     jsontext.Value `json:"error"`
			Context   struct {
				CWD string `json:"cwd"`
			} `json:"context"`
			CWD string `json:"cwd"`
		} `json:"data"`
	}
	if decode(raw, &r) != nil || r.Type == "" {
		return false
	}
	d := &r.Data
	switch r.Type {
	case "session.start", "session.resume", "session.context_changed":
		if cwd := cmp.Or(d.Context.CWD, d.CWD); cwd != "" {
			to.folder(cwd)
		}
	case "tool.execution_start":
		in := d.Arguments
		if text, isText := value(in).(string); isText {
			in = jsontext.Value(text)
			if len(text) == 0 || text[0] != '{' {
				in, _ = json.Marshal(map[string]string{"input": text})
			}
		}
		to.call(call{id: d.ID, tool: d.Tool, input: in, at: instant(r.Time), place: at})
	case "tool.execution_complete":
		v := value(d.Result)
		if object, is := v.(map[string]any); is && object["content"] != nil {
			v = object["content"]
		}
		if !d.Success && len(d.Error) > 0 {
			v = value(d.Error)
		}
		to.result(result{id: d.ID, value: v, status: outcome(!d.Success, v), place: at})
	default:
		h.from.skip(r.Type, to)
	}
	return true
}

// cline reads the messages of Cline.
type cline struct{}

func (cline) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
		TS      float64        `json:"ts"`
	}
	if decode(raw, &r) != nil || r.Role == "" {
		return false
	}
	var when time.Time
	if r.TS > 0 && r.TS < 1e14 {
		when = time.UnixMilli(int64(r.TS))
	}
	toolParts(r.Content, when, at, to)
	return true
}

// pi reads the transcripts of pi.
type pi struct{ from *source }

func (h pi) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Type    string `json:"type"`
		CWD     string `json:"cwd"`
		Time    string `json:"timestamp"`
		Message struct {
			Role    string         `json:"role"`
			CallID  string         `json:"toolCallId"`
			IsError bool           `json:"isError"`
			Content jsontext.Value `json:"content"`
		} `json:"message"`
	}
	if decode(raw, &r) != nil || r.Type == "" {
		return false
	}
	switch r.Type {
	case "session":
		if r.CWD != "" {
			to.folder(r.CWD)
		}
		return true
	case "message":
	default:
		h.from.skip(r.Type, to)
		return true
	}
	if r.Message.Role == "toolResult" {
		v := value(r.Message.Content)
		to.result(result{id: r.Message.CallID, value: v, status: outcome(r.Message.IsError, v), place: at})
		return true
	}
	for _, p := range parts(r.Message.Content) {
		if p.Type == "toolCall" {
			to.call(call{id: p.ID, tool: p.Name, input: p.Arguments, at: instant(r.Time), place: at})
		}
	}
	return true
}

// opencode reads the parts of messages of opencode. A call and its result are one part.
type opencode struct{ from *source }

func (h opencode) record(raw jsontext.Value, at place, to sink) bool {
	var r struct {
		Type   string `json:"type"`
		Tool   string `json:"tool"`
		CallID string `json:"callID"`
		State  struct {
			Status string         `json:"status"`
			Input  jsontext.Value `json:"input"`
			Output jsontext.Value `json:"output"`
			Error  jsontext.Value `json:"error"`
			Time   struct {
				Start float64 `json:"start"`
			} `json:"time"`
		} `json:"state"`
	}
	if decode(raw, &r) != nil || r.Type == "" {
		return false
	}
	if r.Type != "tool" {
		h.from.skip(r.Type, to)
		return true
	}
	var when time.Time
	if ms := r.State.Time.Start; ms > 0 && ms < 1e14 {
		when = time.UnixMilli(int64(ms))
	}
	to.call(call{id: r.CallID, tool: r.Tool, input: r.State.Input, at: when, place: at})
	switch r.State.Status {
	case "completed":
		to.result(result{id: r.CallID, value: value(r.State.Output), status: ran, place: at})
	case "error":
		v := value(r.State.Error)
		to.result(result{id: r.CallID, value: v, status: outcome(true, v), place: at})
	}
	return true
}
