package approve

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// TestOnePage has two processes ask at once. Both are answered on one page, and
// when the process that serves it ends, the other serves it at the same address
// to a page that is open already.
func TestOnePage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := pageIn(t, dir, push, "rm -rf build")
	second := pageIn(t, dir, "git reset --hard", "git clean -fd")
	if first.link.String() != second.link.String() {
		t.Fatalf("two links: %s and %s", first.link, second.link)
	}
	browser := first.client()
	var list []pageApprovalRequestJSON
	for next := first.lists(browser); len(list) < 4; {
		list = next().Waiting
	}
	for i, want := range []string{push, "rm -rf build", "git reset --hard", "git clean -fd"} {
		if list[i].Number != i+1 || list[i].Payload[0].Value != want {
			t.Errorf("question %d is %d, %q; want %q", i+1, list[i].Number, list[i].Summary, want)
		}
	}
	if got := first.post(browser, "/answer", answerJSON(t, list[2].ID, choiceOnce, ""), nil); got != http.StatusOK {
		t.Fatalf("answer: status %d", got)
	}
	if v := <-second.verdict; v.Decision != verdict.Allow || v.Reasoning != "approved once by ann on the approval page (web)" {
		t.Errorf("got %+v", v)
	}
	status, key := first.enter(browser, "code", first.link.Fragment)
	if status != http.StatusOK || len(key) != 64 {
		t.Fatalf("status %d, key %q", status, key)
	}
	if err := first.a.Close(); err != nil {
		t.Fatal(err)
	}
	var served ApprovalPageState
	until(t, func() (ok bool) {
		var err error
		if served, err = ReadApprovalPageState(dir, time.Now()); err != nil {
			t.Fatal(err)
		}
		if served.PageLink == "" {
			return false
		}
		// the lock that says so is taken before the socket
		c, err := net.Dial("tcp", second.link.Host)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if served.PageLink != "http://"+first.link.Host+"/" || served.PageLoginCode != first.link.Fragment {
		t.Errorf("the link is now %s, was %s", served.PageLink, first.link)
	}
	if got := second.post(browser, "/answer", answerJSON(t, list[3].ID, choiceOnce, ""), nil); got != http.StatusUnauthorized {
		t.Errorf("the cookie of a process that has ended: status %d", got)
	}
	if status, again := second.enter(browser, "key", key); status != http.StatusOK || again != key {
		t.Fatalf("an open page is no longer let in: status %d", status)
	}
	shown := second.lists(browser)()
	if r := shown.Answered; len(r) != 1 || r[0].ID != list[2].ID || r[0].Choice != choiceOnce {
		t.Errorf("the other process shows the answers %+v", r)
	}
	last := shown.Waiting
	if len(last) != 1 || last[0].ID != list[3].ID || last[0].Number != 4 {
		t.Fatalf("the other process shows %+v", last)
	}
	if got := second.post(browser, "/answer", answerJSON(t, last[0].ID, choiceDeny, "no"), nil); got != http.StatusOK {
		t.Errorf("answer: status %d", got)
	}
	if v := <-second.verdict; v.Decision != verdict.Block || !strings.HasSuffix(v.Reasoning, ": no") {
		t.Errorf("got %+v", v)
	}
}

// TestOldLinks: a link is good as long as something waits, and no longer.
func TestOldLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := pageIn(t, dir, push)
	if err := first.a.Close(); err != nil {
		t.Fatal(err)
	}
	<-first.verdict
	second := pageIn(t, dir, push)
	if second.link.Host != first.link.Host {
		t.Errorf("the address was %s and is %s", first.link.Host, second.link.Host)
	}
	if second.link.Fragment == first.link.Fragment {
		t.Error("the code of the link is the same")
	}
	if status, key := second.enter(&http.Client{}, "code", first.link.Fragment); status == http.StatusOK || key != "" {
		t.Error("the old link still opens the page")
	}
}

// question puts a question on a page and returns its id.
func (p *opened) question() string {
	p.t.Helper()
	q, err := openInbox(p.a.options.StateDir, pageInboxFolder)
	if err != nil {
		p.t.Fatal(err)
	}
	var list []*inboxQuestion
	until(p.t, func() bool {
		list, err = q.waitingQuestions()
		return err != nil || len(list) == 1
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return list[0].Request.ID
}

// TestForgedAnswers puts files where the process that asks looks for its
// answer. Only what the installation itself wrote, for this question, for this
// user alone, counts; the rest blocks.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	sealed := func(t *testing.T, b *sealedFolder, id string) []byte {
		t.Helper()
		text := []byte(toJSON(t, pageOrChatAnswer{QuestionID: id, Choice: choiceOnce, By: "eve"}))
		return []byte(b.fileHMAC(id+".answer", text) + "\n" + string(text))
	}
	put := func(mode os.FileMode) func(*testing.T, *sealedFolder, string, []byte) {
		return func(t *testing.T, b *sealedFolder, path string, text []byte) {
			t.Helper()
			fresh := path + ".forged"
			if err := os.WriteFile(fresh, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(fresh, mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(fresh, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := func(t *testing.T) *sealedFolder {
		t.Helper()
		b, err := openSealedFolder(t.TempDir(), pageInboxFolder)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tests := []struct {
		name  string
		text  func(t *testing.T, b *sealedFolder, id string) []byte
		put   func(t *testing.T, b *sealedFolder, path string, text []byte)
		allow bool
	}{
		{"the installation's own", sealed, put(0o600), true}, // so that it is the forgery that is refused
		{"no seal", func(t *testing.T, _ *sealedFolder, id string) []byte {
			return []byte(toJSON(t, pageOrChatAnswer{QuestionID: id, Choice: choiceOnce}))
		}, put(0o600), false},
		{"an empty seal", func(t *testing.T, _ *sealedFolder, id string) []byte {
			return []byte("\n" + toJSON(t, pageOrChatAnswer{QuestionID: id, Choice: choiceOnce}))
		}, put(0o600), false},
		{"another installation's", func(t *testing.T, _ *sealedFolder, id string) []byte { return sealed(t, other(t), id) }, put(0o600), false},
		{"one bit changed", func(t *testing.T, b *sealedFolder, id string) []byte {
			return bytes.Replace(sealed(t, b, id), []byte("eve"), []byte("ann"), 1)
		}, put(0o600), false},
		{"an answer to another question", func(t *testing.T, b *sealedFolder, _ string) []byte {
			return sealed(t, b, strings.Repeat("0", requestIDHexLen))
		}, put(0o600), false},
		{"its own seal, another id", func(t *testing.T, b *sealedFolder, id string) []byte {
			text := []byte(toJSON(t, pageOrChatAnswer{QuestionID: strings.Repeat("0", requestIDHexLen), Choice: choiceOnce}))
			return []byte(b.fileHMAC(id+".answer", text) + "\n" + string(text))
		}, put(0o600), false},
		{"the question itself", func(t *testing.T, b *sealedFolder, id string) []byte {
			text, err := os.ReadFile(b.path(id + ".request"))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}, put(0o600), false},
		{"an unknown choice", func(t *testing.T, b *sealedFolder, id string) []byte {
			text := []byte(toJSON(t, pageOrChatAnswer{QuestionID: id, Choice: "yes"}))
			return []byte(b.fileHMAC(id+".answer", text) + "\n" + string(text))
		}, put(0o600), false},
		{"empty", func(*testing.T, *sealedFolder, string) []byte { return nil }, put(0o600), false},
		{"too long", func(t *testing.T, b *sealedFolder, id string) []byte {
			return append(sealed(t, b, id), bytes.Repeat([]byte(" "), maxSealedFileBytes)...)
		}, put(0o600), false},
		{"open to others", sealed, put(0o640), false},
		{"open to all", sealed, put(0o666), false},
		{"a folder", sealed, func(t *testing.T, _ *sealedFolder, path string, _ []byte) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a link to a good one", sealed, func(t *testing.T, b *sealedFolder, path string, text []byte) {
			target := filepath.Join(t.TempDir(), "answer")
			put(0o600)(t, b, target, text)
			if err := os.Symlink(target, path); err != nil {
				t.Skip(err)
			}
		}, false},
		{"another user's", sealed, func(t *testing.T, b *sealedFolder, path string, text []byte) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			fresh := path + ".theirs"
			put(0o600)(t, b, fresh, text)
			if err := os.Chown(fresh, 12345, -1); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(fresh, path); err != nil {
				t.Fatal(err)
			}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPage(t, push)
			id := p.question()
			b, err := openSealedFolder(p.a.options.StateDir, pageInboxFolder)
			if err != nil {
				t.Fatal(err)
			}
			tt.put(t, b, b.path(id+".answer"), tt.text(t, b, id))
			v := <-p.verdict
			if (v.Decision == verdict.Allow) != tt.allow {
				t.Errorf("got %+v", v)
			}
			if !tt.allow && !strings.Contains(v.Reasoning, "web: ") {
				t.Errorf("the reason is not told: %q", v.Reasoning)
			}
		})
	}
}

// TestForgedQuestions: only what a living process of this installation asks is
// shown, and the rest is cleared away.
func TestForgedQuestions(t *testing.T) {
	t.Parallel()
	p := newPage(t, push)
	own := p.question()
	b, err := openInbox(p.a.options.StateDir, pageInboxFolder)
	if err != nil {
		t.Fatal(err)
	}
	dead := strings.Repeat("d", requestIDHexLen)
	if err := b.write(dead+".request", inboxQuestion{Number: 7, DeniedAt: time.Now().Add(time.Hour), Request: &Request{ID: dead, Summary: "be dead"}}); err != nil {
		t.Fatal(err)
	}
	killed := strings.Repeat("e", requestIDHexLen)
	for _, name := range []string{killed + ".lock", killed + ".answer.new", dead + ".answer", "..request", "x.request", strings.Repeat("g", requestIDHexLen) + ".request"} {
		if err := os.WriteFile(b.path(name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool {
		ids, err := b.questionIDs()
		if err != nil {
			t.Fatal(err)
		}
		return len(ids) == 1
	})
	list := p.lists(p.client())().Waiting
	if len(list) != 1 || list[0].ID != own {
		t.Errorf("shown: %+v", list)
	}
	// A process that lives, and a question that it did not seal.
	foreign := &Request{ID: strings.Repeat("f", requestIDHexLen), Summary: "be foreign", timeToAnswer: time.Hour, clock: time.Now}
	alive, err := b.addQuestion(t.Context(), foreign, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.removeQuestion(foreign.ID, alive) })
	if err := os.WriteFile(b.path(foreign.ID+".request"), []byte("0\n{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := openInbox(p.a.options.StateDir, pageInboxFolder)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := again.waitingQuestions(); err != nil || len(list) != 1 || list[0].Request.ID != own {
		t.Errorf("waiting: %+v, %v", list, err)
	}
}

// TestDeadQuestions: what a killed process has left is not taken for a question,
// also where no page is served that would clear it away.
func TestDeadQuestions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := openInbox(dir, pageInboxFolder)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := &Request{ID: strings.Repeat("a", requestIDHexLen), timeToAnswer: time.Hour, clock: time.Now}
	alive, err := b.addQuestion(t.Context(), r, now)
	if err != nil {
		t.Fatal(err)
	}
	late := &Request{ID: strings.Repeat("b", requestIDHexLen), clock: time.Now}
	waits, err := b.addQuestion(t.Context(), late, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.removeQuestion(late.ID, waits) })
	if q, err := ReadApprovalPageState(dir, now); err != nil || len(q.Waiting) != 1 || q.Waiting[0].Number != 1 || q.PageLink != "" {
		t.Errorf("%+v, %v; want the first alone, since the second has no time left", q, err)
	}
	alive.Close() // as the kernel does for a process that dies
	if q, err := ReadApprovalPageState(dir, now); err != nil || len(q.Waiting) != 0 {
		t.Errorf("%+v, %v; want none", q, err)
	}
	if err := b.removeFilesOfDeadAskers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ids, err := b.questionIDs(); err != nil || len(ids) != 1 || !ids[late.ID] {
		t.Errorf("left: %v, %v", ids, err)
	}
}

// TestForgedPage: an address that another program wrote down is not used.
func TestForgedPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := openInbox(dir, pageInboxFolder)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	known := pageAccessRecord{Address: address, PageSecret: strings.Repeat("0", 64), LoginCode: strings.Repeat("1", 64)}
	if err := os.WriteFile(b.path(pageAccessRecordFileName), []byte(strings.Repeat("0", 64)+"\n"+toJSON(t, known)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := pageIn(t, dir, push)
	if p.link.Fragment == known.LoginCode {
		t.Errorf("the link is %s", p.link)
	}
	if status, _ := p.enter(&http.Client{}, "key", known.PageSecret); status == http.StatusOK {
		t.Error("a key of somebody else's opens the page")
	}
}

// TestAddressTaken: where another program has taken the page's address, the
// page moves, with other secrets, and says so.
func TestAddressTaken(t *testing.T) {
	t.Parallel()
	var (
		dir, key string
		first    *opened
	)
	for taken := false; !taken; {
		dir = t.TempDir()
		first = pageIn(t, dir, push)
		_, key = first.enter(&http.Client{}, "code", first.link.Fragment)
		if err := first.a.Close(); err != nil {
			t.Fatal(err)
		}
		<-first.verdict
		l, err := net.Listen("tcp", first.link.Host)
		switch {
		case err == nil:
			t.Cleanup(func() { l.Close() })
			taken = true
		case !errors.Is(err, syscall.EADDRINUSE): // a test beside this one may hold the free port for a moment
			t.Fatal(err)
		}
	}
	second := pageIn(t, dir, push)
	if second.link.Host == first.link.Host {
		t.Fatalf("both at %s", second.link.Host)
	}
	q, err := ReadApprovalPageState(dir, time.Now())
	if err != nil || q.PreviousPageAddress != first.link.Host || q.PageLink != "http://"+second.link.Host+"/" || len(q.Waiting) != 1 {
		t.Errorf("%+v, %v", q, err)
	}
	if status, _ := second.enter(&http.Client{}, "key", key); status == http.StatusOK {
		t.Error("the key that was good at the old address still opens the page")
	}
	if text := second.a.options.NoticeOutput.(*notices).b.String(); !strings.Contains(text, "another program uses "+first.link.Host) {
		t.Errorf("printed: %s", text)
	}
	if err := second.a.Close(); err != nil {
		t.Fatal(err)
	}
	<-second.verdict
	if third := pageIn(t, dir, push); third.link.Host != second.link.Host {
		t.Errorf("the new address is not kept: %s, then %s", second.link.Host, third.link.Host)
	}
}

// TestInboxRefuses: a folder that others can reach, or have put there, is not
// used.
func TestInboxRefuses(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(dir string) error{
		"a link":         func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"a file":         func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"open to others": func(dir string) error { return os.Mkdir(dir, 0o755) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, "inbox")); err != nil {
			t.Fatal(err)
		}
		a := newTest(t, &memory{})
		a.options.StateDir = dir
		a.channels = []ApprovalChannel{newWebChannel(&a.options)}
		if v, err := a.Judge(t.Context(), command1(t, push, "s")); err != nil || v.Decision != verdict.Block || !strings.Contains(v.Reasoning, "approval inbox") {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// TestInboxBounds: a flood of questions, and a long one, cost what they may.
func TestInboxBounds(t *testing.T) {
	t.Parallel()
	b, err := openInbox(t.TempDir(), pageInboxFolder)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	long := &Request{ID: strings.Repeat("f", requestIDHexLen), timeToAnswer: time.Hour, clock: time.Now}
	for i := range maxPayloadFields {
		long.Payload = append(long.Payload, PayloadField{fmt.Sprint(i), strings.Repeat("\"\\", maxFieldBytes/2)})
	}
	alive, err := b.addQuestion(t.Context(), long, now)
	if err != nil {
		t.Fatal(err)
	}
	list, err := b.waitingQuestions()
	if err != nil || len(list) != 1 || len(list[0].Request.Payload) != maxPayloadFields || !strings.Contains(list[0].Request.Payload[0].Value, "more bytes are not shown") {
		t.Fatalf("the long question: %v", err)
	}
	if info, err := os.Stat(b.path(long.ID + ".request")); err != nil || info.Size() > maxSealedFileBytes {
		t.Errorf("its file: %v, %v", info, err)
	}
	b.removeQuestion(long.ID, alive)
	for i := range maxWaitingQuestions {
		r := &Request{ID: fmt.Sprintf("%032x", i), timeToAnswer: time.Hour, clock: time.Now}
		alive, err := b.addQuestion(t.Context(), r, now.Add(time.Duration(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.removeQuestion(r.ID, alive) })
	}
	one := &Request{ID: strings.Repeat("e", requestIDHexLen), timeToAnswer: time.Hour, clock: time.Now}
	if _, err := b.addQuestion(t.Context(), one, now); err == nil || !strings.Contains(err.Error(), "100 questions are already waiting") {
		t.Errorf("one too many: %v", err)
	}
	if ids, err := b.questionIDs(); err != nil || len(ids) != maxWaitingQuestions {
		t.Errorf("%d ids, %v", len(ids), err)
	}
}

// TestHostedPrintsNoLink: the host of a hook keeps what it prints, and may show
// it to the agent.
func TestHostedPrintsNoLink(t *testing.T) {
	t.Parallel()
	var n notices
	a := newTest(t, &memory{})
	a.options.NoticeOutput, a.options.SharesParentTerminal = &n, true
	w := newWebChannel(&a.options).(*webChannel)
	t.Cleanup(func() { w.Close() })
	link, err := w.ServedPageLink(t.Context())
	if err != nil || !strings.HasPrefix(link, "http://127.0.0.1:") {
		t.Errorf("link %q, %v", link, err)
	}
	if n.b.Len() != 0 {
		t.Errorf("printed: %s", &n.b)
	}
}
