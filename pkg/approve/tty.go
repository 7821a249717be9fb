package approve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/term"
)

// ttyChannel asks at the terminal that shield was started from, one request at a time.
type ttyChannel struct {
	options *Options
	askSlot chan struct{} // held by the goroutine that asks; others queue in order
}

func newTTYChannel(o *Options) ApprovalChannel {
	return &ttyChannel{options: o, askSlot: make(chan struct{}, 1)}
}

func (*ttyChannel) Name() string { return "tty" }

func (t *ttyChannel) CheckUsable() error {
	d, err := term.Open()
	if err != nil {
		return fmt.Errorf("%w; run shield in a terminal, or set approval.channels: [web]", err)
	}
	defer d.Close()
	if t.options.CheckTerminalUserIsPerson != nil {
		if err := t.options.CheckTerminalUserIsPerson(); err != nil {
			return err
		}
	}
	if t.options.SharesParentTerminal && d.IsRaw() {
		if _, err := os.Lstat(t.terminalLockPathPrefix(d) + ".asking"); err != nil {
			return errTerminalOccupied // no question of shield is shown, so another program set raw mode
		}
	}
	return nil
}

var errTerminalOccupied = errors.New("another program uses the whole terminal; set approval.channels: [web]")

// terminalLockPathPrefix returns the path prefix of the files of a terminal's queue.
func (t *ttyChannel) terminalLockPathPrefix(d *term.Device) string {
	return filepath.Join(t.options.StateDir, "tty-"+d.Name())
}

func (t *ttyChannel) Ask(ctx context.Context, r *Request) (Answer, error) {
	select {
	case t.askSlot <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	defer func() { <-t.askSlot }()
	d, err := term.Open()
	if err != nil {
		return Answer{}, err
	}
	defer d.Close()
	release, err := t.takeTerminal(ctx, d)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	a, err := t.showRequest(ctx, d, r)
	columns, _ := d.Size()
	fmt.Fprintln(d.Out, term.TruncateWithEllipsis(terminalOutcomeLine(ctx, r, a, err), columns-1)) // stays on the screen; the answer counts even if this fails
	if err != nil {
		return Answer{}, err
	}
	a.RequestID, a.AnsweringPersonName = r.ID, t.options.AnsweringPersonName
	return a, nil
}

// terminalOutcomeLine says what was asked and answered, on one line. An answer that came
// after the request was withdrawn does not count.
func terminalOutcomeLine(ctx context.Context, r *Request, a Answer, err error) string {
	said := "denied"
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errAnswered):
		said = "answered on another channel"
	case errors.Is(cause, errTimeout) || errors.Is(cause, context.DeadlineExceeded):
		said = "not answered in time"
	case cause != nil || a.WantsNoMoreQuestions:
		said = "interrupted"
	case err != nil:
		said = "not answered"
	case a.Approve && a.RememberFor > 0:
		said = fmt.Sprintf("approved for %d min", truncatedMinutes(a.RememberFor))
	case a.Class != "" && a.Approve:
		said = "approved once, and recorded that the tool " + ToolClassDescriptions[a.Class]
	case a.Class != "":
		said = "denied, and recorded that the tool " + ToolClassDescriptions[a.Class]
	case a.Approve && a.IsAdvanceApproval:
		said = "actions of this kind approved for the session"
	case a.Approve:
		said = "approved once"
	}
	return "shield: " + said + ": " + r.actionText
}

// takeTerminal waits until no other process asks at this terminal. A file next to the
// lock says that one is asking: if the file exists while the lock is free, that
// process was killed, and the terminal is repaired.
func (t *ttyChannel) takeTerminal(ctx context.Context, d *term.Device) (release func(), err error) {
	base := t.terminalLockPathPrefix(d)
	lock, err := acquireFileLock(ctx, base+".lock")
	if err != nil {
		return nil, err
	}
	unlock := func() {
		os.Remove(base + ".lock")
		lock.Close()
	}
	asking := base + ".asking"
	// When the device was opened, another process may have had it in raw mode.
	if err := d.SaveSettings(); err != nil {
		unlock()
		return nil, err
	}
	if _, err := os.Lstat(asking); err == nil {
		if err := d.ResetToLineMode(); err != nil {
			unlock()
			return nil, err
		}
	}
	if t.options.SharesParentTerminal && d.IsRaw() {
		unlock()
		return nil, errTerminalOccupied
	}
	if err := os.WriteFile(asking, nil, 0o600); err != nil {
		unlock()
		return nil, fmt.Errorf("mark the terminal as in use: %w", err)
	}
	return func() {
		os.Remove(asking)
		unlock()
	}, nil
}

// acquireFileLock waits for the lock file at path. Its holder removes the file when done, so that no files
// remain for closed terminals; a process that waited for a removed file then waits for the new one.
func acquireFileLock(ctx context.Context, path string) (*flock.Lock, error) {
	for {
		lock, err := flock.New(path)
		if err != nil {
			return nil, err
		}
		err = lock.Lock(ctx, maxTerminalLockWait)
		if err == nil && lock.IsFileAt(path) {
			return lock, nil
		}
		lock.Close()
		if err != nil {
			return nil, err
		}
	}
}

// showRequest puts the request on the screen. Whatever happens, the terminal is left
// as it was found.
func (t *ttyChannel) showRequest(ctx context.Context, d *term.Device, r *Request) (a Answer, err error) {
	defer func() {
		if restoring := d.Restore(); err == nil && restoring != nil {
			a, err = Answer{}, restoring
		}
	}()
	g, err := newKeyInterpreter(r.OffersTimedApproval, r.AdvanceApprovalScope != "", r.clock)
	if err != nil {
		return Answer{}, err
	}
	g.offersToolClassChoice = r.UnknownToolDescription != ""
	if t.usesPlainText() {
		return t.askInLineMode(ctx, d, r, g)
	}
	columns, lines := d.Size()
	q := newFullScreenQuestion(r, g, columns, lines, !t.options.NoBoldText)
	p := tea.NewProgram(q, tea.WithInput(d.In), tea.WithOutput(d.Out),
		tea.WithAltScreen(), tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithoutBracketedPaste())
	// tea.WithContext would end the program while it is still reading from the terminal.
	defer context.AfterFunc(ctx, p.Quit)()
	// What was typed before the question appeared is not an answer to it.
	if err := d.DiscardInput(); err != nil {
		return Answer{}, fmt.Errorf("discard earlier keys: %w", err)
	}
	if _, err := p.Run(); err != nil {
		return Answer{}, fmt.Errorf("ask at the terminal: %w", err)
	}
	if a, err = q.answer(); err != nil && ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	return a, err
}

// usesPlainText reports whether questions are shown as plain lines, because of the terminal or the user's
// choice.
func (t *ttyChannel) usesPlainText() bool {
	name := t.options.Getenv("TERM")
	return name == "dumb" || name == "" && t.options.Getenv("OS") == "" || t.options.Getenv("ACCESSIBLE") != ""
}

var errUnanswered = errors.New("the question ended without an answer, so the action is denied; let the agent try again")
