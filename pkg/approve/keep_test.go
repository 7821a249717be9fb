//go:build unix

package approve

import (
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// service starts shield serve, and waits until it serves the page.
func (in *install) service() *exec.Cmd {
	in.t.Helper()
	s := in.command("serve")
	var said notices
	s.Stderr = &said
	if err := s.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() {
		_ = s.Process.Kill()
		_ = s.Wait()
		if text := said.b.String(); strings.Contains(text, "http") {
			in.t.Errorf("the service prints the link:\n%s", text)
		}
	})
	return s
}

// TestServicePage opens the page of a service before anything is asked. The service is killed in
// the middle of a question and started again: the question is still there, and is answered once.
func TestServicePage(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	in := newInstall(t)
	first := in.service()
	b.enter(in.page())
	b.wait(`document.getElementById("status").textContent === "Nothing is waiting"`)
	b.pictures("service-empty")
	one := in.hook("git push --force origin main", 1)
	b.wait(`document.querySelectorAll("article").length === 1`)
	b.wait(enabled)
	b.click(`[data-choice="deny"]`)
	if got := one.said(t); !strings.Contains(got, "denied by ann on the approval page (web)") {
		t.Errorf("the first hook said %s", got)
	}

	two := in.hook("git reset --hard HEAD~3", 1)
	b.wait(`document.querySelectorAll("article:not(.receipt)").length === 1`)
	b.keys("article:not(.receipt) .reason", "commit first")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	in.service()
	until(t, func() bool { return in.approvals().PageLink != "" })
	if q := in.approvals(); len(q.Waiting) != 1 {
		t.Fatalf("after the kill %+v waits", q)
	}
	b.wait(`document.getElementById("status").textContent === "1 question is waiting"`)
	b.wait(enabled)
	b.pictures("service-again")
	id := b.eval(`return document.querySelector("article:not(.receipt)").dataset.id`).(string)
	b.click(`article:not(.receipt) [data-choice="deny"]`)
	if got := two.said(t); !strings.Contains(got, "denied by ann on the approval page (web): commit first") {
		t.Errorf("the second hook said %s", got)
	}
	b.wait(`document.querySelectorAll("article.receipt").length === 2`)
	// Anyone who serves the page now refuses it, as soon as the page is known there again.
	b.eval(`(async () => {
		while (window.again !== 200 && window.again !== 409) {
			await new Promise((done) => setTimeout(done, 50));
			const sent = fetch("/answer", {method: "POST", headers: {"Content-Type": "application/json", "X-Shield-Token": token.get()}, body: JSON.stringify({id: "` + id + `", choice: "once"})});
			window.again = await sent.then((r) => r.status, () => 0);
		}
	})()`)
	b.wait(`window.again === 409`)

	// Between two questions the page is there, with what was answered before the kill.
	b.wait(`document.getElementById("status").textContent === "Nothing is waiting"`)
	other := newBrowser(t)
	other.enter(in.page())
	other.wait(`document.querySelectorAll("article.receipt").length === 2`)
	other.pictures("service-history")
}

// TestKeptLink: the link of a page that is kept is of no use soon after the last question is
// gone, and not before; pages that were opened by it go on working.
func TestKeptLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := pageIn(t, dir)
	clock := &hand{now: time.Now()}
	kept := &webChannel{options: &Options{StateDir: dir, AnsweringPersonName: "ann", Clock: clock.time}, servesWithoutWaitingQuestion: true, pendingByID: map[string]*pendingQuestion{}, wakeSignal: make(chan struct{}, 1)}
	if err := kept.openInboxOnce(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close() })
	step := func() *url.URL {
		t.Helper()
		if _, err := kept.servePageAndDeliverAnswers(); err != nil {
			t.Fatal(err)
		}
		return withCode(t, kept.pageAddressAndCode())
	}
	first := step()
	clock.forward(pageCodeGracePeriod)
	if now := step(); *now != *first {
		t.Error("the link changes though nothing was asked")
	}
	p.ask(push)
	p.link = step()
	known := p.client()
	_, key := p.enter(known, "code", p.link.Fragment)
	if got := p.post(known, "/answer", answerJSON(t, p.question(), choiceDeny, ""), nil); got != http.StatusOK {
		t.Fatalf("answer: status %d", got)
	}
	<-p.verdict
	step()
	clock.forward(pageCodeGracePeriod - time.Second)
	if now := step(); *now != *first {
		t.Error("the link changes at once")
	}
	clock.forward(time.Second)
	now := step()
	if now.Host != first.Host || now.Fragment == first.Fragment {
		t.Errorf("the link was %s and is %s", first, now)
	}
	if status, _ := p.enter(&http.Client{}, "code", first.Fragment); status == http.StatusOK {
		t.Error("the old link still opens the page")
	}
	if status, _ := p.enter(&http.Client{}, "key", key); status != http.StatusOK {
		t.Errorf("a page that is open is refused: %d", status)
	}
	if q, err := ReadApprovalPageState(dir, clock.time()); err != nil || q.PageLink != "http://"+now.Host+"/" || q.PageLoginCode != now.Fragment {
		t.Errorf("approvals prints %q: %v; want %s", q.PageLink, err, now)
	}
}
