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

// TestTelegramService: a service that refuses, hangs, redirects or sends something else
// blocks, and what is said about it does not contain a bot token.
func TestTelegramService(t *testing.T) {
	t.Parallel()
	stolen := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer stolen.Close()
	const sent = `{"ok":true,"result":{"message_id":1}}`
	text := func(status int, body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		send, updates http.HandlerFunc
		want          string // why no one could be asked, or what is noted
	}{
		"wrong token": {text(401, `{"ok":false,"description":"Unauthorized \u001b[2J`+botToken+`"}`), nil, "sendMessage: status 401: Unauthorized"},
		"redirect": {func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, stolen.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, nil, "redirect"},
		"too many":       {text(429, `{"ok":false,"description":"Too Many Requests"}`), nil, "sendMessage failed: the chat service limits the rate; wait 1s"},
		"no JSON":        {text(200, "<html>"), nil, "status 200"},
		"ok as text":     {text(200, `{"ok":"true","result":{}}`), nil, "status 200"},
		"ok twice":       {text(200, `{"ok":false,"ok":true,"result":{}}`), nil, "status 200"},
		"another result": {text(200, `{"ok":true,"result":[1]}`), nil, "does not match the bot API"},
		"giant":          {text(200, strings.Repeat("x", maxBotAPIResponseBytes+1)), nil, "longer than"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, nil, "did not answer in time"},
		"cut off":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, "EOF"},
		"giant updates":   {text(200, sent), text(200, `{"ok":true,"result":[`+strings.Repeat(" ", maxBotAPIResponseBytes)+`]}`), "getUpdates: the answer of the chat service is longer than"},
		"another reader":  {text(200, sent), text(409, `{"ok":false,"description":"Conflict: terminated by other getUpdates request"}`), "getUpdates: status 409: Conflict"},
		"odd updates":     {text(200, sent), text(200, `{"ok":true,"result":[{"update_id":1,"callback_query":{"id":"q","from":{"id":"1001"}}}]}`), "does not match the bot API"},
		"redirected read": {text(200, sent), func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, stolen.URL, http.StatusFound) }, "redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/getUpdates") {
					tt.updates(rw, r)
				} else {
					tt.send(rw, r)
				}
			}))
			t.Cleanup(srv.Close)
			var n notices
			a := asks(t, t.TempDir(), srv.URL)
			a.options.NoticeOutput = &n
			if name == "hangs" {
				a.channels[0].(*telegramChannel).requestTimeout = 300 * time.Millisecond
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := make(chan verdict.Verdict, 1)
			c := command1(t, push, "")
			go func() {
				v, _ := a.Judge(ctx, c)
				got <- v
			}()
			said := func() string {
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.b.String()
			}
			if tt.updates != nil { // it waits in vain
				until(t, func() bool { return said() != "" })
				cancel()
			}
			v := <-got
			text := v.Reasoning + said()
			if v.Decision == verdict.Allow || tt.updates == nil && v.Decision != verdict.Block || !strings.Contains(text, tt.want) {
				t.Errorf("got %+v, said %q; want %q", v, said(), tt.want)
			}
			if strings.Contains(text, "AAEhBOweik6ad9r") || strings.Contains(text, "\x1b") {
				t.Errorf("the token or a control character is in %q", text)
			}
		})
	}
}

func TestTelegramUsable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode      os.FileMode
		token     string
		chat      int
		approvers []int
		want      string
	}{
		"fine":                {0o600, botToken, 0, []int{ann}, ""},
		"a group":             {0o600, botToken, -100123, []int{ann, bob}, ""},
		"nobody":              {0o600, botToken, ann, nil, "approval.telegram.approvers"},
		"no chat":             {0o600, botToken, 0, []int{ann, bob}, "approval.telegram.chat"},
		"others can read it":  {0o644, botToken, 0, []int{ann}, "others"},
		"no token":            {0o600, "hunter2", 0, []int{ann}, "does not contain a bot token"},
		"a token with a path": {0o600, botToken + "/../x", 0, []int{ann}, "does not contain a bot token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{}
			o.Telegram = config.Telegram{TokenFile: tokenFile(t, tt.mode, tt.token), ChatID: tt.chat, Approvers: tt.approvers}
			switch err := o.CheckChannelUsable("telegram"); {
			case err == nil && tt.want == "":
			case err == nil || tt.want == "" || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "AAEhBOweik6ad9r"):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
