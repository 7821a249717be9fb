package approve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// fakeDiscord is Discord's HTTP API.
var fakeDiscord = &fakeKind{
	service: &discord, token: "MTk4NjIyNDgzNDcxOTI1MjQ4.Gl2FMQ.zaYqPfE3hSX2lcmIEKuMCQkz5yV7wN8oT1rBdA",
	self: "198622483471925248", ann: "300000000000000001", bob: "300000000000000002", room: "400000000000000001",
	name: func(r *http.Request) string {
		last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		switch {
		case r.URL.Path == "/users/@me":
			return "self"
		case r.Method == http.MethodPost && last == "messages":
			return "post"
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/reactions/"):
			return "users"
		case r.Method == http.MethodGet:
			return "read"
		}
		return r.Method + " " + last
	},
	serve:  serveDiscord,
	id:     func(n int) string { return fmt.Sprintf("%018d", 500000000000000000+n) },
	direct: func(user string) string { return "6" + user[1:] },
	odd: map[string]oddAnswer{
		"wrong token":          {"self", 401, `{"message":"401: Unauthorized \u001b[2J MTk4NjIyNDgzNDcxOTI1MjQ4.Gl2FMQ.zaYqPfE3hSX2lcmIEKuMCQkz5yV7wN8oT1rBdA","code":0}`, "status 401: 401: Unauthorized <U+001B>[2J [token]"},
		"nobody's token":       {"self", 200, `{"username":"x"}`, "has no valid ID"},
		"no access":            {"post", 403, `{"message":"Missing Access","code":50001}`, "the message: status 403: Missing Access"},
		"posted elsewhere":     {"post", 200, `{"id":"500000000000000001","channel_id":"400000000000000009"}`, "the service posted the message to another channel; check approval.slack.chat or approval.discord.chat"},
		"posted nowhere":       {"post", 200, `{}`, "the service posted the message to another channel; check approval.slack.chat or approval.discord.chat"},
		"an odd message":       {"post", 200, `{"id":"../../users/1","channel_id":"ROOM"}`, "has no valid ID"},
		"accepted, not posted": {"post", 202, `{"id":"MESSAGE","channel_id":"ROOM"}`, "status 202"},
		"another message":      {"read", 200, `{"id":"500000000000000002","channel_id":"ROOM","reactions":[` + discordYes + `]}`, "about another message"},
		"another chat":         {"read", 200, `{"id":"MESSAGE","channel_id":"400000000000000009","reactions":[` + discordYes + `]}`, "about another message"},
		"no content":           {"read", 204, ``, "status 204"},
		"an error of HTTP":     {"read", 500, `{"id":"MESSAGE","channel_id":"ROOM","reactions":[` + discordYes + `]}`, "status 500"},
		"a number as text":     {"read", 200, `{"id":"MESSAGE","channel_id":"ROOM","reactions":[{"emoji":{"id":null,"name":"✅"},"count":"1"}]}`, "does not match"},
		"an answer twice":      {"read", 200, `{"id":"x","id":"MESSAGE","channel_id":"ROOM","reactions":[` + discordYes + `]}`, "does not match"},
	},
}

const discordYes = `{"emoji":{"id":null,"name":"✅"},"count":2,"me":true}`

func serveDiscord(f *fakeService, name string, rw http.ResponseWriter, r *http.Request) bool {
	var in struct {
		Content         string
		Flags           int
		AllowedMentions struct{ Parse []string } `json:"allowed_mentions"`
		Recipient       string                   `json:"recipient_id"`
	}
	right := r.Header.Get("Authorization") == "Bot "+f.kind.token && strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot (")
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		right = json.NewDecoder(r.Body).Decode(&in) == nil && right
	}
	var text, word string
	if in.Content != "" {
		inner, begins := strings.CutPrefix(in.Content, "```\n")
		var ends bool
		text, word, ends = strings.Cut(inner, "\n```\n")
		right = right && begins && ends && !strings.Contains(text, "```") && len([]rune(in.Content)) <= 2000 && in.Flags == 4 && in.AllowedMentions.Parse != nil && len(in.AllowedMentions.Parse) == 0
		text = strings.ReplaceAll(text, "\u200b", "")
	}
	parts := strings.Split(r.URL.EscapedPath(), "/") // "", "channels", CHAT, "messages", ID, "reactions", EMOJI, "@me"
	at := func(i int) string {
		if i >= len(parts) {
			return ""
		}
		part, _ := url.PathUnescape(parts[i])
		return part
	}
	answer := func(m *reacted) map[string]any { return map[string]any{"id": m.id, "channel_id": m.chat} }
	var out any
	switch name {
	case "self":
		out = map[string]any{"id": f.kind.self, "bot": true}
	case "POST channels":
		out = map[string]any{"id": f.kind.direct(in.Recipient), "type": 1}
	case "post":
		out = answer(f.add(at(2), text, word))
	case "PATCH " + at(4):
		m := f.find(at(2), at(4))
		m.text, m.word, m.edits = text, word, m.edits+1
		out = answer(m)
	case "PUT @me":
		m := f.find(at(2), at(4))
		m.by[at(6)] = append(m.by[at(6)], f.kind.self)
		rw.WriteHeader(http.StatusNoContent)
		return right
	case "read":
		m, list := f.find(at(2), at(4)), []any{}
		for reaction, by := range m.by {
			list = append(list, map[string]any{"count": len(by), "me": by[0] == f.kind.self, "emoji": map[string]any{"id": nil, "name": reaction}})
		}
		all := answer(m)
		all["reactions"], out = list, all
	case "users":
		list := []any{}
		for _, user := range f.find(at(2), at(4)).by[at(6)] {
			list = append(list, map[string]any{"id": user, "username": "ann_1", "global_name": "<b>Ann", "bot": user == f.kind.self})
		}
		out = list
		right = right && r.URL.RawQuery == "limit=100"
	default:
		right = false
	}
	_ = json.NewEncoder(rw).Encode(out)
	return right
}

// TestDiscordUsers: a bot that is named as an approver does not answer, and a list that
// may lack a no is none.
func TestDiscordUsers(t *testing.T) {
	t.Parallel()
	k := fakeDiscord
	many := "[" + strings.Repeat(`{"id":"300000000000000009"},`, maxReactingUsersPerRequest-1) + `{"id":"` + k.ann + `"}]`
	for users, want := range map[string]string{
		`[{"id":"` + k.ann + `","bot":true}]`: "",
		many:                                  ": more users reacted than shield reads; run 'shield approvals' to answer on the approval page",
		`{"id":"` + k.ann + `"}`:              "does not match",
	} {
		f := k.new(t)
		f.odd, f.oddCall = func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, users) }, "users"
		var n notices
		a := f.asks(t)
		a.options.NoticeOutput = &n
		ctx, cancel := context.WithCancel(t.Context())
		c, got := command1(t, push, ""), make(chan verdict.Verdict, 1)
		go func() {
			v, _ := a.Judge(ctx, c)
			got <- v
		}()
		f.message(t, 1, 0)
		f.react(1, k.bob, choiceEmoji(choiceOnce))
		if want == "" {
			f.polls(t, 3)
		} else {
			until(t, func() bool {
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.b.Len() > 0
			})
		}
		cancel()
		if v := <-got; v.Decision == verdict.Allow || !strings.Contains(n.b.String(), want) || want == "" && n.b.Len() > 0 {
			t.Errorf("got %+v, said %q; want %q", v, n.b.String(), want)
		}
	}
}
