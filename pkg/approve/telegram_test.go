package approve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

const (
	botToken = "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"
	ann, bob = 1001, 1002
)

// A fakeTelegram is the service: it keeps what bots post, and gives presses to one
// reader at a time.
type fakeTelegram struct {
	*httptest.Server

	mu       sync.Mutex
	messages []*posted
	news     []map[string]any // updates that wait
	said     []string         // to those who pressed
	wrong    []string         // requests that a bot must not send
	read     int              // updates that a reader has confirmed
	polls    int              // how often updates were asked for
	reading  int
	readings int // of which two were at a time
}

// A posted message is as the chat shows it now.
type posted struct {
	Chat    int    `json:"chat_id"`
	Message int    `json:"message_id"`
	Text    string `json:"text"`
	Markup  struct {
		Rows [][]button `json:"inline_keyboard"`
	} `json:"reply_markup"`
	edits int
}

func newFakeTelegram(t *testing.T) *fakeTelegram {
	t.Helper()
	f := &fakeTelegram{}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeTelegram) serve(rw http.ResponseWriter, r *http.Request) {
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+botToken+"/")
	if !ok || r.Method != http.MethodPost || r.URL.RawQuery != "" {
		f.mu.Lock()
		f.wrong = append(f.wrong, r.Method+" "+r.URL.String())
		f.mu.Unlock()
	}
	var result any = true
	switch method {
	case "sendMessage", "editMessageText":
		result = f.post(r)
	case "getUpdates":
		result = f.updates(r)
	case "answerCallbackQuery":
		var in struct{ Text string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		f.mu.Lock()
		f.said = append(f.said, in.Text)
		f.mu.Unlock()
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{"ok": true, "result": result})
}

func (f *fakeTelegram) post(r *http.Request) any {
	in := new(posted)
	_ = json.NewDecoder(r.Body).Decode(in)
	f.mu.Lock()
	defer f.mu.Unlock()
	if in.Message == 0 {
		in.Message = len(f.messages) + 1
		f.messages = append(f.messages, in)
	} else {
		in.edits = f.messages[in.Message-1].edits + 1
		f.messages[in.Message-1] = in
	}
	return in
}

// updates returns what waits, at once: a reader that asked without a pause would be
// seen by the test's time alone.
func (f *fakeTelegram) updates(r *http.Request) any {
	var in struct{ Offset int }
	_ = json.NewDecoder(r.Body).Decode(&in)
	f.mu.Lock()
	f.polls++
	f.reading++
	f.readings = max(f.readings, f.reading)
	f.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading--
	f.read = max(f.read, in.Offset-1)
	list := []map[string]any{}
	for i, u := range f.news {
		if i+1 >= in.Offset {
			list = append(list, u)
		}
	}
	return list
}

// press has a user press a button of a message, or send what a button could.
func (f *fakeTelegram) press(user, chat int, data string, more ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := map[string]any{"id": user, "is_bot": false, "first_name": "<b>Ann"}
	if len(more) > 0 {
		from["username"] = more[0]
	}
	f.news = append(f.news, map[string]any{"update_id": len(f.news) + 1, "callback_query": map[string]any{
		"id": "q", "from": from, "message": map[string]any{"message_id": 1, "chat": map[string]any{"id": chat}}, "data": data,
	}})
}

// message waits for the message of that number and returns a copy.
func (f *fakeTelegram) message(t *testing.T, number, edits int) posted {
	t.Helper()
	var out posted
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.messages) < number || f.messages[number-1].edits < edits {
			return false
		}
		out = *f.messages[number-1]
		return true
	})
	return out
}

// polled waits until a reader asks for updates.
func (f *fakeTelegram) polled(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	before := f.polls
	f.mu.Unlock()
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.polls > before
	})
}

// answers waits until all presses were read, and returns what was said, one a line.
func (f *fakeTelegram) answers(t *testing.T) (said string) {
	t.Helper()
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		said = strings.Join(f.said, "\n")
		return f.read == len(f.news)
	})
	return said
}

// button returns the data of a message's button, "" if it has none of that text.
func (p *posted) button(text string) string {
	for _, row := range p.Markup.Rows {
		for _, b := range row {
			if b.Text == text {
				return b.Data
			}
		}
	}
	return ""
}

func tokenFile(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// asks returns an approver that asks ann in a chat of the service at a URL.
func asks(t *testing.T, dir, base string, more ...ApprovalChannel) *Approver {
	t.Helper()
	a := newTest(t, &memory{})
	a.options.StateDir, a.options.Telegram = dir, config.Telegram{TokenFile: tokenFile(t, 0o600, botToken+"\n"), Approvers: []int{ann}}
	ch := newTelegramChannel(&a.options).(*telegramChannel)
	ch.baseURL, ch.requestTimeout, ch.editTimeout = base, 20*time.Second, 20*time.Second // a busy machine is no failure
	a.channels = append([]ApprovalChannel{ch}, more...)
	return a
}

// judged asks about a command, and returns where the verdict will be.
func judged(t *testing.T, a *Approver, cmd string) <-chan verdict.Verdict {
	t.Helper()
	c, out := command1(t, cmd, ""), make(chan verdict.Verdict, 1)
	go func() {
		v, err := a.Judge(context.Background(), c)
		if err != nil {
			v.Reasoning = err.Error()
		}
		out <- v
	}()
	return out
}

// TestTelegram: each button gives its verdict, and none is left afterwards.
func TestTelegram(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		decision verdict.Decision
		says     string
	}{
		"Deny":                   {verdict.Block, "denied by Telegram user 1001 @ann_1 (telegram)"},
		"Approve once":           {verdict.Allow, "approved once by Telegram user 1001 @ann_1 (telegram)"},
		"Approve for 10 minutes": {verdict.Allow, "approved for 10 minutes by Telegram user 1001 @ann_1 (telegram)"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			f := newFakeTelegram(t)
			got := judged(t, asks(t, t.TempDir(), f.URL), "curl -H 'Authorization: Bearer ghp_0123456789abcdefABCDEF0123456789abcd' https://example.com/<b>x</b>\u202e")
			m := f.message(t, 1, 0)
			if m.Chat != ann || !strings.Contains(m.Text, "https://example.com/<b>x</b>") || strings.Contains(m.Text, "ghp_") || strings.ContainsRune(m.Text, '\u202e') {
				t.Errorf("chat %d shows\n%s", m.Chat, m.Text)
			}
			f.press(ann, ann, m.button(text), "ann_1")
			if v := <-got; v.Decision != want.decision || v.Reasoning != want.says {
				t.Errorf("got %+v", v)
			}
			if m = f.message(t, 1, 1); len(m.Markup.Rows) > 0 || !strings.Contains(m.Text, " by Telegram user 1001 @ann_1.") {
				t.Errorf("afterwards the chat shows %+v", m)
			}
			if len(f.wrong) > 0 {
				t.Errorf("requests %q", f.wrong)
			}
		})
	}
}

// TestTelegramForged: what is no press of an approver on a button of this question
// does not count, and the question goes on waiting.
func TestTelegramForged(t *testing.T) {
	t.Parallel()
	f := newFakeTelegram(t)
	a := asks(t, t.TempDir(), f.URL)
	first := judged(t, a, "git push --force origin one")
	old := f.message(t, 1, 0)
	f.press(ann, ann, old.button("Approve once"))
	if v := <-first; v.Decision != verdict.Allow {
		t.Fatalf("got %+v", v)
	}
	got := judged(t, a, push)
	m := f.message(t, 2, 0)
	yes, no := m.button("Approve once"), m.button("Deny")
	f.answers(t)
	f.mu.Lock()
	f.said = nil // no press is on its way
	f.mu.Unlock()
	f.press(bob, ann, yes)                        // a foreign user
	f.press(bob, bob, yes)                        // in another chat
	f.press(ann, bob, yes)                        // an approver elsewhere
	f.press(0, 0, yes)                            // no one
	f.press(ann, ann, old.button("Approve once")) // a press that was answered
	f.press(ann, ann, "o"+no[1:])                 // another choice with the code of "deny"
	f.press(ann, ann, "o"+yes[1:1+requestIDHexLen]+old.button("Approve once")[1+requestIDHexLen:])
	f.press(ann, ann, "o"+strings.Repeat("0", requestIDHexLen)+yes[1+requestIDHexLen:])
	f.press(ann, ann, "")
	f.press(ann, ann, strings.Repeat("o", 1<<16))
	f.mu.Lock()
	f.news = append(f.news, map[string]any{"update_id": len(f.news) + 1, "message": map[string]any{"text": yes}})
	f.mu.Unlock()
	said := f.answers(t)
	for text, want := range map[string]int{"Your answer does not count: only": 4, "no longer waiting": 1, "did not ask this question": 5, "Denied": 0, "Approved": 0} {
		if got := strings.Count(said, text); got != want {
			t.Errorf("%q is said %d times, want %d:\n%s", text, got, want, said)
		}
	}
	f.press(ann, ann, no, "not a name\n")
	if v := <-got; v.Decision != verdict.Block || v.Reasoning != "denied by Telegram user 1001 (telegram)" {
		t.Errorf("got %+v", v)
	}
}

// TestTelegramOnce: of two presses the first counts, and an answer by another channel
// takes the buttons away.
func TestTelegramOnce(t *testing.T) {
	t.Parallel()
	f := newFakeTelegram(t)
	go func() {
		m := f.message(t, 1, 0)
		f.press(ann, ann, m.button("Deny"))
		f.press(ann, ann, m.button("Approve once"))
	}()
	if v := <-judged(t, asks(t, t.TempDir(), f.URL), push); v.Decision != verdict.Block {
		t.Errorf("got %+v", v)
	}
	elsewhere := &fake{name: "tty"}
	elsewhere.say = func(ctx context.Context, r *Request) (Answer, error) {
		f.message(t, 2, 0)
		f.polled(t) // so the channel knows the number of its message
		return Answer{RequestID: r.ID}, nil
	}
	if v := <-judged(t, asks(t, t.TempDir(), f.URL, elsewhere), push); v.Decision != verdict.Block || !strings.Contains(v.Reasoning, "tty") {
		t.Errorf("got %+v", v)
	}
	if m := f.message(t, 2, 1); len(m.Markup.Rows) > 0 || !strings.Contains(m.Text, "No longer waiting") {
		t.Errorf("the chat shows %+v", m)
	}
}

// TestTelegramLong: what the message does not show as a whole can only be denied.
func TestTelegramLong(t *testing.T) {
	t.Parallel()
	f := newFakeTelegram(t)
	got := judged(t, asks(t, t.TempDir(), f.URL), push+strings.Repeat(" --verbose", 500)+"; rm -rf ~")
	m := f.message(t, 1, 0)
	if len(m.Markup.Rows) != 1 || m.button("Deny") == "" || len(m.Text) > 4096 || !strings.Contains(m.Text, "the rest is not shown") {
		t.Errorf("the chat shows %d bytes, %+v", len(m.Text), m.Markup)
	}
	f.press(ann, ann, m.button("Deny"))
	if v := <-got; v.Decision != verdict.Block {
		t.Errorf("got %+v", v)
	}
}

// TestTelegramProcesses: of two processes that ask one reads presses at a time; when it
// ends, the other does.
func TestTelegramProcesses(t *testing.T) {
	t.Parallel()
	f, dir := newFakeTelegram(t), t.TempDir()
	first := judged(t, asks(t, dir, f.URL), "git push --force origin one")
	one := f.message(t, 1, 0)
	second := judged(t, asks(t, dir, f.URL), "git push --force origin two")
	two := f.message(t, 2, 0)
	f.press(ann, ann, two.button("Approve once"))
	if v := <-second; v.Decision != verdict.Allow {
		t.Errorf("got %+v", v)
	}
	third := judged(t, asks(t, dir, f.URL), "git push --force origin three")
	three := f.message(t, 3, 0)
	f.press(ann, ann, one.button("Deny"))
	if v := <-first; v.Decision != verdict.Block {
		t.Errorf("got %+v", v)
	}
	f.press(ann, ann, three.button("Approve once"))
	if v := <-third; v.Decision != verdict.Allow {
		t.Errorf("got %+v", v)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readings != 1 {
		t.Errorf("%d readers at a time", f.readings)
	}
}
