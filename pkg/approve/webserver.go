package approve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/pkg/effect"
)

// A pageAccessRecord is the address and the secrets of the approval page. Its file outlives the serving process,
// so that the next one serves the page at the same address and open pages keep working.
type pageAccessRecord struct {
	Address         string `json:"address"`       // host and port
	PageSecret      string `json:"key"`           // key for pages where the code was typed: they later prove that they know it; 256 bits in hex
	LoginCode       string `json:"code"`          // a person types it into the page
	Salt            string `json:"salt"`          // salt of the code; 128 bits in hex
	PreviousAddress string `json:"was,omitempty"` // the previous address, which another program uses now
}

// Names of files in the inbox: pageAccessRecordFileName contains the [pageAccessRecord], and answeredQuestionsFile the questions
// that were answered last.
const (
	pageAccessRecordFileName = "page"
	answeredQuestionsFile    = "history"
)

// link returns the URL of the page, without any secret.
func (p *pageAccessRecord) link() string {
	if p.Address == "" || p.LoginCode == "" {
		return ""
	}
	return "http://" + p.Address + "/"
}

// pageAddressAndCode returns what a person needs to open the page; "" while it is not served.
func (p *pageAccessRecord) pageAddressAndCode() string {
	if p.link() == "" {
		return ""
	}
	return p.link() + " with the code " + p.LoginCode
}

// pageCodeLetters are the characters of the page's codes: no vowels, which would form words, and no
// characters that look alike.
const pageCodeLetters = "bcdfghjkmnpqrstvwxz23456789"

// pageCodeCharCount is the number of characters in a code, without the hyphen in the middle. With
// [pageCodeHashRounds], that is more than can be guessed during the life of a code.
const pageCodeCharCount = 8

// renewLoginCode draws a new code.
func (p *pageAccessRecord) renewLoginCode() error {
	var code strings.Builder
	for i := range pageCodeCharCount {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(pageCodeLetters))))
		if err != nil {
			return fmt.Errorf("draw a code: %w", err)
		}
		if i == pageCodeCharCount/2 {
			code.WriteByte('-')
		}
		code.WriteByte(pageCodeLetters[n.Int64()])
	}
	salt, err := randomHex(16)
	if err == nil {
		p.LoginCode, p.Salt = code.String(), salt
	}
	return err
}

// A pageServer serves the approval page. See [pageServer.pageHandler] for who may see and answer
// questions.
type pageServer struct {
	page                         pageAccessRecord // its Address and PageSecret do not change while the page is served
	answeringPersonName          string           // name of the user at the page
	servesWithoutWaitingQuestion bool             // serve even without a waiting question
	clock                        func() time.Time
	describeUndoBackups          func() string  // returns a line about the files that shield backed up; may be nil
	inbox                        *questionInbox // opened for this server alone: its cache is not shared with the channel that asks
	http                         *http.Server

	answerDeliveryLock sync.RWMutex // held for reading while an answer is written and shown

	mu                             sync.Mutex
	knownBrowsers                  []knownBrowser
	codeHash                       string // PBKDF2 hash of the code, see pageCodeHash
	wrongCodes                     int    // number of wrong codes that browsers tried since wrongCodesSince
	wrongCodesSince                time.Time
	browserNonceByServerNonce      map[string]string // open handshakes: the browser's nonce, by the server's nonce
	serverNoncesOldestFirst        []string          // keys of browserNonceByServerNonce, oldest first
	waiting                        []*inboxQuestion
	answeredQuestions              []answeredQuestion
	pageStateVersion               int       // number of the state that the page shows
	questionWaitedSinceCodeRenewal bool      // a question has waited since the code was drawn
	lastQuestionGoneAt             time.Time // when the last question was gone, for renewUnusedCode
	browsers                       []*subscriber
}

// A subscriber is a browser that is notified of changes.
type subscriber struct {
	pageStateChanged     chan struct{}
	sentPageStateVersion int // version of the page state that was sent to the browser last
}

// An answeredQuestion is an answered question and its answer.
type answeredQuestion struct {
	ID                   string    `json:"id"`
	IdenticalQuestionIDs []string  `json:"also,omitempty"` // IDs of identical questions with the same answer
	Number               int       `json:"number"`
	ActionText           string    `json:"subject"`
	Choice               string    `json:"choice"`
	Reason               string    `json:"reason,omitempty"`
	By                   string    `json:"by"`
	At                   time.Time `json:"at"`
}

// Limits of the server.
const (
	maxBrowsers                 = 32
	maxOpenHandshakes           = 64
	maxAnsweredQuestions        = 50
	maxConnections              = 128
	maxPostBytes                = 16 << 10 // bytes
	pageEventsHeartbeatInterval = 15 * time.Second
	maxWrongCodesPerMinute      = 10 // wrong codes per minute, from all browsers together, after which codes are refused
	maxListenTries              = 20 // attempts to listen at the remembered address, which a killed process frees a little later
	browserUpdateTimeout        = 500 * time.Millisecond
)

// serveUnlessOtherProcessServes serves the page unless another process does. The caller holds w.mu.
func (w *webChannel) serveUnlessOtherProcessServes() error {
	if w.serveLock == nil {
		lock, err := flock.New(w.inbox.path("serve.lock"))
		if err != nil {
			return err
		}
		if taken, err := lock.TryLock(); err != nil || !taken {
			lock.Close()
			return err
		}
		w.serveLock, w.listenAttempts = lock, 0
	}
	var err error
	if w.server, err = w.serve(); err != nil {
		w.serveLock.Close()
		w.serveLock = nil
	}
	return err
}

// serve opens the page at its last address, or at another one if a program uses that. It returns nil
// if it must be tried again.
func (w *webChannel) serve() (*pageServer, error) {
	own, err := openInbox(w.options.StateDir, pageInboxFolder)
	if err != nil {
		return nil, err
	}
	if err := own.removeFilesOfDeadAskers(context.Background()); err != nil {
		return nil, err
	}
	waiting, err := own.waitingQuestions()
	if err != nil {
		return nil, err
	}
	p := w.readLastPageAccessRecord(own)
	l, err := w.openListener(&p)
	if l == nil || err != nil {
		return nil, err
	}
	if p.PageSecret == "" {
		if p.PageSecret, err = randomHex(32); err != nil {
			l.Close()
			return nil, err
		}
	}
	// An old code must be useless to anyone who finds it.
	if len(p.LoginCode) != pageCodeCharCount+1 || p.Salt == "" || len(waiting) == 0 {
		if err = p.renewLoginCode(); err != nil {
			l.Close()
			return nil, err
		}
	}
	err = own.write(pageAccessRecordFileName, p)
	if err == nil {
		err = writePageAddressFile(w.options.StateDir, p.Address)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	s := &pageServer{page: p, servesWithoutWaitingQuestion: w.servesWithoutWaitingQuestion, answeringPersonName: w.options.AnsweringPersonName, clock: w.options.Clock, describeUndoBackups: w.options.DescribeUndoBackups, inbox: own, browserNonceByServerNonce: map[string]string{}}
	if err := own.read(answeredQuestionsFile, &s.answeredQuestions); err != nil {
		s.answeredQuestions = nil // none yet, or no trustworthy ones
	}
	s.http = &http.Server{
		Handler:           s.pageHandler(w.wakeQuestionLoop),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	s.reloadWaitingQuestions()
	go func() { _ = s.http.Serve(netutil.LimitListener(l, maxConnections)) }() // returns after close
	return s, nil
}

// writePageAddressFile writes the address of the page to a file that is read for each action: an agent must not
// reach the page.
func writePageAddressFile(stateDir, address string) error {
	name := filepath.Join(stateDir, effect.ApprovalPageAddressFile)
	if err := os.WriteFile(name+".new", []byte(address+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// readLastPageAccessRecord returns the last page's data. An untrustworthy file is replaced.
func (w *webChannel) readLastPageAccessRecord(b *questionInbox) pageAccessRecord {
	var p pageAccessRecord
	if err := b.read(pageAccessRecordFileName, &p); err != nil {
		return pageAccessRecord{}
	}
	return p
}

// openListener listens at the configured or last address. After some tries it uses another port, with a new
// key: a program at the old address may have received data from a browser. It returns nil if it must
// be tried again. The caller holds w.mu.
func (w *webChannel) openListener(p *pageAccessRecord) (net.Listener, error) {
	host, port, err := net.SplitHostPort(w.listenAddress())
	if err != nil {
		return nil, err
	}
	var known []string
	if port != "0" {
		known = append(known, w.listenAddress())
	}
	if h, _, err := net.SplitHostPort(p.Address); err == nil && h == host {
		known = append(known, p.Address)
	}
	for _, address := range known {
		if l, err := listenTCPExclusively(address); err == nil {
			if address != p.Address {
				*p = pageAccessRecord{Address: address}
			}
			return l, nil
		}
	}
	if w.listenAttempts++; len(known) > 0 && w.listenAttempts < maxListenTries {
		return nil, nil
	}
	l, err := listenTCPExclusively(net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("open the approval page: %w", err)
	}
	*p = pageAccessRecord{Address: l.Addr().String()}
	if len(known) > 0 {
		p.PreviousAddress = known[0]
	}
	return l, nil
}

// reloadWaitingQuestions reads the waiting questions and notifies browsers of changes.
func (s *pageServer) reloadWaitingQuestions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.inbox.removeFilesOfDeadAskers(context.Background()); err != nil {
		return // retried soon
	}
	waiting, err := s.inbox.waitingQuestions()
	if err != nil {
		return
	}
	now := s.clock()
	waiting = slices.DeleteFunc(waiting, func(e *inboxQuestion) bool {
		return !now.Before(e.DeniedAt) || slices.ContainsFunc(s.answeredQuestions, func(r answeredQuestion) bool {
			return r.ID == e.Request.ID || slices.Contains(r.IdenticalQuestionIDs, e.Request.ID)
		})
	})
	if !slices.Equal(waiting, s.waiting) {
		s.waiting = waiting
		s.notifyBrowsers()
	}
	if s.servesWithoutWaitingQuestion {
		_ = s.renewUnusedCode() // retried soon
	}
}

// currentPage returns the page with its current link.
func (s *pageServer) currentPage() pageAccessRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page
}

// notifyBrowsers notifies the browsers of a new state.
func (s *pageServer) notifyBrowsers() {
	s.pageStateVersion++
	for _, b := range s.browsers {
		select {
		case b.pageStateChanged <- struct{}{}:
		default: // a notification is already pending
		}
	}
}

// awaitBrowsersUpToDate waits until the browsers have received the answers, for at most half a second, because
// this process may exit next.
func (s *pageServer) awaitBrowsersUpToDate() {
	limit := time.NewTimer(browserUpdateTimeout)
	defer limit.Stop()
	for !s.areAllBrowsersUpToDate() {
		select {
		case <-limit.C:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *pageServer) areAllBrowsersUpToDate() bool {
	if !s.answerDeliveryLock.TryLock() {
		return false
	}
	s.answerDeliveryLock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.browsers, func(b *subscriber) bool { return b.sentPageStateVersion < s.pageStateVersion })
}

// subscribe returns a subscriber that is notified of changes, beginning with the current state.
func (s *pageServer) subscribe() (b *subscriber, cancel func()) {
	b = &subscriber{pageStateChanged: make(chan struct{}, 1), sentPageStateVersion: -1}
	b.pageStateChanged <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers = append(s.browsers, b)
	return b, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.browsers = slices.DeleteFunc(s.browsers, func(o *subscriber) bool { return o == b })
	}
}

// recordSentPageStateVersion records the version that was sent to a browser.
func (s *pageServer) recordSentPageStateVersion(b *subscriber, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.sentPageStateVersion = version
}

// A pageStateJSON is the state sent to the page.
type pageStateJSON struct {
	Waiting         []pageApprovalRequestJSON `json:"waiting"` // oldest first
	Answered        []answeredQuestion        `json:"receipts"`
	UndoBackupsText string                    `json:"kept,omitempty"` // a line about files that can be restored; "" if there are none
}

// A pageApprovalRequestJSON is a request as sent to the page, with the seconds left.
type pageApprovalRequestJSON struct {
	*Request
	Number               int      `json:"number"`
	ActionText           string   `json:"subject"`
	SecondsLeft          int      `json:"seconds"`
	FieldsCut            bool     `json:"more,omitempty"` // some fields are shortened; the page can request them in full
	IdenticalQuestionIDs []string `json:"also,omitempty"` // IDs of identical questions that wait as well
}

// pageState returns the current state of the page.
func (s *pageServer) pageState() (p pageStateJSON, version int) {
	kept := ""
	if s.describeUndoBackups != nil {
		kept = s.describeUndoBackups()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p = pageStateJSON{Waiting: []pageApprovalRequestJSON{}, Answered: slices.Clone(s.answeredQuestions), UndoBackupsText: kept}
	now := s.clock()
	for _, group := range groupSameQuestions(s.waiting) {
		e := group[0]
		short, more := shortenRequest(e.Request)
		shown := pageApprovalRequestJSON{short, e.Number, e.ActionText, int(e.DeniedAt.Sub(now).Seconds()), more, nil}
		for _, o := range group[1:] {
			shown.IdenticalQuestionIDs = append(shown.IdenticalQuestionIDs, o.Request.ID)
		}
		p.Waiting = append(p.Waiting, shown)
	}
	return p, s.pageStateVersion
}

// maxShownFieldBytes is how many bytes of a field the page gets before it requests more.
const maxShownFieldBytes = 16 << 10

// shortenRequest returns a shortened request for the list of waiting questions, and whether fields
// were cut. [pageServer.uncutQuestionFields] returns the fields in full.
func shortenRequest(r *Request) (short *Request, fieldsCut bool) {
	if !slices.ContainsFunc(r.Payload, func(f PayloadField) bool { return len(f.Value) > maxShownFieldBytes }) {
		return r, false
	}
	return r.truncatePayloadFields(maxShownFieldBytes), true
}

// uncutQuestionFields returns all fields of a waiting question in full.
func (s *pageServer) uncutQuestionFields(questionID string) ([]PayloadField, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.waitingQuestion(questionID)
	if e == nil {
		return nil, errNotWaiting
	}
	return e.Request.Payload, nil
}

// waitingQuestion returns the waiting question with an ID, nil if there is none. The caller holds
// s.mu.
func (s *pageServer) waitingQuestion(id string) *inboxQuestion {
	if i := slices.IndexFunc(s.waiting, func(e *inboxQuestion) bool { return equalSecrets(e.Request.ID, id) }); i >= 0 {
		return s.waiting[i]
	}
	return nil
}

var errNotWaiting = errors.New("this question is no longer waiting; let the agent try again")

// storeFirstAnswer stores the first answer to a question where the asking process reads it. It also
// answers the questions in identicalIDs: the identical questions that the page showed together with
// this one. An identical question that came later needs its own answer.
func (s *pageServer) storeFirstAnswer(questionID string, identicalIDs []string, choice, reason string) (answeredQuestion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.waitingQuestion(questionID)
	if e == nil {
		return answeredQuestion{}, errNotWaiting
	}
	var others []*inboxQuestion
	for _, id := range identicalIDs {
		o := s.waitingQuestion(id)
		if o == nil || o == e || slices.Contains(others, o) {
			continue
		}
		if !e.isSameQuestion(o) {
			return answeredQuestion{}, errors.New("the answer does not match the questions on the page; reload the page")
		}
		others = append(others, o)
	}
	if choice != choiceDeny {
		reason = ""
	}
	g := pageOrChatAnswer{QuestionID: e.Request.ID, Choice: choice, Reason: escapedSingleLineText(reason, maxAnswerReasonBytes), By: s.answererNameForAuditLog(), At: s.clock()}
	if err := s.inbox.writeAnswer(e, g); err != nil {
		return answeredQuestion{}, err
	}
	r := answeredQuestion{ID: g.QuestionID, Number: e.Number, ActionText: e.ActionText, Choice: choice, Reason: g.Reason, By: s.answeringPersonName, At: g.At}
	for _, o := range others {
		g.QuestionID = o.Request.ID
		if s.inbox.writeAnswer(o, g) == nil { // otherwise the question keeps waiting, or is gone
			r.IdenticalQuestionIDs = append(r.IdenticalQuestionIDs, g.QuestionID)
		}
	}
	s.answeredQuestions = append(s.answeredQuestions, r)
	if len(s.answeredQuestions) > maxAnsweredQuestions {
		s.answeredQuestions = s.answeredQuestions[1:]
	}
	_ = s.inbox.write(answeredQuestionsFile, s.answeredQuestions) // the answer counts even if this fails, and is in the log
	s.waiting = slices.DeleteFunc(slices.Clone(s.waiting), func(e *inboxQuestion) bool {
		return e.Request.ID == r.ID || slices.Contains(r.IdenticalQuestionIDs, e.Request.ID)
	})
	s.notifyBrowsers()
	return r, nil
}

// answererNameForAuditLog returns the person's name for verdicts and the audit log.
func (s *pageServer) answererNameForAuditLog() string {
	return s.answeringPersonName + " on the approval page"
}
