package approve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// notices collects what is printed.
type notices struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *notices) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

// link waits for the link.
func (n *notices) link(t *testing.T) *url.URL {
	t.Helper()
	for range 500 {
		n.mu.Lock()
		text := n.b.String()
		n.mu.Unlock()
		if _, link, ok := strings.Cut(strings.TrimSpace(text), " at "); ok {
			u, err := url.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no link was printed")
	return nil
}

// A page is a web channel at which something is asked.
type page struct {
	t       *testing.T
	a       *Approver
	link    *url.URL
	verdict chan verdict.Verdict
}

func newPage(t *testing.T, commands ...string) *page {
	t.Helper()
	var n notices
	o := &Options{Notice: &n}
	p := &page{t: t, a: newTest(t, &memory{}, newWeb(o)), verdict: make(chan verdict.Verdict, len(commands))}
	t.Cleanup(func() {
		if err := p.a.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for _, cmd := range commands {
		c := command1(t, cmd, "s")
		go func() {
			v, err := p.a.Judge(ctx, c)
			if err != nil {
				v.Reasoning = err.Error()
			}
			p.verdict <- v
		}()
	}
	p.link = n.link(t)
	return p
}

func (p *page) url(path string) string { return "http://" + p.link.Host + path }

// client returns a browser that has shown the token.
func (p *page) client() *http.Client {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	if got := p.post(c, "/session", p.link.Fragment, nil); got != http.StatusNoContent {
		p.t.Fatalf("session: status %d", got)
	}
	return c
}

// post sends what the page sends, but for the headers that are given.
func (p *page) post(c *http.Client, path, body string, headers map[string]string) int {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.url(path), strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Origin", "http://"+p.link.Host)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode
}

// lists yields the lists that the page is sent.
func (p *page) lists(c *http.Client) func() []shownRequest {
	p.t.Helper()
	resp, err := c.Get(p.url("/events"))
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("events: %v, %v", resp, err)
	}
	p.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func() []shownRequest {
		p.t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var list []shownRequest
				if err := json.Unmarshal([]byte(data), &list); err != nil {
					p.t.Fatal(err)
				}
				return list
			}
		}
		p.t.Fatalf("the events ended: %v", lines.Err())
		return nil
	}
}

func answerJSON(t *testing.T, id, choice, reason string) string {
	b, err := json.Marshal(map[string]string{"id": id, "choice": choice, "reason": reason})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWebAnswers(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	one, two := p.client(), p.client()
	first, second := p.lists(one), p.lists(two)
	list := first()
	second()
	if len(list) != 1 || list[0].Payload[0].Value != push || list[0].Left > 60 || list[0].Left < 50 {
		t.Fatalf("list %+v", list)
	}
	id := list[0].ID
	if got := p.post(one, "/answer", answerJSON(t, id, choiceWhy, "use a branch"), nil); got != http.StatusNoContent {
		t.Fatalf("answer: status %d", got)
	}
	if v := <-p.verdict; v.Decision != verdict.Block || v.Reasoning != "denied by web: use a branch" {
		t.Errorf("got %+v", v)
	}
	if n := len(second()); n != 0 {
		t.Errorf("%d requests are left in the other browser", n)
	}
	if got := p.post(two, "/answer", answerJSON(t, id, choiceOnce, ""), nil); got != http.StatusConflict {
		t.Errorf("a second answer: status %d", got)
	}
}

// TestWebRefuses sends what other pages, names and programs can send. None of
// it may answer, and the request goes on waiting.
func TestWebRefuses(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	known := p.client()
	id := p.lists(known)()[0].ID
	approve := answerJSON(t, id, choiceOnce, "")
	_, port, _ := strings.Cut(p.link.Host, ":")
	for _, tc := range []struct {
		name       string
		client     *http.Client
		path, body string
		headers    map[string]string
		want       int
	}{
		{"without the cookie", &http.Client{}, "/answer", approve, nil, http.StatusUnauthorized},
		{"a cookie of one's own", &http.Client{}, "/answer", approve, map[string]string{"Cookie": "shield_" + port + "=" + strings.Repeat("0", 64)}, http.StatusUnauthorized},
		{"an empty cookie", &http.Client{}, "/answer", approve, map[string]string{"Cookie": "shield_" + port + "="}, http.StatusUnauthorized},
		{"the token as a cookie", &http.Client{}, "/answer", approve, map[string]string{"Cookie": "shield_" + port + "=" + p.link.Fragment}, http.StatusUnauthorized},
		{"a foreign origin", known, "/answer", approve, map[string]string{"Origin": "http://evil.test"}, http.StatusForbidden},
		{"another port's origin", known, "/answer", approve, map[string]string{"Origin": "http://127.0.0.1:1"}, http.StatusForbidden},
		{"no origin", known, "/answer", approve, map[string]string{"Origin": ""}, http.StatusForbidden},
		{"a null origin", known, "/answer", approve, map[string]string{"Origin": "null"}, http.StatusForbidden},
		{"a rebound name", known, "/answer", approve, map[string]string{"Host": "evil.test:" + port, "Origin": "http://evil.test:" + port}, http.StatusForbidden},
		{"a foreign page", known, "/answer", approve, map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{"a page of another port", known, "/answer", approve, map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		{"a form", known, "/answer", approve, map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
		{"another request", known, "/answer", answerJSON(t, strings.Repeat("0", 32), choiceOnce, ""), nil, http.StatusConflict},
		{"no request", known, "/answer", answerJSON(t, "", choiceOnce, ""), nil, http.StatusConflict},
		{"no choice", known, "/answer", answerJSON(t, id, "", ""), nil, http.StatusBadRequest},
		{"too long", known, "/answer", answerJSON(t, id, choiceOnce, strings.Repeat("a", maxPost)), nil, http.StatusBadRequest},
		{"a wrong token", &http.Client{}, "/session", strings.Repeat("0", 64), nil, http.StatusForbidden},
		{"no token", &http.Client{}, "/session", "", nil, http.StatusForbidden},
		{"the token from a foreign page", &http.Client{}, "/session", p.link.Fragment, map[string]string{"Origin": "http://evil.test"}, http.StatusForbidden},
	} {
		if got := p.post(tc.client, tc.path, tc.body, tc.headers); got != tc.want {
			t.Errorf("%s: status %d, want %d", tc.name, got, tc.want)
		}
	}
	if resp, err := http.Get(p.url("/events")); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("events without a cookie: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	select {
	case v := <-p.verdict:
		t.Errorf("one of them answered: %+v", v)
	default:
	}
	if got := p.post(known, "/answer", approve, nil); got != http.StatusNoContent {
		t.Errorf("the page itself: status %d", got)
	}
	if v := <-p.verdict; v.Decision != verdict.Allow {
		t.Errorf("got %+v", v)
	}
}

func TestWebPage(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	seen := ""
	for range 2 {
		resp, err := http.Get(p.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		csp := resp.Header.Get("Content-Security-Policy")
		_, nonce, _ := strings.Cut(csp, "'nonce-")
		nonce, _, _ = strings.Cut(nonce, "'")
		if len(nonce) != 32 || nonce == seen || strings.Count(string(body), nonce) != 2 || strings.Contains(string(body), "NONCE") {
			t.Errorf("nonce %q, before %q, page:\n%s", nonce, seen, body)
		}
		seen = nonce
		if strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") || strings.Contains(string(body), "://") || strings.Contains(string(body), push) {
			t.Errorf("policy %q, page:\n%s", csp, body)
		}
	}
	if len(p.link.Fragment) != 64 {
		t.Errorf("token %q is not 256 bits", p.link.Fragment)
	}
}

func TestWebListensOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"": true, "127.0.0.1:0": true, "[::1]:0": true, "127.0.0.9:80": true,
		"0.0.0.0:0": false, ":8080": false, "192.168.1.2:80": false, "[::]:0": false, "localhost:0": false, "x": false,
	} {
		if err := newWeb(&Options{Listen: addr}).Usable(); (err == nil) != want {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
