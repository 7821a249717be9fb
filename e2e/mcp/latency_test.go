package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A caller calls a tool, and returns when it has the answer.
type caller func(b *testing.B, id int)

const (
	hello  = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}}`
	ready  = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	tools  = `{"jsonrpc":"2.0","id":"tools","method":"tools/list"}`
	called = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"abc%d"}}}`
)

// demand fails unless an answer is that of an allowed call.
func demand(b *testing.B, answer []byte) {
	if !bytes.Contains(answer, []byte(`"size":`)) {
		b.Errorf("the answer is %.300s", answer)
	}
}

// stdioCaller starts a server, or what is before one, on standard input and output.
func stdioCaller(b *testing.B, c *exec.Cmd) caller {
	to, from := piped(b, c, c.StdoutPipe)
	say := func(frame string, answered bool) []byte {
		if _, err := io.WriteString(to, frame+"\n"); err != nil {
			b.Fatal(err)
		}
		if !answered {
			return nil
		}
		line, err := from.ReadBytes('\n')
		if err != nil {
			b.Fatal(err)
		}
		return line
	}
	say(hello, true)
	say(ready, false)
	say(tools, true)
	return func(b *testing.B, id int) { demand(b, say(fmt.Sprintf(called, id, id%100), true)) }
}

// httpCaller calls a server over HTTP.
func httpCaller(b *testing.B, url string) caller {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	session := ""
	say := func(frame string) []byte {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(frame))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := client.Do(req)
		if err != nil {
			b.Error(err)
			return nil
		}
		defer resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" && session == "" {
			session = id
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			b.Error(err)
		}
		return answer
	}
	say(hello)
	say(ready)
	say(tools)
	return func(b *testing.B, id int) { demand(b, say(fmt.Sprintf(called, id, id%100))) }
}

// overHTTP returns a server as it is called over HTTP, directly and through shield.
func overHTTP(b *testing.B, server http.Handler) (directly, through caller) {
	s := httptest.NewServer(server)
	b.Cleanup(s.Close)
	urls, command := serveHTTP(b, "", fmt.Sprintf("    - {name: s, url: %q}\n", s.URL))
	through = httpCaller(b, urls["s"])
	if out, err := command("tools", "accept", "--as", "read_file", "s", "read_file").Output(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return httpCaller(b, s.URL), through
}

// light is a server that takes hardly any time itself, since it shares the processors
// with the gateway before it.
func light(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{"content":[{"type":"text","text":"read"}],"structuredContent":{"size":3}}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"light","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"read_file","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// callers returns a server of the Go SDK as it is called directly and through shield.
func callers(b *testing.B, transport string) (directly, through caller) {
	if transport == "http" {
		return overHTTP(b, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer() }, &mcp.StreamableHTTPOptions{JSONResponse: true}))
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), "SHIELD_TEST_CHILD=server")
	c := shield(b)
	c.Args = append(c.Args, "mcp", "--policy", "permissive", "--", "env", "SHIELD_TEST_CHILD=server", self, "mcp-server-filesystem", ".")
	c.Env = append(c.Env, "HOME="+b.TempDir(), "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
	c.Dir = b.TempDir()
	return stdioCaller(b, server), stdioCaller(b, c)
}

// BenchmarkAdded is how much longer an allowed call takes through shield, with model,
// log and state, beside the same call without it, each in turn.
func BenchmarkAdded(b *testing.B) {
	for _, transport := range []string{"stdio", "http"} {
		b.Run(transport, func(b *testing.B) {
			directly, through := callers(b, transport)
			var without, with []time.Duration
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				directly(b, i)
				between := time.Now()
				through(b, i)
				without, with = append(without, between.Sub(start)), append(with, time.Since(between))
			}
			slices.Sort(without)
			slices.Sort(with)
			at := func(part int) float64 {
				i := len(with) * part / 100
				return float64(with[i]-without[i]) / float64(time.Millisecond)
			}
			b.ReportMetric(at(50), "ms-median-added")
			b.ReportMetric(at(99), "ms-p99-added")
		})
	}
}

// BenchmarkLoad is how many allowed calls of eight clients at a time go through one
// gateway in a second, over HTTP.
func BenchmarkLoad(b *testing.B) {
	_, through := overHTTP(b, http.HandlerFunc(light))
	var id atomic.Int64
	b.SetParallelism(4)
	start := time.Now()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			through(b, int(id.Add(1)))
		}
	})
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "calls/s")
}
