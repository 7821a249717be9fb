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

// decodeLenientJSON parses JSON leniently, since hosts write malformed JSON; judged actions are parsed strictly
// later.
func decodeLenientJSON(raw jsontext.Value, to any) error {
	return json.Unmarshal(raw, to, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// readerConstructors are the constructors of the readers named in hosts.yaml.
var readerConstructors = map[string]func(*transcriptSource) transcriptReader{
	"claude":  func(s *transcriptSource) transcriptReader { return claudeReader{s, []string{"assistant", "user"}} },
	"droid":   func(s *transcriptSource) transcriptReader { return claudeReader{s, []string{"message"}} },
	"codex":   func(s *transcriptSource) transcriptReader { return codexReader{s} },
	"gemini":  func(s *transcriptSource) transcriptReader { return &geminiReader{s, map[string]bool{}} },
	"qwen":    func(s *transcriptSource) transcriptReader { return qwenReader{s} },
	"copilot": func(s *transcriptSource) transcriptReader { return copilotReader{s} },
	"cline":   func(*transcriptSource) transcriptReader { return clineReader{} },
	"pi":      func(s *transcriptSource) transcriptReader { return piReader{s} },

	"opencode": func(s *transcriptSource) transcriptReader { return opencodeReader{s} },
}

// countUnknownRecordUnlessIgnored counts a record of an unknown kind, unless hosts.yaml says that it contains no call.
func (s *transcriptSource) countUnknownRecordUnlessIgnored(recordKind string, to recordSink) {
	if !slices.Contains(s.Ignored, recordKind) && !strings.HasPrefix(recordKind, "api-request") {
		to.countUnknownRecordKind(recordKind)
	}
}

// A messagePart is one part of a message, with the fields of several hosts' formats.
type messagePart struct {
	Type             string         `json:"type"`
	ID               string         `json:"id"`
	Name             string         `json:"name"`
	Input            jsontext.Value `json:"input"`
	Arguments        jsontext.Value `json:"arguments"`
	ToolUseID        string         `json:"tool_use_id"`
	Content          jsontext.Value `json:"content"`
	IsError          bool           `json:"is_error"`
	Call             *functionCall  `json:"functionCall"`
	Response         *functionReply `json:"functionResponse"`
	IsErrorCamelCase bool           `json:"isError"`
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

// decodeMessageParts returns the parts of a message's content; none if the content is a string.
func decodeMessageParts(content jsontext.Value) (out []messagePart) {
	if content.Kind() == '[' {
		_ = decodeLenientJSON(content, &out) // content in another format has no parts
	}
	return out
}

// decodeValueJoiningTexts decodes a JSON value as package json does, but a list of texts becomes one string.
func decodeValueJoiningTexts(raw jsontext.Value) any {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if decodeLenientJSON(raw, &v) != nil {
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

// refusedCallResultTexts are texts in the results of calls that did not run, because a person, the host or a hook
// refused them.
var refusedCallResultTexts = []string{
	"doesn't want to proceed with this tool use", "doesn't want to take this action", "requested permissions to", "has been denied", "blocked by hook", "hook blocking error",
	"hook error: [", "Permission to use", "rejected by user", "rejected by the user", "exec command rejected", "patch rejected", "denied by policy", "Tool execution blocked",
	"The user did not approve", "The user rejected", "user denied", "operation was cancelled", "Operation cancelled", "was blocked by", "permission denied by", "shield:",
}

// callStatus returns the status of a call, from its result and whether that is an error.
func callStatus(isError bool, v any) callOutcome {
	if !isError {
		return outcomeRan
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
	if slices.ContainsFunc(refusedCallResultTexts, func(r string) bool { return strings.Contains(text, r) }) {
		return outcomeRefusedByUserOrHost
	}
	return outcomeFailed
}

// parseTime parses a time; it returns the zero time for an invalid text.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// claudeReader reads the transcripts of Claude Code, and those of Droid, which have only one kind of
// message.
type claudeReader struct {
	source             *transcriptSource
	messageRecordKinds []string // kinds of records that are messages
}

func (h claudeReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
	var r struct {
		Type    string `json:"type"`
		CWD     string `json:"cwd"`
		Time    string `json:"timestamp"`
		Message struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"message"`
	}
	if decodeLenientJSON(raw, &r) != nil || r.Type == "" {
		return false
	}
	if r.CWD != "" {
		to.handleFolderChange(r.CWD)
	}
	if !slices.Contains(h.messageRecordKinds, r.Type) {
		h.source.countUnknownRecordUnlessIgnored(r.Type, to)
		return true
	}
	forwardToolCallsAndResults(r.Message.Content, parseTime(r.Time), at, to)
	return true
}

// forwardToolCallsAndResults forwards the calls and results in a message's content in the format of Anthropic's API.
func forwardToolCallsAndResults(content jsontext.Value, when time.Time, at transcriptPosition, to recordSink) {
	for _, p := range decodeMessageParts(content) {
		switch p.Type {
		case "tool_use":
			to.handleCall(toolCall{id: p.ID, tool: p.Name, input: p.Input, calledAt: when, place: at})
		case "tool_result":
			v := decodeValueJoiningTexts(p.Content)
			to.handleResult(toolResult{callID: p.ToolUseID, value: v, status: callStatus(p.IsError, v), place: at})
		}
	}
}

// codexReader reads the transcripts of Codex.
type codexReader struct{ source *transcriptSource }

func (h codexReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
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
	if decodeLenientJSON(raw, &r) != nil || r.Type == "" {
		return false
	}
	p := &r.Payload
	one := toolCall{id: p.CallID, tool: p.Name, calledAt: parseTime(r.Time), place: at}
	switch r.Type {
	case "session_meta", "turn_context":
		if p.CWD != "" {
			to.handleFolderChange(p.CWD)
		}
		return true
	case "response_item":
	default:
		h.source.countUnknownRecordUnlessIgnored(r.Type, to)
		return true
	}
	switch p.Type {
	case "function_call":
		one.input = p.Arguments
		if text, isText := decodeValueJoiningTexts(p.Arguments).(string); isText {
			one.input = jsontext.Value(text)
		}
		if strings.HasPrefix(p.Namespace, "mcp__") {
			one.tool = strings.TrimSuffix(p.Namespace, "__") + "__" + p.Name
		}
	case "custom_tool_call":
		text, _ := decodeValueJoiningTexts(p.Input).(string)
		one.input, _ = json.Marshal(map[string]string{"input": text})
	case "local_shell_call":
		one.tool, one.input = "shell", p.Action
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		v := decodeValueJoiningTexts(p.Output)
		if object, is := v.(map[string]any); is && object["content"] != nil {
			v = object["content"]
		}
		st := callStatus(true, v)
		if st == outcomeFailed { // Codex does not record whether a call failed; callStatus only recognizes refusals here
			st = outcomeRan
		}
		to.handleResult(toolResult{callID: p.CallID, value: v, status: st, place: at})
		return true
	default:
		h.source.countUnknownRecordUnlessIgnored(p.Type, to)
		return true
	}
	if one, ok := tryNormalizeCodexShellCall(one); ok {
		to.handleCall(one)
	} else {
		to.countUnknownRecordKind("call of " + p.Name + " that cannot be read")
	}
	return true
}

// tryNormalizeCodexShellCall converts a Codex call of a shell tool to the form that its hooks use.
func tryNormalizeCodexShellCall(c toolCall) (toolCall, bool) {
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
	if decodeLenientJSON(c.input, &in) != nil {
		return c, false
	}
	command := in.Cmd
	switch v := decodeValueJoiningTexts(in.Command).(type) {
	case string:
		command = cmp.Or(command, v)
	case []any:
		words := make([]string, len(v))
		for i, one := range v {
			words[i], _ = one.(string)
		}
		command = joinCommandLine(words)
	}
	c.cwd = cmp.Or(in.Workdir, in.WorkingDirectory)
	c.tool = "Bash"
	c.input, _ = json.Marshal(map[string]string{"command": command})
	return c, command != ""
}

// joinCommandLine returns the command line for a list of words: the script of "sh -c", or the quoted
// words.
func joinCommandLine(words []string) string {
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") && (strings.HasSuffix(words[0], "sh")) {
		return words[2]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = command.QuoteWordIfNeeded(w)
	}
	return strings.Join(quoted, " ")
}

// geminiReader reads the transcripts of Gemini CLI, which repeat a message each time it grows.
type geminiReader struct {
	source    *transcriptSource
	seenCalls map[string]bool
}

// maxSeenCalls is the maximum number of remembered calls of a conversation.
const maxSeenCalls = 1 << 16

func (g *geminiReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
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
	if decodeLenientJSON(raw, &r) != nil {
		return false
	}
	switch {
	case r.Type == "" && (r.SessionID != "" || r.Set != nil || r.RewindTo != nil):
		return true
	case r.Type == "":
		return false
	case r.Type != "gemini":
		g.source.countUnknownRecordUnlessIgnored(r.Type, to)
		return true
	}
	for _, c := range r.ToolCalls {
		if c.Result == nil && c.Status == "" || g.seenCalls[c.ID] && c.ID != "" {
			continue
		}
		if len(g.seenCalls) < maxSeenCalls {
			g.seenCalls[c.ID] = true
		}
		to.handleCall(toolCall{id: c.ID, tool: c.Name, input: c.Args, calledAt: parseTime(c.Time), place: at})
		v := decodeValueJoiningTexts(c.Result)
		st := callStatus(c.Status == "error", v)
		if c.Status == "cancelled" {
			st = outcomeRefusedByUserOrHost
		}
		to.handleResult(toolResult{callID: c.ID, value: v, status: st, place: at})
	}
	return true
}

// qwenReader reads the transcripts of Qwen Code.
type qwenReader struct{ source *transcriptSource }

func (h qwenReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
	var r struct {
		Type    string `json:"type"`
		CWD     string `json:"cwd"`
		Time    string `json:"timestamp"`
		Message struct {
			Parts []messagePart `json:"parts"`
		} `json:"message"`
		ToolCallResult struct {
			Status string `json:"status"`
		} `json:"toolCallResult"`
	}
	if decodeLenientJSON(raw, &r) != nil || r.Type == "" {
		return false
	}
	if r.CWD != "" {
		to.handleFolderChange(r.CWD)
	}
	switch r.Type {
	case "assistant", "user", "tool_result":
	default:
		h.source.countUnknownRecordUnlessIgnored(r.Type, to)
		return true
	}
	for _, p := range r.Message.Parts {
		if f := p.Call; f != nil {
			one := toolCall{id: f.ID, tool: f.Name, input: f.Args, calledAt: parseTime(r.Time), place: at}
			if f.Name == "tool_call" { // the tool named tool_call runs another tool
				var in struct {
					Name      string         `json:"name"`
					Arguments jsontext.Value `json:"arguments"`
				}
				if decodeLenientJSON(f.Args, &in) == nil && in.Name != "" {
					one.tool, one.input = in.Name, in.Arguments
					if text, isText := decodeValueJoiningTexts(in.Arguments).(string); isText {
						one.input = jsontext.Value(text)
					}
				}
			}
			to.handleCall(one)
		}
		if f := p.Response; f != nil {
			v := decodeValueJoiningTexts(f.Response)
			object, _ := v.(map[string]any)
			st := callStatus(object["error"] != nil || r.ToolCallResult.Status == "error", v)
			if r.ToolCallResult.Status == "cancelled" {
				st = outcomeRefusedByUserOrHost
			}
			if object["output"] != nil {
				v = object["output"]
			}
			to.handleResult(toolResult{callID: f.ID, value: v, status: st, place: at})
		}
	}
	return true
}

// copilotReader reads the transcripts of Copilot CLI.
type copilotReader struct{ source *transcriptSource }

func (h copilotReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
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
	if decodeLenientJSON(raw, &r) != nil || r.Type == "" {
		return false
	}
	d := &r.Data
	switch r.Type {
	case "session.start", "session.resume", "session.context_changed":
		if cwd := cmp.Or(d.Context.CWD, d.CWD); cwd != "" {
			to.handleFolderChange(cwd)
		}
	case "tool.execution_start":
		in := d.Arguments
		if text, isText := decodeValueJoiningTexts(in).(string); isText {
			in = jsontext.Value(text)
			if len(text) == 0 || text[0] != '{' {
				in, _ = json.Marshal(map[string]string{"input": text})
			}
		}
		to.handleCall(toolCall{id: d.ID, tool: d.Tool, input: in, calledAt: parseTime(r.Time), place: at})
	case "tool.execution_complete":
		v := decodeValueJoiningTexts(d.Result)
		if object, is := v.(map[string]any); is && object["content"] != nil {
			v = object["content"]
		}
		if !d.Success && len(d.Error) > 0 {
			v = decodeValueJoiningTexts(d.Error)
		}
		to.handleResult(toolResult{callID: d.ID, value: v, status: callStatus(!d.Success, v), place: at})
	default:
		h.source.countUnknownRecordUnlessIgnored(r.Type, to)
	}
	return true
}

// clineReader reads the messages of Cline.
type clineReader struct{}

func (clineReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
	var r struct {
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
		TS      float64        `json:"ts"`
	}
	if decodeLenientJSON(raw, &r) != nil || r.Role == "" {
		return false
	}
	var when time.Time
	if r.TS > 0 && r.TS < 1e14 {
		when = time.UnixMilli(int64(r.TS))
	}
	forwardToolCallsAndResults(r.Content, when, at, to)
	return true
}

// piReader reads the transcripts of the agent host pi.
type piReader struct{ source *transcriptSource }

func (h piReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
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
	if decodeLenientJSON(raw, &r) != nil || r.Type == "" {
		return false
	}
	switch r.Type {
	case "session":
		if r.CWD != "" {
			to.handleFolderChange(r.CWD)
		}
		return true
	case "message":
	default:
		h.source.countUnknownRecordUnlessIgnored(r.Type, to)
		return true
	}
	if r.Message.Role == "toolResult" {
		v := decodeValueJoiningTexts(r.Message.Content)
		to.handleResult(toolResult{callID: r.Message.CallID, value: v, status: callStatus(r.Message.IsError, v), place: at})
		return true
	}
	for _, p := range decodeMessageParts(r.Message.Content) {
		if p.Type == "toolCall" {
			to.handleCall(toolCall{id: p.ID, tool: p.Name, input: p.Arguments, calledAt: parseTime(r.Time), place: at})
		}
	}
	return true
}

// opencodeReader reads the parts of messages of opencode. A call and its result are one part.
type opencodeReader struct{ source *transcriptSource }

func (h opencodeReader) tryReadRecord(raw jsontext.Value, at transcriptPosition, to recordSink) bool {
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
	if decodeLenientJSON(raw, &r) != nil || r.Type == "" {
		return false
	}
	if r.Type != "tool" {
		h.source.countUnknownRecordUnlessIgnored(r.Type, to)
		return true
	}
	var when time.Time
	if ms := r.State.Time.Start; ms > 0 && ms < 1e14 {
		when = time.UnixMilli(int64(ms))
	}
	to.handleCall(toolCall{id: r.CallID, tool: r.Tool, input: r.State.Input, calledAt: when, place: at})
	switch r.State.Status {
	case "completed":
		to.handleResult(toolResult{callID: r.CallID, value: decodeValueJoiningTexts(r.State.Output), status: outcomeRan, place: at})
	case "error":
		v := decodeValueJoiningTexts(r.State.Error)
		to.handleResult(toolResult{callID: r.CallID, value: v, status: callStatus(true, v), place: at})
	}
	return true
}
