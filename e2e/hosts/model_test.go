//go:build unix

package hosts

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A call is one tool call that the model proposes.
type call struct {
	kind string // shell, write, mcp, agent or wait
	text string // the command, the file's path, the tool's own name, or the kind of agent
}

// named is what hosts call the tools of a kind.
var named = map[string][]string{
	"shell": {"Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "run_commands", "Execute"},
	"write": {"Write", "write_file", "create", "Create", "editor", "write"},
	"agent": {"Agent", "agent", "Task", "task", "spawn_agent", "invoke_agent"},
	"wait":  {"wait_agent", "wait"},
}

// errand is what a sub-agent is told. Only its own conversation has it as the text
// of a user.
const errand = "run the errand of this test"

// A model is a language model that proposes calls, one after the other, and then
// ends. It speaks the protocols that hosts speak.
type model struct {
	*httptest.Server
	calls []call
	sub   []call   // what it proposes to a sub-agent
	more  object   // arguments of its shell calls
	args  []object // of its calls, in their order; none for what the schemas need

	mu       sync.Mutex
	bodies   []string // what it was sent
	proposed bool     // a call
	lacking  []string // kinds of tools that the host did not offer
	offered  []string // the tools that it did, by the names that the model is told
}

func newModel(calls []call) *model {
	m := &model{calls: calls}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	return m
}

// saw reports whether a text was in what the model was sent.
func (m *model) saw(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.bodies, func(b string) bool { return strings.Contains(b, text) })
}

// told returns what stands around a word in what the model was sent last.
func (m *model) told(word string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.bodies) == 0 {
		return "the model was not asked"
	}
	last := m.bodies[len(m.bodies)-1]
	i := strings.LastIndex(last, word)
	return last[max(0, i-200):min(len(last), max(0, i)+400)]
}

// A tool is one that a host offers.
type tool struct {
	name, space string
	schema      map[string]any
}

// An answer is what the model says: a call of a tool, or the end.
type answer struct {
	*tool
	args map[string]any
}

func (a answer) id(n int) string { return fmt.Sprintf("call_%d", n) }

// deferred is a tool that Qwen Code shows by name alone, in what the model is sent.
var deferred = regexp.MustCompile(`\\n- \\"(\w+)\\": \\"`)

// started is the agent that was started, in what the model is sent.
var started = regexp.MustCompile(`agent_id\\*":\\*"([0-9a-f-]+)`)

// A talk is what the model is sent of one conversation.
type talk struct {
	tools   []tool
	results int
	user    []string // texts of the user
}

// answer returns what the model says in a conversation.
func (m *model) answer(in talk) answer {
	tools, results, calls := in.tools, in.results, &m.calls
	for _, t := range tools {
		m.offer(t.name)
	}
	if slices.ContainsFunc(in.user, func(text string) bool { return strings.Contains(text, errand) }) {
		calls = &m.sub
	}
	for len(tools) > 0 && results < len(*calls) {
		c := (*calls)[results]
		i := -1
		switch c.kind {
		case "mcp":
			plain := func(name string) string { return strings.ReplaceAll(name, "-", "_") } // as Codex calls it
			i = slices.IndexFunc(tools, func(t tool) bool { return strings.HasSuffix(plain(t.name), plain(c.text)) })
			// Qwen Code does not show its models all tools; this one calls the others.
			if j := slices.IndexFunc(tools, func(t tool) bool { return t.name == "tool_call" }); i < 0 && j >= 0 {
				m.proposed = true
				return answer{&tools[j], object{"name": "mcp__probe__" + c.text, "arguments": object{"text": "x"}}}
			}
		default:
			i = slices.IndexFunc(tools, func(t tool) bool { return slices.Contains(named[c.kind], t.name) })
		}
		if i >= 0 {
			m.proposed = true
			args := arguments(tools[i].schema, c)
			if c.kind == "shell" {
				maps.Copy(args, m.more)
			}
			if m := started.FindStringSubmatch(m.bodies[len(m.bodies)-1]); m != nil && c.kind == "wait" {
				args["targets"] = []string{m[1]}
			}
			if results < len(m.args) {
				args = m.args[results]
			}
			return answer{&tools[i], args}
		}
		if !slices.Contains(m.lacking, c.kind) {
			m.lacking = append(m.lacking, c.kind)
		}
		*calls = slices.Delete(slices.Clone(*calls), results, results+1)
	}
	return answer{}
}

// offer notes a tool that the host offers, unless it is of an MCP server.
func (m *model) offer(name string) {
	if !strings.HasSuffix(name, goodTool) && !strings.HasSuffix(name, badTool) && !slices.Contains(m.offered, name) {
		m.offered = append(m.offered, name)
	}
}

// arguments fills what a tool needs.
func arguments(schema map[string]any, c call) map[string]any {
	args := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name, v := range properties {
		p, _ := v.(map[string]any)
		switch {
		case c.kind == "shell" && slices.Contains([]string{"command", "cmd"}, name):
			args[name] = c.text
		case c.kind == "shell" && name == "commands":
			args[name] = []string{c.text}
		case c.kind == "write" && slices.Contains([]string{"file_path", "path", "filePath"}, name):
			args[name] = c.text
		case c.kind == "write" && slices.Contains([]string{"content", "file_text", "new_text"}, name):
			args[name] = "written\n"
		case c.kind == "agent" && slices.Contains([]string{"prompt", "message", "task"}, name):
			args[name] = errand
		case c.kind == "agent" && slices.Contains([]string{"subagent_type", "agent_type", "agent_name"}, name):
			args[name] = c.text
		case slices.Contains(required, any(name)):
			args[name] = map[string]any{"boolean": false, "number": 1, "integer": 1, "array": []any{}, "object": map[string]any{}}[fmt.Sprint(p["type"])]
			if options, ok := p["enum"].([]any); ok {
				args[name] = options[0]
			} else if args[name] == nil {
				args[name] = "x"
			}
		}
	}
	return args
}

type object = map[string]any

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body object
	_ = json.Unmarshal(raw, &body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, string(raw))
	for _, name := range deferred.FindAllStringSubmatch(string(raw), -1) {
		m.offer(name[1])
	}
	path := r.URL.Path
	switch {
	case r.Method != http.MethodPost:
		reply(w, object{"object": "list", "data": []any{object{"id": "fake-model", "object": "model", "created": 1, "owned_by": "x"}}, "models": []any{}})
	case strings.HasSuffix(path, "/messages"):
		m.anthropic(w, body)
	case strings.HasSuffix(path, "/chat/completions"):
		m.chat(w, body)
	case strings.HasSuffix(path, "/responses"):
		m.responses(w, body)
	case strings.Contains(path, "enerateContent"):
		m.gemini(w, body, strings.Contains(path, "stream"))
	default:
		reply(w, object{"input_tokens": 10, "totalTokens": 10})
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// stream sends events. Those of a name are named by their type.
func stream(w http.ResponseWriter, named bool, events ...object) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		raw, _ := json.Marshal(e)
		if named {
			fmt.Fprintf(w, "event: %s\n", e["type"])
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
}

func list(v any) []any     { l, _ := v.([]any); return l }
func obj(v any) object     { o, _ := v.(object); return o }
func text(v any) string    { s, _ := v.(string); return s }
func encoded(v any) string { raw, _ := json.Marshal(v); return string(raw) }

// texts returns the texts of a message, whose content is a text or a list of parts.
func texts(content any) []string {
	all := []string{text(content)}
	for _, part := range list(content) {
		all = append(all, text(obj(part)["text"]))
	}
	return all
}

func (m *model) anthropic(w http.ResponseWriter, b object) {
	var in talk
	for _, t := range list(b["tools"]) {
		in.tools = append(in.tools, tool{name: text(obj(t)["name"]), schema: obj(obj(t)["input_schema"])})
	}
	for _, msg := range list(b["messages"]) {
		if obj(msg)["role"] == "user" {
			in.user = append(in.user, texts(obj(msg)["content"])...)
		}
		for _, c := range list(obj(msg)["content"]) {
			if obj(c)["type"] == "tool_result" {
				in.results++
			}
		}
	}
	a := m.answer(in)
	msg := object{"id": "msg_1", "type": "message", "role": "assistant", "model": b["model"], "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 5, "output_tokens": 1}}
	block, start, delta, reason := object{"type": "text", "text": "done"}, object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "done"}, "end_turn"
	if a.tool != nil {
		block = object{"type": "tool_use", "id": a.id(in.results), "name": a.name, "input": a.args}
		start = object{"type": "tool_use", "id": a.id(in.results), "name": a.name, "input": object{}}
		delta, reason = object{"type": "input_json_delta", "partial_json": encoded(a.args)}, "tool_use"
	}
	if b["stream"] != true {
		msg["content"], msg["stop_reason"] = []any{block}, reason
		reply(w, msg)
		return
	}
	stream(w, true,
		object{"type": "message_start", "message": msg},
		object{"type": "content_block_start", "index": 0, "content_block": start},
		object{"type": "content_block_delta", "index": 0, "delta": delta},
		object{"type": "content_block_stop", "index": 0},
		object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 5}},
		object{"type": "message_stop"})
}

func (m *model) chat(w http.ResponseWriter, b object) {
	var in talk
	for _, t := range list(b["tools"]) {
		f := obj(obj(t)["function"])
		in.tools = append(in.tools, tool{name: text(f["name"]), schema: obj(f["parameters"])})
	}
	for _, msg := range list(b["messages"]) {
		switch obj(msg)["role"] {
		case "tool":
			in.results++
		case "user":
			in.user = append(in.user, texts(obj(msg)["content"])...)
		}
	}
	a := m.answer(in)
	base := func(choices ...any) object {
		return object{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": b["model"], "choices": choices}
	}
	delta, reason := object{"role": "assistant", "content": "done"}, "stop"
	if a.tool != nil {
		delta = object{"role": "assistant", "content": nil, "tool_calls": []any{object{"index": 0, "id": a.id(in.results), "type": "function", "function": object{"name": a.name, "arguments": encoded(a.args)}}}}
		reason = "tool_calls"
	}
	usage := object{"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
	if b["stream"] != true {
		whole := base(object{"index": 0, "message": delta, "finish_reason": reason})
		whole["object"], whole["usage"] = "chat.completion", usage
		reply(w, whole)
		return
	}
	last := base()
	last["choices"], last["usage"] = []any{}, usage
	stream(w, false, base(object{"index": 0, "delta": delta, "finish_reason": nil}), base(object{"index": 0, "delta": object{}, "finish_reason": reason}), last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m *model) responses(w http.ResponseWriter, b object) {
	var in talk
	for _, t := range list(b["tools"]) {
		switch t := obj(t); t["type"] {
		case "function":
			in.tools = append(in.tools, tool{name: text(t["name"]), schema: obj(t["parameters"])})
		case "namespace":
			for _, u := range list(t["tools"]) {
				in.tools = append(in.tools, tool{name: text(obj(u)["name"]), space: text(t["name"]), schema: obj(obj(u)["parameters"])})
			}
		}
	}
	for _, item := range list(b["input"]) {
		switch {
		case strings.HasSuffix(text(obj(item)["type"]), "_call_output"):
			in.results++
		case obj(item)["role"] == "user":
			in.user = append(in.user, texts(obj(item)["content"])...)
		}
	}
	a := m.answer(in)
	item := object{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": "done", "annotations": []any{}}}}
	if a.tool != nil {
		item = object{"type": "function_call", "id": "fc_1", "call_id": a.id(in.results), "name": a.name, "arguments": encoded(a.args), "status": "completed"}
		if a.space != "" {
			item["namespace"] = a.space
		}
	}
	begun := object{"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": b["model"], "output": []any{}}
	ended := object{"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": b["model"], "output": []any{item},
		"usage": object{"input_tokens": 5, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 5, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 10}}
	stream(w, true,
		object{"type": "response.created", "sequence_number": 0, "response": begun},
		object{"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item},
		object{"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item},
		object{"type": "response.completed", "sequence_number": 3, "response": ended})
}

func (m *model) gemini(w http.ResponseWriter, b object, streams bool) {
	if inner := obj(b["request"]); inner != nil {
		b = inner
	}
	var in talk
	for _, t := range list(b["tools"]) {
		for _, f := range list(obj(t)["functionDeclarations"]) {
			schema := obj(obj(f)["parametersJsonSchema"])
			if schema == nil {
				schema = obj(obj(f)["parameters"])
			}
			in.tools = append(in.tools, tool{name: text(obj(f)["name"]), schema: schema})
		}
	}
	for _, c := range list(b["contents"]) {
		for _, p := range list(obj(c)["parts"]) {
			if obj(p)["functionCall"] != nil { // of a session that is resumed, each response is there twice
				in.results++
			}
		}
		if obj(c)["role"] == "user" {
			in.user = append(in.user, texts(obj(c)["parts"])...)
		}
	}
	part := object{"text": "done"}
	if a := m.answer(in); a.tool != nil {
		part = object{"functionCall": object{"name": a.name, "args": a.args}}
	} else if obj(b["generationConfig"])["responseJsonSchema"] != nil {
		part = object{"text": `{"reasoning":"x","model_choice":"flash","complexity_reasoning":"x","complexity_score":1,"next_speaker":"user"}`}
	}
	whole := object{"candidates": []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}, "modelVersion": "x"}
	if streams {
		stream(w, false, whole)
		return
	}
	reply(w, whole)
}
