package approve

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
)

// A fakeService is one of chats: it keeps what a bot posts and who has reacted.
type fakeService struct {
	*httptest.Server
	kind *fakeKind

	mu       sync.Mutex
	messages []*reacted
	wrong    []string // requests that a bot must not send
	limited  int      // requests that are still to be refused as too many
	odd      http.HandlerFunc
	oddCall  string // that odd answers instead
	calls    map[string]int
}

// A reacted message is as the chat shows it now.
type reacted struct {
	chat, id   string
	text, word string
	edits      int
	by         map[string][]string // users, by the reaction
}

// A fakeKind is what services differ in, as seen from their side.
type fakeKind struct {
	service              *chatService
	token                string
	self, ann, bob, room string
	// name returns what is called: "self", "post", "read", which reads reactions, or another name.
	name func(r *http.Request) string
	// serve answers, and reports whether it was called as it has to be.
	serve func(f *fakeService, name string, rw http.ResponseWriter, r *http.Request) bool
	// id returns that of the message of a number, from 1 on.
	id     func(n int) string
	direct func(user string) string
	odd    map[string]oddAnswer
}

// An oddAnswer is what a service says to a call, in which MESSAGE and ROOM stand for
// those in question.
type oddAnswer struct {
	call   string
	status int
	body   string
	want   string // of what is said about it
}

var fakeKinds = []*fakeKind{fakeSlack, fakeDiscord}

func (k *fakeKind) new(t *testing.T) *fakeService {
	t.Helper()
	f := &fakeService{kind: k, calls: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		name := k.name(r)
		if f.odd != nil && name == f.oddCall {
			f.odd(rw, r)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.limited > 0 {
			f.limited--
			rw.Header().Set("Retry-After", "0.02")
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		right := k.serve(f, name, rw, r)
		f.calls[name]++
		if !right || strings.Contains(r.URL.String(), k.token) {
			f.wrong = append(f.wrong, r.Method+" "+r.URL.String())
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// add keeps a message that is posted; f.mu is held.
func (f *fakeService) add(chat, text, word string) *reacted {
	m := &reacted{chat: chat, id: f.kind.id(len(f.messages) + 1), text: text, word: word, by: map[string][]string{}}
	f.messages = append(f.messages, m)
	return m
}

// find returns a message, or one that takes what is sent to none; f.mu is held.
func (f *fakeService) find(chat, id string) *reacted {
	for _, m := range f.messages {
		if m.chat == chat && m.id == id {
			return m
		}
	}
	f.wrong = append(f.wrong, "message "+chat+" "+id)
	return &reacted{by: map[string][]string{}}
}

// react has a user react to the message of a number, from 1 on.
func (f *fakeService) react(number int, user, reaction string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by := f.messages[number-1].by
	by[reaction] = append(by[reaction], user)
}

// message waits for the message of that number with all its marks and returns a copy.
func (f *fakeService) message(t *testing.T, number, edits int) (out reacted) {
	t.Helper()
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.messages) < number || f.messages[number-1].edits < edits {
			return false
		}
		out = *f.messages[number-1]
		for _, choice := range []string{choiceDeny, choiceOnce, choiceRemember} {
			if strings.Contains(out.word, choiceEmoji(choice)) && !slices.Contains(out.by[choiceEmoji(choice)], f.kind.self) {
				return false
			}
		}
		return true
	})
	return out
}

// polls waits until reactions were asked for n times more.
func (f *fakeService) polls(t *testing.T, n int) {
	t.Helper()
	end := 0
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if end == 0 {
			end = f.calls["read"] + n
		}
		return f.calls["read"] >= end
	})
}

// asks returns an approver that asks ann in a chat of the service.
func (f *fakeService) asks(t *testing.T, more ...ApprovalChannel) *Approver {
	t.Helper()
	return f.kind.asks(t, f.URL, config.ChatApproval{Approvers: []string{f.kind.ann}, ChatID: f.kind.room}, more...)
}

func (k *fakeKind) asks(t *testing.T, base string, set config.ChatApproval, more ...ApprovalChannel) *Approver {
	t.Helper()
	a := newTest(t, &memory{})
	set.TokenFile = tokenFile(t, 0o600, k.token+"\n")
	*k.service.settings(&a.options.Approval) = set
	ch := k.service.channel(&a.options).(*reactionChannel)
	ch.baseURL, ch.requestTimeout, ch.messageEditTimeout, ch.pollInterval = base, 20*time.Second, 20*time.Second, 10*time.Millisecond // a busy machine is no failure
	a.channels = append([]ApprovalChannel{ch}, more...)
	return a
}

// everyService runs a test with each service.
func everyService(t *testing.T, test func(t *testing.T, k *fakeKind)) {
	t.Parallel()
	for _, k := range fakeKinds {
		t.Run(k.service.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}
