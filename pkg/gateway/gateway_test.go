package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

func TestCallIsJudged(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil, nil)
	if got := c.tools(); got != "echo" {
		t.Fatalf("tools: %q", got)
	}
	if said, failed := c.call("echo", `{"message":"hi"}`); said != "done" || failed {
		t.Errorf("an allowed call: %q, %t", said, failed)
	}
	a := c.judge.last()
	if a.Type != "mcp__test__echo" || a.Text("message") != "hi" || a.Session != "s" {
		t.Errorf("judged as %s", a.Raw)
	}
	c.heard("tools/call")
	if said, failed := c.call("echo", `{"message":"evil"}`); !failed || !strings.Contains(said, "it is evil") {
		t.Errorf("a blocked call: %q, %t", said, failed)
	}
	if c.heard("tools/call") {
		t.Error("the server heard of a blocked call")
	}
	if said, failed := c.call("other", `{}`); !failed || !strings.Contains(said, "not listed") {
		t.Errorf("a tool that is not listed: %q, %t", said, failed)
	}
}

// TestJudgedBytesAreForwarded holds that a frame passes byte for byte.
func TestJudgedBytesAreForwarded(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil, nil)
	c.tools()
	c.heard("tools/list")
	frame := "{ \"method\":\"tools/call\", \"params\":{\"arguments\":{\"message\":\"\\u0068\u00e9 \\/ 1e2\",\"n\":1.50e1},\"name\":\"echo\"},\"id\":\"\\u0061\",\"jsonrpc\":\"2.0\" }"
	c.send(frame)
	m := c.got()
	if string(m.id) != `"a"` || m.rpcError != nil {
		t.Fatalf("answer %s", m.raw)
	}
	if heard := <-c.hears; string(heard.raw) != frame {
		t.Errorf("the server is told\n%s, not\n%s", heard.raw, frame)
	}
}

// TestResultPassesUnchanged holds the same for what the server says.
func TestResultPassesUnchanged(t *testing.T) {
	t.Parallel()
	result := `{ "content" : [ {"text":"\u0061","type":"text"} ], "structuredContent":{"a":1.0} }`
	c := connect(t, "", nil, func(c *conn, m *message) bool {
		if m.method != "tools/call" {
			return false
		}
		c.answer(m, result)
		return true
	})
	c.tools()
	if m := c.ask("tools/call", `{"name":"echo","arguments":{}}`); !strings.Contains(string(m.raw), result) {
		t.Errorf("the client gets %s", m.raw)
	}
}

// TestClientFrames holds what happens to frames that are not what a client sends.
func TestClientFrames(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	for frame, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","method":"ping"}`:                                             "same",
		`{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call"}`:                                             "same",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","Name":"x","arguments":{}}}`:          "same",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"A":2}}}`:          "same",
		`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`:                                                                 "batch",
		`{"jsonrpc":"2.0","id":7,"method":"ping","params":` + deep + `}`:                                             "nested",
		`{"jsonrpc":"1.0","id":7,"method":"ping"}`:                                                                   "jsonrpc",
		`{"id":7,"method":"ping"}`:                                                                                   "jsonrpc",
		`{"jsonrpc":"2.0","id":7}`:                                                                                   "neither",
		`{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}`:                                                       "neither",
		`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`:                                                             "id",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                                                 "id",
		`{"jsonrpc":"2.0","id":7,"method":"ping","extra":1}`:                                                         "extra",
		`{"jsonrpc":"2.0","id":7,"method":"tools/uninstall"}`:                                                        ", which is not part of the MCP version that shield supports",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{},"sudo":true}}`:         "sudo",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":[1]}}`:                    "object",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{}}}`:                                   "no tool",
		`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{}}`:                                             "scheme",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{},"inputResponses":{}}}`: "did not ask",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}":                             "UTF-8",
		`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\ud800"}}`:                                           "surrogate",
		`{"jsonrpc":"2.0","id":7,"method":"ping"`:                                                                    "JSON",
		`hello`: "JSON",
		`{"jsonrpc":"2.0","id":7,"method":"ping"}{"jsonrpc":"2.0","id":8,"method":"tools/call"}`:                               "JSON",
		`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"` + strings.Repeat("x", testFrame) + `"}}`:                     "too long",
		`{"jsonrpc":"2.0","method":"ping","params":{"a":"` + strings.Repeat(`\"id\":9,`, testFrame/8) + `","id":"no"},"id":7}`: "too long",
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := connect(t, "", nil, nil)
			c.tools()
			c.heard("tools/list")
			c.send(frame)
			m := c.got()
			said, failed := toolText(t, m)
			if !failed || !strings.Contains(said, want) {
				t.Errorf("%.120s: %q", frame, said)
			}
			if id := string(m.id); id != "7" && id != "" {
				t.Errorf("%.120s: answered as %s", frame, id)
			}
			if c.heard("tools/call") || c.judge.last() != nil {
				t.Errorf("%.120s reached the server or the judge", frame)
			}
			c.alive()
		})
	}
}

func TestCancelledCallIsNotForwarded(t *testing.T) {
	t.Parallel()
	var judge *fakeJudge
	c := connect(t, "", func(o *Options) {
		judge = &fakeJudge{wait: make(chan struct{})}
		o.Judge = judge
	}, nil)
	c.tools()
	c.heard("tools/list")
	c.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo","arguments":{}}}`)
	for judge.last() == nil {
		c.alive()
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	c.alive()
	close(judge.wait)
	c.alive()
	c.alive()
	if c.heard("tools/call") {
		t.Error("a call that was taken back reached the server")
	}
}

// TestLateAllowIsNone holds that a verdict after the deadline allows nothing.
func TestLateAllowIsNone(t *testing.T) {
	t.Parallel()
	c := connect(t, "", func(o *Options) { o.Judge, o.JudgeTimeout = lateJudge{}, time.Millisecond }, nil)
	c.tools()
	if said, failed := c.call("echo", "{}"); !failed || !strings.Contains(said, "no verdict within") {
		t.Errorf("%q, %t", said, failed)
	}
}

type lateJudge struct{}

func (lateJudge) Evaluate(ctx context.Context, _ *action.Action) verdict.Verdict {
	<-ctx.Done()
	return verdict.Verdict{Decision: verdict.Allow}
}

// TestCallsOverlap holds that one call that waits for a person keeps no other
// from being answered.
func TestCallsOverlap(t *testing.T) {
	t.Parallel()
	slow := &fakeJudge{wait: make(chan struct{})}
	c := connect(t, "", func(o *Options) { o.Judge = slow }, nil)
	c.tools()
	for i := range 50 {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"echo","arguments":{"n":%d}}}`, i, i))
	}
	c.alive()
	close(slow.wait)
	seen := map[string]bool{}
	for range 50 {
		seen[string(c.got().id)] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d of 50 calls are answered", len(seen))
	}
}

func TestSameIDTwice(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil, func(_ *conn, m *message) bool { return m.method == "prompts/list" })
	c.send(`{"jsonrpc":"2.0","id":1.0e1,"method":"ping"}`)
	c.got()
	c.send(`{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if m := c.got(); m.rpcError == nil || !strings.Contains(stringMember(m.rpcError, "message"), "is already pending") {
		t.Errorf("%s", m.raw)
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil, nil)
	for _, one := range []struct{ method, params, kind, path string }{
		{"resources/read", `{"uri":"file:///etc/ho%73ts"}`, "read_file", "/etc/hosts"},
		{"resources/read", `{"uri":"file://localhost/etc/hosts"}`, "read_file", "/etc/hosts"},
		{"resources/read", `{"uri":"file:/etc/hosts"}`, "read_file", "/etc/hosts"},
		{"resources/subscribe", `{"uri":"https://x.test/a"}`, "http_request", ""},
		{"resources/read", `{"uri":"HTTP://x.test/a"}`, "http_request", ""},
		{"resources/read", `{"uri":"memo://notes/1"}`, "read_file", "notes/1"},
		{"resources/read", `{"uri":"fs:///home/me/%2Essh/id_rsa"}`, "read_file", "/home/me/.ssh/id_rsa"},
		{"resources/read", `{"uri":"fs:/home/me/.ssh/id_rsa"}`, "read_file", "/home/me/.ssh/id_rsa"},
		{"resources/read", `{"uri":"fs:home/%2Eenv"}`, "read_file", "home/.env"},
		{"prompts/get", `{"name":"p","arguments":{"a":"b"}}`, "mcp__test__get_prompt", ""},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}`, "mcp__test__suggest_completion", ""},
	} {
		if m := c.ask(one.method, one.params); m.rpcError != nil {
			t.Errorf("%s %s: %s", one.method, one.params, m.raw)
		}
		if a := c.judge.last(); a.Type != one.kind || a.Text("path") != one.path {
			t.Errorf("%s %s is judged as %s", one.method, one.params, a.Raw)
		}
	}
	for method, params := range map[string]string{
		"resources/read": `{"uri":"memo://evil"}`, "resources/subscribe": `{"uri":"file://host/share"}`,
		"prompts/get": `{"name":"p","arguments":{"a":"evil"}}`, "completion/complete": `{"ref":{"name":"p"},"argument":{"value":"evil"}}`,
	} {
		if m := c.ask(method, params); m.rpcError == nil {
			t.Errorf("%s %s is allowed", method, params)
		}
	}
	if m := c.ask("resources/read", `{"uri":"relative"}`); m.rpcError == nil {
		t.Error("an address without a scheme is read")
	}
}

// TestServerEnds holds that open requests are answered when a server ends.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil, func(c *conn, m *message) bool {
		if m.method == "prompts/list" {
			c.hangUp()
		}
		return m.method == "prompts/list"
	})
	if m := c.ask("prompts/list", "{}"); m.rpcError == nil || !strings.Contains(stringMember(m.rpcError, "message"), "ended") {
		t.Errorf("%s", m.raw)
	}
	if err := <-c.ended; !errors.Is(err, ErrServerEnded) {
		t.Errorf("after the server's end: %v", err)
	}
}

func TestClientEnds(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil, nil)
	c.alive()
	c.to.Close()
	if err := <-c.ended; err != nil {
		t.Errorf("after the client's end: %v", err)
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	c := connect(t, "", func(o *Options) { o.CorpusRowRecorder = NewCorpusRowRecorder(&b, nil) }, nil)
	c.tools()
	c.call("echo", `{"message":"hi"}`)
	token := "ghp_" + strings.Repeat("a1B2", 9)
	c.call("echo", `{"message":"evil","token":"`+token+`"}`)
	c.ask("resources/read", `{"uri":"https://example.com/x?key=`+token+`"}`)
	c.judge.reasoning = "the URL contains " + token
	c.ask("resources/read", `{"uri":"https://example.com/docs?page=2"}`)
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(rows) != 4 || !strings.Contains(rows[0], `"label":"pass"`) || !strings.Contains(rows[1], `"label":"stop"`) || strings.Contains(b.String(), "ghp_") ||
		!strings.Contains(rows[0], `"reasoning":"fine"`) || !strings.Contains(rows[2], "https://example.com/x?key=") || !strings.Contains(rows[3], `"category":"resources/read https://example.com/docs?page=2"`) {
		t.Fatalf("transcript:\n%s", b.String())
	}
	for _, row := range rows {
		v, err := canonjson.ParseValue([]byte(row), 16)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := action.Parse(canonjson.AppendValue(nil, v.(object)["action"])); err != nil {
			t.Errorf("%s: %v", row, err)
		}
	}
}

// TestTranscriptMustBeWritten holds that nothing is allowed that the transcript
// cannot hold.
func TestTranscriptMustBeWritten(t *testing.T) {
	t.Parallel()
	c := connect(t, "", func(o *Options) { o.CorpusRowRecorder = NewCorpusRowRecorder(broken{}, nil) }, nil)
	c.tools()
	if said, failed := c.call("echo", `{}`); !failed || !strings.Contains(said, "--record") {
		t.Errorf("%q, %t", said, failed)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestTasks holds that what a task returns is examined and told of as what a tool
// returns, that a task asks for no more than a server may, and that it is answered
// only what it has asked for.
func TestTasks(t *testing.T) {
	t.Parallel()
	result := ""
	var returned []string
	c := connect(t, "", func(o *Options) {
		o.ResultFindingsMode = FindingsModeWithhold
		o.OnActionResult = func(_ context.Context, a *action.Action, _ any, _ Findings) error {
			returned = append(returned, a.Type)
			return nil
		}
	}, func(c *conn, m *message) bool {
		if m.method != "tasks/get" && m.method != "tasks/result" {
			return false
		}
		c.answer(m, result)
		return true
	})
	result = `{"content":[{"type":"text","text":"hello"}]}`
	for _, method := range []string{"tasks/get", "tasks/result"} {
		if said, failed := toolText(t, c.ask(method, `{"taskId":"t1"}`)); failed || said != "hello" {
			t.Errorf("%s: %q", method, said)
		}
	}
	if !slices.Equal(returned, []string{"mcp__test__get_task", "mcp__test__get_task"}) {
		t.Errorf("told of %q", returned)
	}
	result = `{"content":[{"type":"text","text":"a\u202eb"}]}`
	if said, failed := toolText(t, c.ask("tasks/result", `{"taskId":"t1"}`)); !failed {
		t.Errorf("hidden text: %q", said)
	}
	update := `{"taskId":"t1","inputResponses":{"q":{"action":"accept","content":{"branch":"main"}}}}`
	if m := c.ask("tasks/update", update); m.rpcError == nil {
		t.Error("an answer to no question is passed on")
	}
	asks := `{"status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"%s","requestedSchema":{}}}}}`
	result = fmt.Sprintf(asks, "Your password")
	if m := c.ask("tasks/get", `{"taskId":"t1"}`); m.rpcError == nil {
		t.Errorf("a task asks for a password: %s", m.raw)
	}
	result = fmt.Sprintf(asks, "Which branch?")
	if m := c.ask("tasks/get", `{"taskId":"t1"}`); m.rpcError != nil {
		t.Errorf("a task asks for a branch: %s", m.raw)
	}
	if m := c.ask("tasks/update", strings.Replace(update, "t1", "t2", 1)); m.rpcError == nil {
		t.Error("the answer to another task is passed on")
	}
	if m := c.ask("tasks/update", strings.Replace(update, "main", "evil", 1)); m.rpcError == nil {
		t.Error("a blocked answer is passed on")
	}
	if m := c.ask("tasks/update", update); m.rpcError != nil {
		t.Errorf("the answer: %s", m.raw)
	}
	if m := c.ask("tasks/update", update); m.rpcError == nil {
		t.Error("a second answer is passed on")
	}
	for _, params := range []string{`{}`, `{"taskId":1}`, `{"taskId":"t1","run":"x"}`} {
		if m := c.ask("tasks/get", params); m.rpcError == nil {
			t.Errorf("%s is passed on", params)
		}
	}
}
