package approve

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/muesli/cancelreader"

	"github.com/shieldcli/shield/internal/term"
)

// A lineModeQuestion shows a request as lines of text, for screen readers and for terminals that
// cannot be drawn on. The list of keys that the person can press is printed after the request.
type lineModeQuestion struct {
	request      *Request
	interpreter  *keyInterpreter
	output       io.Writer
	denialReason []rune
}

// A keyReadResult is a key of a terminal, or the error after the last one.
type keyReadResult struct {
	key rune
	err error
}

// askInLineMode asks with plain lines of text.
func (t *ttyChannel) askInLineMode(ctx context.Context, d *term.Device, r *Request, g *keyInterpreter) (Answer, error) {
	in, err := cancelreader.NewReader(d.In)
	if err != nil {
		return Answer{}, fmt.Errorf("ask at the terminal: %w", err)
	}
	defer in.Close()
	q := &lineModeQuestion{request: r, interpreter: g, output: d.Out}
	columns, _ := d.Size()
	if err := q.print(columns - 1); err != nil {
		return Answer{}, fmt.Errorf("ask at the terminal: %w", err)
	}
	if err := d.EnableCbreakMode(); err != nil {
		return Answer{}, err
	}
	if err := d.DiscardInput(); err != nil {
		return Answer{}, fmt.Errorf("discard earlier keys: %w", err)
	}
	r.StartTimer()
	ctx, cancel := context.WithCancel(ctx)
	keys := make(chan keyReadResult)
	go readKeys(ctx, in, keys)
	defer func() {
		cancel()
		if in.Cancel() {
			for range keys { // until no goroutine reads the terminal
			}
		}
	}()
	ticker := time.NewTicker(redrawInterval)
	defer ticker.Stop()
	return q.awaitAnswer(ctx, keys, ticker.C)
}

// readKeys forwards what is typed, until an error or the end of ctx.
func readKeys(ctx context.Context, in io.Reader, keys chan<- keyReadResult) {
	defer close(keys)
	runes := bufio.NewReader(in)
	for {
		k, _, err := runes.ReadRune()
		select {
		case keys <- keyReadResult{k, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (q *lineModeQuestion) print(columns int) error {
	text, whole := requestLines(q.request, columns)
	q.interpreter.denyOnly = !whole
	lines := append(term.WrapLines(q.request.Summary, columns), text...)
	lines = append(lines, "shield: allow this? "+timeLeftToAnswerText(q.request))
	for _, item := range q.interpreter.helpLines() {
		lines = append(lines, term.WrapLines("  "+item, columns)...)
	}
	lines = append(lines, term.WrapLines("Stop typing for one second: shield ignores keys until the prompt > is shown.", columns)...)
	_, err := io.WriteString(q.output, strings.Join(lines, "\n")+"\n")
	return err
}

// awaitAnswer handles keys until the question is answered. quietTicks delivers a value when no key
// was pressed for a while.
func (q *lineModeQuestion) awaitAnswer(ctx context.Context, keys <-chan keyReadResult, quietTicks <-chan time.Time) (Answer, error) {
	for q.interpreter.answerPhase != answerPhaseAnswered {
		var err error
		select {
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		case k := <-keys:
			err = q.handleKeyEvent(&k)
		case <-quietTicks:
			err = q.handleKeyEvent(nil)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	return q.answer()
}

// handleKeyEvent handles a key, or nil if none was pressed for a while, and shows what changed.
func (q *lineModeQuestion) handleKeyEvent(k *keyReadResult) error {
	was, echo := q.interpreter.answerPhase, ""
	switch {
	case k == nil:
		q.interpreter.advancePhaseAfterKeyboardQuiet()
	case errors.Is(k.err, io.EOF):
		return errUnanswered
	case k.err != nil:
		return fmt.Errorf("ask at the terminal: %w", k.err)
	default:
		echo = q.handleKeyReturningEcho(k.key)
	}
	if _, err := io.WriteString(q.output, q.phaseChangeText(was)+echo); err != nil {
		return fmt.Errorf("ask at the terminal: %w", err)
	}
	return nil
}

func (q *lineModeQuestion) answer() (Answer, error) {
	if q.interpreter.answerPhase != answerPhaseAnswered {
		return Answer{}, errUnanswered
	}
	a := q.interpreter.answer
	if !a.Approve && a.Reason == "" {
		a.Reason = strings.TrimSpace(string(q.denialReason))
	}
	return a, nil
}

// handleKeyReturningEcho handles a key and returns the text that the terminal shows for it.
func (q *lineModeQuestion) handleKeyReturningEcho(k rune) string {
	switch k {
	case '\n':
		k = enterKey
	case '\x03': // on systems where ^C sends no signal
		q.interpreter.interrupt()
		return ""
	}
	if !q.interpreter.pressKey(k) {
		if (q.interpreter.answerPhase == answerPhaseTypingAnswer || q.interpreter.answerPhase == answerPhaseTypingDenialReason) && k != enterKey {
			return string(k)
		}
		return ""
	}
	switch {
	case k == '\x1b':
		q.interpreter.cancelDenialReason()
	case k == '\x7f' || k == '\b':
		if n := len(q.denialReason); n > 0 {
			width := term.Width(string(q.denialReason[n-1:]))
			q.denialReason = q.denialReason[:n-1]
			return strings.Repeat("\b", width) + strings.Repeat(" ", width) + strings.Repeat("\b", width)
		}
	case unicode.IsPrint(k) && k != utf8.RuneError && len(q.denialReason) < maxAnswerReasonBytes:
		q.denialReason = append(q.denialReason, k)
		return term.EscapeControlAndInvisible(string(k))
	}
	return ""
}

// phaseChangeText returns what the terminal prints after the phase of the input has changed from
// previousPhase; "" if it has not changed.
func (q *lineModeQuestion) phaseChangeText(previousPhase answerPhase) string {
	if q.interpreter.answerPhase == previousPhase {
		return ""
	}
	switch q.interpreter.answerPhase {
	case answerPhaseTypingAnswer:
		q.interpreter.keysSinceLastEnter = "" // a new line must be typed
		return "> "
	case answerPhaseConfirmingDenial:
		return "\nDeny in one second; press a key to cancel.\n"
	case answerPhaseAwaitingKeyboardQuiet, answerPhaseInvalidLine:
		q.denialReason = nil
		if previousPhase == answerPhaseTypingAnswer || previousPhase == answerPhaseTypingDenialReason || previousPhase == answerPhaseConfirmingDenial {
			if said := cmp.Or(q.interpreter.invalidLine, q.interpreter.keysSinceLastEnter); said != "" {
				return "\nThat is not an answer: " + q.interpreter.invalidLineHint(said) + ". Stop typing for a second before you answer.\n"
			}
			return "\nThat is not an answer. Stop typing for a second before you answer.\n"
		}
	case answerPhaseAnswered:
		return "\n"
	default:
	}
	return ""
}
