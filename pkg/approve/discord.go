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

// discord asks by [Discord's HTTP API]. The bot needs the permissions to see the
// channel, send messages, add reactions and read the history of messages.
//
// [Discord's HTTP API]: https://discord.com/developers/docs/reference
var discord = chatService{
	name: "discord", title: "Discord", apiBaseURL: "https://discord.com/api/v10",
	botTokenFormat:   botTokenFormat{settingName: "approval.discord.token_file", pattern: `^[A-Za-z0-9_-]{20,40}\.[A-Za-z0-9_-]{5,10}\.[A-Za-z0-9_-]{20,100}$`, example: "MTk4NjIyNDgzNDcx….Gxyz12.…"},
	userIDPattern:    discordIDPattern,
	chatIDPattern:    discordIDPattern,
	maxQuestionBytes: 1600, // leaves room for the footer: Discord allows 2,000 characters per message
	settings:         func(a *config.Approval) *config.ChatApproval { return &a.Discord },
	connect:          func(b chatBot) chatServiceClient { return &discordClient{b} },
}

// discordIDPattern matches the IDs that Discord gives to users, channels and messages.
const discordIDPattern = `^[0-9]{15,20}$`

// maxReactingUsersPerRequest is how many users of a reaction the service names at a time.
const maxReactingUsersPerRequest = 100

type discordClient struct{ chatBot }

// call calls the service. A nil out is for an answer without content.
func (b *discordClient) call(ctx context.Context, c chatServiceCall, out any) error {
	c.header = http.Header{"Authorization": {"Bot " + b.token}, "User-Agent": {"DiscordBot (https://github.com/shieldcli/shield, 1)"}}
	status, data, err := b.send(ctx, b.requestTimeout, c)
	switch {
	case err != nil:
		return err
	case status == http.StatusNoContent && out == nil:
		return nil
	case status != http.StatusOK || out == nil:
		var reply struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(data, &reply) != nil || reply.Message == "" {
			reply.Message = "the answer of the chat service has no error message; check the network and the proxy"
		}
		return fmt.Errorf("%s: status %d: %s", c.operationDescription, status, b.withoutToken(reply.Message))
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s: the service's answer does not match its API; check the channel's address in the settings", c.operationDescription)
	}
	return nil
}

// checkDiscordID returns an error unless id has the form of an ID, which becomes part of URLs.
func checkDiscordID(name, id string) error {
	if !regexp.MustCompile(discordIDPattern).MatchString(id) {
		return fmt.Errorf("%s: the service's answer has no valid ID; check the channel's address in the settings", name)
	}
	return nil
}

func (b *discordClient) botUserID(ctx context.Context) (string, error) {
	var out struct {
		ID string `json:"id"`
	}
	const name = "reading the user ID of the bot"
	if err := b.call(ctx, chatServiceCall{operationDescription: name, method: http.MethodGet, path: "/users/@me"}, &out); err != nil {
		return "", err
	}
	return out.ID, checkDiscordID(name, out.ID)
}

func (b *discordClient) directChatID(ctx context.Context, user string) (string, error) {
	var out struct {
		ID string `json:"id"`
	}
	const name = "opening the chat with the approver"
	if err := b.call(ctx, chatServiceCall{operationDescription: name, method: http.MethodPost, path: "/users/@me/channels", jsonBody: map[string]string{"recipient_id": user}}, &out); err != nil {
		return "", err
	}
	return out.ID, checkDiscordID(name, out.ID)
}

// discordMessage returns a message with a text in a code block that the text cannot end, and
// footerText below it. It mentions no user, and shows links as plain text.
func discordMessage(text, footerText string) map[string]any {
	return map[string]any{
		"content":          "```\n" + strings.ReplaceAll(text, "``", "`\u200b`") + "\n```\n" + footerText,
		"allowed_mentions": map[string]any{"parse": []string{}},
		"flags":            1 << 2, // no embeds
	}
}

func (b *discordClient) post(ctx context.Context, chat, text, footerText string) (postedMessage, error) {
	var out struct {
		ID      string `json:"id"`
		Channel string `json:"channel_id"`
	}
	const name = "sending the message"
	if err := b.call(ctx, chatServiceCall{operationDescription: name, method: http.MethodPost, path: "/channels/" + chat + "/messages", jsonBody: discordMessage(text, footerText)}, &out); err != nil {
		return postedMessage{}, err
	}
	if out.Channel != chat {
		return postedMessage{}, errors.New(name + ": the service posted the message to another channel; check approval.slack.chat or approval.discord.chat")
	}
	return postedMessage{chat, out.ID}, checkDiscordID(name, out.ID)
}

// urlPath returns the URL path of the message.
func (p postedMessage) urlPath() string { return "/channels/" + p.chat + "/messages/" + p.id }

func (b *discordClient) edit(ctx context.Context, p postedMessage, text, footerText string) error {
	return b.call(ctx, chatServiceCall{operationDescription: "updating the message", method: http.MethodPatch, path: p.urlPath(), jsonBody: discordMessage(text, footerText)}, new(struct{}))
}

func (b *discordClient) addReaction(ctx context.Context, p postedMessage, choice string) error {
	return b.call(ctx, chatServiceCall{operationDescription: "adding a reaction of the bot", method: http.MethodPut, path: p.urlPath() + "/reactions/" + url.PathEscape(choiceEmoji(choice)) + "/@me"}, nil)
}

// readReactions reads the message, and the users of each reaction that someone besides the bot has added.
func (b *discordClient) readReactions(ctx context.Context, p postedMessage, choices []string) (map[string][]reactingUser, error) {
	var out struct {
		ID        string `json:"id"`
		Channel   string `json:"channel_id"`
		Reactions []struct {
			Count int  `json:"count"`
			Me    bool `json:"me"`
			Emoji struct {
				ID   string `json:"id"` // ID of a custom emoji; "" for a standard emoji
				Name string `json:"name"`
			} `json:"emoji"`
		} `json:"reactions"`
	}
	const name = "reading the reactions"
	if err := b.call(ctx, chatServiceCall{operationDescription: name, method: http.MethodGet, path: p.urlPath()}, &out); err != nil {
		return nil, err
	}
	if out.ID != p.id || out.Channel != p.chat {
		return nil, errors.New(name + ": the service's answer is about another message; check the channel's address in the settings")
	}
	marks := map[string][]reactingUser{}
	for _, choice := range choices {
		for _, r := range out.Reactions {
			if r.Emoji.ID != "" || r.Emoji.Name != choiceEmoji(choice) || r.Me && r.Count == 1 {
				continue
			}
			users, err := b.usersWhoReacted(ctx, p, choice)
			if err != nil {
				return nil, err
			}
			marks[choice] = users
		}
	}
	return marks, nil
}

// usersWhoReacted returns the users who reacted to a message with the emoji of a choice. It returns an error if
// they are too many to read.
func (b *discordClient) usersWhoReacted(ctx context.Context, p postedMessage, choice string) ([]reactingUser, error) {
	var out []struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Bot      bool   `json:"bot"`
	}
	const name = "reading the users who reacted"
	path := fmt.Sprintf("%s/reactions/%s?limit=%d", p.urlPath(), url.PathEscape(choiceEmoji(choice)), maxReactingUsersPerRequest)
	if err := b.call(ctx, chatServiceCall{operationDescription: name, method: http.MethodGet, path: path}, &out); err != nil {
		return nil, err
	}
	if len(out) >= maxReactingUsersPerRequest {
		return nil, fmt.Errorf("%s: more users reacted than shield reads; run 'shield approvals' to answer on the approval page", name)
	}
	list := make([]reactingUser, 0, len(out))
	for _, u := range out {
		list = append(list, reactingUser{u.ID, u.Username, u.Bot})
	}
	return list, nil
}
