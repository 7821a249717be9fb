package approve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/shieldcli/shield/pkg/config"
)

// A chatService is a chat service in which a question is answered by a reaction to its message. Each
// process posts its own message and reads only the reactions to it, so that a reaction need not name
// its question, and several processes and machines can share a bot.
type chatService struct {
	name, title                  string
	apiBaseURL                   string
	botTokenFormat               botTokenFormat
	userIDPattern, chatIDPattern string // regular expressions for the service's IDs of users and of chats
	maxQuestionBytes             int    // most bytes of a question
	settings                     func(*config.Approval) *config.ChatApproval
	connect                      func(chatBot) chatServiceClient
}

// A chatServiceClient is the part of a chat service's API that questions need.
type chatServiceClient interface {
	// botUserID returns the bot's own user ID.
	botUserID(ctx context.Context) (string, error)

	// directChatID returns the chat with a user.
	directChatID(ctx context.Context, user string) (string, error)

	// post posts text, without markup, in a chat. word is a footer that shield adds below the text,
	// such as how to answer.
	post(ctx context.Context, chat, text, word string) (postedMessage, error)

	// edit replaces the footer below the text of a message of this bot; word is the new footer.
	edit(ctx context.Context, p postedMessage, text, word string) error

	// addReaction adds the reaction for a choice, so that a person can click it.
	addReaction(ctx context.Context, p postedMessage, choice string) error

	// readReactions returns the users who reacted to a message, for each of the choices.
	readReactions(ctx context.Context, p postedMessage, choices []string) (map[string][]reactingUser, error)
}

// A postedMessage is a message of a bot.
type postedMessage struct{ chat, id string }

// A reactingUser is a user who added a reaction.
type reactingUser struct {
	id, name string
	bot      bool
}

// choiceEmoji returns the emoji that a user adds as a reaction to a question to choose an answer.
// Each emoji is one character with no variants.
func choiceEmoji(choice string) string {
	switch choice {
	case choiceDeny:
		return "❌"
	case choiceOnce:
		return "✅"
	case choiceAdvanceApproval:
		return "🔁"
	default:
		return "⏳"
	}
}

// reactionPollInterval is the interval of reading the reactions.
const reactionPollInterval = 2 * time.Second

// A reactionChannel asks questions in a chat service; persons answer by adding a reaction to the message.
type reactionChannel struct {
	*chatService
	options            *Options
	client             *http.Client
	baseURL            string        // URL of the service
	requestTimeout     time.Duration // time limit of a request
	messageEditTimeout time.Duration // time to update the message of a question
	pollInterval       time.Duration // interval of reading the reactions
	failureReported    sync.Once
}

// channel returns the channel to a service.
func (s *chatService) channel(o *Options) ApprovalChannel {
	return &reactionChannel{chatService: s, options: o, client: newBotClient(), baseURL: s.apiBaseURL, requestTimeout: chatServiceRequestTimeout, messageEditTimeout: messageEditTimeout, pollInterval: reactionPollInterval}
}

func (c *reactionChannel) Name() string { return c.name }

func (c *reactionChannel) title() string { return c.chatService.title }

func (c *reactionChannel) CheckUsable() error {
	_, err := c.openServiceClient()
	set := c.settings(&c.options.Approval)
	isUser := regexp.MustCompile(c.userIDPattern).MatchString
	switch bad := slices.IndexFunc(set.Approvers, func(user string) bool { return !isUser(user) }); {
	case err != nil:
	case len(set.Approvers) == 0:
		err = fmt.Errorf("no approver is configured; set approval.%s.approvers to the IDs of users", c.name)
	case bad >= 0:
		err = fmt.Errorf("approval.%s.approvers: %.80q is not the ID of a user; copy the ID from the profile of the user in %s", c.name, set.Approvers[bad], c.title())
	case set.ChatID == "" && len(set.Approvers) > 1:
		err = fmt.Errorf("with several approvers, set approval.%s.chat to the ID of the chat that is asked", c.name)
	case set.ChatID != "" && !regexp.MustCompile(c.chatIDPattern).MatchString(set.ChatID):
		err = fmt.Errorf("approval.%s.chat: %.80q is not the ID of a chat; copy the ID from the details of the chat in %s", c.name, set.ChatID, c.title())
	}
	return err
}

func (c *reactionChannel) openServiceClient() (chatServiceClient, error) {
	token, err := c.botTokenFormat.readToken(c.settings(&c.options.Approval).TokenFile)
	return c.connect(chatBot{client: c.client, baseURL: c.baseURL, requestTimeout: c.requestTimeout, token: token}), err
}

// postToApprovers posts a text in the chat with the approvers.
func (c *reactionChannel) postToApprovers(ctx context.Context, b chatServiceClient, text, footerText string) (p postedMessage, err error) {
	set := c.settings(&c.options.Approval)
	chat := set.ChatID
	if chat == "" {
		err = retryRateLimited(ctx, func() (err error) {
			chat, err = b.directChatID(ctx, set.Approvers[0])
			return err
		})
		if err != nil {
			return postedMessage{}, err
		}
	}
	err = retryRateLimited(ctx, func() (err error) {
		p, err = b.post(ctx, chat, text, footerText)
		return err
	})
	return p, err
}

// retryRateLimited calls f up to three times while the service limits requests. It does not wait
// longer than maxRetryPause, because no one sees the question until then.
func retryRateLimited(ctx context.Context, f func() error) error {
	for tries := 3; ; tries-- {
		err := f()
		var limit *rateLimitError
		if !errors.As(err, &limit) || tries == 1 || limit.retryAfter > maxRetryPause {
			return err
		}
		if sleepContext(ctx, limit.retryAfter); ctx.Err() != nil {
			return err
		}
	}
}

func (c *reactionChannel) Ask(ctx context.Context, r *Request) (Answer, error) {
	if err := c.CheckUsable(); err != nil {
		return Answer{}, err
	}
	b, err := c.openServiceClient()
	if err != nil {
		return Answer{}, err
	}
	var self string
	err = retryRateLimited(ctx, func() (err error) {
		self, err = b.botUserID(ctx)
		return err
	})
	if err != nil {
		return Answer{}, err
	}
	text, whole := questionText(r, c.maxQuestionBytes)
	can := possibleAnswerChoices(r, whole)
	p, err := c.postToApprovers(ctx, b, text, c.answerInstructions(r, can))
	if err != nil {
		return Answer{}, err
	}
	r.StartTimer()
	a, word, err := answerAndFinalMessageText(c.awaitReaction(ctx, b, p, self, r.ID, can))
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.messageEditTimeout)
	defer cancel()
	_ = b.edit(end, p, text, word) // if this fails, the message still says until when it is valid
	return a, err
}

// answerInstructions says which reactions answer a question.
func (c *reactionChannel) answerInstructions(r *Request, allowedChoices []string) string {
	word := "React within " + config.Duration(r.TimeLeft().Round(time.Second)).String() + ":"
	for _, choice := range allowedChoices {
		word += " " + choiceEmoji(choice) + " " + buttonLabel(choice) + "."
	}
	return word + " Only reactions of the users in approval." + c.name + ".approvers count."
}

// awaitReaction waits until one of the approvers has reacted to a message.
func (c *reactionChannel) awaitReaction(ctx context.Context, b chatServiceClient, p postedMessage, self, id string, can []string) (pageOrChatAnswer, error) {
	for _, choice := range can {
		if err := retryRateLimited(ctx, func() error { return b.addReaction(ctx, p, choice) }); err != nil && ctx.Err() == nil {
			c.printChannelFailureOnce(err) // the question stays open: an approver can add the missing reaction without the help of the bot
		}
	}
	usual := c.pollInterval
	for wait := usual; ; {
		if sleepContext(ctx, wait); ctx.Err() != nil {
			return pageOrChatAnswer{}, ctx.Err()
		}
		marks, err := b.readReactions(ctx, p, can)
		var limit *rateLimitError
		switch {
		case ctx.Err() != nil:
			return pageOrChatAnswer{}, ctx.Err()
		case errors.As(err, &limit):
			usual = min(2*usual, maxRetryPause)
			wait = max(usual, limit.retryAfter)
		case err != nil:
			c.printChannelFailureOnce(err)
			wait = min(2*wait, maxRetryPause)
		default:
			wait = usual
			if choice, by, ok := c.firstApproverChoice(marks, self, can); ok {
				return pageOrChatAnswer{QuestionID: id, Choice: choice, By: by, At: c.options.Clock()}, nil
			}
		}
	}
}

// firstApproverChoice returns the answer among reactions: the first choice, beginning with deny, that an approver
// has chosen. The bot's own reactions do not count.
func (c *reactionChannel) firstApproverChoice(reactingUsersByChoice map[string][]reactingUser, botUserID string, allowedChoices []string) (choice, by string, ok bool) {
	approvers := c.settings(&c.options.Approval).Approvers
	for _, choice := range allowedChoices {
		for _, m := range reactingUsersByChoice[choice] {
			if m.bot || m.id == botUserID || !slices.Contains(approvers, m.id) {
				continue
			}
			by = c.chatService.title + " user " + m.id
			if chatUsernamePattern().MatchString(m.name) {
				by += " @" + m.name
			}
			return choice, by, true
		}
	}
	return "", "", false
}

// printChannelFailureOnce reports once why no answer can come from this service.
func (c *reactionChannel) printChannelFailureOnce(err error) {
	c.failureReported.Do(func() {
		if c.options.NoticeOutput != nil && !c.options.SharesParentTerminal {
			fmt.Fprintf(c.options.NoticeOutput, "shield: %s: %v\n", c.chatService.title, err)
		}
	})
}

// postTestMessage posts a text, and checks that reactions to it can be read.
func (c *reactionChannel) postTestMessage(ctx context.Context, text string) error {
	if err := c.CheckUsable(); err != nil {
		return err
	}
	b, err := c.openServiceClient()
	if err != nil {
		return err
	}
	if _, err = b.botUserID(ctx); err != nil {
		return err
	}
	p, err := c.postToApprovers(ctx, b, text, "This is a test. Answer questions by a reaction, such as the one on this message.")
	if err != nil {
		return err
	}
	if err := retryRateLimited(ctx, func() error { return b.addReaction(ctx, p, choiceOnce) }); err != nil {
		return err
	}
	return retryRateLimited(ctx, func() error {
		_, err := b.readReactions(ctx, p, []string{choiceOnce})
		return err
	})
}
