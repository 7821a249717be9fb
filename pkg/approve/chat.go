package approve

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nicholas-fedor/shoutrrr"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/redact"
)

// chatNotifier sends notices that a question waits on the approval page. Nothing waits for these
// notices or depends on them: if one fails, only the notice is missing.
type chatNotifier struct {
	runningNotifications atomic.Int32
	loadOnce             sync.Once
	targets              []QuestionNoticeTarget
	targetsLoadErr       error
}

// A QuestionNoticeTarget is a destination of notices: a chat, a mailbox, a push service.
type QuestionNoticeTarget struct {
	Service string // scheme of the target's URL, such as "telegram"
	url     string // the URL, which contains credentials
}

// Limits of the file of notice targets, which approval.notify_file names.
const (
	maxNotificationURLs          = 16
	maxNotificationURLsFileBytes = 64 << 10
)

// QuestionNoticeTargets reads the file of notification places: one URL of a [shoutrrr] service per line. Empty lines
// and lines that begin with # are skipped. It is an error if a user other than the owner can read the
// file, since the URLs contain credentials, which no error quotes.
//
// [shoutrrr]: https://pkg.go.dev/github.com/nicholas-fedor/shoutrrr
func QuestionNoticeTargets(file string) ([]QuestionNoticeTarget, error) {
	text, err := owner.ReadSecret(file, maxNotificationURLsFileBytes)
	if err != nil {
		return nil, err
	}
	var out []QuestionNoticeTarget
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		p := QuestionNoticeTarget{url: line}
		if u, err := url.Parse(line); err == nil {
			p.Service, _, _ = strings.Cut(u.Scheme, "+")
		}
		if _, err := shoutrrr.CreateSender(line); err != nil || p.Service == "" {
			return nil, fmt.Errorf("%s:%d: not the URL of a chat service, such as telegram://TOKEN@telegram?chats=CHAT", file, i+1)
		}
		if out = append(out, p); len(out) > maxNotificationURLs {
			return nil, fmt.Errorf("%s: more than %d URLs; remove some", file, maxNotificationURLs)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: contains no URL; write one in each line", file)
	}
	return out, nil
}

// Send sends a text and returns when the service has taken it, or an error, which
// holds no part of the URL.
func (p QuestionNoticeTarget) Send(ctx context.Context, text string) error {
	sender, err := shoutrrr.CreateSender(p.url)
	if err != nil {
		return errors.New("the URL is not one of a chat service; write a URL such as telegram://TOKEN@telegram?chats=CHAT")
	}
	select {
	case err = <-sender.SendAsync(text, nil):
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	return errors.New(redact.New(p.possibleURLSecrets()...).RedactText(err.Error()))
}

// possibleURLSecrets returns the parts of the URL, any of which may be a credential.
func (p QuestionNoticeTarget) possibleURLSecrets() []string {
	parts := strings.FieldsFunc(p.url, func(r rune) bool { return strings.ContainsRune(":/@?&=,", r) })
	if u, err := url.Parse(p.url); err == nil && u.User != nil {
		parts = append(parts, u.User.String(), u.Host)
		if password, ok := u.User.Password(); ok {
			parts = append(parts, u.User.Username()+":"+password, password)
		}
	}
	return parts
}

// sendWaitingQuestionNotice sends a notice of a waiting question to each [QuestionNoticeTarget] in the file o.NotificationURLsFile.
func (n *chatNotifier) sendWaitingQuestionNotice(o *Options, questionSummary string) {
	if o.NotificationURLsFile == "" {
		return
	}
	n.loadOnce.Do(func() { n.targets, n.targetsLoadErr = QuestionNoticeTargets(o.NotificationURLsFile) })
	fail := func(where string, err error) {
		if o.NoticeOutput != nil && !o.SharesParentTerminal {
			fmt.Fprintf(o.NoticeOutput, "shield: %s: %v\n", where, err)
		}
	}
	if n.targetsLoadErr != nil {
		fail("no notice of this question can be sent; run 'shield approvals notify' to test the chats", n.targetsLoadErr)
		return
	}
	text := notificationText(questionSummary) + ". For the page and its code, run: shield approvals"
	for _, p := range n.targets {
		if n.runningNotifications.Add(1) > maxConcurrentNotices*maxNotificationURLs {
			n.runningNotifications.Add(-1)
			return
		}
		go func() {
			defer n.runningNotifications.Add(-1)
			defer func() { _ = recover() }() // ignore panics in a service's code
			if err := p.Send(context.Background(), "shield is waiting for your answer: "+text); err != nil {
				fail("no notice of this question was sent by "+p.Service+"; run 'shield approvals notify' to test the chats", err)
			}
		}()
	}
}
