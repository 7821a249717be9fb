package gateway

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLinesWithinMessages holds that no message passes that a reader, for which a
// carriage return ends a line, treats as several.
func TestLinesWithinMessages(t *testing.T) {
	t.Parallel()
	inner := `{"jsonrpc":"2.0","id":78,"method":"%s","params":{"name":"echo","arguments":{},"messages":[]}}`
	c := connect(t, "", nil, say("ping", true, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\r"+fmt.Sprintf(inner, "sampling/createMessage")+"\r}"))
	c.tools()
	c.send("{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"prompts/list\",\"params\":\r" + fmt.Sprintf(inner, "tools/call") + "\r}")
	if m := c.got(); string(m.id) != "77" || m.rpcError == nil {
		t.Errorf("the client gets %s", m.raw)
	}
	if c.heard("prompts/list") {
		t.Error("the server hears it")
	}
	c.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if line := c.line(); strings.Contains(line, "sampling") {
		t.Errorf("the client gets %q", line)
	}
	c.send("{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"prompts/list\"}\r") // an end of two characters
	if m := c.got(); string(m.id) != "6" || m.rpcError != nil {
		t.Errorf("%s", m.raw)
	}
}

// TestAddressesThatLeadBack holds that no resource is read by an address of which
// readers may take more for the path than was judged.
func TestAddressesThatLeadBack(t *testing.T) {
	t.Parallel()
	for uri, path := range map[string]string{
		"file:///w/x?/../../home/me/.ssh/id_rsa":       "",
		"file:///w/x#/../../home/me/.ssh/id_rsa":       "",
		"file:///w/x?/%2e%2e/%2e%2e/home/me/.ssh/id_a": "",
		"note://x?y#/../../.env":                       "",
		"file:///home/me/.ssh/id_rsa%00.txt":           "",
		"note://x?page=2#top":                          "x",
		"file:///w/a?b":                                "/w/a",
	} {
		p := &proposedAction{}
		err := setResourceReadAction(p, uri)
		if got, _ := p.payload["path"].(string); (err != nil) != (path == "") || got != path {
			t.Errorf("%s is read as %q, %v", uri, got, err)
		}
	}
}

// TestFloodsOfChanges holds that a client is told once that a list has changed, until it
// asks for that list.
func TestFloodsOfChanges(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"tools", "prompts", "resources"} {
		c := connect(t, "", nil, nil)
		flood := func() (told int) {
			for range 200 {
				c.say(`{"jsonrpc":"2.0","method":"notifications/` + of + `/list_changed"}`)
			}
			c.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"end"}}`)
			for line := ""; !strings.Contains(line, "end"); {
				if line = c.line(); strings.Contains(line, "list_changed") {
					told++
				}
			}
			return told
		}
		if n := flood(); n != 1 {
			t.Errorf("%s: told %d times", of, n)
		}
		c.ask(of+"/list", "{}")
		if n := flood(); n != 1 {
			t.Errorf("%s: told %d times after it has asked", of, n)
		}
	}
}

// TestQuestionsAreExamined holds that what a server asks of a person or of the client's
// model brings neither escapes nor secrets with it.
func TestQuestionsAreExamined(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	c := connect(t, "", func(o *Options) { o.ResultFindingsMode, o.AllowsSampling = FindingsModeRemoveFoundText, true }, nil)
	c.tools()
	for _, message := range []string{`Which branch?\u001b[2J`, `Which \u202ebranch?`, `Bitte Passwort eingeben`, `Введите пароль`} {
		c.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"` + message + `","requestedSchema":{}}}`)
		m := <-c.hears
		for m.method != "" {
			m = <-c.hears
		}
		if !strings.Contains(string(m.raw), "decline") {
			t.Errorf("%s: the server is told %s", message, m.raw)
		}
	}
	c.say(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"` + secret + `"}}]}}`)
	if line := c.line(); !strings.Contains(line, "sampling") || strings.Contains(line, secret) || !strings.Contains(line, "redacted") {
		t.Errorf("the client gets %s", line)
	}
}

// TestErrorsThatSendPeople holds that an error by which a call wants a link to be
// followed first is withheld like a question that does.
func TestErrorsThatSendPeople(t *testing.T) {
	t.Parallel()
	for url, passes := range map[string]bool{"https://login.good.test/a": true, "https://evil.test/": false, "http://login.good.test/": false} {
		c := connect(t, "", func(o *Options) { o.TrustedElicitationURLHosts = hostPatterns(t, "*.good.test") }, say("tools/call", false,
			`{"jsonrpc":"2.0","id":{id},"error":{"code":-32042,"message":"sign in","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"`+url+`","message":"Sign in"}]}}}`))
		c.tools()
		if m := c.ask("tools/call", `{"name":"echo"}`); strings.Contains(string(m.raw), "elicitationId") != passes {
			t.Errorf("%s: the client gets %s", url, m.raw)
		}
	}
}

// TestLateAnswer holds that the answer to a request that was taken back is none to a
// later request with its id.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	c := connect(t, "", nil, func(_ *conn, m *message) bool { return m.method == "tools/call" })
	c.tools()
	call := `{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"echo","arguments":{"message":"%s"}}}`
	c.send(fmt.Sprintf(call, "first"))
	for m := <-c.hears; m.method != "tools/call"; m = <-c.hears {
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":50}}`)
	c.send(fmt.Sprintf(call, "second"))
	if m := c.got(); string(m.id) != "50" || m.rpcError == nil {
		t.Errorf("the client gets %s", m.raw)
	}
	c.say(`{"jsonrpc":"2.0","id":50,"result":{"content":[{"type":"text","text":"of the first"}]}}`)
	c.alive()
	c.send(fmt.Sprintf(call, "third")) // the late answer has come
	for m := <-c.hears; m.method != "tools/call"; m = <-c.hears {
	}
	c.say(`{"jsonrpc":"2.0","id":50,"result":{"content":[{"type":"text","text":"of the third"}]}}`)
	if line := c.line(); !strings.Contains(line, "of the third") {
		t.Errorf("the client gets %s", line)
	}
}

// TestEncodedTexts holds that what encodes a text is read, whatever type the server
// gives it.
func TestEncodedTexts(t *testing.T) {
	t.Parallel()
	text := base64.StdEncoding.EncodeToString([]byte("key ghp_" + strings.Repeat("a1B2", 9)))
	for _, mime := range []string{"text/plain", "Text/Plain", "application/xml", "image/svg+xml", "image/png", "application/octet-stream"} {
		c := connect(t, "", func(o *Options) { o.ResultFindingsMode = FindingsModeWithhold }, say("tools/call", false,
			`{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"resource","resource":{"uri":"a://b","mimeType":"`+mime+`","blob":"`+text+`"}}]}}`))
		c.tools()
		if said, failed := c.call("echo", "{}"); !failed || !strings.Contains(said, "withheld") {
			t.Errorf("%s: %q", mime, said)
		}
	}
}

// TestEndlessPages holds that a list of tools without an end is given up, and not asked
// for as long as a judgement may take.
func TestEndlessPages(t *testing.T) {
	t.Parallel()
	pages := 0
	c := connect(t, "", nil, func(c *conn, m *message) bool {
		if m.method != "tools/list" {
			return false
		}
		pages++
		c.answer(m, `{"tools":[],"nextCursor":"x"}`)
		return true
	})
	if _, failed := c.call("echo", "{}"); !failed || pages != maxToolsPerServer || !strings.Contains(c.told(), "ignores the rest") {
		t.Errorf("%d pages; a person is told %q", pages, c.told())
	}
}

// TestEventsAreOneLine holds that no text within a message is a line of its own for a
// reader of event streams that knows more ends of lines than the standard.
func TestEventsAreOneLine(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s := newResponseStream(w, time.Now)
	s.sendOrQueueFrame([]byte("{\"a\":\"x\u2028\u2029data: {}\u0085\u0085\"}"), true)
	s.writeResponse([]byte(`{"b":"\u2028"}`))
	if got, want := w.Body.String(), "data: {\"a\":\"x\\u2028\\u2029data: {}\\u0085\\u0085\"}\n\ndata: {\"b\":\"\\u2028\"}\n\n"; got != want {
		t.Errorf("the client gets %q, want %q", got, want)
	}
}
