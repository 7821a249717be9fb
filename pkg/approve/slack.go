package approve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/shieldcli/shield/pkg/config"
)

// slack asks by [Slack's Web API]. The bot needs the scopes chat:write, reactions:read
// and reactions:write.
//
// [Slack's Web API]: https://docs.slack.dev/apis/web-api/
var slack = chatService{
	name: "slack", title: "Slack", apiBaseURL: "https://slack.com/api",
	botTokenFormat:   botTokenFormat{settingName: "approval.slack.token_file", pattern: `^xoxb-[A-Za-z0-9-]{10,200}$`, example: "xoxb-…"},
	userIDPattern:    `^[UW][A-Z0-9]{5,20}$`,
	chatIDPattern:    `^[CGDUW][A-Z0-9]{5,20}$`,
	maxQuestionBytes: 3000,
	settings:         func(a *config.Approval) *config.ChatApproval { return &a.Slack },
	connect:          func(b chatBot) chatServiceClient { return &slackClient{b} },
}

type slackClient struct{ chatBot }

// call calls a method. The method reactions.get does not accept JSON.
func (b *slackClient) call(ctx context.Context, c chatServiceCall, out any) error {
	c.method, c.path = http.MethodPost, "/"+c.operationDescription
	c.header = http.Header{"Authorization": {"Bearer " + b.token}}
	status, data, err := b.send(ctx, b.requestTimeout, c)
	if err != nil {
		return err
	}
	var reply struct {
		OK     bool   `json:"ok"`
		Error  string `json:"error"`
		Needed string `json:"needed"`
	}
	switch err := json.Unmarshal(data, &reply); {
	case err != nil || status != http.StatusOK || !reply.OK && reply.Error == "":
		return fmt.Errorf("%s: status %d, and an answer that does not match the API; check the channel's address in the settings", c.operationDescription, status)
	case !reply.OK && reply.Needed != "":
		return fmt.Errorf("%s: %s: the bot lacks the OAuth scope %s; add it in the settings of the Slack app", c.operationDescription, b.withoutToken(reply.Error), b.withoutToken(reply.Needed))
	case !reply.OK:
		return fmt.Errorf("%s: %s", c.operationDescription, b.withoutToken(reply.Error))
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s: the service's answer does not match its API; check the channel's address in the settings", c.operationDescription)
	}
	return nil
}

func (b *slackClient) botUserID(ctx context.Context) (string, error) {
	var out struct {
		User string `json:"user_id"`
	}
	err := b.call(ctx, chatServiceCall{operationDescription: "auth.test", jsonBody: struct{}{}}, &out)
	if err == nil && out.User == "" {
		err = errors.New("auth.test of Slack: the service's answer does not name the bot's user; check the token of the bot")
	}
	return out.User, err
}

// directChatID returns the user ID: messages posted there go to the chat with the bot.
func (b *slackClient) directChatID(_ context.Context, user string) (string, error) { return user, nil }

// slackMessageBlocks returns blocks with a text, without markup, mentions, links or emoji, and footerText
// below it.
func slackMessageBlocks(text, footerText string) []any {
	type element map[string]any
	literal := func(kind, s string) element {
		return element{"type": kind, "elements": []element{{"type": "text", "text": s}}}
	}
	return []any{element{"type": "rich_text", "elements": []element{literal("rich_text_preformatted", text), literal("rich_text_section", footerText)}}}
}

// slackNotificationText returns the first line of a text, for notifications.
func slackNotificationText(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(line)
}

func (b *slackClient) post(ctx context.Context, chat, text, footerText string) (postedMessage, error) {
	var out struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	err := b.call(ctx, chatServiceCall{operationDescription: "chat.postMessage", jsonBody: map[string]any{
		"channel": chat, "text": slackNotificationText(text), "blocks": slackMessageBlocks(text, footerText), "mrkdwn": false, "parse": "none",
		"unfurl_links": false, "unfurl_media": false,
	}}, &out)
	direct := chat[0] == 'U' || chat[0] == 'W'
	switch {
	case err != nil:
	case !regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,9}$`).MatchString(out.TS) || !regexp.MustCompile(slack.chatIDPattern).MatchString(out.Channel) || !direct && out.Channel != chat:
		err = errors.New("chat.postMessage of Slack: the service's answer does not identify the message; check the channel's address in the settings")
	}
	return postedMessage{out.Channel, out.TS}, err
}

func (b *slackClient) edit(ctx context.Context, p postedMessage, text, footerText string) error {
	return b.call(ctx, chatServiceCall{operationDescription: "chat.update", jsonBody: map[string]any{
		"channel": p.chat, "ts": p.id, "text": slackNotificationText(text), "blocks": slackMessageBlocks(text, footerText), "parse": "none",
	}}, new(struct{}))
}

// slackEmojiName returns the service's name of a reaction.
func slackEmojiName(choice string) string {
	switch choice {
	case choiceDeny:
		return "x"
	case choiceOnce:
		return "white_check_mark"
	default:
		return "hourglass_flowing_sand"
	}
}

func (b *slackClient) addReaction(ctx context.Context, p postedMessage, choice string) error {
	return b.call(ctx, chatServiceCall{operationDescription: "reactions.add", jsonBody: map[string]string{"channel": p.chat, "timestamp": p.id, "name": slackEmojiName(choice)}}, new(struct{}))
}

func (b *slackClient) readReactions(ctx context.Context, p postedMessage, choices []string) (map[string][]reactingUser, error) {
	var out struct {
		Channel string `json:"channel"`
		Message struct {
			TS        string `json:"ts"`
			Reactions []struct {
				Name  string   `json:"name"`
				Users []string `json:"users"`
				Count int      `json:"count"`
			} `json:"reactions"`
		} `json:"message"`
	}
	err := b.call(ctx, chatServiceCall{operationDescription: "reactions.get", formBody: url.Values{"channel": {p.chat}, "timestamp": {p.id}, "full": {"true"}}}, &out)
	switch {
	case err != nil:
		return nil, err
	case out.Channel != p.chat || out.Message.TS != p.id:
		return nil, errors.New("reactions.get: the service's answer is about another message; check the channel's address in the settings")
	}
	marks := map[string][]reactingUser{}
	for _, choice := range choices {
		for _, r := range out.Message.Reactions {
			if r.Name != slackEmojiName(choice) {
				continue
			}
			if r.Count != len(r.Users) {
				return nil, errors.New("reactions.get: more users reacted than the service lists; run 'shield approvals' to answer on the approval page")
			}
			for _, user := range r.Users {
				marks[choice] = append(marks[choice], reactingUser{id: user})
			}
		}
	}
	return marks, nil
}
