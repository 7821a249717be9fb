package approve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/pkg/effect"
)

// web shows requests on a local page, one for all processes of the user. Each process puts its
// questions into the [inbox] and waits for sealed answers there. One of the waiting processes serves
// the page; when it ends, another serves it at the same address.
type web struct {
	o            *Options
	keepsServing bool // serve the page even without a waiting question

	mu             sync.Mutex
	inbox          *inbox              // nil until a question is asked
	pendingByID    map[string]*pending // by request ID
	running        bool                // a goroutine calls step
	closed         bool
	server         *server     // nil unless this process serves the page
	lock           *flock.Lock // held by the process that serves the page, or is about to
	listenAttempts int         // attempts to listen at the remembered address
	printed        string      // last printed text
	wake           chan struct{}
	desktop        desktop
	chats          chats
}

// A pending is a question of this process without an answer.
type pending struct {
	id     string
	alive  *flock.Lock
	result chan result // receives one result
}

type result struct {
	answer Answer
	err    error
}

// webPoll is the interval at which a process looks for answers, and checks whether it must serve the
// page.
const webPoll = 100 * time.Millisecond

func newWeb(o *Options) Channel {
	return &web{o: o, pendingByID: map[string]*pending{}, wake: make(chan struct{}, 1)}
}

func (*web) Name() string { return "web" }

func (w *web) listen() string {
	if w.o.Web.Listen == "" {
		return "127.0.0.1:0"
	}
	return w.o.Web.Listen
}

// Usable requires a loopback address: anyone who can reach the page could try to answer.
func (w *web) Usable() error {
	host, _, err := net.SplitHostPort(w.listen())
	if err != nil {
		return fmt.Errorf("approval.web.listen: %w; set it to 127.0.0.1:0", err)
	}
	if !effect.ParseAddr(host).IsLoopback() { // a host name may resolve to another address
		return fmt.Errorf("approval.web.listen: %.80q is not a loopback address; set it to 127.0.0.1:0", host)
	}
	return nil
}

func (w *web) Ask(ctx context.Context, r *Request) (Answer, error) {
	if _, err := w.Link(ctx); err != nil {
		return Answer{}, err
	}
	r.Shown()
	p, err := w.add(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	defer w.remove(p)
	w.desktop.notify(w.o.Getenv, r.Summary, w.howToOpen())
	w.chats.notify(w.o, r.Summary)
	select {
	case got := <-p.result:
		return got.answer, got.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// howToOpen returns what a person needs to open the page.
func (w *web) howToOpen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.servedPage()
	return p.howToOpen()
}

// Link makes sure that the page is served and returns its link, which it also prints, with the code,
// if [Options.Notice] is set. It is called before a question takes over the screen.
func (w *web) Link(ctx context.Context) (string, error) {
	if err := w.Usable(); err != nil {
		return "", err
	}
	if err := w.openInboxOnce(); err != nil {
		return "", err
	}
	for range linkTries {
		link, err := w.serveAndCollect()
		if err != nil || link != "" {
			return link, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(webPoll):
		}
	}
	return "", errors.New("no process serves the approval page; run 'shield approvals'")
}

// announcePage prints and returns how to open the approval page if it is among the channels. It is
// called before the channels are asked: a question on a terminal may take over the whole screen.
func announcePage(ctx context.Context, channels []Channel) string {
	for _, ch := range channels {
		if w, ok := ch.(*web); ok {
			if link, err := w.Link(ctx); err == nil && link != "" { // otherwise Ask reports the error
				return w.howToOpen()
			}
		}
	}
	return ""
}

// linkTries bounds the wait for the page's address: longer than the attempts to listen at the
// remembered one.
const linkTries = 2 * listenTries

// openInboxOnce opens the inbox on the first call.
func (w *web) openInboxOnce() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return errors.New("the approval page is closed; run 'shield approvals'")
	case w.inbox == nil:
		w.inbox, err = openInbox(w.o.StateDir, pageBox)
	}
	return err
}

// add puts a question of this process on the page and starts run, which looks for its answer.
func (w *web) add(ctx context.Context, r *Request) (*pending, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	alive, err := w.inbox.add(ctx, r, r.clock())
	if err != nil {
		return nil, err
	}
	p := &pending{id: r.ID, alive: alive, result: make(chan result, 1)}
	w.pendingByID[r.ID] = p
	if !w.running {
		w.running = true
		go w.run()
	}
	w.wakeRun()
	return p, nil
}

// remove removes a question from the page. When it returns, an answer given on the page has reached
// the browsers, so that this process may exit.
func (w *web) remove(p *pending) {
	w.mu.Lock()
	delete(w.pendingByID, p.id)
	w.inbox.remove(p.id, p.alive)
	s := w.server
	w.mu.Unlock()
	if s != nil {
		s.refresh()
		s.awaitDelivery()
	}
}

// wakeRun makes run check at once.
func (w *web) wakeRun() {
	select {
	case w.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// run handles the questions of this process until there are none, and the page as long as this process
// serves it.
func (w *web) run() {
	beat := time.NewTicker(webPoll)
	defer beat.Stop()
	for {
		_, err := w.serveAndCollect()
		if w.endPending(err) {
			return
		}
		select {
		case <-beat.C:
		case <-w.wake:
		}
	}
}

// endPending sends an error to all pending questions, and reports whether run can end.
func (w *web) endPending(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		for _, p := range w.pendingByID {
			p.end(Answer{}, err)
		}
	}
	if w.closed || w.server == nil && len(w.pendingByID) == 0 {
		w.running = false
		return true
	}
	return false
}

func (p *pending) end(a Answer, err error) {
	select {
	case p.result <- result{a, err}:
	default: // it already has a result
	}
}

// serveAndCollect serves the page if no other process does, delivers answers to the pending questions,
// and returns the link of the page; "" while it is not served.
func (w *web) serveAndCollect() (link string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return "", errors.New("the approval page is closed; run 'shield approvals'")
	}
	if w.server == nil {
		if err := w.serveUnlessServed(); err != nil {
			return "", err
		}
	} else {
		w.server.refresh()
	}
	for _, p := range w.pendingByID {
		g, ok, err := w.inbox.readAnswer(p.id)
		if err == nil && !ok {
			continue
		}
		var a Answer
		if err == nil {
			a, err = g.answer()
		}
		p.end(a, err)
	}
	where := w.servedPage()
	if told := where.howToOpen(); told != "" && told != w.printed {
		w.printed = told
		w.printHowToOpen(where)
	}
	link = where.link()
	return link, nil
}

// servedPage returns the page that is being served, or the zero value.
func (w *web) servedPage() page {
	if w.server != nil {
		return w.server.currentPage()
	}
	if w.lock != nil {
		return page{} // this process is about to serve it
	}
	var p page
	if err := w.inbox.read(pageFile, &p); err != nil {
		return page{}
	}
	return p
}

// printHowToOpen prints how to open the page. The host of a hook keeps what is printed, and may
// show it to the agent, who must not have the code.
func (w *web) printHowToOpen(p page) {
	if w.o.Notice == nil || w.o.Hosted || w.o.NoLink || w.o.NotPersonReason != nil && w.o.NotPersonReason() != nil {
		return
	}
	if p.OldAddress != "" {
		fmt.Fprintf(w.o.Notice, "shield: another program uses %s, the last address of the approval page; run 'shield approvals' for the new one\n", p.OldAddress)
	}
	fmt.Fprintf(w.o.Notice, "shield: approve or deny at %s\n", p.howToOpen())
}

// Close stops serving the page, if this process does; another waiting process then serves it.
func (w *web) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.wakeRun()
	var errs []error
	if w.server != nil {
		errs = append(errs, w.server.http.Close())
	}
	if w.lock != nil {
		errs = append(errs, w.lock.Close())
	}
	return errors.Join(errs...)
}

func randomHex(n int) (string, error) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}
