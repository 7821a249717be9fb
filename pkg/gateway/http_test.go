package gateway

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/bearer"
)

// A fakeRemote is a server over HTTP that keeps what it was asked.
type fakeRemote struct {
	*httptest.Server
	answer func(w http.ResponseWriter, req *http.Request, m *message) bool // false for the usual answer

	mu      sync.Mutex
	headers []http.Header
	bodies  []string
}

func newFakeRemote(t testing.TB, answer func(http.ResponseWriter, *http.Request, *message) bool) *fakeRemote {
	f := &fakeRemote{answer: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		raw, _ := io.ReadAll(req.Body)
		f.mu.Lock()
		f.headers = append(f.headers, req.Header)
		f.bodies = append(f.bodies, string(raw))
		f.mu.Unlock()
		var m *message
		if req.Method == http.MethodPost {
			var err error
			if m, err = parseMessage(raw); err != nil {
				t.Errorf("the server is told %q: %v", raw, err)
				return
			}
		}
		if f.answer != nil && f.answer(w, req, m) {
			return
		}
		if m == nil || !m.isRequest() {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch m.method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "abc")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"t","version":"1"}}}`, m.id)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, m.id, echoTool)
		case "tools/call":
			fmt.Fprintf(w, "{\"jsonrpc\":\"2.0\",\n\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}", m.id)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.id)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// told returns how many messages of a method the server was told.
func (f *fakeRemote) told(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.bodies {
		if strings.Contains(b, `"`+method+`"`) {
			n++
		}
	}
	return n
}

// front returns the address of a server behind a front.
func front(t testing.TB, url string, change func(*HTTPFrontEnd, *Options)) string {
	opts := Options{Judge: &fakeJudge{}, Server: Server{Name: "s"}, ResultFindingsMode: FindingsModeReportOnly, AcceptedToolPins: openTestPins(t, t.TempDir(), "s")}
	f := &HTTPFrontEnd{IsAllowedHost: IsLoopbackHost, Clock: time.Now}
	if change != nil {
		change(f, &opts)
	}
	e := NewEndpointForHTTPServer(opts, url, "the-servers-own-token")
	f.Servers = map[string]*MCPServerEndpoint{"s": e}
	s := httptest.NewServer(f)
	t.Cleanup(func() {
		s.Close()
		e.Close()
	})
	return s.URL + "/s"
}

// post sends a message and returns what comes back. Headers are NAME: VALUE; the
// name Host sets the host.
func post(t testing.TB, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case name == "Host":
			req.Host = value
		case name == "Content-Type":
			req.Header.Set(name, value)
		default:
			req.Header.Add(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(out)
}

const (
	helloFrame = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`
	listFrame  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	callFrame  = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`
	evilFrame  = `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"message":"evil"}}}`
)

// tokensOf returns the tokens of clients: "a-token-of-clients" and their name.
func tokensOf(names ...string) bearer.Tokens {
	out := bearer.Tokens{}
	for _, name := range names {
		out[sha256.Sum256([]byte("a-token-of-clients"+name))] = name
	}
	return out
}

// TestFrontRefuses goes through requests that no server may see.
func TestFrontRefuses(t *testing.T) {
	t.Parallel()
	remote := newFakeRemote(t, nil)
	url := front(t, remote.URL, func(f *HTTPFrontEnd, _ *Options) { f.Tokens = tokensOf("") })
	auth := "Authorization: Bearer a-token-of-clients"
	for _, one := range []struct {
		name, url, body string
		status          int
		headers         []string
	}{
		{"another host", url, listFrame, 403, []string{auth, "Host: evil.example"}},
		{"another host with the port", url, listFrame, 403, []string{auth, "Host: evil.example:80"}},
		{"a host that begins well", url, listFrame, 403, []string{auth, "Host: localhost.evil.example"}},
		{"a page of another place", url, listFrame, 403, []string{auth, "Origin: https://evil.example"}},
		{"a page of nowhere", url, listFrame, 403, []string{auth, "Origin: null"}},
		{"two pages", url, listFrame, 403, []string{auth, "Origin: http://localhost", "Origin: https://evil.example"}},
		{"no token", url, listFrame, 401, nil},
		{"a wrong token", url, listFrame, 401, []string{"Authorization: Bearer a-token-of-client"}},
		{"two tokens", url, listFrame, 401, []string{auth, "Authorization: Bearer x"}},
		{"a token of another kind", url, listFrame, 401, []string{"Authorization: Basic a-token-of-clients"}},
		{"no such server", url + "x", listFrame, 404, []string{auth}},
		{"a query", url + "?a=b", listFrame, 404, []string{auth}},
		{"text", url, listFrame, 415, []string{auth, "Content-Type: text/plain"}},
		{"a form, which pages may send", url, listFrame, 415, []string{auth, "Content-Type: application/x-www-form-urlencoded"}},
		{"another encoding", url, listFrame, 415, []string{auth, "Content-Type: application/json; charset=utf-16"}},
		{"compressed", url, listFrame, 415, []string{auth, "Content-Encoding: gzip"}},
		{"not JSON", url, `{`, 400, []string{auth}},
		{"a batch", url, "[" + listFrame + "]", 400, []string{auth}},
		{"a batch behind a line", url, "\n[" + listFrame + "]", 400, []string{auth}},
		{"a key twice", url, `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, 400, []string{auth}},
		{"a key in two cases", url, `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, 400, []string{auth}},
		{"too deep", url, `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 201), 400, []string{auth}},
		{"too long", url, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", maxRequestBodyBytes) + `"}}`, 413, []string{auth}},
		{"another method in the header", url, callFrame, 400, []string{auth, "Mcp-Method: tools/list"}},
		{"another name in the header", url, callFrame, 400, []string{auth, "Mcp-Name: ech"}},
		{"an encoded other name", url, callFrame, 400, []string{auth, "Mcp-Name: =?base64?ZXZpbA==?="}},
		{"a name for what has none", url, listFrame, 400, []string{auth, "Mcp-Name: echo"}},
		{"two methods", url, callFrame, 400, []string{auth, "Mcp-Method: tools/call", "Mcp-Method: tools/list"}},
		{"two sessions", url, callFrame, 400, []string{auth, "Mcp-Session-Id: a", "Mcp-Session-Id: b"}},
		{"another version", url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, 400, []string{auth, "Mcp-Protocol-Version: 2025-11-25"}},
		{"an unknown session", url, callFrame, 404, []string{auth, "Mcp-Session-Id: guessed"}},
	} {
		resp, body := post(t, one.url, one.body, one.headers...)
		if resp.StatusCode != one.status || !strings.Contains(body, `"error"`) {
			t.Errorf("%s: status %d, %.200s", one.name, resp.StatusCode, body)
		}
	}
	if n := len(remote.bodies); n > 0 {
		t.Errorf("the server is told %q", remote.bodies)
	}
	for _, method := range []string{http.MethodPut, http.MethodOptions, http.MethodGet, http.MethodDelete} {
		req, _ := http.NewRequest(method, url, nil)
		req.Header.Set("Authorization", "Bearer a-token-of-clients")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode < 400 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: status %d", method, resp.StatusCode)
		}
	}
}

// TestRemoteIsJudged holds that calls are judged with and without a session, that
// what was judged is sent as it came, and that the client's credentials stay here.
func TestRemoteIsJudged(t *testing.T) {
	t.Parallel()
	for _, session := range []bool{true, false} {
		remote := newFakeRemote(t, nil)
		url := front(t, remote.URL, func(f *HTTPFrontEnd, _ *Options) { f.Tokens = tokensOf("") })
		headers := []string{"Authorization: Bearer a-token-of-clients", "Cookie: a=b", "X-Api-Key: k", "Mcp-Method: tools/call", "Mcp-Name: echo", "Mcp-Param-X: y"}
		if session {
			resp, _ := post(t, url, helloFrame, headers[0])
			if resp.Header.Get("Mcp-Session-Id") != "abc" {
				t.Fatalf("the session is %q", resp.Header.Get("Mcp-Session-Id"))
			}
			headers = append(headers, "Mcp-Session-Id: abc")
		}
		if resp, body := post(t, url, callFrame, headers...); resp.StatusCode != 200 || !strings.Contains(body, "done") {
			t.Errorf("an allowed call: status %d, %s", resp.StatusCode, body)
		}
		if resp, body := post(t, url, evilFrame, headers...); resp.StatusCode != 200 || !strings.Contains(body, "it is evil") || !strings.Contains(body, `"isError":true`) {
			t.Errorf("a blocked call: status %d, %s", resp.StatusCode, body)
		}
		if n := remote.told("tools/call"); n != 1 {
			t.Errorf("the server is called %d times", n)
		}
		if n := remote.told("tools/list"); n != 1 {
			t.Errorf("the server is asked for its tools %d times", n)
		}
		if last := remote.bodies[len(remote.bodies)-1]; last != callFrame {
			t.Errorf("the server gets %q", last)
		}
		for _, h := range remote.headers {
			if h.Get("Authorization") != "Bearer the-servers-own-token" || h.Get("Cookie") != "" || h.Get("X-Api-Key") != "" || h.Get("Mcp-Param-X") != "" {
				t.Errorf("the server gets the headers %v", h)
			}
		}
	}
}

// TestRemoteStreams holds that an event comes through while the next one is not
// there yet, and that what the server asks of the client is judged.
func TestRemoteStreams(t *testing.T) {
	t.Parallel()
	goOn := make(chan bool)
	refused := make(chan string, 1)
	remote := newFakeRemote(t, func(w http.ResponseWriter, req *http.Request, m *message) bool {
		if m != nil && m.method == "" {
			refused <- string(m.raw)
			return false
		}
		if m == nil || m.method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": a comment\n\nid: 7\r\nretry: 10\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\r\ndata: \"params\":{\"level\":\"info\",\"data\":\"first\"}}\n\n")
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sampling/createMessage\",\"params\":{}}\n\n")
		w.(http.Flusher).Flush()
		<-goOn
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.id)
		return true
	})
	url := front(t, remote.URL, nil)
	post(t, url, helloFrame)
	req, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(callFrame))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Mcp-Session-Id", "abc")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	var lines []string
	for in.Scan() {
		lines = append(lines, in.Text())
		if strings.Contains(in.Text(), "first") {
			if answer := <-refused; !strings.Contains(answer, "refused by shield") {
				t.Errorf("the server is answered %s", answer)
			}
			close(goOn)
		}
	}
	all := strings.Join(lines, "\n")
	if !strings.Contains(all, "id: 7\nretry: 10\ndata: {") || !strings.Contains(all, `"result":{"content":[]}`) || strings.Contains(all, "sampling") {
		t.Errorf("the client gets %s", all)
	}
}

// TestHostileRemotes goes through answers that no good server gives: the client
// gets an error for its request, and soon.
func TestHostileRemotes(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, id []byte){
		"a redirect": func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(307)
		},
		"a demand for the client's credentials": func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(401)
		},
		"a page":         func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, "<html>") },
		"nothing":        func(w http.ResponseWriter, _ []byte) { w.WriteHeader(202) },
		"no JSON":        func(w http.ResponseWriter, _ []byte) { jsonAnswer(w, "{") },
		"another answer": func(w http.ResponseWriter, _ []byte) { jsonAnswer(w, `{"jsonrpc":"2.0","id":99,"result":{}}`) },
		"a request":      func(w http.ResponseWriter, id []byte) { jsonAnswer(w, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id) },
		"a key twice": func(w http.ResponseWriter, id []byte) {
			jsonAnswer(w, `{"jsonrpc":"2.0","id":%s,"result":{"a":1,"a":2}}`, id)
		},
		"a giant": func(w http.ResponseWriter, id []byte) {
			jsonAnswer(w, `{"jsonrpc":"2.0","id":%s,"result":{"a":"`+strings.Repeat("x", maxFrameBytes)+`"}}`, id)
		},
		"an empty stream": func(w http.ResponseWriter, _ []byte) { streamAnswer(w, "") },
		"a cut event": func(w http.ResponseWriter, id []byte) {
			streamAnswer(w, `data: {"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		},
		"another's event": func(w http.ResponseWriter, _ []byte) {
			streamAnswer(w, "data: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n")
		},
		"an endless line": func(w http.ResponseWriter, _ []byte) {
			streamAnswer(w, "data: ")
			for range maxFrameBytes/(1<<16) + 2 {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
			}
		},
		"many requests": func(w http.ResponseWriter, _ []byte) {
			streamAnswer(w, "")
			for i := range 2 * maxDroppedFrames {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"evil/do\"}\n\n", i)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := newFakeRemote(t, func(w http.ResponseWriter, _ *http.Request, m *message) bool {
				if m == nil || m.method != "tools/call" {
					return false
				}
				answer(w, m.id)
				return true
			})
			url := front(t, remote.URL, nil)
			resp, body := post(t, url, callFrame)
			if !strings.Contains(body, `"id":3`) || !strings.Contains(body, "shield: ") || resp.Header.Get("WWW-Authenticate") != "" || resp.StatusCode == 401 {
				t.Errorf("status %d, %.300s", resp.StatusCode, body)
			}
			if _, body := post(t, url, listFrame); !strings.Contains(body, "echo") {
				t.Errorf("afterwards: %.300s", body)
			}
		})
	}
}

func jsonAnswer(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, format, args...)
}

func streamAnswer(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, format, args...)
}

// TestParamHeaders holds that headers that repeat arguments are forwarded only if
// they do.
func TestParamHeaders(t *testing.T) {
	t.Parallel()
	var got http.Header
	remote := newFakeRemote(t, func(w http.ResponseWriter, req *http.Request, m *message) bool {
		switch {
		case m != nil && m.method == "tools/list":
			jsonAnswer(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"message":{"type":"string","x-mcp-header":"Text"},"n":{"type":"integer","x-mcp-header":"N"}}}}]}}`, m.id)
			return true
		case m != nil && m.method == "tools/call":
			got = req.Header
		}
		return false
	})
	url := front(t, remote.URL, nil)
	if resp, body := post(t, url, callFrame, "Mcp-Param-Text: hi", "Mcp-Param-Else: x"); resp.StatusCode != 200 || got.Get("Mcp-Param-Text") != "hi" || got.Get("Mcp-Param-Else") != "" {
		t.Errorf("status %d, %s, %v", resp.StatusCode, body, got)
	}
	for _, h := range []string{"Mcp-Param-Text: ho", "Mcp-Param-Text: =?base64?aG8=?=", "Mcp-Param-Text: =?base64?!?=", "Mcp-Param-N: 1"} {
		if resp, body := post(t, url, callFrame, h); resp.StatusCode != 400 || !strings.Contains(body, "-32020") {
			t.Errorf("%s: status %d, %s", h, resp.StatusCode, body)
		}
	}
	if n := remote.told("tools/call"); n != 1 {
		t.Errorf("the server is called %d times", n)
	}
}

// TestManySessions holds that of too many sessions those that rest are forgotten.
func TestManySessions(t *testing.T) {
	t.Parallel()
	e := NewEndpointForHTTPServer(Options{}, "http://127.0.0.1:1", "")
	for i := range maxSessionsPerHTTPServer + 10 {
		if !e.tryStoreSession(&session{id: fmt.Sprint(i), gateway: e.gatewayFor("", false)}) {
			t.Fatal("a session is refused")
		}
	}
	if e.sessions["0"] != nil || e.sessions["20"] == nil || len(e.sessions) != maxSessionsPerHTTPServer {
		t.Errorf("%d sessions are kept, or the wrong ones", len(e.sessions))
	}
	if e.tryStoreSession(&session{id: "20"}) {
		t.Error("an ID is given out twice")
	}
}

// BenchmarkServe is an allowed call over HTTP that nothing but a fake judges: with a
// client, a server and the front, and the same without the front.
func BenchmarkServe(b *testing.B) {
	remote := newFakeRemote(b, nil)
	for name, url := range map[string]string{"direct": remote.URL, "through": front(b, remote.URL, nil)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				post(b, url, callFrame)
			}
		})
	}
}
