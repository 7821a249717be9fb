package approve

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestReactions: each reaction gives its verdict, and the message says so afterwards.
func TestReactions(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		for choice, want := range map[string]struct {
			decision verdict.Decision
			says     string
		}{
			choiceDeny:     {verdict.Block, "denied by "},
			choiceOnce:     {verdict.Allow, "approved once by "},
			choiceRemember: {verdict.Allow, "approved for 10 minutes by "},
		} {
			t.Run(choice, func(t *testing.T) {
				t.Parallel()
				f := k.new(t)
				got := judged(t, f.asks(t), "curl -H 'Authorization: Bearer ghp_0123456789abcdefABCDEF0123456789abcd' https://example.com/<b>x</b>\u202e")
				m := f.message(t, 1, 0)
				if m.chat != k.room || !strings.Contains(m.text, "https://example.com/<b>x</b>") ||
					strings.Contains(m.text, "ghp_") || strings.ContainsRune(m.text, '\u202e') || !strings.Contains(m.word, "React within 1m: ❌ Deny. ✅ Approve once. ⏳ Approve for 10 minutes.") {
					t.Errorf("chat %s shows\n%s\n%s", m.chat, m.text, m.word)
				}
				f.react(1, k.ann, choiceEmoji(choice))
				by := k.service.title + " user " + k.ann
				if v := <-got; v.Decision != want.decision || !strings.HasPrefix(v.Reasoning, want.says+by) || !strings.HasSuffix(v.Reasoning, " ("+k.service.name+")") {
					t.Errorf("got %+v", v)
				}
				after := f.message(t, 1, 1)
				if after.text != m.text || !strings.Contains(after.word, choiceOutcomeText(choice)+" by "+by) || strings.Contains(after.word, "React") {
					t.Errorf("afterwards the chat shows %+v", after)
				}
				if len(f.wrong) > 0 {
					t.Errorf("requests %q", f.wrong)
				}
			})
		}
	})
}

// TestReactionsMarkup: what an action says is shown as it stands, and calls no one.
func TestReactionsMarkup(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		const odd = "<!channel> @everyone <@U0ANN0001> ```` *x* &lt; :x: [a](https://example.com) ``` ❌ Deny."
		got := judged(t, f.asks(t), "git push --force origin '"+odd+"'")
		if m := f.message(t, 1, 0); !strings.Contains(m.text, odd) || strings.Contains(m.word, odd) || len(f.wrong) > 0 {
			t.Errorf("the chat shows\n%s\n%s\nrequests %q", m.text, m.word, f.wrong)
		}
		f.react(1, k.ann, choiceEmoji(choiceDeny))
		if v := <-got; v.Decision != verdict.Block {
			t.Errorf("got %+v", v)
		}
	})
}

// TestReactionsForged: what is no approver's reaction to this message does not count,
// and the question goes on waiting.
func TestReactionsForged(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		a := k.asks(t, f.URL, config.ChatApproval{Approvers: []string{k.ann, k.self}, ChatID: k.room}) // the bot's own reactions would count
		first := judged(t, a, "git push --force origin one")
		f.message(t, 1, 0)
		f.react(1, k.ann, choiceEmoji(choiceOnce))
		if v := <-first; v.Decision != verdict.Allow {
			t.Fatalf("got %+v", v)
		}
		got := judged(t, a, push)
		f.message(t, 2, 0)
		f.react(2, k.bob, choiceEmoji(choiceOnce))                      // another person
		f.react(2, k.bob, choiceEmoji(choiceDeny))                      // whose no does not count either
		f.react(1, k.ann, choiceEmoji(choiceDeny))                      // an approver, to another question
		f.react(2, k.ann, "👍")                                          // another reaction
		f.react(2, k.ann+"0", choiceEmoji(choiceOnce))                  // of nearly the same number
		f.react(2, "", choiceEmoji(choiceOnce))                         // of no one
		f.react(2, strings.ToLower(k.ann)+" ", choiceEmoji(choiceOnce)) // of another form
		f.polls(t, 3)
		select {
		case v := <-got:
			t.Fatalf("got %+v", v)
		default:
		}
		f.react(2, k.ann, choiceEmoji(choiceDeny))
		if v := <-got; v.Decision != verdict.Block || !strings.HasPrefix(v.Reasoning, "denied by "+k.service.title+" user "+k.ann) {
			t.Errorf("got %+v", v)
		}
	})
}

// TestReactionsOnce: a no wins over a yes that is seen with it, a yes for once over one
// for longer; what comes after the answer changes nothing, and another channel's answer
// ends the question.
func TestReactionsOnce(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		for _, tt := range []struct {
			all  []string
			want string
		}{
			{[]string{choiceOnce, choiceRemember, choiceDeny}, "denied by"},
			{[]string{choiceRemember, choiceOnce}, "approved once by"},
		} {
			f := k.new(t)
			a := f.asks(t)
			a.channels[0].(*reactionChannel).pollInterval = 300 * time.Millisecond
			got := judged(t, a, push)
			f.message(t, 1, 0)
			for _, choice := range tt.all {
				f.react(1, k.ann, choiceEmoji(choice))
			}
			if v := <-got; !strings.HasPrefix(v.Reasoning, tt.want) {
				t.Errorf("%q: got %+v", tt.all, v)
			}
			after := f.message(t, 1, 1)
			f.react(1, k.ann, choiceEmoji(choiceOnce))
			f.mu.Lock()
			before := f.calls["read"]
			f.mu.Unlock()
			elsewhere := &fake{name: "tty"}
			elsewhere.say = func(ctx context.Context, r *Request) (Answer, error) {
				f.message(t, 2, 0)
				return Answer{RequestID: r.ID}, nil
			}
			b := f.asks(t, elsewhere)
			b.channels[0].(*reactionChannel).pollInterval = time.Hour
			if v := <-judged(t, b, push); v.Decision != verdict.Block || !strings.Contains(v.Reasoning, "tty") {
				t.Errorf("got %+v", v)
			}
			if m := f.message(t, 2, 1); !strings.Contains(m.word, "No longer waiting") {
				t.Errorf("the chat shows %+v", m)
			}
			if m := f.message(t, 1, 1); m.edits != 1 || m.word != after.word || f.calls["read"] != before {
				t.Errorf("after the answer, the chat shows %+v and was read again", m)
			}
		}
	})
}

// TestReactionsLong: what the message does not show as a whole can only be denied.
func TestReactionsLong(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		got := judged(t, f.asks(t), push+strings.Repeat(" --verbose", 500)+"; rm -rf ~")
		m := f.message(t, 1, 0)
		if strings.Contains(m.word, "Approve") || len(m.by) != 1 || len(m.text) > k.service.maxQuestionBytes+100 || !strings.Contains(m.text, "the rest is not shown") {
			t.Errorf("the chat shows %d bytes, %q, %q", len(m.text), m.word, m.by)
		}
		f.react(1, k.ann, choiceEmoji(choiceOnce))
		f.react(1, k.ann, choiceEmoji(choiceRemember))
		f.polls(t, 3)
		f.react(1, k.ann, choiceEmoji(choiceDeny))
		if v := <-got; v.Decision != verdict.Block {
			t.Errorf("got %+v", v)
		}
	})
}

// TestReactionsProcesses: each process reads the reactions to its own question.
func TestReactionsProcesses(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		first := judged(t, f.asks(t), "git push --force origin one")
		f.message(t, 1, 0)
		second := judged(t, f.asks(t), "git push --force origin two")
		f.message(t, 2, 0)
		f.react(2, k.ann, choiceEmoji(choiceOnce))
		if v := <-second; v.Decision != verdict.Allow {
			t.Errorf("got %+v", v)
		}
		f.react(1, k.ann, choiceEmoji(choiceDeny))
		if v := <-first; v.Decision != verdict.Block {
			t.Errorf("got %+v", v)
		}
	})
}

// TestReactionsLate: an answer after the time is none.
func TestReactionsLate(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		a := f.asks(t)
		a.options.Timeout = config.Duration(300 * time.Millisecond)
		a.channels[0].(*reactionChannel).pollInterval = time.Hour
		got := judged(t, a, push)
		f.message(t, 1, 0)
		f.react(1, k.ann, choiceEmoji(choiceOnce))
		if v := <-got; v.Decision != verdict.Block || v.ErrorCode != "timeout" {
			t.Errorf("got %+v", v)
		}
		if m := f.message(t, 1, 1); !strings.Contains(m.word, "No longer waiting") {
			t.Errorf("the chat shows %+v", m)
		}
	})
}

// TestReactionsDirect: without a chat, the one approver is asked.
func TestReactionsDirect(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		got := judged(t, k.asks(t, f.URL, config.ChatApproval{Approvers: []string{k.ann}}), push)
		if m := f.message(t, 1, 0); m.chat != k.direct(k.ann) {
			t.Errorf("asked in %s", m.chat)
		}
		f.react(1, k.ann, choiceEmoji(choiceOnce))
		if v := <-got; v.Decision != verdict.Allow || len(f.wrong) > 0 {
			t.Errorf("got %+v, requests %q", v, f.wrong)
		}
	})
}

// TestReactionsLimit: a service that wants fewer requests is asked later, and still has
// its say.
func TestReactionsLimit(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		f.limited = 2
		var n notices
		a := f.asks(t)
		a.options.NoticeOutput = &n
		got := judged(t, a, push)
		f.message(t, 1, 0)
		f.mu.Lock()
		f.limited = 3
		f.mu.Unlock()
		f.react(1, k.ann, choiceEmoji(choiceOnce))
		if v := <-got; v.Decision != verdict.Allow || n.b.Len() > 0 {
			t.Errorf("got %+v, said %q", v, n.b.String())
		}
	})
}

// TestReactionsService: a service that refuses, hangs, redirects or says something else
// approves nothing, and what is said about it does not contain a bot token.
func TestReactionsService(t *testing.T) {
	stolen := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(stolen.Close)
	everyService(t, func(t *testing.T, k *fakeKind) {
		for _, call := range []string{"self", "post", "read"} {
			for name, tt := range map[string]struct {
				serve http.HandlerFunc
				want  string
			}{
				"redirects": {func(rw http.ResponseWriter, r *http.Request) {
					http.Redirect(rw, r, stolen.URL+r.URL.Path, http.StatusTemporaryRedirect)
				}, "redirect"},
				"is giant":               {func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, maxBotAPIResponseBytes+1)) }, "longer than"},
				"says what is no answer": {func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("<html>")) }, "does not match"},
				"says nothing":           {func(http.ResponseWriter, *http.Request) {}, "does not match"},
				"is cut off":             {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
				"hangs": {func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
				}, "did not answer in time"},
				"wants to be left alone": {func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Retry-After", "1e300")
					rw.WriteHeader(http.StatusTooManyRequests)
				}, "limits the rate; wait 1h"},
			} {
				if call == "read" && name == "wants to be left alone" {
					continue // it is
				}
				t.Run(call+" "+name, func(t *testing.T) {
					t.Parallel()
					k.blocks(t, call, tt.serve, tt.want)
				})
			}
		}
		for name, tt := range k.odd {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				k.blocks(t, tt.call, func(rw http.ResponseWriter, _ *http.Request) {
					rw.WriteHeader(tt.status)
					_, _ = rw.Write([]byte(strings.NewReplacer("MESSAGE", k.id(1), "ROOM", k.room).Replace(tt.body)))
				}, tt.want)
			})
		}
	})
}

// blocks demands that an answer to a call approves nothing, and that something is said.
func (k *fakeKind) blocks(t *testing.T, call string, serve http.HandlerFunc, want string) {
	t.Helper()
	f := k.new(t)
	f.odd, f.oddCall = serve, call
	var n notices
	a := f.asks(t)
	a.options.NoticeOutput = &n
	if want == "did not answer in time" {
		a.channels[0].(*reactionChannel).requestTimeout = 300 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, got := command1(t, push, ""), make(chan verdict.Verdict, 1)
	go func() {
		v, _ := a.Judge(ctx, c)
		got <- v
	}()
	said := func() string {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.b.String()
	}
	if call == "read" { // it waits in vain
		until(t, func() bool { return said() != "" })
		cancel()
	}
	v := <-got
	text := v.Reasoning + said()
	if v.Decision == verdict.Allow || call != "read" && v.Decision != verdict.Block || !strings.Contains(text, want) {
		t.Errorf("got %+v, said %q; want %q", v, said(), want)
	}
	if strings.Contains(text, k.token) || strings.Contains(text, "\x1b") {
		t.Errorf("the token or a control character is in %q", text)
	}
}

func TestTryMessenger(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		f := k.new(t)
		if err := k.asks(t, f.URL, config.ChatApproval{Approvers: []string{k.ann}}).channels[0].(*reactionChannel).postTestMessage(t.Context(), "trial"); err != nil {
			t.Error(err)
		}
		if m := f.message(t, 1, 0); m.text != "trial" || len(f.wrong) > 0 || f.calls["read"] == 0 {
			t.Errorf("the chat shows %+v, requests %q", m, f.wrong)
		}
		f.limited = 100
		if err := k.asks(t, f.URL, config.ChatApproval{Approvers: []string{k.ann}}).channels[0].(*reactionChannel).postTestMessage(t.Context(), "trial"); err == nil {
			t.Error("a service that refuses is said to have taken the notice")
		}
		o := Options{}
		if err := o.SendTestMessage(t.Context(), k.service.name, "trial"); err == nil || !strings.Contains(err.Error(), "approval."+k.service.name+".token_file") || ChatServiceTitle(k.service.name) != k.service.title {
			t.Errorf("got %v", err)
		}
	})
}

func TestReactionsUsable(t *testing.T) {
	everyService(t, func(t *testing.T, k *fakeKind) {
		for name, tt := range map[string]struct {
			mode  os.FileMode
			token string
			set   config.ChatApproval
			want  string
		}{
			"fine":                {0o600, k.token, config.ChatApproval{Approvers: []string{k.ann}}, ""},
			"a group":             {0o600, k.token, config.ChatApproval{Approvers: []string{k.ann, k.bob}, ChatID: k.room}, ""},
			"nobody":              {0o600, k.token, config.ChatApproval{ChatID: k.room}, ".approvers"},
			"a name":              {0o600, k.token, config.ChatApproval{Approvers: []string{"@ann"}}, `.approvers: "@ann" is not the ID`},
			"an empty name":       {0o600, k.token, config.ChatApproval{Approvers: []string{k.ann, ""}, ChatID: k.room}, `.approvers: "" is not the ID`},
			"a chat's name":       {0o600, k.token, config.ChatApproval{Approvers: []string{k.ann}, ChatID: "#ops/../x"}, `.chat: "#ops/../x" is not the ID`},
			"no chat":             {0o600, k.token, config.ChatApproval{Approvers: []string{k.ann, k.bob}}, ".chat"},
			"others can read it":  {0o644, k.token, config.ChatApproval{Approvers: []string{k.ann}}, "others"},
			"no token":            {0o600, "hunter2", config.ChatApproval{Approvers: []string{k.ann}}, "does not contain a bot token"},
			"a token with a line": {0o600, k.token + "\nX: y", config.ChatApproval{Approvers: []string{k.ann}}, "does not contain a bot token"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o := Options{}
				tt.set.TokenFile = tokenFile(t, tt.mode, tt.token)
				*k.service.settings(&o.Approval) = tt.set
				switch err := o.CheckChannelUsable(k.service.name); {
				case err == nil && tt.want == "":
				case err == nil || tt.want == "" || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), k.token):
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		}
	})
}
