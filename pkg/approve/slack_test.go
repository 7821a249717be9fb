package approve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// fakeSlack is Slack's Web API.
var fakeSlack = &fakeKind{
	service: &slack, token: "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzqqgy",
	self: "U0BOT0001", ann: "U0ANN0001", bob: "U0BOB0001", room: "C0ROOM001",
	name: func(r *http.Request) string {
		name := strings.TrimPrefix(r.URL.Path, "/")
		return cmp.Or(map[string]string{"auth.test": "self", "chat.postMessage": "post", "reactions.get": "read"}[name], name)
	},
	serve:  serveSlack,
	id:     func(n int) string { return fmt.Sprintf("1503435956.%06d", n) },
	direct: func(user string) string { return "D" + user[1:] },
	odd: map[string]oddAnswer{
		"wrong token":         {"self", 200, `{"ok":false,"error":"invalid_auth \u001b[2J xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzqqgy"}`, "auth.test: invalid_auth <U+001B>[2J [token]"},
		"nobody's token":      {"self", 200, `{"ok":true}`, "does not name the bot's user"},
		"no member":           {"post", 200, `{"ok":false,"error":"not_in_channel"}`, "chat.postMessage: not_in_channel"},
		"no scope":            {"read", 200, `{"ok":false,"error":"missing_scope","needed":"reactions:read"}`, "reactions.get: missing_scope: the bot lacks the OAuth scope reactions:read; add it in the settings of the Slack app"},
		"ok as text":          {"post", 200, `{"ok":"true"}`, "does not match"},
		"ok twice":            {"read", 200, `{"ok":false,"ok":true,` + slackApproved + `}`, "does not match"},
		"ok in another case":  {"read", 200, `{"OK":true,` + slackApproved + `}`, "does not match"},
		"not ok and approved": {"read", 200, `{"ok":false,"error":"x",` + slackApproved + `}`, "reactions.get: x"},
		"an error of HTTP":    {"read", 500, `{"ok":true,` + slackApproved + `}`, "status 500"},
		"posted elsewhere":    {"post", 200, `{"ok":true,"channel":"C0OTHER01","ts":"1503435956.000001"}`, "does not identify the message"},
		"posted nowhere":      {"post", 200, `{"ok":true}`, "does not identify the message"},
		"an odd message":      {"post", 200, `{"ok":true,"channel":"ROOM","ts":"../1"}`, "does not identify the message"},
		"another message":     {"read", 200, `{"ok":true,"channel":"ROOM","message":{"ts":"1503435956.000002","reactions":[` + slackYes + `]}}`, "about another message"},
		"another chat":        {"read", 200, `{"ok":true,"channel":"C0OTHER01","message":{"ts":"MESSAGE","reactions":[` + slackYes + `]}}`, "about another message"},
		"a file":              {"read", 200, `{"ok":true,"type":"file","file":{"reactions":[` + slackYes + `]}}`, "about another message"},
		"some of a no": {"read", 200, `{"ok":true,"channel":"ROOM","message":{"ts":"MESSAGE","reactions":[` + slackYes + `,{"name":"x","users":["U0BOT0001"],"count":2}]}}`,
			"reactions.get: more users reacted than the service lists; run 'shield approvals' to answer on the approval page"},
		"users as text":    {"read", 200, `{"ok":true,"channel":"ROOM","message":{"ts":"MESSAGE","reactions":[{"name":"white_check_mark","users":"U0ANN0001","count":1}]}}`, "does not match"},
		"users as objects": {"read", 200, `{"ok":true,"channel":"ROOM","message":{"ts":"MESSAGE","reactions":[{"name":"white_check_mark","users":[{"id":"U0ANN0001"}],"count":1}]}}`, "does not match"},
		"two objects":      {"read", 200, `{"ok":true,` + slackApproved + `}{}`, "does not match"},
	},
}

const (
	slackYes      = `{"name":"white_check_mark","users":["U0ANN0001"],"count":1}`
	slackApproved = `"channel":"ROOM","message":{"ts":"MESSAGE","reactions":[` + slackYes + `]}`
)

// slackReactions are the names of reactions.
var slackReactions = map[string]string{"x": "❌", "white_check_mark": "✅", "hourglass_flowing_sand": "⏳", "+1": "👍"}

func serveSlack(f *fakeService, name string, rw http.ResponseWriter, r *http.Request) (right bool) {
	var in struct {
		Channel, TS, Timestamp, Name, Parse, Text string
		Blocks                                    []struct {
			Type     string
			Elements []struct {
				Type     string
				Elements []struct{ Type, Text string }
			}
		}
	}
	right = r.Method == http.MethodPost && r.Header.Get("Authorization") == "Bearer "+f.kind.token && r.URL.RawQuery == ""
	if name == "read" {
		right = right && r.ParseForm() == nil && r.Form.Get("full") == "true"
		in.Channel, in.Timestamp = r.Form.Get("channel"), r.Form.Get("timestamp")
	} else if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		right = false
	}
	var text, word string
	if len(in.Blocks) == 1 && in.Blocks[0].Type == "rich_text" && len(in.Blocks[0].Elements) == 2 {
		e := in.Blocks[0].Elements
		text, word = e[0].Elements[0].Text, e[1].Elements[0].Text
		right = right && e[0].Type == "rich_text_preformatted" && e[0].Elements[0].Type == "text" && e[1].Elements[0].Type == "text" &&
			in.Parse == "none" && !strings.Contains(in.Text, "<") && !strings.Contains(in.Text, "\n")
	}
	out := map[string]any{"ok": true}
	switch name {
	case "self":
		out["user_id"] = f.kind.self
	case "post":
		if in.Channel[0] == 'U' {
			in.Channel = f.kind.direct(in.Channel)
		}
		m := f.add(in.Channel, text, word)
		out["channel"], out["ts"] = m.chat, m.id
	case "chat.update":
		m := f.find(in.Channel, in.TS)
		m.text, m.word, m.edits = text, word, m.edits+1
	case "reactions.add":
		m, reaction := f.find(in.Channel, in.Timestamp), slackReactions[in.Name]
		m.by[reaction] = append(m.by[reaction], f.kind.self)
	case "read":
		m, list := f.find(in.Channel, in.Timestamp), []any{}
		for name, reaction := range slackReactions {
			if by := m.by[reaction]; len(by) > 0 {
				list = append(list, map[string]any{"name": name, "users": by, "count": len(by)})
			}
		}
		out["type"], out["channel"], out["message"] = "message", m.chat, map[string]any{"ts": m.id, "reactions": list}
	default:
		right = false
	}
	_ = json.NewEncoder(rw).Encode(out)
	return right
}
