package service

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/internal/servetest"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

const token = "0123456789abcdef0123456789abcdef"

func written(t testing.TB) (config.JudgingService, *x509.CertPool) {
	t.Helper()
	cert, key, tokens, roots := servetest.WriteTLSAndTokenFiles(t, token, time.Now())
	return config.JudgingService{TLSCert: cert, TLSKey: key, TokensFile: tokens}, roots
}

// A running is a service that listens at an address of this machine.
type running struct {
	web    *HTTPSService
	url    string
	serve  config.JudgingService
	client *http.Client
	end    func()
}

// listening returns a service that judges with rules alone.
func listening(t testing.TB) *running {
	t.Helper()
	files, roots := written(t)
	pool := &shield.PipelinePool{}
	t.Cleanup(pool.Clear)
	settings := shield.Defaults()
	cfg := shield.Config{Settings: &settings, Home: "/home/me", WorkspaceRoots: []string{"/home/me/app"}, IgnoresFileSystem: true, StateDir: filepath.Join(t.TempDir(), "state")}
	web := NewHTTPSService(HTTPSServiceOptions{
		Judge: func(ctx context.Context, client string, actions io.Reader, out func(*verdict.Verdict, bool) error) error {
			cfg := cfg
			cfg.Caller = audit.Caller{ShieldSubcommand: "serve", User: client}
			p, done, err := pool.Lend(cfg)
			if err != nil {
				return errors.Join(ErrNotReady, err)
			}
			defer done()
			return p.JudgeStream(ctx, shield.NewActionSource(actions, "body", 1<<12), func(j *shield.InputRecordResult) error { return out(&j.Verdict, j.IsNextResultReady) },
				shield.StreamOptions{Tiers: shield.AllTiers, Jobs: 2})
		},
		ServiceStatusForJSON: func() any { return map[string]int{"asked": 1} }, Metrics: NewMetrics(), Clock: time.Now,
	})
	if err := web.LoadCertificateAndTokens(files); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- web.Serve(ctx, l) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 200}
	r := &running{web, "https://" + l.Addr().String(), files, &http.Client{Transport: transport}, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(func() { transport.CloseIdleConnections(); r.end() })
	return r
}

// do sends a request with a token, and returns status and body.
func (r *running) do(t testing.TB, method, path, token string, body io.Reader) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, r.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := r.client.Do(req)
	for range 4 { // on a busy machine a handshake takes longer than the service waits, see waiting.go
		if again, ok := body.(io.Seeker); err == nil || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) || !ok {
			break
		} else if _, err := again.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		r.client.CloseIdleConnections()
		res, err = r.client.Do(req)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// verdicts returns what was decided in each line of an answer.
func verdicts(t testing.TB, body string) (out []string) {
	t.Helper()
	for line := range strings.Lines(body) {
		var v verdict.Verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, fmt.Sprintf("%d %s %s", v.Line, v.Decision, v.ErrorCode))
	}
	return out
}

const (
	harmless = `{"type":"execute_command","cwd":"/home/me/app","payload":{"command":"ls"}}` + "\n"
	wiping   = `{"type":"execute_command","cwd":"/home/me/app","payload":{"command":"rm -rf /"}}` + "\n"
)

// TestActions holds that each line gets its verdict, in order, whatever it holds.
func TestActions(t *testing.T) {
	t.Parallel()
	r := listening(t)
	long := `{"type":"write_file","payload":{"path":"/home/me/app/a","content":"` + strings.Repeat("x", 1<<13) + `"}}` + "\n"
	status, out := r.do(t, "POST", "/v1/actions", token, strings.NewReader(harmless+wiping+"{]\n"+long+harmless))
	want := []string{"1 ALLOW ", "2 BLOCK ", "3 BLOCK json", "4 BLOCK too_long", "5 ALLOW "}
	if got := verdicts(t, out); status != 200 || !strings.HasPrefix(got[2], "3 BLOCK ") || !strings.HasPrefix(got[3], "4 BLOCK ") {
		t.Errorf("status %d: %s", status, out)
	} else if got[2], got[3] = want[2], want[3]; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, body := range []string{"", "\n \n"} {
		if status, out := r.do(t, "POST", "/v1/actions", token, strings.NewReader(body)); status != 400 {
			t.Errorf("no action: status %d: %s", status, out)
		}
	}
}

// TestWhoMayAsk holds that only those with a token learn anything.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	r := listening(t)
	for _, path := range []string{"/v1/status", "/metrics"} {
		for _, wrong := range []string{"", "x", token[:31], token + "0", "build"} {
			if status, out := r.do(t, "GET", path, wrong, nil); status != 401 {
				t.Errorf("%s with %q: status %d: %s", path, wrong, status, out)
			}
		}
		if status, out := r.do(t, "GET", path, token, nil); status != 200 || !strings.Contains(out, "asked") && !strings.Contains(out, "shield_requests_refused_total{code=\"401\"}") {
			t.Errorf("%s: status %d: %s", path, status, out)
		}
	}
	if status, out := r.do(t, "POST", "/v1/actions", "", strings.NewReader(harmless)); status != 401 || strings.Contains(out, "ALLOW") {
		t.Errorf("status %d: %s", status, out)
	}
	if status, out := r.do(t, "GET", "/healthz", "", nil); status != 200 || out != "ok\n" {
		t.Errorf("status %d: %s", status, out)
	}
	if status, _ := r.do(t, "GET", "/v1/actions", token, nil); status != 405 {
		t.Errorf("a GET judges: status %d", status)
	}
	plain, err := http.Get("http" + strings.TrimPrefix(r.url, "https") + "/healthz")
	if err == nil {
		_ = plain.Body.Close()
		if plain.StatusCode == 200 {
			t.Error("it answers without TLS")
		}
	}
	if err := os.WriteFile(r.serve.TokensFile, []byte("other "+strings.Repeat("z", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.web.LoadCertificateAndTokens(r.serve); err != nil {
		t.Fatal(err)
	}
	if status, _ := r.do(t, "GET", "/v1/status", token, nil); status != 401 {
		t.Errorf("a token that was taken back: status %d", status)
	}
}

// TestConversation holds that a verdict comes before the next action is sent, over
// HTTP/1 and HTTP/2, and that a service which ends lets a request end with all that it
// has read.
func TestConversation(t *testing.T) {
	for _, two := range []bool{false, true} {
		r := listening(t)
		if !two {
			r.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
			r.client.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		actions, in := io.Pipe()
		req, err := http.NewRequest("POST", r.url+"/v1/actions", actions)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "bearer "+token)
		go func() { _, _ = io.WriteString(in, harmless) }()
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if (res.ProtoMajor == 2) != two {
			t.Fatalf("HTTP/%d", res.ProtoMajor)
		}
		lines := bufio.NewReader(res.Body)
		for i, action := range []string{"", wiping, harmless} {
			if action != "" {
				if _, err := io.WriteString(in, action); err != nil {
					t.Fatal(err)
				}
			}
			if line, err := lines.ReadString('\n'); err != nil || verdicts(t, line)[0] != fmt.Sprintf("%d %s ", i+1, []string{"ALLOW", "BLOCK", "ALLOW"}[i]) {
				t.Fatalf("HTTP/%d, action %d: %s%v", res.ProtoMajor, i+1, line, err)
			}
		}
		r.end()
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("HTTP/%d: it ends with %q, %v", res.ProtoMajor, rest, err)
		}
		_ = res.Body.Close()
		_ = in.Close()
	}
}

// TestCredentialsOpenToOthers holds that secrets which others can read are refused,
// and tokens that can be guessed.
func TestCredentialsOpenToOthers(t *testing.T) {
	t.Parallel()
	files, _ := written(t)
	web := NewHTTPSService(HTTPSServiceOptions{})
	for _, name := range []string{files.TLSKey, files.TokensFile} {
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := web.LoadCertificateAndTokens(files); err == nil {
			t.Errorf("%s is open to others", name)
		}
		if err := os.Chmod(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, text := range map[string]string{
		"nothing": "# none\n", "a short token": "a " + token[1:], "no name": token, "two of a kind": "a " + token + "\nb " + token, "three words": "a " + token + " b",
	} {
		if err := os.WriteFile(files.TokensFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := web.LoadCertificateAndTokens(files); err == nil || strings.Contains(err.Error(), token[1:]) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDescription holds that docs/openapi.yaml describes what is answered.
func TestDescription(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths      map[string]map[string]any
		Components struct {
			Schemas struct {
				Verdict struct{ Required []string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	r := listening(t)
	var described []string
	for path, methods := range doc.Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
			status, out := r.do(t, strings.ToUpper(method), path, token, strings.NewReader(harmless))
			if status != 200 {
				t.Errorf("%s: status %d: %s", path, status, out)
			}
			if path != "/v1/actions" {
				continue
			}
			var v map[string]any
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				t.Fatal(err)
			}
			for _, name := range doc.Components.Schemas.Verdict.Required {
				if _, has := v[name]; !has {
					t.Errorf("a verdict without %s: %s", name, out)
				}
			}
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff([]string{"GET /healthz", "GET /metrics", "GET /v1/status", "POST /v1/actions"}, described); diff != "" {
		t.Error(diff)
	}
}

// TestManyClients holds that 200 clients at once, some of which read slowly, break off,
// or send what is too long, each get all of their verdicts.
func TestManyClients(t *testing.T) {
	t.Parallel()
	r := listening(t)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if i%10 == 0 { // it breaks off
				ctx, cancel := context.WithCancel(t.Context())
				actions, in := io.Pipe()
				req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/actions", actions)
				req.Header.Set("Authorization", "Bearer "+token)
				go func() { _, _ = io.WriteString(in, harmless+"{"); cancel(); _ = in.CloseWithError(errors.New("gone")) }()
				if res, err := r.client.Do(req); err == nil {
					_ = res.Body.Close()
				}
				return
			}
			const n = 5
			status, out := r.do(t, "POST", "/v1/actions", token, strings.NewReader(strings.Repeat(harmless+wiping, n)))
			got := verdicts(t, out)
			if status != 200 || len(got) != 2*n {
				t.Errorf("client %d: status %d, %d verdicts", i, status, len(got))
				return
			}
			for k, v := range got {
				if want := fmt.Sprintf("%d %s ", k+1, []string{"ALLOW", "BLOCK"}[k%2]); v != want {
					t.Errorf("client %d: %s, want %s", i, v, want)
				}
			}
		})
	}
	all.Wait()
}

// TestIdleConnections holds that connections which send nothing, half a handshake, or
// requests without a token do not keep clients out.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	r := listening(t)
	address := strings.TrimPrefix(r.url, "https://")
	var idle sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer idle.Wait()
	defer stop()
	for i := range maxConnections + 8 {
		idle.Go(func() {
			for ctx.Err() == nil { // as soon as one is closed, the next comes
				c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
				if err != nil {
					return
				}
				if i%2 == 1 {
					_, _ = c.Write([]byte("\x16\x03\x01"))
				}
				end := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = io.Copy(io.Discard, c)
				end()
				_ = c.Close()
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	for client := range 3 {
		status, err := 0, error(nil)
		for try := 0; try < 5 && status == 0; try++ { // on a slow machine a handshake may be late itself
			var req *http.Request
			if req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/status", nil); err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			var res *http.Response
			if res, err = r.client.Do(req); err == nil {
				status = res.StatusCode
				_ = res.Body.Close()
			}
			r.client.CloseIdleConnections()
		}
		if status != http.StatusOK {
			t.Errorf("client %d: status %d, %v", client, status, err)
		}
	}
}
