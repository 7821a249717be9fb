//go:build unix

package approve

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/shieldcli/shield/internal/servetest"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A remote is a service that other machines ask, and one of them.
type remote struct {
	*install
	serve    *exec.Cmd
	said     *notices
	url      string
	client   *http.Client
	settings func(approval string) // writes them
}

const remoteToken = "0123456789abcdef0123456789abcdef"

func newRemote(t *testing.T) *remote {
	t.Helper()
	cert, key, tokens, roots := servetest.WriteTLSAndTokenFiles(t, remoteToken, time.Now())
	r := &remote{install: newInstall(t), said: new(notices)}
	r.settings = func(approval string) {
		t.Helper()
		text := fmt.Sprintf("policy: offline\nclassifier: {model: none}\napproval: %s\nserve: {listen: '127.0.0.1:0', tls_cert: %s, tls_key: %s, tokens_file: %s}\n", approval, cert, key, tokens)
		if err := os.WriteFile(filepath.Join(r.home, "shield.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.settings("{channels: [web], timeout: 120s}")
	r.serve = r.command("serve")
	r.serve.Stderr = r.said
	if err := r.serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.serve.Process.Kill()
		_ = r.serve.Wait()
		if strings.Contains(r.text(), "http://") {
			t.Errorf("the service prints the link:\n%s", r.text())
		}
	})
	until(t, func() bool {
		_, after, ok := strings.Cut(r.text(), "a token at ")
		r.url, _, _ = strings.Cut(after, "\n")
		return ok && strings.HasSuffix(after, "\n")
	})
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

func (r *remote) text() string {
	r.said.mu.Lock()
	defer r.said.mu.Unlock()
	return r.said.b.String()
}

// ask has the other machine ask about a command, and waits until n questions wait.
func (r *remote) ask(ctx context.Context, command string, n int) <-chan verdict.Verdict {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"type": "execute_command", "payload": map[string]string{"command": command}})
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/actions", strings.NewReader(string(body)+"\n"))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+remoteToken)
	out := make(chan verdict.Verdict, 1)
	go func() {
		defer close(out)
		resp, err := r.client.Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		line, _ := bufio.NewReader(resp.Body).ReadBytes('\n')
		var v verdict.Verdict
		if err := json.Unmarshal(line, &v); err == nil {
			out <- v
		}
	}()
	until(r.t, func() bool { return len(r.approvals().Waiting) == n })
	return out
}

// page opens the page as a browser does, as soon as it is served.
func (r *remote) page() (*opened, *http.Client) {
	r.t.Helper()
	// A service that loads its settings again serves the page anew.
	for range 1200 {
		p := &opened{t: r.t, link: r.install.page()}
		if conn, err := net.Dial("tcp", p.link.Host); err == nil {
			conn.Close()
			if c, status := p.tryClient(); status == http.StatusOK {
				return p, c
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatal("the page never opens")
	return nil, nil
}

// question waits until a question is on the page, and returns its id.
func (r *remote) question() (p *opened, c *http.Client, id string) {
	r.t.Helper()
	p, c = r.page()
	next := p.lists(c)
	for {
		if shown := next(); len(shown.Waiting) > 0 {
			return p, c, shown.Waiting[0].ID
		}
	}
}

// answer answers the one question that waits.
func (r *remote) answer(choice string) {
	r.t.Helper()
	p, c, id := r.question()
	if got := p.post(c, "/answer", answerJSON(r.t, id, choice, ""), nil); got != http.StatusOK {
		r.t.Fatalf("answer: status %d", got)
	}
}

// reload has the service load its settings again, and waits until it has.
func (r *remote) reload(done func() bool) {
	r.t.Helper()
	if err := r.serve.Process.Signal(syscall.SIGHUP); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, done)
}

// TestServiceClients: what another machine asks about waits on the page of the service,
// through a reload of settings, too; it is answered once, and leaves the page with the
// machine that asked.
func TestServiceClients(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	ctx := t.Context()

	denied := r.ask(ctx, "git push --force origin main", 1)
	r.answer(choiceDeny)
	if v := <-denied; v.Decision != verdict.Block || v.Reasoning != "denied by ann on the approval page (web)" {
		t.Errorf("got %+v", v)
	}

	// A reload with a question open.
	through := r.ask(ctx, "git push --force origin main", 1)
	before := r.approvals().Waiting
	r.settings("{channels: [web], timeout: 60s}")
	r.reload(func() bool { return strings.Contains(r.text(), "settings reloaded") && r.approvals().PageLink != "" })
	if now := r.approvals().Waiting; len(now) != 1 || now[0].Number != before[0].Number {
		t.Errorf("after the reload %+v waits, before %+v", now, before)
	}
	r.answer(choiceOnce)
	if v := <-through; v.Decision != verdict.Allow || v.Reasoning != "approved once by ann on the approval page (web)" {
		t.Errorf("got %+v", v)
	}

	// A client that goes away.
	gone, leave := context.WithCancel(ctx)
	lost := r.ask(gone, "git reset --hard HEAD~3", 1)
	p, c, id := r.question()
	leave()
	if v, ok := <-lost; ok {
		t.Errorf("got %+v", v)
	}
	until(t, func() bool { return len(r.approvals().Waiting) == 0 })
	if got := p.post(c, "/answer", answerJSON(t, id, choiceOnce, ""), nil); got != http.StatusConflict {
		t.Errorf("an answer to a client that has gone: status %d", got)
	}
}

// TestServiceReloadsPage: at a signal the page is opened, moved and closed as settings
// say, and stays as it is when they cannot be read.
func TestServiceReloadsPage(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	first, _ := r.page()

	reachable := func(p *opened) bool {
		resp, err := http.Get(p.url("/"))
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}
	r.settings("{channels: [nobody]}")
	r.reload(func() bool { return strings.Contains(r.text(), "the new settings are invalid") })
	if !reachable(first) {
		t.Error("the page is closed by settings that cannot be read")
	}
	r.settings("{channels: [tty]}")
	r.reload(func() bool { return r.approvals().PageLink == "" && !reachable(first) })

	r.settings("{channels: [web]}")
	r.reload(func() bool { return r.approvals().PageLink != "" })
	again, _ := r.page()
	if again.link.Host != first.link.Host {
		t.Errorf("the page was at %s and is opened again at %s", first.link.Host, again.link.Host)
	}
	got := r.ask(t.Context(), "git push --force origin main", 1)
	r.answer(choiceDeny)
	if v := <-got; v.Decision != verdict.Block || v.Reasoning != "denied by ann on the approval page (web)" {
		t.Errorf("got %+v", v)
	}

	r.settings("{channels: [web], web: {listen: '127.0.0.2:0'}}")
	r.reload(func() bool { return strings.HasPrefix(r.approvals().PageLink, "http://127.0.0.2:") })
	if reachable(again) {
		t.Error("the page is still at its old address")
	}
}
