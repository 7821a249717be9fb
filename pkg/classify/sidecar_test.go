package classify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// healthy serves /health, and answer at /classify.
func healthy(answer http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /classify", answer)
	return mux
}

// says returns a handler that answers with a body as JSON.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// sidecar returns a client of a server on this machine.
func sidecar(t *testing.T, h http.Handler, opts SidecarOptions) *SidecarClient {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	s, err := NewSidecarClient(srv.URL, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSidecarAsks(t *testing.T) {
	t.Parallel()
	var health, asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /base/health", func(http.ResponseWriter, *http.Request) { health.Add(1) })
	mux.HandleFunc("POST /base/classify", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if n := len(r.Header["Idempotency-Key"]); n != 0 {
			t.Errorf("an empty header was sent %d times", n)
		}
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in) != 1 {
			t.Errorf("question %v, error %v", in, err)
		}
		if in["text"] == `execute_command: {"command":"x"}` {
			says(`{"label":"INJECTION","confidence":0.97}`)(w, r)
			return
		}
		says(`{"label":"SAFE","confidence":1}`)(w, r)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	s, err := NewSidecarClient(srv.URL+"/base/", SidecarOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]InjectionScore{
		`execute_command: {"command":"x"}`: {true, 0.97},
		"other: {\"a\":\"\\\"\u2028<>\"}":  {false, 1},
	} {
		if got, err := s.Score(t.Context(), text); got != want || err != nil {
			t.Errorf("%q: %v, error %v, want %v", text, got, err, want)
		}
	}
	if health.Load() != 1 || asked.Load() != 2 {
		t.Errorf("asked for health %d times and for an answer %d times, want 1 and 2", health.Load(), asked.Load())
	}
	k := New(Options{Model: s})
	v, err := k.Judge(t.Context(), command(unknownProgram("frobnicate")))
	if err != nil || v.Decision != verdict.Block || v.Confidence != 0.97 {
		t.Errorf("%v %v, error %v; want BLOCK 0.97", v.Decision, v.Confidence, err)
	}
}

// TestSidecarFailsClosed enters every way in which an answer can be wrong.
func TestSidecarFailsClosed(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"label":"SAFE","confidence":1}`)
		}
	}
	as := func(contentType string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, `{"label":"SAFE","confidence":1}`)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"empty":                 says(""),
		"not JSON":              says("SAFE"),
		"a list":                says(`[{"label":"SAFE","confidence":1}]`),
		"null":                  says("null"),
		"no label":              says(`{"confidence":1}`),
		"no confidence":         says(`{"label":"SAFE"}`),
		"null label":            says(`{"label":null,"confidence":1}`),
		"null confidence":       says(`{"label":"SAFE","confidence":null}`),
		"unknown label":         says(`{"label":"LABEL_0","confidence":1}`),
		"label in lower case":   says(`{"label":"safe","confidence":1}`),
		"padded label":          says(`{"label":"SAFE ","confidence":1}`),
		"label is a number":     says(`{"label":0,"confidence":1}`),
		"names in other case":   says(`{"Label":"SAFE","Confidence":1}`),
		"confidence is text":    says(`{"label":"SAFE","confidence":"1"}`),
		"confidence over 1":     says(`{"label":"SAFE","confidence":1.01}`),
		"confidence in percent": says(`{"label":"INJECTION","confidence":97}`),
		"negative confidence":   says(`{"label":"SAFE","confidence":-0.1}`),
		"NaN":                   says(`{"label":"SAFE","confidence":NaN}`),
		"overflow":              says(`{"label":"SAFE","confidence":1e999}`),
		"a name twice":          says(`{"label":"INJECTION","confidence":1,"label":"SAFE"}`),
		"an error beside it":    says(`{"label":"SAFE","confidence":1,"error":"model not loaded"}`),
		"two objects":           says(`{"label":"SAFE","confidence":1}{"label":"SAFE","confidence":1}`),
		"trailing text":         says(`{"label":"SAFE","confidence":1} x`),
		"cut off":               says(`{"label":"SAFE","confidence":1`),
		"invalid UTF-8":         says("{\"label\":\"SAFE\",\"confidence\":1,\"\xff\":1}"),
		"too long":              says(`{"label":"SAFE","confidence":1}` + strings.Repeat(" ", maxSidecarAnswerBytes)),
		"no type":               as(""),
		"text/plain":            as("text/plain"),
		"text/html":             as("text/html; charset=utf-8"),
		"problem":               as("application/problem+json"),
		"status 500":            status(500),
		"status 404":            status(404),
		"status 204":            status(204),
		"status 201":            status(201),
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		},
		"header without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 64<<10))
			says(`{"label":"SAFE","confidence":1}`)(w, nil)
		},
		"connection cut": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"cut in the body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"label":"SAFE","confidence":1}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.Handle("/", healthy(answer))
			mux.Handle("/elsewhere", says(`{"label":"SAFE","confidence":1}`))
			s := sidecar(t, mux, SidecarOptions{})
			if got, err := s.Score(t.Context(), "x"); err == nil {
				t.Fatalf("%v, want an error", got)
			}
			for open, want := range map[bool]verdict.Decision{false: verdict.Block, true: verdict.Escalate} {
				v, err := New(Options{Model: s, FailOpen: open}).Judge(t.Context(), command(run("frobnicate")))
				if err != nil || v.Decision != want || v.ErrorCode != classifierErrorCode || v.Confidence > 0.5 {
					t.Errorf("fail open %v: %v %v %q, error %v; want %v", open, v.Decision, v.Confidence, v.ErrorCode, err, want)
				}
				if len(v.Reasoning) > 400 || strings.ContainsAny(v.Reasoning, "\x00\x1b\n") {
					t.Errorf("reasoning %q", v.Reasoning)
				}
			}
		})
	}
}

func TestSidecarHealth(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /classify", says(`{"label":"SAFE","confidence":1}`))
	s := sidecar(t, mux, SidecarOptions{})
	if _, err := s.Score(t.Context(), "x"); err == nil {
		t.Error("asked a sidecar that is not ready")
	}
	ready.Store(true)
	if _, err := s.Score(t.Context(), "x"); err != nil {
		t.Errorf("a sidecar that became ready: %v", err)
	}
}

func TestSidecarTime(t *testing.T) {
	t.Parallel()
	silent := healthy(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see the connection end
		<-r.Context().Done()
	})
	s := sidecar(t, silent, SidecarOptions{TimeoutPerText: 50 * time.Millisecond})
	if _, err := s.Score(t.Context(), "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a sidecar that does not answer: %v", err)
	}
	s = sidecar(t, silent, SidecarOptions{TimeoutPerText: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.Score(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that was cancelled: %v", err)
	}
}

func TestSidecarTextTooLong(t *testing.T) {
	t.Parallel()
	s := sidecar(t, healthy(says(`{"label":"SAFE","confidence":1}`)), SidecarOptions{})
	if _, err := s.Score(t.Context(), strings.Repeat("x", maxSidecarTextBytes)); err != nil {
		t.Errorf("the longest text: %v", err)
	}
	if _, err := s.Score(t.Context(), strings.Repeat("x", maxSidecarTextBytes+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("one byte more: %v, want ErrTooLong", err)
	}
	c := command(run("frobnicate"))
	c.Action.Payload["command"] = strings.Repeat("x", maxSidecarTextBytes)
	v, err := New(Options{Model: s}).Judge(t.Context(), c)
	if err != nil || v.Decision != verdict.Escalate || v.ErrorCode != "" || !strings.HasPrefix(v.Reasoning, "unexamined") {
		t.Errorf("%v %q %q, error %v; want ESCALATE unexamined", v.Decision, v.ErrorCode, v.Reasoning, err)
	}
}

// TestSidecarConnections holds that goroutines share connections, of which few
// stay open, and that one that the sidecar closed costs no action.
func TestSidecarConnections(t *testing.T) {
	t.Parallel()
	var open, opened atomic.Int32
	srv := httptest.NewUnstartedServer(healthy(says(`{"label":"SAFE","confidence":1}`)))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
			opened.Add(1)
		case http.StateClosed:
			open.Add(-1)
		default:
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	s, err := NewSidecarClient(srv.URL, SidecarOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := s.Score(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for texts one after the other, want 1", n)
	}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if _, err := s.Score(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for deadline := time.Now().Add(10 * time.Second); open.Load() > maxSidecarIdleConns; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections stay open, want at most %d", open.Load(), maxSidecarIdleConns)
		}
	}
	for range 5 {
		srv.CloseClientConnections()
		if _, err := s.Score(t.Context(), "x"); err != nil {
			t.Errorf("after the sidecar closed its connections: %v", err)
		}
	}
}

func TestSidecarAddresses(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"https://classifier.example", "https://classifier.example:8443/v1", "http://127.0.0.1:8000", "http://[::1]:8000/", "http://127.9.9.9",
		"http://localhost:1", "http://LOCALHOST.:1", "http://model.localhost", "unix:/run/user/1/c.sock", "unix:///run/c.sock", "/run/c.sock",
	} {
		if _, err := NewSidecarClient(addr, SidecarOptions{}); err != nil {
			t.Errorf("%q: %v", addr, err)
		}
	}
	for _, addr := range []string{
		"", "classifier", "classifier:8000", "127.0.0.1:8000", "ftp://127.0.0.1", "http://", "https:///x", "http://:8000",
		"http://10.0.0.1", "http://classifier.example", "http://0.0.0.0:80", "http://[::]:80", "http://localhost.example", "http://127.0.0.1.example",
		"https://user:hunter2@classifier.example", "https://classifier.example/?key=hunter2", "https://classifier.example/#hunter2", "https://hunter2 x/",
		"unix:", "unix:c.sock", "unix://host/c.sock", "unix:@c", "unix:/a\x00b", "//host/share", "file:///etc/passwd", "\x00",
	} {
		if _, err := NewSidecarClient(addr, SidecarOptions{}); err == nil {
			t.Errorf("%q: accepted", addr)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the message shows a secret: %v", addr, err)
		}
	}
}

// TestSidecarIgnoresProxies: were the environment's proxy used, the question
// would not reach the server. Not parallel: it sets the environment.
func TestSidecarIgnoresProxies(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "none.example")
	s := sidecar(t, healthy(says(`{"label":"SAFE","confidence":1}`)), SidecarOptions{})
	if proxy := s.client.Transport.(*http.Transport).Proxy; proxy != nil {
		t.Error("a proxy is configured")
	}
	if _, err := s.Score(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

// FuzzSidecarAnswer holds that an answer is a score within bounds or an error.
func FuzzSidecarAnswer(f *testing.F) {
	f.Add("application/json", []byte(`{"label":"SAFE","confidence":1}`))
	f.Add("application/json; charset=utf-8", []byte(`{"label":"INJECTION","confidence":0}`))
	f.Add("text/html", []byte(`<html>`))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		s, err := readAnswer(contentType, body)
		if err != nil {
			if s != (InjectionScore{}) {
				t.Errorf("%v beside error %v", s, err)
			}
			return
		}
		if !(s.LabelConfidence >= 0 && s.LabelConfidence <= 1) {
			t.Errorf("%v", s)
		}
		label := "SAFE"
		if s.HasInjectionLabel {
			label = "INJECTION"
		}
		if !strings.Contains(string(body), label) && !strings.Contains(string(body), `\u`) {
			t.Errorf("%q read as %s", body, label)
		}
	})
}

func BenchmarkSidecar(b *testing.B) {
	srv := httptest.NewServer(healthy(says(`{"label":"SAFE","confidence":1}`)))
	b.Cleanup(srv.Close)
	s, err := NewSidecarClient(srv.URL, SidecarOptions{})
	if err != nil {
		b.Fatal(err)
	}
	text := "execute_command: " + strings.Repeat("x", 200)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Score(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}
