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

// A service is one of chats in which a question is answered by a reaction to its
// message. Each process posts its own message and reads the reactions to that one
// message alone, so that nothing a reaction says has to name the question, and several
// processes, and machines, can share a bot.
type service struct {
	name, title string
	url         string
	token       token
	user, room  string // forms of the service's IDs of users and chats
	most        int    // most bytes of a question
	settings    func(*config.Approval) *config.Chat
	open        func(bot) board
}

// A board is the part of a service that questions need.
type board interface {
	// self returns the user that the bot is.
	self(ctx context.Context) (string, error)

	// direct returns the chat with a user.
	direct(ctx context.Context, user string) (string, error)

	// post posts a text, shown without markup, and a word of shield's own below it.
	post(ctx context.Context, chat, text, word string) (post, error)

	// edit gives a message of this bot another word.
	edit(ctx context.Context, p post, text, word string) error

	// mark reacts to a message for a choice, so that a person need not look for it.
	mark(ctx context.Context, p post, choice string) error

	// marks returns who has reacted to a message, for each of these choices.
	marks(ctx context.Context, p post, choices []string) (map[string][]marker, error)
}

// A post is a message of a bot.
type post struct{ chat, id string }

// A marker is a user who has reacted.
type marker struct {
	id, name string
	bot      bool
}

// The reactions that answer. Each is one character with no variants.
func emoji(choice string) string {
	switch choice {
	case pageDeny:
		return "❌"
	case pageOnce:
		return "✅"
	case pageKind:
		return "🔁"
	default:
		return "⏳"
	}
}

// pollEvery is how often reactions are asked for.
const pollEvery = 2 * time.Second

// reactions is the channel to a service.
type reactions struct {
	*service
	o      *Options
	client *http.Client
	base   string        // URL of the service
	wait   time.Duration // time limit of a request
	edit   time.Duration // time to update the message of a question
	every  time.Duration // interval of reading the reactions
	failed sync.Once
}

// channel returns the channel to a service.
func (s *service) channel(o *Options) Channel {
	return &reactions{service: s, o: o, client: newBotClient(), base: s.url, wait: botWait, edit: editWait, every: pollEvery}
}

func (c *reactions) Name() string { return c.name }

func (c *reactions) title() string { return c.service.title }

func (c *reactions) Usable() error {
	_, err := c.board()
	set := c.settings(&c.o.Approval)
	isUser := regexp.MustCompile(c.user).MatchString
	switch bad := slices.IndexFunc(set.Approvers, func(user string) bool { return !isUser(user) }); {
	case err != nil:
	case len(set.Approvers) == 0:
		err = fmt.Errorf("no approver is configured; set approval.%s.approvers to the IDs of users", c.name)
	case bad >= 0:
		err = fmt.Errorf("approval.%s.approvers: %.80q is not the ID of a user", c.name, set.Approvers[bad])
	case set.Chat == "" && len(set.Approvers) > 1:
		err = fmt.Errorf("with several approvers, set approval.%s.chat to the ID of the chat that is asked", c.name)
	case set.Chat != "" && !regexp.MustCompile(c.room).MatchString(set.Chat):
		err = fmt.Errorf("approval.%s.chat: %.80q is not the ID of a chat", c.name, set.Chat)
	}
	return err
}

func (c *reactions) board() (board, error) {
	token, err := c.token.read(c.settings(&c.o.Approval).TokenFile)
	return c.open(bot{client: c.client, base: c.base, wait: c.wait, token: token}), err
}

// publish posts a text where people are asked.
func (c *reactions) publish(ctx context.Context, b board, text, word string) (p post, err error) {
	set := c.settings(&c.o.Approval)
	chat := set.Chat
	if chat == "" {
		err = patiently(ctx, func() (err error) {
			chat, err = b.direct(ctx, set.Approvers[0])
			return err
		})
		if err != nil {
			return post{}, err
		}
	}
	err = patiently(ctx, func() (err error) {
		p, err = b.post(ctx, chat, text, word)
		return err
	})
	return p, err
}

// patiently does what a service may want to be asked for later. No one has seen the
// question until then, so that the wait has a bound.
func patiently(ctx context.Context, f func() error) error {
	for tries := 3; ; tries-- {
		err := f()
		var limit *limitError
		if !errors.As(err, &limit) || tries == 1 || limit.after > maxPause {
			return err
		}
		if pause(ctx, limit.after); ctx.Err() != nil {
			return err
		}
	}
}

func (c *reactions) Ask(ctx context.Context, r *Request) (Answer, error) {
	if err := c.Usable(); err != nil {
		return Answer{}, err
	}
	b, err := c.board()
	if err != nil {
		return Answer{}, err
	}
	var self string
	err = patiently(ctx, func() (err error) {
		self, err = b.self(ctx)
		return err
	})
	if err != nil {
		return Answer{}, err
	}
	text, whole := message(r, c.most)
	can := choices(r, whole)
	p, err := c.publish(ctx, b, text, c.word(r, can))
	if err != nil {
		return Answer{}, err
	}
	r.Shown()
	a, word, err := last(c.await(ctx, b, p, self, r.ID, can))
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.edit)
	defer cancel()
	_ = b.edit(end, p, text, word) // without it the message still says how long it counts
	return a, err
}

// word says how to answer.
func (c *reactions) word(r *Request, can []string) string {
	word := "React within " + config.Duration(r.TimeLeft().Round(time.Second)).String() + ":"
	for _, choice := range can {
		word += " " + emoji(choice) + " " + label(choice) + "."
	}
	return word + " Only those under approval." + c.name + ".approvers count."
}

// await waits until one of the approvers has reacted to a message.
func (c *reactions) await(ctx context.Context, b board, p post, self, id string, can []string) (given, error) {
	for _, choice := range can {
		if err := patiently(ctx, func() error { return b.mark(ctx, p, choice) }); err != nil && ctx.Err() == nil {
			c.fail(err) // a person can still look for the reaction
		}
	}
	usual := c.every
	for wait := usual; ; {
		if pause(ctx, wait); ctx.Err() != nil {
			return given{}, ctx.Err()
		}
		marks, err := b.marks(ctx, p, can)
		var limit *limitError
		switch {
		case ctx.Err() != nil:
			return given{}, ctx.Err()
		case errors.As(err, &limit):
			usual = min(2*usual, maxPause)
			wait = max(usual, limit.after)
		case err != nil:
			c.fail(err)
			wait = min(2*wait, maxPause)
		default:
			wait = usual
			if choice, by, ok := c.counted(marks, self, can); ok {
				return given{ID: id, Choice: choice, By: by, At: c.o.Clock()}, nil
			}
		}
	}
}

// counted returns the answer among reactions: the first choice, which is to deny, for
// which there is one of an approver. The bot is none.
func (c *reactions) counted(marks map[string][]marker, self string, can []string) (choice, by string, ok bool) {
	approvers := c.settings(&c.o.Approval).Approvers
	for _, choice := range can {
		for _, m := range marks[choice] {
			if m.bot || m.id == self || !slices.Contains(approvers, m.id) {
				continue
			}
			by = c.service.title + " user " + m.id
			if usernames().MatchString(m.name) {
				by += " @" + m.name
			}
			return choice, by, true
		}
	}
	return "", "", false
}

// fail says once why no answer can come from here.
func (c *reactions) fail(err error) {
	c.failed.Do(func() {
		if c.o.Notice != nil && !c.o.Hosted {
			fmt.Fprintf(c.o.Notice, "shield: %s: %v\n", c.service.title, err)
		}
	})
}

// try posts a text, and finds out whether reactions to it can be read.
func (c *reactions) try(ctx context.Context, text string) error {
	if err := c.Usable(); err != nil {
		return err
	}
	b, err := c.board()
	if err != nil {
		return err
	}
	if _, err = b.self(ctx); err != nil {
		return err
	}
	p, err := c.publish(ctx, b, text, "Answer with reactions like this one.")
	if err != nil {
		return err
	}
	if err := patiently(ctx, func() error { return b.mark(ctx, p, pageOnce) }); err != nil {
		return err
	}
	return patiently(ctx, func() error {
		_, err := b.marks(ctx, p, []string{pageOnce})
		return err
	})
}
