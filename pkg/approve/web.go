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

// webChannel shows requests on a local page, one for all processes of the user. Each process puts its
// questions into the [questionInbox] and waits for sealed answers there. One of the waiting processes serves
// the page; when it ends, another serves it at the same address.
type webChannel struct {
	options                      *Options
	servesWithoutWaitingQuestion bool // serve the page even without a waiting question

	mu                        sync.Mutex
	inbox                     *questionInbox              // nil until a question is asked
	pendingByID               map[string]*pendingQuestion // by request ID
	isQuestionLoopRunning     bool                        // a goroutine runs runQuestionLoop
	closed                    bool
	server                    *pageServer // nil unless this process serves the page
	serveLock                 *flock.Lock // held by the process that serves the page, or is about to
	listenAttempts            int         // attempts to listen at the remembered address
	lastPrintedAddressAndCode string      // last printed text
	wakeSignal                chan struct{}
	desktopNotifier           desktopNotifier
	chatNotifier              chatNotifier
}

// A pendingQuestion is a question of this process without an answer.
type pendingQuestion struct {
	id             string
	askerAliveLock *flock.Lock
	result         chan askResult // receives one result
}

type askResult struct {
	answer Answer
	err    error
}

// answerPollInterval is the interval at which a process looks for answers, and checks whether it must serve the
// page.
const answerPollInterval = 100 * time.Millisecond

func newWebChannel(o *Options) ApprovalChannel {
	return &webChannel{options: o, pendingByID: map[string]*pendingQuestion{}, wakeSignal: make(chan struct{}, 1)}
}

func (*webChannel) Name() string { return "web" }

func (w *webChannel) listenAddress() string {
	if w.options.Web.Listen == "" {
		return "127.0.0.1:0"
	}
	return w.options.Web.Listen
}

// CheckUsable requires a loopback address: anyone who can reach the page could try to answer.
func (w *webChannel) CheckUsable() error {
	host, _, err := net.SplitHostPort(w.listenAddress())
	if err != nil {
		return fmt.Errorf("approval.web.listen: %w; set it to 127.0.0.1:0", err)
	}
	if !effect.ParseAddr(host).IsLoopback() { // a host name may resolve to another address
		return fmt.Errorf("approval.web.listen: %.80q is not a loopback address; set it to 127.0.0.1:0", host)
	}
	return nil
}

func (w *webChannel) Ask(ctx context.Context, r *Request) (Answer, error) {
	if _, err := w.ServedPageLink(ctx); err != nil {
		return Answer{}, err
	}
	r.StartTimer()
	p, err := w.addQuestion(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	defer w.removeQuestion(p)
	w.desktopNotifier.showWaitingQuestionNotice(w.options.Getenv, r.Summary, w.pageAddressAndCode())
	w.chatNotifier.sendWaitingQuestionNotice(w.options, r.Summary)
	select {
	case got := <-p.result:
		return got.answer, got.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// pageAddressAndCode returns what a person needs to open the page.
func (w *webChannel) pageAddressAndCode() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.servedPage()
	return p.pageAddressAndCode()
}

// ServedPageLink makes sure that the page is served and returns its link. If the link and the code are new, it
// also prints them, unless an agent may read the output, see [webChannel.printPageAddressAndCode]. It is called
// before a question takes over the screen.
func (w *webChannel) ServedPageLink(ctx context.Context) (string, error) {
	if err := w.CheckUsable(); err != nil {
		return "", err
	}
	if err := w.openInboxOnce(); err != nil {
		return "", err
	}
	for range maxPageStartPolls {
		link, err := w.servePageAndDeliverAnswers()
		if err != nil || link != "" {
			return link, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(answerPollInterval):
		}
	}
	return "", errors.New("no process serves the approval page; run 'shield approvals'")
}

// printedPageAddressAndCode prints and returns how to open the approval page if it is among the channels. It is
// called before the channels are asked: a question on a terminal may take over the whole screen.
func printedPageAddressAndCode(ctx context.Context, channels []ApprovalChannel) string {
	for _, ch := range channels {
		if w, ok := ch.(*webChannel); ok {
			if link, err := w.ServedPageLink(ctx); err == nil && link != "" { // otherwise Ask reports the error
				return w.pageAddressAndCode()
			}
		}
	}
	return ""
}

// maxPageStartPolls is how often a process checks whether the page has an address. It is more
// than [maxListenTries], after which the serving process stops trying the remembered address and
// takes another.
const maxPageStartPolls = 2 * maxListenTries

// openInboxOnce opens the inbox on the first call.
func (w *webChannel) openInboxOnce() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return errors.New("the approval page is closed; run 'shield approvals'")
	case w.inbox == nil:
		w.inbox, err = openInbox(w.options.StateDir, pageInboxFolder)
	}
	return err
}

// addQuestion puts a question of this process on the approval page. It starts the goroutine
// runQuestionLoop, which looks for the answer, unless that is running.
func (w *webChannel) addQuestion(ctx context.Context, r *Request) (*pendingQuestion, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	alive, err := w.inbox.addQuestion(ctx, r, r.clock())
	if err != nil {
		return nil, err
	}
	p := &pendingQuestion{id: r.ID, askerAliveLock: alive, result: make(chan askResult, 1)}
	w.pendingByID[r.ID] = p
	if !w.isQuestionLoopRunning {
		w.isQuestionLoopRunning = true
		go w.runQuestionLoop()
	}
	w.wakeQuestionLoop()
	return p, nil
}

// removeQuestion removes a question from the page. When it returns, an answer given on the page has reached the
// browsers, so that this process may exit, or browserUpdateTimeout has passed.
func (w *webChannel) removeQuestion(p *pendingQuestion) {
	w.mu.Lock()
	delete(w.pendingByID, p.id)
	w.inbox.removeQuestion(p.id, p.askerAliveLock)
	s := w.server
	w.mu.Unlock()
	if s != nil {
		s.reloadWaitingQuestions()
		s.awaitBrowsersUpToDate()
	}
}

// wakeQuestionLoop makes the goroutine runQuestionLoop check for answers at once.
func (w *webChannel) wakeQuestionLoop() {
	select {
	case w.wakeSignal <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// runQuestionLoop handles the questions of this process until there are none, and the page as long as this process
// serves it.
func (w *webChannel) runQuestionLoop() {
	beat := time.NewTicker(answerPollInterval)
	defer beat.Stop()
	for {
		_, err := w.servePageAndDeliverAnswers()
		if w.failPendingAndTryStop(err) {
			return
		}
		select {
		case <-beat.C:
		case <-w.wakeSignal:
		}
	}
}

// failPendingAndTryStop sends an error to all pending questions, and reports whether the goroutine
// runQuestionLoop can end.
func (w *webChannel) failPendingAndTryStop(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		for _, p := range w.pendingByID {
			p.deliverResult(Answer{}, err)
		}
	}
	if w.closed || w.server == nil && len(w.pendingByID) == 0 {
		w.isQuestionLoopRunning = false
		return true
	}
	return false
}

func (p *pendingQuestion) deliverResult(a Answer, err error) {
	select {
	case p.result <- askResult{a, err}:
	default: // the question already has a result
	}
}

// servePageAndDeliverAnswers serves the page if no other process does, delivers answers to the pending questions,
// and returns the link of the page; "" while it is not served.
func (w *webChannel) servePageAndDeliverAnswers() (link string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return "", errors.New("the approval page is closed; run 'shield approvals'")
	}
	if w.server == nil {
		if err := w.serveUnlessOtherProcessServes(); err != nil {
			return "", err
		}
	} else {
		w.server.reloadWaitingQuestions()
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
		p.deliverResult(a, err)
	}
	where := w.servedPage()
	if told := where.pageAddressAndCode(); told != "" && told != w.lastPrintedAddressAndCode {
		w.lastPrintedAddressAndCode = told
		w.printPageAddressAndCode(where)
	}
	link = where.link()
	return link, nil
}

// servedPage returns the page that is being served, or the zero value.
func (w *webChannel) servedPage() pageAccessRecord {
	if w.server != nil {
		return w.server.currentPage()
	}
	if w.serveLock != nil {
		return pageAccessRecord{} // this process is about to serve the page
	}
	var p pageAccessRecord
	if err := w.inbox.read(pageAccessRecordFileName, &p); err != nil {
		return pageAccessRecord{}
	}
	return p
}

// printPageAddressAndCode prints how to open the page. The host of a hook keeps what is printed, and may
// show it to the agent, who must not have the code.
func (w *webChannel) printPageAddressAndCode(p pageAccessRecord) {
	if w.options.NoticeOutput == nil || w.options.SharesParentTerminal || w.options.HideApprovalPageLink || w.options.CheckTerminalUserIsPerson != nil && w.options.CheckTerminalUserIsPerson() != nil {
		return
	}
	if p.PreviousAddress != "" {
		fmt.Fprintf(w.options.NoticeOutput, "shield: another program uses %s, the last address of the approval page; run 'shield approvals' for the new one\n", p.PreviousAddress)
	}
	fmt.Fprintf(w.options.NoticeOutput, "shield: approve or deny at %s\n", p.pageAddressAndCode())
}

// Close stops serving the page, if this process does; another waiting process then serves it.
func (w *webChannel) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.wakeQuestionLoop()
	var errs []error
	if w.server != nil {
		errs = append(errs, w.server.http.Close())
	}
	if w.serveLock != nil {
		errs = append(errs, w.serveLock.Close())
	}
	return errors.Join(errs...)
}

func randomHex(byteCount int) (string, error) {
	b := make([]byte, byteCount)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}
