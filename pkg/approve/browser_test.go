package approve

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// A browser is a headless Chromium that is driven by WebDriver.
type browser struct {
	t    *testing.T
	base string // of the session
}

// driverPort is where chromedriver listens, as it says itself.
var driverPort = regexp.MustCompile(`started successfully on port (\d+)`)

func newBrowser(t *testing.T) *browser {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: the page is not tested in a browser")
	}
	if _, err := exec.LookPath("chromedriver"); err != nil {
		t.Skip("chromedriver is not installed: the page is not tested in a browser")
	}
	driver := exec.Command("chromedriver", "--port=0") // one that is free, which it says once it listens
	out, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = driver.Process.Kill()
		_ = driver.Wait()
	})
	said, port := bufio.NewReader(out), ""
	for port == "" {
		line, err := said.ReadString('\n')
		if m := driverPort.FindStringSubmatch(line); m != nil {
			port = m[1]
		} else if err != nil {
			t.Fatalf("chromedriver ends with %q, %v", line, err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	b := &browser{t: t, base: "http://127.0.0.1:" + port + "/session"}
	var session struct{ SessionID string }
	b.call("POST", "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"binary": binary, "args": []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=900,900"}},
		"goog:loggingPrefs":  map[string]any{"browser": "ALL"},
	}}}, &session)
	b.base += "/" + session.SessionID
	t.Cleanup(func() { b.call("DELETE", "", nil, nil) })
	return b
}

// call sends a WebDriver command and decodes its value.
func (b *browser) call(method, path string, body, value any) {
	b.t.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, b.base+path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Value json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: status %d, %v: %s", method, path, resp.StatusCode, err, out.Value)
	}
	if value != nil {
		if err := json.Unmarshal(out.Value, value); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.call("POST", "/url", map[string]string{"url": url}, nil)
}

// enter opens the page and types its code, as a person does.
func (b *browser) enter(link *url.URL) {
	b.t.Helper()
	b.open("http://" + link.Host + "/")
	b.wait(`document.getElementById("enter")?.hidden === false`)
	b.keys("#code", strings.ToUpper(link.Fragment)+"\ue007")
	b.wait(`document.getElementById("enter")?.hidden === true`)
}

// eval runs a script in the page and returns what it returns.
func (b *browser) eval(script string) any {
	b.t.Helper()
	var v any
	b.call("POST", "/execute/sync", map[string]any{"script": script, "args": []any{}}, &v)
	return v
}

// wait waits until a script returns true.
func (b *browser) wait(script string) {
	b.t.Helper()
	for range 1200 {
		if b.eval("return "+script) == true {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("never true: %s; the page says %q, log %s", script, b.eval("return document.body.innerText"), b.log())
}

func (b *browser) log() string {
	var log json.RawMessage
	b.call("POST", "/se/log", map[string]string{"type": "browser"}, &log)
	return string(log)
}

// click clicks an element with the mouse, as a person does.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.call("POST", "/element/"+b.find(selector)+"/click", map[string]any{}, nil)
}

func (b *browser) find(selector string) string {
	b.t.Helper()
	var element map[string]string
	b.call("POST", "/element", map[string]string{"using": "css selector", "value": selector}, &element)
	for _, id := range element {
		return id
	}
	b.t.Fatalf("no element %q", selector)
	return ""
}

func (b *browser) keys(selector, text string) {
	b.t.Helper()
	b.call("POST", "/element/"+b.find(selector)+"/value", map[string]string{"text": text}, nil)
}

// screenshot writes what is seen to a file in the folder that
// SHIELD_SCREENSHOTS names, if it does.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("SHIELD_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png string
	b.call("GET", "/screenshot", nil, &png)
	data, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+name+".png", data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

const enabled = `document.querySelector("article button")?.disabled === false`

// size sets the size of the window, and dark its colours.
func (b *browser) size(width, height int) {
	b.t.Helper()
	b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": "Emulation.setDeviceMetricsOverride", "params": map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}}, nil)
}

func (b *browser) scheme(name string) {
	b.t.Helper()
	b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": "Emulation.setEmulatedMedia", "params": map[string]any{
		"features": []any{map[string]string{"name": "prefers-color-scheme", "value": name}}}}, nil)
}

// pictures takes screenshots in light and dark, wide and narrow.
func (b *browser) pictures(name string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.size(900, 1000)
		b.screenshot(name + "-" + scheme)
		b.size(400, 1000)
		b.screenshot(name + "-400-" + scheme)
	}
	b.scheme("light")
	b.size(900, 1000)
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return fmt.Sprint(b.eval(fmt.Sprintf("return document.querySelector(%q).textContent", selector)))
}

// watchBirth writes down on the pages to come whether the first button can be
// pressed when it appears.
func (b *browser) watchBirth() {
	b.t.Helper()
	b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": map[string]any{"source": `
		new MutationObserver((_, watch) => {
			const button = document.querySelector("article button");
			if (button) {
				window.born = button.disabled ? "dead" : "alive";
				watch.disconnect();
			}
		}).observe(document, {childList: true, subtree: true});`}}, nil)
}

// TestBrowser answers with a real click, in two browsers at once.
func TestBrowser(t *testing.T) {
	t.Parallel()
	one, two := newBrowser(t), newBrowser(t)
	one.watchBirth()
	two.watchBirth()
	hostile := "git push --force origin main # <img src=x onerror=alert(1)>\u202e" + strings.Repeat(" very long", 400)
	p := newPage(t, hostile)
	one.enter(p.link)
	two.enter(p.link)
	for _, b := range []*browser{one, two} {
		b.wait(`document.querySelectorAll("article").length === 1`)
		if b.eval(`return window.born`) != "dead" {
			t.Error("a button can be pressed as soon as it appears")
		}
		if got := b.eval("return location.href"); strings.Contains(fmt.Sprint(got), p.link.Fragment) {
			t.Errorf("the code stays in the address bar: %v", got)
		}
		for _, place := range []string{".payload", "h2"} {
			if got := b.text(place); !strings.Contains(got, "<img src=x onerror=alert(1)><U+202E>") {
				t.Errorf("%s: %q", place, got)
			}
		}
		if got := b.text("h2"); !strings.HasPrefix(got, "shield asks whether to run “git push --force origin main") || !strings.HasSuffix(got, "”: a push overwrites history [XP-013]") {
			t.Errorf("heading %q", got)
		}
	}
	one.wait(enabled)
	one.pictures("hostile")
	two.keys(".reason", "use a branch")
	one.click(`[data-choice="once"]`)
	if v := <-p.verdict; v.Decision != verdict.Allow || v.Reasoning != "approved once by ann on the approval page (web)" {
		t.Errorf("got %+v", v)
	}
	for _, b := range []*browser{one, two} {
		b.wait(`document.querySelectorAll("article.receipt").length === 1`)
		if got := b.text(".said"); !strings.HasPrefix(got, "Approved once by ann at ") {
			t.Errorf("receipt %q", got)
		}
		if got := b.text("#status"); got != "Nothing is waiting" {
			t.Errorf("status %q", got)
		}
		if log := b.log(); strings.Contains(log, "Content Security Policy") || strings.Contains(log, "SEVERE") {
			t.Errorf("the browser complains: %s", log)
		}
	}
	two.call("POST", "/refresh", map[string]any{}, nil) // the cookie is enough while the same process serves
	two.wait(`document.querySelectorAll("article.receipt").length === 1`)
}

// TestBrowserIdentical answers identical questions, which are one card, with one click.
func TestBrowserIdentical(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	p := newPage(t, push)
	b.enter(p.link)
	b.wait(enabled)
	p.ask(push)
	b.wait(`document.querySelectorAll("article").length === 1 && document.querySelector(".times")?.textContent.includes("asked 2 times") === true`)
	b.wait(enabled)
	b.click(`[data-choice="once"]`)
	for range 2 {
		if v := <-p.verdict; v.Decision != verdict.Allow {
			t.Errorf("got %+v", v)
		}
	}
	b.wait(`document.querySelectorAll("article").length === 1 && document.querySelector("article.receipt .said")?.textContent.includes("asked 2 times") === true`)
}

func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	p := newPage(t, push, "rm -rf build")
	b.enter(p.link)
	b.wait(`document.querySelectorAll("article").length === 2`)
	if got := b.eval(`return [...document.querySelectorAll("article")].map((a) => a.querySelector(".number").textContent + a.querySelector("h2 b").textContent).join("|")`); got != "1"+push+"|2rm -rf build" {
		t.Errorf("cards %q", got)
	}
	b.wait(enabled)
	b.keys(".reason", "use a branch\ue004\ue007") // Tab, Enter: the button after the reason denies
	v := <-p.verdict
	if v.Decision != verdict.Block || v.Reasoning != "denied by ann on the approval page (web): use a branch" {
		t.Errorf("got %+v", v)
	}
	b.wait(`document.querySelectorAll("article.receipt").length === 1 && document.querySelectorAll("article").length === 2`)
	b.screenshot("one-left")
	if err := p.a.Close(); err != nil {
		t.Fatal(err)
	}
	b.wait(`document.querySelectorAll("article button").length === 0 && document.getElementById("status")?.textContent.startsWith("Nothing is waiting.")`)
	b.screenshot("ended")
}

// TestBrowserNothingMovesUnderTheMouse: what was answered makes room, and the
// second click of a double click hits the next question's button.
func TestBrowserNothingMovesUnderTheMouse(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	p := newPage(t, push, "rm -rf build")
	b.enter(p.link)
	b.wait(`document.querySelectorAll("article").length === 2`)
	b.wait(enabled)
	// A script's click reaches every button that is not dead, wherever it is.
	b.eval(`
		const all = () => document.querySelectorAll('[data-choice="once"]');
		new MutationObserver(() => all().forEach((button) => button.click())).observe(document.querySelector("main"), { childList: true });
		all()[0].click();`)
	<-p.verdict
	b.wait(`document.querySelectorAll("article.receipt").length === 1`)
	b.wait(enabled)
	select {
	case v := <-p.verdict:
		t.Errorf("the next question was answered too: %+v", v)
	default:
	}
}

// TestBrowserTakeover: what waits can be answered when another process serves
// the page, though nothing else has changed, and what was typed is still there.
func TestBrowserTakeover(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	dir := t.TempDir()
	first := pageIn(t, dir, push)
	second := pageIn(t, dir, "rm -rf build")
	b.enter(first.link)
	b.wait(`document.querySelectorAll("article").length === 2`)
	b.wait(enabled)
	b.click(`[data-choice="once"]`)
	<-first.verdict
	b.wait(`document.querySelectorAll("article.receipt").length === 1`)
	b.keys(".reason", "not this one")
	if err := first.a.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		w := second.a.channels[0].(*webChannel)
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.server != nil
	})
	b.wait(`document.getElementById("status")?.textContent === "1 question is waiting"`)
	b.wait(enabled)
	b.click(`[data-choice="deny"]`)
	if v := <-second.verdict; v.Reasoning != "denied by ann on the approval page (web): not this one" {
		t.Errorf("got %+v", v)
	}
}

// TestBrowserSquatter: a page that is open goes on asking the address after
// shield has ended, and another program answers there. It must learn nothing
// that is of use to it, and cannot make the page take it for shield.
func TestBrowserSquatter(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	p := newPage(t, push)
	b.enter(p.link)
	b.wait(`document.querySelectorAll("article").length === 1`)
	var key pageAccessRecord
	if err := p.a.channels[0].(*webChannel).inbox.read(pageAccessRecordFileName, &key); err != nil {
		t.Fatal(err)
	}
	if err := p.a.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.verdict
	l, err := net.Listen("tcp", p.link.Host)
	for errors.Is(err, syscall.EADDRINUSE) { // a connection of a test beside this one may have the free port for a moment
		time.Sleep(50 * time.Millisecond)
		l, err = net.Listen("tcp", p.link.Host)
	}
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var heard strings.Builder
	squatter := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&heard, "%s %s\n%v\n%s\n", r.Method, r.URL, r.Header, body)
		rw.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/hello" {
			_ = json.NewEncoder(rw).Encode(handshakeMessage{Kind: "key", Nonce: strings.Repeat("0", 64), Proof: strings.Repeat("0", 64)})
			return
		}
		_, _ = io.WriteString(rw, `{"key":"x","waiting":[{"id":"1","number":1,"seconds":60,"what":"be fooled"}]}`)
	})}
	go func() { _ = squatter.Serve(l) }()
	t.Cleanup(func() { squatter.Close() })
	b.wait(`document.getElementById("status")?.textContent.includes("not the shield that opened this page")`)
	mu.Lock()
	defer mu.Unlock()
	if text := heard.String(); !strings.Contains(text, "/hello") || strings.Contains(text, key.PageSecret) || strings.Contains(text, key.LoginCode) || strings.Contains(text, "/session") || strings.Contains(text, "/answer") {
		t.Errorf("the squatter heard:\n%s", text)
	}
	if n := b.eval(`return document.querySelectorAll("article button").length`); n != 0.0 {
		t.Errorf("%v buttons", n)
	}
}
