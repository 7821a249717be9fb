package approve

import (
	"context"
	"fmt"
	"strings"
)

// approvalChannels are the ways to reach a person, in the order help lists them.
var approvalChannels = []struct {
	name string
	open func(*Options) ApprovalChannel
}{
	{"tty", newTTYChannel},
	{"web", newWebChannel},
	{"command", newApprovalProgramChannel},
	{"telegram", newTelegramChannel},
	{"slack", slack.channel},
	{"discord", discord.channel},
	{HostChannel, newHostChannel},
}

// ApprovalChannelNames returns the names that [Options.Channels] may hold.
func ApprovalChannelNames() []string {
	names := make([]string, len(approvalChannels))
	for i, c := range approvalChannels {
		names[i] = c.name
	}
	return names
}

// CheckChannelUsable returns an error that says why no person can be asked on a channel now, or nil.
func (o Options) CheckChannelUsable(channelName string) error {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	ch, err := channelNamed(channelName, &o)
	if err != nil {
		return err
	}
	return ch.CheckUsable()
}

func channelNamed(name string, o *Options) (ApprovalChannel, error) {
	for _, c := range approvalChannels {
		if c.name == name {
			return c.open(o), nil
		}
	}
	return nil, fmt.Errorf("unknown approval channel %.80q; use %s", name, strings.Join(ApprovalChannelNames(), ", "))
}

// A chatChannel is a channel that asks in a chat.
type chatChannel interface {
	title() string
	postTestMessage(ctx context.Context, text string) error
}

// ChatServiceTitle returns the name of a channel's chats; "" if the channel is not a chat.
func ChatServiceTitle(channelName string) string {
	ch, err := channelNamed(channelName, new(Options))
	if m, ok := ch.(chatChannel); err == nil && ok {
		return m.title()
	}
	return ""
}

// SendTestMessage posts a trial message to the chat of a channel, and returns when the
// service has taken it.
func (o Options) SendTestMessage(ctx context.Context, channelName, text string) error {
	ch, err := channelNamed(channelName, &o)
	if m, ok := ch.(chatChannel); err == nil && ok {
		return m.postTestMessage(ctx, text)
	}
	return err
}
