package gateway

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A fakeJudge blocks what holds "evil", and keeps what it was asked.
type fakeJudge struct {
	mu        sync.Mutex
	asked     []*action.Action
	wait      chan struct{} // judges nothing before it is closed; nil waits for nothing
	reasoning string        // of what it allows; "" is "fine"
}

func (j *fakeJudge) Evaluate(ctx context.Context, a *action.Action) verdict.Verdict {
	j.mu.Lock()
	j.asked = append(j.asked, a)
	j.mu.Unlock()
	if j.wait != nil {
		select {
		case <-j.wait:
		case <-ctx.Done():
			return verdict.Verdict{Decision: verdict.Block, Reasoning: "interrupted"}
		}
	}
	if strings.Contains(string(a.Raw), "evil") {
		return verdict.Verdict{Decision: verdict.Block, Tier: 1, Reasoning: "it is evil"}
	}
	return verdict.Verdict{Decision: verdict.Allow, Tier: 1, Reasoning: cmp.Or(j.reasoning, "fine")}
}

func (j *fakeJudge) last() *action.Action {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.asked) == 0 {
		return nil
	}
	return j.asked[len(j.asked)-1]
}

// A conn is a client that is connected to a server through a gateway.
type conn struct {
	t      *testing.T
	judge  *fakeJudge
	to     io.WriteCloser
	lines  chan string
	say    func(string)  // as the server
	hangUp func()        // as the server
	hears  chan *message // what the server was told
	ended  chan error
	mu     sync.Mutex
	notes  []string
	nextID int
}

// A reply answers what the server is told; it returns false for the usual answer.
type reply func(c *conn, m *message) bool

const echoTool = `{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}}}`

// testFrame is the longest frame in tests, in bytes.
const testFrame = 1 << 20

// connect connects a client. state is the state folder, "" for a new one.
func connect(t *testing.T, state string, change func(*Options), serve reply) *conn {
	t.Helper()
	if state == "" {
		state = t.TempDir()
	}
	c := &conn{t: t, judge: &fakeJudge{}, lines: make(chan string, 4096), hears: make(chan *message, 4096), ended: make(chan error, 1)}
	server := Server{Name: "test"}
	opts := Options{Judge: c.judge, Server: server, ResultFindingsMode: FindingsModeReportOnly, SessionID: "s"}
	if change != nil {
		change(&opts)
	}
	if opts.AcceptedToolPins == nil {
		opts.AcceptedToolPins = openTestPins(t, state, opts.Server.Name)
	}
	opts.NotifyUser = func(text string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.notes = append(c.notes, text)
	}
	clientOut, to := io.Pipe()
	from, clientIn := io.Pipe()
	serverOut, serverSays := io.Pipe()
	serverHears, serverIn := io.Pipe()
	c.to = to
	c.hangUp = func() { serverSays.Close() }
	var once sync.Mutex
	c.say = func(s string) {
		once.Lock()
		defer once.Unlock()
		_, _ = io.WriteString(serverSays, s+"\n")
	}
	go func() {
		defer serverSays.Close()
		in := newFrameReader(serverHears, maxFrameBytes)
		for {
			f, err := in.next()
			if err != nil {
				return
			}
			m, err := parseMessage(f.raw)
			if err != nil {
				t.Errorf("the server is told %q: %v", f.raw, err)
				return
			}
			c.hears <- m
			if serve == nil || !serve(c, m) {
				c.usual(m)
			}
		}
	}()
	go func() {
		defer close(c.lines)
		in := bufio.NewReaderSize(from, maxFrameBytes)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	go func() {
		g := New(opts)
		g.frameByteLimit, g.queuedByteLimit = testFrame, 4*testFrame
		c.ended <- g.Relay(t.Context(), PeerStreams{FromPeer: clientOut, ToPeer: clientIn}, PeerStreams{FromPeer: serverOut, ToPeer: serverIn})
	}()
	t.Cleanup(func() { to.Close() })
	return c
}

func openTestPins(t testing.TB, state, name string) *ToolPinStore {
	t.Helper()
	pins, err := OpenPins(state, &Server{Name: name}, []string{name}, "")
	if err != nil {
		t.Fatal(err)
	}
	return pins
}

// usual answers as a server does that is good.
func (c *conn) usual(m *message) {
	if !m.isRequest() {
		return
	}
	result := `{}`
	switch m.method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"t","version":"1"}}`
	case "tools/list":
		result = `{"tools":[` + echoTool + `]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"done"}]}`
	}
	c.answer(m, result)
}

func (c *conn) answer(m *message, result string) {
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.id, result))
}

func (c *conn) send(frame string) {
	c.t.Helper()
	if _, err := io.WriteString(c.to, frame+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// line returns the next line that the client gets.
func (c *conn) line() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the gateway has closed its end")
		}
		return line
	case <-time.After(time.Minute):
		c.t.Fatal("the client gets nothing")
	}
	return ""
}

// got returns the next line that the client gets as a message.
func (c *conn) got() *message {
	c.t.Helper()
	line := c.line()
	m, err := parseMessage([]byte(line))
	if err != nil {
		c.t.Fatalf("the client gets %.200q: %v", line, err)
	}
	return m
}

// ask sends a request and returns its answer.
func (c *conn) ask(method, params string) *message {
	c.t.Helper()
	c.nextID++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.nextID, method, params))
	for {
		m := c.got()
		if m.method == "" && string(m.id) == fmt.Sprint(c.nextID) {
			return m
		}
	}
}

// call calls a tool and returns its text and whether it is an error.
func (c *conn) call(name, arguments string) (text string, failed bool) {
	c.t.Helper()
	return toolText(c.t, c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)))
}

func toolText(t *testing.T, m *message) (said string, failed bool) {
	t.Helper()
	result, _ := m.result.(object)
	if m.rpcError != nil || result == nil {
		return stringMember(m.rpcError, "message"), true
	}
	content, _ := result["content"].([]any)
	if len(content) > 0 {
		first, _ := content[0].(object)
		said = stringMember(first, "text")
	}
	return said, result["isError"] == true
}

// tools lists the tools and returns their names.
func (c *conn) tools() string {
	c.t.Helper()
	result, _ := c.ask("tools/list", "{}").result.(object)
	list, _ := result["tools"].([]any)
	var names []string
	for _, v := range list {
		t, _ := v.(object)
		names = append(names, stringMember(t, "name"))
	}
	return strings.Join(names, " ")
}

// alive demands that a request still reaches the server and is answered.
func (c *conn) alive() {
	c.t.Helper()
	if m := c.ask("ping", "{}"); m.rpcError != nil {
		c.t.Errorf("a ping fails: %v", m.rpcError)
	}
}

func (c *conn) told() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.notes, "\n")
}

// heard reports whether the server was told a method.
func (c *conn) heard(method string) bool {
	for {
		select {
		case m := <-c.hears:
			if m.method == method {
				return true
			}
		default:
			return false
		}
	}
}
