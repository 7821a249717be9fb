package approve

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// A browser is a headless Chromium that is driven by WebDriver.
type browser struct {
	t    *testing.T
	base string // of the session
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: the page is not tested in a browser")
	}
	if _, err := exec.LookPath("chromedriver"); err != nil {
		t.Skip("chromedriver is not installed: the page is not tested in a browser")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	driver := exec.Command("chromedriver", fmt.Sprintf("--port=%d", port))
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = driver.Process.Kill()
		_ = driver.Wait()
	})
	b := &browser{t: t, base: fmt.Sprintf("http://127.0.0.1:%d/session", port)}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatal(err)
		}
	}
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
	for range 200 {
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

const enabled = `!document.querySelector("button").disabled`

// TestBrowser answers with a real click and with the keyboard, in two browsers
// at once.
func TestBrowser(t *testing.T) {
	t.Parallel()
	one, two := newBrowser(t), newBrowser(t)
	hostile := "git push --force origin main # <img src=x onerror=alert(1)>\u202e" + strings.Repeat(" very long", 400)
	p := newPage(t, hostile)
	one.open(p.link.String())
	two.open(p.link.String())
	for _, b := range []*browser{one, two} {
		b.wait(`document.querySelectorAll("article").length === 1`)
		if b.eval(`return document.querySelector("button").disabled`) != true {
			t.Error("a button can be pressed as soon as it appears")
		}
		if got := b.eval("return location.href"); strings.Contains(fmt.Sprint(got), p.link.Fragment) {
			t.Errorf("the token stays in the address bar: %v", got)
		}
		if got := fmt.Sprint(b.eval(`return document.querySelector(".payload").textContent`)); !strings.Contains(got, "<img src=x onerror=alert(1)><U+202E>") {
			t.Errorf("payload %q", got)
		}
	}
	one.wait(enabled)
	one.screenshot("light")
	two.call("POST", "/goog/cdp/execute", map[string]any{"cmd": "Emulation.setEmulatedMedia", "params": map[string]any{
		"features": []any{map[string]string{"name": "prefers-color-scheme", "value": "dark"}}}}, nil)
	two.screenshot("dark")
	two.keys(".reason", "use a branch")
	one.click(`[data-choice="once"]`)
	if v := <-p.verdict; v.Decision != verdict.Allow || v.Reasoning != "approved once by web" {
		t.Errorf("got %+v", v)
	}
	for _, b := range []*browser{one, two} {
		b.wait(`document.querySelectorAll("article").length === 0`)
		if log := b.log(); strings.Contains(log, "Content Security Policy") || strings.Contains(log, "SEVERE") {
			t.Errorf("the browser complains: %s", log)
		}
	}
}

func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	p := newPage(t, push, "rm -rf build")
	b.open(p.link.String())
	b.wait(`document.querySelectorAll("article").length === 2`)
	b.wait(enabled)
	b.keys(".reason", "use a branch\ue004\ue007") // Tab, Enter: the button after the reason denies
	v := <-p.verdict
	if v.Decision != verdict.Block || v.Reasoning != "denied by web: use a branch" {
		t.Errorf("got %+v", v)
	}
	b.wait(`document.querySelectorAll("article").length === 1`)
	b.screenshot("one-left")
	if err := p.a.Close(); err != nil {
		t.Fatal(err)
	}
	b.wait(`document.querySelectorAll("article").length === 0 && document.getElementById("status").textContent.includes("ended")`)
}
