package approve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/effect"
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
	for range 6000 {
		n.mu.Lock()
		text := n.b.String()
		n.mu.Unlock()
		if _, told, ok := strings.Cut(strings.TrimSpace(text), "deny at "); ok {
			return withCode(t, told)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no link was printed")
	return nil
}

// withCode returns the page's address as a URL whose fragment is the code.
func withCode(t *testing.T, told string) *url.URL {
	t.Helper()
	link, code, ok := strings.Cut(told, " with the code ")
	u, err := url.Parse(link)
	if err != nil || !ok || u.Fragment != "" || u.RawQuery != "" || u.Path != "/" {
		t.Fatalf("the page is at %q, %v", told, err)
	}
	u.Fragment = code
	return u
}

// An opened page is a web channel at which something is asked.
type opened struct {
	t       *testing.T
	a       *Approver
	link    *url.URL
	verdict chan verdict.Verdict
	asked   int // by ask
}

// newPage asks about commands on a page of its own.
func newPage(t *testing.T, commands ...string) *opened {
	t.Helper()
	return pageIn(t, t.TempDir(), commands...)
}

// pageIn asks about commands on the page of a state folder, as a process of
// its own does.
func pageIn(t *testing.T, dir string, commands ...string) *opened {
	t.Helper()
	var n notices
	a := newTest(t, &memory{})
	a.options.NoticeOutput, a.options.StateDir, a.options.AnsweringPersonName = &n, dir, "ann"
	a.channels = []ApprovalChannel{newWebChannel(&a.options)}
	p := &opened{t: t, a: a, verdict: make(chan verdict.Verdict, 8)}
	t.Cleanup(func() {
		if err := p.a.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, cmd := range commands {
		p.ask(cmd)
	}
	if len(commands) > 0 {
		p.link = n.link(t)
	}
	return p
}

// ask asks about a command, and waits until the question is on the page.
func (p *opened) ask(command string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	c := command1(p.t, command, "s")
	go func() {
		v, err := p.a.Judge(ctx, c)
		if err != nil {
			v.Reasoning = err.Error()
		}
		p.verdict <- v
	}()
	p.asked++
	p.waitFor(p.asked)
}

// waitFor waits until this process has n questions on the page.
func (p *opened) waitFor(n int) {
	p.t.Helper()
	w := p.a.channels[0].(*webChannel)
	until(p.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.pendingByID) == n
	})
}

// until waits for something that other goroutines or processes do.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it never came true")
}

func (p *opened) url(path string) string { return "http://" + p.link.Host + path }

// client returns a browser that has proved that it knows the link's code.
func (p *opened) client() *http.Client {
	p.t.Helper()
	c, status := p.tryClient()
	if status != http.StatusOK {
		p.t.Fatalf("session: status %d", status)
	}
	return c
}

func (p *opened) tryClient() (c *http.Client, status int) {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	c = &http.Client{Jar: jar}
	status, _ = p.enter(c, "code", p.link.Fragment)
	return c, status
}

// enter does what the page does with a secret, and returns the last status and
// the page's key.
func (p *opened) enter(c *http.Client, kind, secret string) (status int, key string) {
	p.t.Helper()
	mine := strings.Repeat("ab", 32)
	status, body := p.send(c, "/hello", toJSON(p.t, handshakeMessage{Kind: kind, Nonce: mine}), nil)
	var theirs handshakeMessage
	if status != http.StatusOK || json.Unmarshal(body, &theirs) != nil {
		return status, ""
	}
	if kind == "code" {
		secret = secretOf(p.t, secret, theirs.Salt)
	}
	if theirs.Proof != computeSecretKnowledgeProof(secret, "shield server", p.link.Host, mine, theirs.Nonce) {
		return http.StatusTeapot, ""
	}
	status, body = p.send(c, "/session", toJSON(p.t, handshakeMessage{Kind: kind, Nonce: theirs.Nonce, Proof: computeSecretKnowledgeProof(secret, "shield page", p.link.Host, mine, theirs.Nonce)}), nil)
	var out struct{ Key, Token string }
	if status == http.StatusOK && json.Unmarshal(body, &out) != nil {
		p.t.Fatalf("session: %s", body)
	}
	if out.Token != "" {
		c.Transport = withToken(out.Token)
	}
	return status, out.Key
}

// withToken sends a token with each request, as the page does.
type withToken string

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(tokenHeader, string(t))
	return http.DefaultTransport.RoundTrip(r)
}

func secretOf(t *testing.T, code, salt string) string {
	t.Helper()
	secret, err := hashPageCode(code, salt)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// post sends what the page sends, but for the headers that are given.
func (p *opened) post(c *http.Client, path, body string, headers map[string]string) int {
	p.t.Helper()
	status, _ := p.send(c, path, body, headers)
	return status
}

func (p *opened) send(c *http.Client, path, body string, headers map[string]string) (status int, answer []byte) {
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
	if (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) && path == "/hello" { // a connection that the page closed when its settings changed
		req.Body, _ = req.GetBody()
		resp, err = c.Do(req)
	}
	if errors.Is(err, syscall.ECONNREFUSED) && path == "/hello" { // no page, or not yet
		return http.StatusServiceUnavailable, nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// lists yields the lists that the page is sent.
func (p *opened) lists(c *http.Client) func() pageStateJSON {
	p.t.Helper()
	resp, err := c.Get(p.url("/events"))
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("events: %v, %v", resp, err)
	}
	p.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func() pageStateJSON {
		p.t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var list pageStateJSON
				if err := json.Unmarshal([]byte(data), &list); err != nil {
					p.t.Fatal(err)
				}
				return list
			}
		}
		p.t.Fatalf("the events ended: %v", lines.Err())
		return pageStateJSON{}
	}
}

func answerJSON(t *testing.T, id, choice, reason string) string {
	t.Helper()
	return toJSON(t, map[string]string{"id": id, "choice": choice, "reason": reason})
}

func TestWebAnswers(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	one, two := p.client(), p.client()
	first, second := p.lists(one), p.lists(two)
	list := first().Waiting
	second()
	if len(list) != 1 || list[0].Number != 1 || list[0].Payload[0].Value != push || list[0].SecondsLeft > 60 || list[0].SecondsLeft < 50 {
		t.Fatalf("list %+v", list)
	}
	if r := list[0].Request; r.Summary != "shield asks whether to run “"+push+"”: a push overwrites history [XP-013]" {
		t.Errorf("asks %q", r.Summary)
	}
	id := list[0].ID
	if got := p.post(one, "/answer", answerJSON(t, id, choiceDeny, "use a branch"), nil); got != http.StatusOK {
		t.Fatalf("answer: status %d", got)
	}
	if v := <-p.verdict; v.Decision != verdict.Block || v.Reasoning != "denied by ann on the approval page (web): use a branch" {
		t.Errorf("got %+v", v)
	}
	shown := second()
	if len(shown.Waiting) != 0 || len(shown.Answered) != 1 {
		t.Fatalf("the other browser is shown %+v", shown)
	}
	if r := shown.Answered[0]; r.ID != id || r.By != "ann" || r.Choice != choiceDeny || r.Reason != "use a branch" || r.ActionText != push || r.At.IsZero() {
		t.Errorf("receipt %+v", r)
	}
	if got := p.post(two, "/answer", answerJSON(t, id, choiceOnce, ""), nil); got != http.StatusConflict {
		t.Errorf("a second answer: status %d", got)
	}
}

// TestWebIdentical holds that identical questions are one card, which one answer answers:
// those that the person was shown there, and nothing else.
func TestWebIdentical(t *testing.T) {
	t.Parallel()
	p := newPage(t, push, "git push --force origin dev", push)
	c := p.client()
	lists := p.lists(c)
	list := lists().Waiting
	if len(list) != 2 || len(list[0].IdenticalQuestionIDs) != 1 || len(list[1].IdenticalQuestionIDs) != 0 || list[0].ActionText != push {
		t.Fatalf("list %+v", list)
	}
	answer := func(id string, also ...string) (status int, r answeredQuestion) {
		status, body := p.send(c, "/answer", toJSON(t, map[string]any{"id": id, "also": also, "choice": choiceOnce}), nil)
		if status == http.StatusOK && json.Unmarshal(body, &r) != nil {
			t.Fatalf("answered %s", body)
		}
		return status, r
	}
	if status, _ := answer(list[0].ID, list[1].ID); status != http.StatusConflict {
		t.Errorf("one answer for different actions: status %d", status)
	}
	shown := list[0].IdenticalQuestionIDs
	p.ask(push) // after the person looked
	var now pageApprovalRequestJSON
	until(t, func() bool { now = lists().Waiting[0]; return len(now.IdenticalQuestionIDs) == 2 })
	status, r := answer(list[0].ID, append(shown, shown[0], list[0].ID, strings.Repeat("0", 32))...)
	if status != http.StatusOK || len(r.IdenticalQuestionIDs) != 1 || r.IdenticalQuestionIDs[0] != shown[0] {
		t.Fatalf("status %d, %+v", status, r)
	}
	for range 2 {
		if v := <-p.verdict; v.Decision != verdict.Allow || v.AnsweredBy != "ann on the approval page" {
			t.Errorf("got %+v", v)
		}
	}
	rest := lists().Waiting
	for len(rest) != 2 {
		rest = lists().Waiting
	}
	if rest[0].ID != list[1].ID || rest[1].ActionText != push || len(rest[1].IdenticalQuestionIDs) != 0 {
		t.Errorf("%+v still waits", rest)
	}
	select {
	case v := <-p.verdict:
		t.Errorf("a question that was not shown was answered: %+v", v)
	default:
	}
}

// TestWebRefuses sends what other pages, names and programs can send. None of
// it may answer, and the request goes on waiting.
func TestWebRefuses(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	known := p.client()
	id := p.lists(known)().Waiting[0].ID
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
		{"the cookie alone, as another port gets it", &http.Client{Jar: known.Jar}, "/answer", approve, nil, http.StatusUnauthorized},
		{"the cookie alone, for the action", &http.Client{Jar: known.Jar}, "/whole", `{"id":"` + id + `"}`, nil, http.StatusUnauthorized},
		{"the cookie alone, for the key", &http.Client{Jar: known.Jar}, "/key", "{}", nil, http.StatusNoContent},
		{"the cookie with the token of another", &http.Client{Jar: known.Jar}, "/answer", approve, map[string]string{tokenHeader: strings.Repeat("0", 64)}, http.StatusUnauthorized},
		{"the cookie with the token of another browser", &http.Client{Jar: known.Jar, Transport: p.client().Transport}, "/answer", approve, nil, http.StatusUnauthorized},
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
		{"too long", known, "/answer", answerJSON(t, id, choiceOnce, strings.Repeat("a", maxPostBytes)), nil, http.StatusBadRequest},
		{"an unknown choice", known, "/answer", answerJSON(t, id, "why", ""), nil, http.StatusBadRequest},
		{"a member of its own", known, "/answer", strings.Replace(approve, "{", `{"by":"eve",`, 1), nil, http.StatusBadRequest},
		{"the code itself", &http.Client{}, "/session", p.link.Fragment, nil, http.StatusBadRequest},
		{"a proof of nothing", &http.Client{}, "/session", toJSON(t, handshakeMessage{Kind: "code", Nonce: strings.Repeat("0", 64), Proof: strings.Repeat("0", 64)}), nil, http.StatusForbidden},
		{"no secret", &http.Client{}, "/hello", toJSON(t, handshakeMessage{Kind: "", Nonce: strings.Repeat("0", 64)}), nil, http.StatusBadRequest},
		{"no nonce", &http.Client{}, "/hello", toJSON(t, handshakeMessage{Kind: "code"}), nil, http.StatusBadRequest},
		{"a nonce that is text", &http.Client{}, "/hello", toJSON(t, handshakeMessage{Kind: "code", Nonce: strings.Repeat("\n", 64)}), nil, http.StatusBadRequest},
		{"a greeting from a foreign page", &http.Client{}, "/hello", toJSON(t, handshakeMessage{Kind: "code", Nonce: strings.Repeat("0", 64)}), map[string]string{"Origin": "http://evil.test"}, http.StatusForbidden},
		{"the key without a cookie", &http.Client{}, "/key", "{}", nil, http.StatusNoContent},
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
	if got := p.post(known, "/answer", approve, nil); got != http.StatusOK {
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
	if code := p.link.Fragment; len(code) != pageCodeCharCount+1 || strings.Trim(code, pageCodeLetters+"-") != "" {
		t.Errorf("code %q", code)
	}
}

// TestCodeCannotBeGuessed: after some wrong codes none counts for a minute, not even the
// right one, and a page that is open goes on working.
func TestCodeCannotBeGuessed(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	clock := &hand{now: time.Now()}
	w := p.a.channels[0].(*webChannel)
	w.mu.Lock()
	w.server.mu.Lock()
	w.server.clock = clock.time
	w.server.mu.Unlock()
	w.mu.Unlock()
	known := p.client()
	mine := strings.Repeat("ab", 32)
	guess := func() int {
		_, body := p.send(&http.Client{}, "/hello", toJSON(t, handshakeMessage{Kind: "code", Nonce: mine}), nil)
		var theirs handshakeMessage
		if err := json.Unmarshal(body, &theirs); err != nil {
			t.Fatal(err)
		}
		return p.post(&http.Client{}, "/session", toJSON(t, handshakeMessage{Kind: "code", Nonce: theirs.Nonce, Proof: strings.Repeat("0", 64)}), nil)
	}
	for i := range maxWrongCodesPerMinute {
		if got := guess(); got != http.StatusForbidden {
			t.Fatalf("guess %d: status %d", i, got)
		}
	}
	if got := guess(); got != http.StatusTooManyRequests {
		t.Errorf("one more: status %d", got)
	}
	if status, _ := p.enter(&http.Client{}, "code", p.link.Fragment); status != http.StatusTooManyRequests {
		t.Errorf("the right code among guesses: status %d", status)
	}
	if got := p.post(known, "/answer", answerJSON(t, p.question(), choiceDeny, ""), nil); got != http.StatusOK {
		t.Errorf("a page that is open: status %d", got)
	}
	<-p.verdict
	clock.forward(time.Minute)
	if status, _ := p.enter(&http.Client{}, "code", p.link.Fragment); status != http.StatusOK {
		t.Errorf("after a minute: status %d", status)
	}
}

// TestPageAddress: the address alone is left where it is looked up, and follows the page.
func TestPageAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := pageIn(t, dir, push)
	text, err := os.ReadFile(filepath.Join(dir, effect.ApprovalPageAddressFile))
	if err != nil || string(text) != p.link.Host+"\n" {
		t.Errorf("%q, %v; the page is at %s", text, err, p.link.Host)
	}
}

func TestWebListensOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"": true, "127.0.0.1:0": true, "[::1]:0": true, "127.0.0.9:80": true,
		"0.0.0.0:0": false, ":8080": false, "192.168.1.2:80": false, "[::]:0": false, "localhost:0": false, "x": false,
	} {
		if err := newWebChannel(&Options{Approval: config.Approval{Web: config.WebApprovalPage{Listen: addr}}}).CheckUsable(); (err == nil) != want {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// TestProofsAreGoodOnce: who has heard what page and server said to each other
// cannot say it again.
func TestProofsAreGoodOnce(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	mine := strings.Repeat("ab", 32)
	_, body := p.send(&http.Client{}, "/hello", toJSON(t, handshakeMessage{Kind: "code", Nonce: mine}), nil)
	var theirs handshakeMessage
	if err := json.Unmarshal(body, &theirs); err != nil {
		t.Fatal(err)
	}
	secret := secretOf(t, p.link.Fragment, theirs.Salt)
	proof := handshakeMessage{Kind: "code", Nonce: theirs.Nonce, Proof: computeSecretKnowledgeProof(secret, "shield page", p.link.Host, mine, theirs.Nonce)}
	for _, tt := range []struct {
		handshakeMessage
		want int
	}{
		{proof, http.StatusOK},
		{proof, http.StatusForbidden},
	} {
		if got := p.post(&http.Client{}, "/session", toJSON(t, tt.handshakeMessage), nil); got != tt.want {
			t.Errorf("status %d, want %d", got, tt.want)
		}
	}
	// The server's own proof, sent back to it, is none; nor is one for another kind, host or nonce.
	for _, forge := range []func(theirs handshakeMessage) handshakeMessage{
		func(g handshakeMessage) handshakeMessage { return g },
		func(g handshakeMessage) handshakeMessage {
			g.Kind, g.Proof = "key", computeSecretKnowledgeProof(secret, "shield page", p.link.Host, mine, g.Nonce)
			return g
		},
		func(g handshakeMessage) handshakeMessage {
			g.Proof = computeSecretKnowledgeProof(secret, "shield page", "127.0.0.1:1", mine, g.Nonce)
			return g
		},
		func(g handshakeMessage) handshakeMessage {
			g.Proof = computeSecretKnowledgeProof(secret, "shield page", p.link.Host, strings.Repeat("cd", 32), g.Nonce)
			return g
		},
	} {
		_, body := p.send(&http.Client{}, "/hello", toJSON(t, handshakeMessage{Kind: "code", Nonce: mine}), nil)
		if err := json.Unmarshal(body, &theirs); err != nil {
			t.Fatal(err)
		}
		if got := p.post(&http.Client{}, "/session", toJSON(t, forge(theirs)), nil); got != http.StatusForbidden {
			t.Errorf("%+v: status %d", forge(theirs), got)
		}
	}
}

// TestLinkComesBeforeTheQuestion: a question on a terminal may take the whole
// screen, so the link is printed before, and the question can show it.
func TestLinkComesBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	var n notices
	var printed, link string
	screen := &fake{name: "screen", say: func(_ context.Context, r *Request) (Answer, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		printed, link = n.b.String(), r.PageAddressAndCode
		return Answer{RequestID: r.ID}, nil
	}}
	a := newTest(t, &memory{}, screen)
	a.options.NoticeOutput = &n
	a.channels = append(a.channels, newWebChannel(&a.options))
	t.Cleanup(func() { a.Close() })
	if v, err := a.Judge(t.Context(), command1(t, push, "s")); err != nil || v.Decision != verdict.Block {
		t.Errorf("got %+v, %v", v, err)
	}
	if !strings.HasPrefix(link, "http://127.0.0.1:") || printed != "shield: approve or deny at "+link+"\n" {
		t.Errorf("link %q, printed %q", link, printed)
	}
}

// TestPageKept has the page say which files were kept, beside what waits.
func TestPageKept(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.a.options.DescribeUndoBackups = func() string { return "shield kept 2 files, as u1" }
	var n notices
	p.a.options.NoticeOutput = &n
	p.ask("rm a b")
	p.link = n.link(t)
	if got := p.lists(p.client())(); got.UndoBackupsText != "shield kept 2 files, as u1" || len(got.Waiting) != 1 {
		t.Errorf("%+v", got)
	}
}
