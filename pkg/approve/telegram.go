package approve

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/flock"
)

// telegramChannel asks in a Telegram chat, with buttons. Each process posts its own questions.
// Telegram reports button presses to one reader at a time, so one of the asking processes reads
// them and puts the answers into a [questionInbox].
type telegramChannel struct {
	options         *Options
	client          *http.Client
	baseURL         string        // URL of the service
	requestTimeout  time.Duration // time limit of one request to the service
	editTimeout     time.Duration // time limit for updating the message of a question
	failureReported sync.Once
}

// telegramInboxFolder is the name of the folder, in the state folder, with the [questionInbox] of the Telegram
// channel.
const telegramInboxFolder = "telegram"

// maxTelegramQuestionBytes is the maximum size of a question in bytes. Telegram allows 4,096
// characters per message.
const maxTelegramQuestionBytes = 3800

func newTelegramChannel(o *Options) ApprovalChannel {
	return &telegramChannel{options: o, client: newBotClient(), baseURL: telegramURL, requestTimeout: chatServiceRequestTimeout, editTimeout: messageEditTimeout}
}

func (*telegramChannel) Name() string { return "telegram" }

func (t *telegramChannel) CheckUsable() error {
	_, err := t.bot()
	switch {
	case err != nil:
	case len(t.options.Telegram.Approvers) == 0:
		err = errors.New("no approver is configured; set approval.telegram.approvers to the IDs of Telegram users")
	case t.chatID() == 0:
		err = errors.New("with several approvers, set approval.telegram.chat to the ID of the chat in which shield asks")
	}
	return err
}

func (t *telegramChannel) bot() (*telegramBot, error) {
	token, err := telegramTokenFormat.readToken(t.options.Telegram.TokenFile)
	return &telegramBot{chatBot{client: t.client, baseURL: t.baseURL, requestTimeout: t.requestTimeout, token: token}}, err
}

// chatID returns the ID of the chat: a chat with a user has the user's ID.
func (t *telegramChannel) chatID() int {
	if one := t.options.Telegram.Approvers; t.options.Telegram.ChatID == 0 && len(one) == 1 {
		return one[0]
	}
	return t.options.Telegram.ChatID
}

func (t *telegramChannel) Ask(ctx context.Context, r *Request) (Answer, error) {
	if err := t.CheckUsable(); err != nil {
		return Answer{}, err
	}
	b, err := t.bot()
	if err != nil {
		return Answer{}, err
	}
	box, err := openInbox(t.options.StateDir, telegramInboxFolder)
	if err != nil {
		return Answer{}, err
	}
	alive, err := box.addQuestion(ctx, r, r.clock())
	if err != nil {
		return Answer{}, err
	}
	defer box.removeQuestion(r.ID, alive)
	text, whole := questionText(r, maxTelegramQuestionBytes)
	number, err := b.post(ctx, t.chatID(), text, box.answerButtonRows(r, whole))
	if err != nil {
		return Answer{}, err
	}
	r.StartTimer()
	reading, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer stop()
	reader.Go(func() { t.recordButtonPressAnswers(reading, b) })
	g, err := box.awaitAnswer(ctx, r.ID)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.editTimeout)
	defer cancel()
	a, word, err := answerAndFinalMessageText(g, err)
	_ = b.edit(end, t.chatID(), number, text+"\n\n"+word) // a failure is harmless: the buttons stay, and pressing one says that the question is closed
	return a, err
}

// answerButtonRows returns the buttons of a question.
func (b *questionInbox) answerButtonRows(r *Request, isWholeActionShown bool) (rows [][]button) {
	for _, choice := range possibleAnswerChoices(r, isWholeActionShown) {
		rows = append(rows, []button{{buttonLabel(choice), b.buttonData(choice, r.ID)}})
	}
	return rows
}

// buttonData returns the data that a button sends: the choice, the question and an HMAC of this
// installation.
func (b *questionInbox) buttonData(choice, id string) string {
	mac := hmac.New(sha256.New, b.key)
	mac.Write([]byte("button " + choice + " " + id))
	return choice[:1] + id + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// parseButtonData checks and splits the data of a button.
func (b *questionInbox) parseButtonData(data string) (choice, id string, ok bool) {
	if len(data) <= 1+requestIDHexLen {
		return "", "", false
	}
	id = data[1 : 1+requestIDHexLen]
	for _, choice := range []string{choiceDeny, choiceOnce, choiceRemember, choiceAdvanceApproval} {
		if equalSecrets(data, b.buttonData(choice, id)) {
			return choice, id, true
		}
	}
	return "", "", false
}

// awaitAnswer waits for the answer to a question of this process.
func (b *questionInbox) awaitAnswer(ctx context.Context, id string) (pageOrChatAnswer, error) {
	beat := time.NewTicker(answerPollInterval)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return pageOrChatAnswer{}, ctx.Err()
		case <-beat.C:
			if g, ok, err := b.readAnswer(id); ok || err != nil {
				return g, err
			}
		}
	}
}

// recordButtonPressAnswers reads button presses until ctx ends. Telegram reports them to one reader at a time,
// so recordButtonPressAnswers first waits for a file lock that one goroutine of one process can hold.
func (t *telegramChannel) recordButtonPressAnswers(ctx context.Context, b *telegramBot) {
	box, err := openInbox(t.options.StateDir, telegramInboxFolder)
	if err != nil {
		t.printChannelFailureOnce(err)
		return
	}
	lock, err := flock.New(box.path("read.lock"))
	if err != nil {
		t.printChannelFailureOnce(err)
		return
	}
	defer lock.Close()
	for taken := false; !taken; sleepContext(ctx, answerPollInterval) {
		if taken, err = lock.TryLock(); err != nil || ctx.Err() != nil {
			return
		}
	}
	_ = box.removeFilesOfDeadAskers(ctx) // on failure the files remain, which is harmless: they are skipped later
	wait, next := time.Second, 0
	for ctx.Err() == nil {
		news, err := b.awaitButtonPresses(ctx, next)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			t.printChannelFailureOnce(err)
			sleepContext(ctx, wait)
			wait = min(2*wait, maxRetryPause)
			continue
		}
		for i := range news {
			next = max(next, news[i].ID+1)
			if p := news[i].Press; p != nil {
				_ = b.showNotice(ctx, p, t.recordButtonAnswer(box, p)) // the answer counts even if this fails
			}
		}
		wait = time.Second
		sleepContext(ctx, answerPollInterval) // avoid a busy loop if the service answers at once
	}
}

var chatUsernamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_]{1,32}$`) })

// recordButtonAnswer stores the answer of a button press, and returns the text to show to the person.
func (t *telegramChannel) recordButtonAnswer(box *questionInbox, p *buttonPress) string {
	if !slices.Contains(t.options.Telegram.Approvers, p.From.ID) || p.From.IsBot || p.Message.Chat.ID != t.chatID() {
		return "Your answer does not count: only the users in approval.telegram.approvers can answer."
	}
	choice, id, ok := box.parseButtonData(p.Data)
	if !ok {
		return "This machine did not ask this question; answer on the machine that did."
	}
	waiting, err := box.waitingQuestions()
	if err != nil {
		return "Your answer was not recorded, because shield's inbox cannot be read; run 'shield doctor' on the machine that asked."
	}
	i := slices.IndexFunc(waiting, func(e *inboxQuestion) bool { return equalSecrets(e.Request.ID, id) })
	if i < 0 {
		return "This question is no longer waiting for an answer."
	}
	by := fmt.Sprintf("Telegram user %d", p.From.ID)
	if chatUsernamePattern().MatchString(p.From.Username) {
		by += " @" + p.From.Username
	}
	if err := box.writeAnswer(waiting[i], pageOrChatAnswer{QuestionID: id, Choice: choice, By: by, At: t.options.Clock()}); err != nil {
		return "Your answer was not recorded: " + cmp.Or(err.Error(), "the inbox cannot be written") + ". Answer on the approval page."
	}
	return choiceOutcomeText(choice) + "."
}

// printChannelFailureOnce reports once why no answer can come from this service.
func (t *telegramChannel) printChannelFailureOnce(err error) {
	t.failureReported.Do(func() {
		if t.options.NoticeOutput != nil && !t.options.SharesParentTerminal {
			fmt.Fprintf(t.options.NoticeOutput, "shield: Telegram: %v\n", err)
		}
	})
}

func (t *telegramChannel) title() string { return "Telegram" }

// postTestMessage posts a text, and returns when the service has accepted it.
func (t *telegramChannel) postTestMessage(ctx context.Context, text string) error {
	if err := t.CheckUsable(); err != nil {
		return err
	}
	b, err := t.bot()
	if err == nil {
		_, err = b.post(ctx, t.chatID(), text, nil)
	}
	return err
}
