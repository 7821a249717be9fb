package approve

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// HostChannel is the name of the channel that leaves a question to the agent host that
// calls shield. Its verdict is ESCALATE, for shield does not see what the person says.
const HostChannel = "host"

// A hostChannel is the channel named [HostChannel], by which the agent host asks its user. If it is
// usable, shield asks no other channel: the host asks after shield has answered.
type hostChannel struct{ options *Options }

func newHostChannel(o *Options) ApprovalChannel { return &hostChannel{o} }

func (*hostChannel) Name() string { return HostChannel }

func (h *hostChannel) CheckUsable() error {
	if h.options.HostCannotAskReason == nil {
		return errors.New("the channel host works only for hooks of an agent host; set approval.channels: auto")
	}
	return h.options.HostCannotAskReason()
}

func (*hostChannel) Ask(context.Context, *Request) (Answer, error) {
	return Answer{}, errors.New("the agent host asks the user in its own prompt")
}

// verdictForHostToAsk returns the verdict of a question that the host asks.
func verdictForHostToAsk(r *Request) verdict.Verdict {
	return verdict.Verdict{Decision: verdict.Escalate, Confidence: 1, AnswerChannel: HostChannel, Reasoning: r.Summary}
}

var errAskedByShield = errors.New("shield asks this question itself, because the host's prompt can be answered by accident, or cannot show the whole action")

// What the prompt of a host shows of a command.
const (
	maxHostPromptLines      = 20
	maxHostPromptCharacters = 1000 // characters
)

// mustShieldAsk reports whether shield asks about a case itself, though the host could: the
// danger is grave, or the host's prompt hides the start of the command.
func (a *Approver) mustShieldAsk(c *analysis.ActionCase) bool {
	if a.options.MustShieldAsk != nil && a.options.MustShieldAsk(c) {
		return true
	}
	text, _ := c.Action.Payload["command"].(string)
	return strings.Count(text, "\n") >= maxHostPromptLines || utf8.RuneCountInString(text) > maxHostPromptCharacters
}
