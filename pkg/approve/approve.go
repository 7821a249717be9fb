// Package approve is Tier 3: a person decides. An [Approver] puts a case to all usable channels at once, or to
// the first usable one with the setting "auto". It takes the first answer, withdraws the question from the other
// channels, and blocks when no one answers in time. On the [HostChannel], it leaves the question to the agent
// host.
package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An ApprovalStateStore keeps data that approvals share between processes. ChargeApprovalRequest
// counts one request. If max requests were already counted within the last hour, it returns an
// error that says when the next request is allowed. Get and Put keep remembered answers.
type ApprovalStateStore interface {
	ChargeApprovalRequest(ctx context.Context, max int) error
	Get(ctx context.Context, binding string) (value []byte, ok bool, err error)
	Put(ctx context.Context, binding string, value []byte, expires time.Time) error
}

// Options describe whom to ask, and how. Store and RememberedAnswerKey are required if the list of
// channels (Channels) is not empty.
type Options struct {
	config.Approval        // no Timeout means 300 s, no MaxQuestionsPerHour means 60
	NoChannelReason string // why Channels is empty, and the fix; "" means that no channel is configured
	Store           ApprovalStateStore

	// RememberedAnswerKey returns the key of a remembered answer: it covers the action, its place and session, its
	// effects, and the policy, rules and model that judged it.
	RememberedAnswerKey func(*analysis.ActionCase) string

	// OfferAdvanceApproval returns what one answer for this kind of action would cover in the session, and a function that
	// stores that answer. nil, or no text: no answer for the kind is offered.
	OfferAdvanceApproval func(ctx context.Context, c *analysis.ActionCase) (text string, keep func(ctx context.Context, by string) error)

	// PrepareToolClassQuestion returns what is known of the unknown tool of a case, and a function that stores its class. nil,
	// or no text: the case has no unknown tool.
	PrepareToolClassQuestion func(c *analysis.ActionCase) (about string, keep func(ctx context.Context, class analysis.ToolClass, by string) error)

	// SharesParentTerminal says that another program started this process and may be drawing on the
	// terminal. The channel "tty" then does not use a terminal that another program has set to raw mode: both
	// programs would read what the person types.
	SharesParentTerminal bool

	// HideApprovalPageLink suppresses the page's link, because output does not go to a terminal, and an agent may read
	// it.
	HideApprovalPageLink bool

	// CheckTerminalUserIsPerson returns why an answer at this terminal may come from a program instead of a
	// person; nil if it cannot. If it returns an error, shield asks no question on the terminal and does not
	// print the approval page's link and code.
	CheckTerminalUserIsPerson func() error

	// UserCannotNoticePageReason returns why no user can notice a question on the approval page, or nil if a
	// user can. Only the setting "auto" for the channels uses it; a nil function means that a user
	// can.
	UserCannotNoticePageReason func() error

	// MustShieldAsk reports whether shield asks about a case itself, even where the host
	// could; nil means no.
	MustShieldAsk func(*analysis.ActionCase) bool

	// DescribeUndoBackups returns a line for the page about files that were kept before actions deleted or
	// overwrote them, "" if there are none; nil says nothing.
	DescribeUndoBackups func() string

	// HostCannotAskReason returns why the agent host that calls shield as its hook cannot ask its
	// person itself, or nil if it can. It is nil where no host calls.
	HostCannotAskReason func() error

	ApprovalProgramWorkingDir string // working folder of the program of channel "command"; "": the current folder

	StateDir                 string              // folder for the locks of terminals and the inbox of the page
	AnsweringPersonName      string              // name of the user at the terminal; "" if unknown
	AskingProgramDescription string              // the asking program and the one that started it, for the user; "" if unknown
	NoBoldText               bool                // show questions on the terminal without bold text
	Getenv                   func(string) string // reads an environment variable; nil: none is set
	OnUserInterrupt          func()              // called when the user presses ^C at a question; may be nil
	ApprovalProgramEnv       []string            // environment of the program of channel "command"
	Redactor                 *redact.Redactor    // redacts secrets in questions and stored refusals; nil redacts only what has the form of a secret
	NoticeOutput             io.Writer           // receives errors, and the page's link unless HideApprovalPageLink; nothing if SharesParentTerminal; nil discards both
	Clock                    func() time.Time    // nil: the system's clock
}

// An ApprovalChannel is one way to ask a person, such as the terminal or the page.
type ApprovalChannel interface {
	Name() string

	// CheckUsable returns why no person can be asked on the channel now, or nil.
	CheckUsable() error

	// Ask shows a request, calls its StartTimer, and returns the person's answer. When ctx ends the request is
	// withdrawn: nothing of it is left on a screen when Ask returns. An error does not count as an answer.
	Ask(ctx context.Context, r *Request) (Answer, error)
}

// An Answer is what a person said to one request.
type Answer struct {
	RequestID            string             // ID of the request that the person answered
	Approve              bool               // false denies
	RememberFor          time.Duration      // approve this exact action for this long; 0 means once
	IsAdvanceApproval    bool               // approve this kind of action for the session
	Class                analysis.ToolClass // class of the unknown tool; "" if the person did not choose one
	Reason               string             // reason of the person, for the agent
	AnsweringPersonName  string             // name of the person, as the channel knows it
	WantsNoMoreQuestions bool               // the person wants no more questions
}

// Limits of answers.
const (
	defaultAnswerTimeout       = 300 * time.Second
	defaultMaxQuestionsPerHour = 60
	maxRememberDuration        = time.Hour
	maxAnswerReasonBytes       = 500             // bytes
	maxTerminalLockWait        = time.Hour       // how long to wait for a terminal that another process uses
	questionWithdrawTimeout    = 3 * time.Second // how long a channel may take to clean up
)

// An Approver puts cases to people. Goroutines may share it.
type Approver struct {
	options                    Options
	channels                   []ApprovalChannel
	asksFirstUsableChannelOnly bool        // ask only the first channel that is usable
	interruptedByUser          atomic.Bool // the user pressed ^C

	// maxWaitWithoutUsableChannel is how long a question waits on the approval page if no channel can be used; 0
	// denies the question at once.
	maxWaitWithoutUsableChannel time.Duration
	pageChannel                 ApprovalChannel
}

// New returns an Approver. An unknown channel is an error.
func New(o Options) (*Approver, error) {
	if o.Timeout <= 0 {
		o.Timeout = config.Duration(defaultAnswerTimeout)
	}
	if o.MaxQuestionsPerHour == 0 {
		o.MaxQuestionsPerHour = defaultMaxQuestionsPerHour
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if len(o.Channels) > 0 && (o.Store == nil || o.RememberedAnswerKey == nil) {
		return nil, errors.New("approval needs a state folder for its hourly limit; set HOME or --state")
	}
	a := &Approver{options: o, asksFirstUsableChannelOnly: o.Channels.IsChosenByShield()}
	var err error
	if a.maxWaitWithoutUsableChannel, err = o.UnattendedWaitDuration(); err != nil {
		return nil, fmt.Errorf("approval.unattended %w", err)
	}
	for _, name := range o.channelNames() {
		ch, err := channelNamed(name, &a.options)
		if err != nil {
			return nil, err
		}
		a.channels = append(a.channels, ch)
		if ch.Name() == "web" {
			a.pageChannel = ch
		}
	}
	if a.pageChannel == nil {
		a.pageChannel = newWebChannel(&a.options)
	}
	return a, nil
}

// channelNames returns the channels by name. For auto it returns the candidates, of which the first
// usable one is asked.
func (o *Options) channelNames() []string {
	switch {
	case !o.Channels.IsChosenByShield():
		return o.Channels
	case o.SharesParentTerminal:
		return []string{HostChannel, "web"}
	default:
		return []string{"tty", "web"}
	}
}

// CanAskUser reports whether a person can be asked now, and if not, why.
func (a *Approver) CanAskUser() (bool, string) {
	usable, _, why := a.channelsToAsk(false)
	return len(usable) > 0, why
}

// channelsToAsk returns the channels to ask now, how long a question waits there,
// and why other channels cannot be asked. If mustShieldAsk is set, shield asks instead of the host.
func (a *Approver) channelsToAsk(mustShieldAsk bool) (usable []ApprovalChannel, answerTimeout time.Duration, unusableReason string) {
	usable, unusableReason = a.configuredUsableChannels(mustShieldAsk)
	if len(usable) > 0 || a.maxWaitWithoutUsableChannel == 0 || len(a.channels) == 0 {
		return usable, a.options.Timeout.AsTimeDuration(), unusableReason
	}
	if err := a.pageChannel.CheckUsable(); err != nil {
		return nil, 0, unusableReason + "; " + err.Error()
	}
	return []ApprovalChannel{a.pageChannel}, a.maxWaitWithoutUsableChannel, ""
}

// configuredUsableChannels returns the channels that work now, and why the others do not.
func (a *Approver) configuredUsableChannels(mustShieldAsk bool) (usable []ApprovalChannel, why string) {
	if len(a.channels) == 0 {
		if a.options.NoChannelReason != "" {
			return nil, a.options.NoChannelReason
		}
		return nil, "no approval channel is configured; set approval.channels"
	}
	var reasons []string
	for _, ch := range a.channels {
		err := ch.CheckUsable()
		if err == nil && mustShieldAsk && ch.Name() == HostChannel {
			err = errAskedByShield
		}
		if err == nil && a.asksFirstUsableChannelOnly && ch.Name() == "web" && a.options.UserCannotNoticePageReason != nil {
			err = a.options.UserCannotNoticePageReason()
		}
		if err != nil {
			reasons = append(reasons, ch.Name()+": "+err.Error())
			continue
		}
		if usable = append(usable, ch); a.asksFirstUsableChannelOnly {
			break
		}
	}
	return usable, strings.Join(reasons, "; ")
}

// Close closes the page and other resources of the channels.
func (a *Approver) Close() error {
	var errs []error
	for _, ch := range append(slices.Clone(a.channels), a.pageChannel) {
		if c, ok := ch.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Judge asks a person, unless one has already approved this exact action for
// some minutes. It answers ALLOW or BLOCK, or ESCALATE on the [HostChannel]; an error
// means that ctx was cancelled.
func (a *Approver) Judge(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, error) {
	remember := len(a.channels) > 0 && isApprovalRememberable(c)
	if remember {
		if v, ok := a.recallApproval(ctx, c); ok {
			return v, nil
		}
	}
	if a.interruptedByUser.Load() {
		return blockVerdict("interrupted", "the user interrupted shield (^C), so it asks no more questions; start the command again"), nil
	}
	channels, patience, why := a.channelsToAsk(a.mustShieldAsk(c))
	if len(channels) == 0 {
		return blockVerdict("nobody", "the user must decide, but cannot be asked ("+why+"); tell the user to run 'shield doctor'"), nil
	}
	if err := a.options.Store.ChargeApprovalRequest(ctx, a.options.MaxQuestionsPerHour); err != nil {
		return blockVerdict("nobody", "the user must decide, but shield cannot ask now ("+err.Error()+"); tell the user, and try again later"), nil
	}
	r, err := a.newRequest(ctx, c, remember, patience)
	if err != nil {
		return blockVerdict("request", "the user must decide, but the question cannot be shown ("+err.Error()+"); tell the user to run 'shield doctor'"), nil
	}
	if slices.ContainsFunc(channels, func(ch ApprovalChannel) bool { return ch.Name() == HostChannel }) {
		return verdictForHostToAsk(r), nil
	}
	if a.options.OfferAdvanceApproval != nil {
		var text string
		text, r.storeAdvanceApproval = a.options.OfferAdvanceApproval(ctx, c)
		r.AdvanceApprovalScope = escapedSingleLineText(a.options.Redactor.RedactText(text), maxAdvanceApprovalTextChars)
	}
	if a.options.PrepareToolClassQuestion != nil {
		var about string
		about, r.storeToolClass = a.options.PrepareToolClassQuestion(c)
		r.UnknownToolDescription = escapedMultilineText(a.options.Redactor.RedactText(about), maxAdvanceApprovalTextChars)
	}
	r.PageAddressAndCode = printedPageAddressAndCode(ctx, channels)
	ans, from, err := a.askChannels(ctx, r, channels)
	switch {
	case errors.Is(err, errTimeout):
		return blockVerdict("timeout", fmt.Sprintf("the user did not answer within %s; wait until the user is here, then try once more", config.Duration(r.timeToAnswer.Round(time.Second)))), nil
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return verdict.Verdict{}, ctx.Err()
	case err != nil:
		return blockVerdict("nobody", "the user must decide, but could not be asked ("+err.Error()+"); tell the user to run 'shield doctor'"), nil
	}
	return a.verdictOf(ctx, c, r, ans, from), nil
}

// verdictOf turns an answer into a verdict and remembers it if asked to.
func (a *Approver) verdictOf(ctx context.Context, c *analysis.ActionCase, r *Request, ans Answer, channelName string) verdict.Verdict {
	who := channelName
	if ans.AnsweringPersonName != "" {
		who = fmt.Sprintf("%s (%s)", escapedSingleLineText(ans.AnsweringPersonName, 80), channelName)
	}
	said := ""
	if ans.Reason != "" {
		said = ": " + escapedSingleLineText(ans.Reason, maxAnswerReasonBytes)
	}
	if !ans.Approve {
		if ans.WantsNoMoreQuestions {
			a.interruptedByUser.Store(true)
			if a.options.OnUserInterrupt != nil {
				a.options.OnUserInterrupt()
			}
		}
		if ans.Class == analysis.ToolClassForbidden && r.UnknownToolDescription != "" {
			if err := r.storeToolClass(ctx, ans.Class, who); err != nil {
				said += "; the class of the tool could not be saved: " + err.Error()
			}
		}
		v := blockVerdict("", "denied by "+who+said)
		v.AnswerChannel, v.AnsweredBy = channelName, ans.AnsweringPersonName
		return v
	}
	v := verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, Confidence: 1, Reasoning: "approved once by " + who + said}.Verdict(3)
	v.AnswerChannel, v.AnsweredBy = channelName, ans.AnsweringPersonName
	if ans.RememberFor > 0 && r.OffersTimedApproval {
		span := min(ans.RememberFor, maxRememberDuration)
		if err := a.storeApproval(ctx, c, r.actionText, who, span); err != nil {
			v.Reasoning += "; the approval could not be saved: " + err.Error()
		} else {
			v.Reasoning = fmt.Sprintf("approved for %d minutes by %s%s", int(span.Minutes()), who, said)
		}
	}
	if ans.Class != "" && r.UnknownToolDescription != "" {
		if err := r.storeToolClass(ctx, ans.Class, who); err != nil {
			v.Reasoning += "; the tool's class could not be saved: " + err.Error()
		} else {
			v.Reasoning += fmt.Sprintf(", who says that the tool %s", ToolClassDescriptions[ans.Class])
		}
	}
	if ans.IsAdvanceApproval && r.AdvanceApprovalScope != "" {
		if err := r.storeAdvanceApproval(ctx, who); err != nil {
			v.Reasoning += "; the approval of this kind could not be saved: " + err.Error()
		} else {
			v.Reasoning = fmt.Sprintf("actions of this kind are approved for the session by %s%s", who, said)
		}
	}
	return v
}

// ToolClassDescriptions describe the classes of tools.
var ToolClassDescriptions = map[analysis.ToolClass]string{
	analysis.ToolClassReadOnly: "only reads", analysis.ToolClassChangesWorkspace: "changes this workspace only",
	analysis.ToolClassChangesOutsideWorkspace: "changes or sends something outside this workspace", analysis.ToolClassForbidden: "must not be used",
}

// maxAdvanceApprovalTextChars is the maximum number of characters shown of the text that offers an
// advance approval, and of a tool's description.
const maxAdvanceApprovalTextChars = 1000

func blockVerdict(code, reason string) verdict.Verdict {
	return verdict.Finding{RequiredAuthority: verdict.AuthorityNoneSuffices, Confidence: 1, ErrorCode: code, Reasoning: reason}.Verdict(3)
}

// Reasons to withdraw a request: the time is up, or another channel has the answer.
var (
	errTimeout  = errors.New("the user did not answer in time; ask again")
	errAnswered = errors.New("the question was answered on another channel")
)

// A channelReply is the result of one channel.
type channelReply struct {
	channel string
	answer  Answer
	err     error
}

// askChannels puts a request to channels and returns the first answer and the name of
// its channel. One goroutine takes the answers, so there is one decision even
// if two arrive together.
func (a *Approver) askChannels(ctx context.Context, r *Request, channels []ApprovalChannel) (Answer, string, error) {
	asking, withdraw := context.WithCancelCause(ctx)
	replies := make(chan channelReply, len(channels))
	for _, ch := range channels {
		go func() { replies <- askChannel(asking, ch, r) }()
	}
	open := len(channels)
	var why error // why the question is withdrawn from the channels that still ask it; nil if this process stops asking
	defer func() {
		withdraw(why)
		drainReplies(replies, open)
	}()
	queue := time.NewTimer(maxTerminalLockWait)
	defer queue.Stop()
	shown, late := r.timerStarted, (<-chan time.Time)(nil)
	var failures []string
	for {
		select {
		case <-shown:
			shown = nil
			queue.Stop()
			timer := time.NewTimer(r.timeToAnswer)
			defer timer.Stop()
			late = timer.C
		case <-late:
			why = errTimeout
			return Answer{}, "", errTimeout
		case <-queue.C:
			return Answer{}, "", errors.New("another shield process has been asking a question on this terminal for over an hour; answer that question, or stop that process")
		case <-ctx.Done():
			why = context.Cause(ctx)
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return Answer{}, "", errTimeout
			}
			return Answer{}, "", ctx.Err()
		case got := <-replies:
			open--
			if got.err == nil {
				why = errAnswered
				return got.answer, got.channel, nil
			}
			if failures = append(failures, got.channel+": "+got.err.Error()); open == 0 {
				return Answer{}, "", errors.New(strings.Join(failures, "; "))
			}
		}
	}
}

// askChannel asks one channel. Anything but an answer to this request is an error.
func askChannel(ctx context.Context, ch ApprovalChannel, r *Request) (got channelReply) {
	got.channel = ch.Name()
	defer func() {
		if x := recover(); x != nil {
			got.answer, got.err = Answer{}, fmt.Errorf("panic: %.200q", fmt.Sprint(x))
		}
	}()
	got.answer, got.err = ch.Ask(ctx, r)
	if got.err == nil && !equalSecrets(got.answer.RequestID, r.ID) {
		got.err = errors.New("the answer has the ID of another question, so this one is denied; try again")
	}
	return got
}

// drainReplies waits until the channels have cleaned up: a process that exits earlier would leave the
// terminal in raw mode.
func drainReplies(replies <-chan channelReply, pendingReplyCount int) {
	limit := time.NewTimer(questionWithdrawTimeout)
	defer limit.Stop()
	for range pendingReplyCount {
		select {
		case <-replies:
		case <-limit.C:
			return
		}
	}
}
