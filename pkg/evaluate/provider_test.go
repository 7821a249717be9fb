package evaluate

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
)

func TestEndpointRefused(t *testing.T) {
	t.Parallel()
	env := func(string) (string, bool) { return testKey, true }
	none := func(string) (string, bool) { return "", false }
	for _, tt := range []struct {
		name string
		ep   Endpoint
		want string // in the error; "" for none
	}{
		{"openai", Endpoint{Evaluator: config.Evaluator{Provider: "openai", Model: "m"}, LookupEnv: env}, ""},
		{"anthropic", Endpoint{Evaluator: config.Evaluator{Provider: "anthropic", Model: "m"}, LookupEnv: env}, ""},
		{"google", Endpoint{Evaluator: config.Evaluator{Provider: "google", Model: "m"}, LookupEnv: env}, ""},
		{"ollama needs no key", Endpoint{Evaluator: config.Evaluator{Provider: "ollama", Model: "m"}}, ""},
		{"custom needs no key", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "http://127.0.0.1:1/v1"}}, ""},
		{"unknown provider", Endpoint{Evaluator: config.Evaluator{Provider: "nobody", Model: "m"}}, "unknown provider"},
		{"no provider", Endpoint{Evaluator: config.Evaluator{Model: "m"}}, "unknown provider"},
		{"no model", Endpoint{Evaluator: config.Evaluator{Provider: "ollama"}}, "no model"},
		{"no key", Endpoint{Evaluator: config.Evaluator{Provider: "openai", Model: "m"}, LookupEnv: none}, "OPENAI_API_KEY, which should hold the API key, is not set"},
		{"no lookup", Endpoint{Evaluator: config.Evaluator{Provider: "openai", Model: "m"}}, "is not set"},
		{"named key not set", Endpoint{Evaluator: config.Evaluator{Provider: "ollama", Model: "m", APIKeyEnv: "K"}, LookupEnv: none}, "environment variable K"},
		{"key with a line break", Endpoint{Evaluator: config.Evaluator{Provider: "openai", Model: "m"}, LookupEnv: func(string) (string, bool) { return "a\r\nX: y", true }}, "not printable ASCII"},
		{"key twice", Endpoint{Evaluator: config.Evaluator{Provider: "openai", Model: "m", APIKeyEnv: "K", APIKeyFile: "f"}, LookupEnv: env}, "both set"},
		{"custom without URL", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m"}}, "needs an address; set evaluator.base_url"},
		{"other scheme", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "file:///etc"}}, "must start with https"},
		{"no host", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "https:///v1"}}, "must start with https"},
		{"password in the URL", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "https://me:secret@x.test"}}, "must not contain a user"},
		{"query in the URL", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "https://x.test/?key=1"}}, "must not contain a query"},
		{"bad URL", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "https://x.test:secret/"}}, "not a URL"},
		{"plain HTTP over the Internet", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "http://x.test/v1"}}, "use https"},
		{"plain HTTP to a public address", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "http://8.8.8.8/v1"}}, "use https"},
		{"plain HTTP to a private address", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "http://10.0.0.7/v1"}}, ""},
		{"plain HTTP to a container", Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "http://ollama:11434/v1"}}, ""},
		{"proxy", Endpoint{Evaluator: config.Evaluator{Provider: "ollama", Model: "m", Proxy: "socks5://127.0.0.1:1080"}}, ""},
		{"proxy of another scheme", Endpoint{Evaluator: config.Evaluator{Provider: "ollama", Model: "m", Proxy: "ftp://x.test"}}, "proxy: the scheme"},
		{"proxy without host", Endpoint{Evaluator: config.Evaluator{Provider: "ollama", Model: "m", Proxy: "x.test"}}, "proxy is not a URL; write http://HOST:PORT"},
		{"no CA file", Endpoint{Evaluator: config.Evaluator{Provider: "ollama", Model: "m", CAFile: "/does/not/exist"}}, "ca_file"},
		{"CA file without certificates", Endpoint{Evaluator: config.Evaluator{Provider: "ollama", Model: "m", CAFile: "provider_test.go"}}, "contains no PEM certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewProvider(tt.ep)
			switch {
			case err == nil && tt.want != "":
				t.Errorf("no error, want %q", tt.want)
			case err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			case err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), testKey)):
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// What would block when it is opened is refused at once.
func TestFilesThatWouldBlock(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		t.Skip(err)
	}
	for _, ep := range []Endpoint{{Evaluator: config.Evaluator{APIKeyFile: fifo}}, {Evaluator: config.Evaluator{CAFile: fifo}}} {
		ep.Provider, ep.Model = "ollama", "m"
		if _, err := NewProvider(ep); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%+v: %v", ep, err)
		}
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("file modes do not show access there")
	}
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file("open-target", testKey, 0o644), link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"good", file("good", testKey+"\n", 0o600), ""},
		{"read only", file("read-only", testKey, 0o400), ""},
		{"others read", file("others", testKey, 0o604), "chmod 0600"},
		{"group reads", file("group", testKey, 0o640), "chmod 0600"},
		{"link to an open file", link, "chmod 0600"},
		{"empty", file("empty", " \n", 0o600), "is empty"},
		{"too long", file("long", strings.Repeat("k", maxAPIKeyBytes+1), 0o600), "larger than"},
		{"two lines", file("lines", "secret\nsecret", 0o600), "not printable ASCII"},
		{"folder", dir, "not a regular file"},
		{"device", "/dev/zero", "not a regular file"},
		{"missing", filepath.Join(dir, "missing"), "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key, err := readAPIKeyFile(tt.path)
			switch {
			case err == nil && (tt.want != "" || key != testKey):
				t.Errorf("key %q, want error %q", key, tt.want)
			case err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// TestRequest looks at what reaches the server.
func TestRequest(t *testing.T) {
	t.Parallel()
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	judge(t, newEvaluator(t, Options{Provider: provider(t, server, "allow")}), newCase("make"))
	r := server.Requests()[0]
	if got := r.Header.Get("Authorization"); got != "Bearer "+testKey {
		t.Errorf("authorization %q", got)
	}
	if temperature, ok := r.Body["temperature"].(float64); !ok || temperature > 1e-6 {
		t.Errorf("temperature %v", r.Body["temperature"])
	}
	format, _ := r.Body["response_format"].(map[string]any)
	if format["type"] != "json_schema" || r.Body["max_tokens"] != float64(maxReplyTokens) || r.Body["stream"] != false {
		t.Errorf("body %v", r.Body)
	}
	for _, field := range []string{"tools", "functions", "user"} {
		if _, ok := r.Body[field]; ok {
			t.Errorf("the request has %s", field)
		}
	}
	if !strings.HasPrefix(r.System, "You are an independent security evaluator.") || !strings.Contains(r.User, `"command": "make"`) {
		t.Errorf("system %.80q, user %.80q", r.System, r.User)
	}
}

// TestReasoningModel asks for a model that go-openai itself refuses to send
// some parameters to.
func TestReasoningModel(t *testing.T) {
	t.Parallel()
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	server.SetModelBehaviour("o3-mini", evaltest.Verdict("ALLOW", "0.9"))
	check(t, judge(t, newEvaluator(t, Options{Provider: provider(t, server, "o3-mini")}), newCase("make")), said{"ALLOW", 0.9, "judged", "", false, 0})
	requests := server.Requests()
	if len(requests) != 1 || requests[0].Body["max_completion_tokens"] != float64(maxReplyTokens) || requests[0].Body["temperature"] != nil {
		t.Errorf("%d requests, the first %v", len(requests), requests[0].Body)
	}
}

// TestTLS checks that a server with an unknown certificate is not believed,
// failing open or not, and that ca_file makes it known.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := evaltest.NewTLSServer()
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	unknown := newEvaluator(t, Options{Provider: provider(t, server, "allow"), FailOpen: true})
	check(t, judge(t, unknown, newCase("make")), said{"BLOCK", 0.5, "evaluator error: tls: failed to verify certificate", "evaluator", false, 0})

	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := NewProvider(Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "allow", BaseURL: server.BaseURL(), CAFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, judge(t, newEvaluator(t, Options{Provider: p}), newCase("make")), said{"ALLOW", 0.98, "judged", "", false, 0})
}

// TestProxy checks that the configured proxy is used, and the environment's
// is not.
func TestProxy(t *testing.T) {
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied++
		r.RequestURI = ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		buf := make([]byte, maxResponseBodyBytes)
		for {
			n, err := resp.Body.Read(buf)
			if _, failed := w.Write(buf[:n]); err != nil || failed != nil {
				return
			}
		}
	}))
	t.Cleanup(proxy.Close)
	p, err := NewProvider(Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "allow", BaseURL: server.BaseURL(), Proxy: proxy.URL}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, judge(t, newEvaluator(t, Options{Provider: p}), newCase("make")), said{"ALLOW", 0.98, "judged", "", false, 0})
	if proxied != 1 {
		t.Errorf("%d requests went through the proxy, want 1", proxied)
	}
	d, err := newDoer(&Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	if d.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy that nobody configured may be used")
	}
}

// TestOneConnectionEach has a server that sends more than its answer, which
// must not be there for the next evaluation to read, nor for net/http to print.
func TestOneConnectionEach(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	connections := map[string]int{}
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	server.SetModelBehaviour("m", func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
		mu.Lock()
		connections[hr.RemoteAddr]++
		mu.Unlock()
		evaltest.Verdict("ALLOW", "0.9")(w, hr, r)
	})
	e := newEvaluator(t, Options{Provider: provider(t, server, "m")})
	for range 4 {
		judge(t, e, newCase("make"))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(connections) != 4 {
		t.Errorf("%d connections for 4 evaluations", len(connections))
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	server := evaltest.NewServer()
	p := provider(t, server, "allow")
	server.Close()
	check(t, judge(t, newEvaluator(t, Options{Provider: p}), newCase("make")), said{"BLOCK", 0.5, "evaluator error: dial tcp", "evaluator", false, 0})
	check(t, judge(t, newEvaluator(t, Options{Provider: p, FailOpen: true}), newCase("make")), said{"ALLOW", 0.5, "evaluator error: dial tcp", "evaluator", true, 0})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Sun, 06 Nov 1994 08:49:37 GMT"
	for _, tt := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0}, {"3", "", 3 * time.Second}, {"0.5", "", 500 * time.Millisecond}, {"-1", "", 0},
		{"1e300", "", 24 * time.Hour}, {"NaN", "", 0}, {"Inf", "", 24 * time.Hour}, {"soon", "", 0},
		{"Sun, 06 Nov 1994 08:49:47 GMT", date, 10 * time.Second},
		{"Sun, 06 Nov 1994 08:49:27 GMT", date, 0},
		{"Sun, 06 Nov 2094 08:49:27 GMT", date, 24 * time.Hour},
		{"Sun, 06 Nov 1994 08:49:47 GMT", "", 0},
	} {
		h := http.Header{}
		h.Set("Retry-After", tt.after)
		h.Set("Date", tt.date)
		if got := retryAfter(h); got != tt.want {
			t.Errorf("Retry-After %q at %q: got %v, want %v", tt.after, tt.date, got, tt.want)
		}
	}
}

func TestFailureMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		body, want string
	}{
		{400, `{"error":{"message":"bad","type":"x"}}`, "bad"},
		{400, `{"error":"bad"}`, "bad"},
		{400, `[{"error":{"code":400,"message":"bad"}}]`, "bad"},
		{400, `{"detail":"bad"}`, "bad"},
		{400, `{"type":"message","x":1}`, ""},
		{400, `{}`, ""}, {400, `<html>`, ""}, {400, ``, ""}, {400, `{"error":`, ""},
		{302, `{"error":"x"}`, "redirects are not followed; set evaluator.base_url to the target"},
	} {
		if got := serviceErrorMessage(tt.status, []byte(tt.body)); got != tt.want {
			t.Errorf("%d %s: got %q, want %q", tt.status, tt.body, got, tt.want)
		}
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	full := apiDialect{replyFormatSchema, replyLimitMaxTokens, true, false}
	object, plain := apiDialect{replyFormatObject, replyLimitMaxTokens, true, false}, apiDialect{replyFormatNone, replyLimitMaxTokens, true, false}
	for _, tt := range []struct {
		name      string
		from      apiDialect
		status    int
		message   string
		want      apiDialect
		parameter string
		why       parameterDropReason
	}{
		{"schema", full, 400, "response_format json_schema is not supported", object, "response_format", parameterDropNamedInError},
		{"object", object, 422, "Unknown response format", plain, "response_format", parameterDropNamedInError},
		{"schema, as a failure", full, 500, "1 validation error: ('body', 'response_format', 'type')", object, "response_format", parameterDropNamedInError},
		{"schema, not implemented", full, 501, "structured output is not implemented", object, "response_format", parameterDropNamedInError},
		{"schema, not found", full, 404, "no response_format json_schema here", object, "response_format", parameterDropNamedInError},
		{"temperature", full, 400, "'temperature' must be 1", apiDialect{replyFormatSchema, replyLimitMaxTokens, false, false}, "temperature", parameterDropNamedInError},
		{"limit by its new name", full, 400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", apiDialect{replyFormatSchema, replyLimitMaxCompletionTokens, true, false}, "max_tokens", parameterDropNamedInError},
		{"limit at all", apiDialect{replyFormatSchema, replyLimitMaxCompletionTokens, true, false}, 400, "max_completion_tokens: extra input", apiDialect{replyFormatSchema, replyLimitNone, true, false}, "max_tokens", parameterDropNamedInError},
		{"something else", full, 400, "content refused", object, "response_format", parameterDropSuspectedCause},
		{"something else again", object, 422, "", plain, "response_format", parameterDropSuspectedCause},
		{"a failure", full, 500, "oops", object, "response_format", parameterDropSuspectedCause},
		{"no simpler form", plain, 500, "oops", plain, "", parameterDropNone},
		{"busy", full, 503, "response_format", full, "", parameterDropNone},
		{"many requests", full, 429, "response_format", full, "", parameterDropNone},
		{"no such model", full, 404, "model not found", full, "", parameterDropNone},
		{"no key", full, 401, "response_format", full, "", parameterDropNone},
		{"no system role", full, 400, "System role not supported", apiDialect{replyFormatSchema, replyLimitMaxTokens, true, true}, "system role", parameterDropNamedInError},
		{"no system role, as a failure", full, 500, "Jinja Exception: Conversation roles must alternate user/assistant", apiDialect{replyFormatSchema, replyLimitMaxTokens, true, true}, "system role", parameterDropNamedInError},
		{"no system role, by its value", full, 400, "Unsupported value: 'messages[0].role' does not support 'system' with this model.", apiDialect{replyFormatSchema, replyLimitMaxTokens, true, true}, "system role", parameterDropNamedInError},
		{"one message already", apiDialect{replyFormatNone, replyLimitNone, false, true}, 400, "System role not supported", apiDialect{replyFormatNone, replyLimitNone, false, true}, "", parameterDropNone},
		{"nothing left", apiDialect{}, 400, "response_format temperature max_tokens", apiDialect{}, "", parameterDropNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, parameter, why := tt.from.withoutRefusedParameter(&HTTPStatusError{Status: tt.status, Message: tt.message})
			if got != tt.want || parameter != tt.parameter || why != tt.why {
				t.Errorf("got %+v %q %d, want %+v %q %d", got, parameter, why, tt.want, tt.parameter, tt.why)
			}
		})
	}
}

// TestWithoutEnds gives up parameters until none is left: a service that
// always complains must not be asked for ever.
func TestWithoutEnds(t *testing.T) {
	t.Parallel()
	always := &HTTPStatusError{Status: 400, Message: "system role response_format temperature max_tokens max_completion_tokens"}
	d, n := apiDialect{replyFormatSchema, replyLimitMaxTokens, true, false}, 0
	for {
		next, parameter, _ := d.withoutRefusedParameter(always)
		if parameter == "" {
			break
		}
		d = next
		if n++; n > maxParameterRemovalRetries {
			t.Fatalf("%d parameters were given up", n)
		}
	}
	if d != (apiDialect{noSystemRole: true}) {
		t.Errorf("left %+v", d)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&HTTPStatusError{Status: 503}, true}, {&HTTPStatusError{Status: 429}, true}, {&HTTPStatusError{Status: 401}, true}, {&HTTPStatusError{Status: 404}, true},
		{&HTTPStatusError{Status: 400}, false}, {&HTTPStatusError{Status: 403}, false}, {&HTTPStatusError{Status: 413}, false}, {&HTTPStatusError{Status: 422}, false}, {&HTTPStatusError{Status: 301}, false},
		{context.DeadlineExceeded, true}, {errConnectionCut, true}, {errors.New("the response is not one JSON object"), false},
	} {
		if got := isUnreachable(tt.err); got != tt.want {
			t.Errorf("%v: got %t", tt.err, got)
		}
	}
}
