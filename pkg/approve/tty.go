package approve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/term"
)

// tty asks at the terminal that shield was started from, one request at a time.
type tty struct {
	o    *Options
	turn chan struct{} // held by the goroutine that asks; waiting ones queue in order
}

func newTTY(o *Options) Channel { return &tty{o: o, turn: make(chan struct{}, 1)} }

func (*tty) Name() string { return "tty" }

func (t *tty) Usable() error {
	d, err := term.Open()
	if err != nil {
		return err
	}
	defer d.Close()
	if t.o.Hosted && d.Raw() {
		if _, err := os.Lstat(t.base(d) + ".asking"); err != nil {
			return errOccupied // and not by another of our questions
		}
	}
	return nil
}

var errOccupied = errors.New("another program draws on the terminal; configure the channel web or command")

// base is the path that the files of a terminal's queue begin with.
func (t *tty) base(d *term.Device) string { return filepath.Join(t.o.StateDir, "tty-"+d.Name()) }

func (t *tty) Ask(ctx context.Context, r *Request) (Answer, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	defer func() { <-t.turn }()
	d, err := term.Open()
	if err != nil {
		return Answer{}, err
	}
	defer d.Close()
	release, err := t.take(ctx, d)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	a, err := t.show(ctx, d, r)
	if err != nil {
		return Answer{}, err
	}
	a.ID, a.By = r.ID, t.o.Person
	return a, nil
}

// take waits until no other process asks at this terminal. A file beside the
// lock says that somebody does: whoever finds it with the lock free comes after
// a process that was killed, and mends the terminal.
func (t *tty) take(ctx context.Context, d *term.Device) (release func(), err error) {
	base := t.base(d)
	lock, err := flock.New(base + ".lock")
	if err != nil {
		return nil, err
	}
	if err := lock.Lock(ctx, maxQueue); err != nil {
		lock.Close()
		return nil, err
	}
	// When the device was opened, another process may have had it in raw mode.
	if err := d.Save(); err != nil {
		lock.Close()
		return nil, err
	}
	asking := base + ".asking"
	if _, err := os.Lstat(asking); err == nil {
		if err := d.Mend(); err != nil {
			lock.Close()
			return nil, err
		}
	}
	if t.o.Hosted && d.Raw() {
		lock.Close()
		return nil, errOccupied
	}
	if err := os.WriteFile(asking, nil, 0o600); err != nil {
		lock.Close()
		return nil, fmt.Errorf("note that the terminal is in use: %w", err)
	}
	return func() {
		os.Remove(asking)
		lock.Close()
	}, nil
}

// show puts the request on the screen. Whatever happens, the terminal is left
// as it was found.
func (t *tty) show(ctx context.Context, d *term.Device, r *Request) (a Answer, err error) {
	defer func() {
		if restoring := d.Restore(); err == nil && restoring != nil {
			a, err = Answer{}, restoring
		}
	}()
	if t.plain() {
		return t.askPlain(ctx, d, r)
	}
	columns, lines := d.Size()
	m := newQuestion(r, columns, lines, t.o.Getenv("NO_COLOR") == "")
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(d.In), tea.WithOutput(d.Out),
		tea.WithAltScreen(), tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithoutBracketedPaste())
	// What was typed before the question was there is no answer to it.
	if err := d.Flush(); err != nil {
		return Answer{}, fmt.Errorf("discard what was typed before: %w", err)
	}
	if _, err := p.Run(); err != nil {
		if ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		return Answer{}, fmt.Errorf("ask at the terminal: %w", err)
	}
	return m.answer()
}

// plain reports whether the terminal, or the person, wants lines of text that
// are not drawn over.
func (t *tty) plain() bool {
	name := t.o.Getenv("TERM")
	return name == "dumb" || name == "" && t.o.Getenv("OS") == "" || t.o.Getenv("ACCESSIBLE") != ""
}

// deaf is for how long keys are ignored after the question has appeared:
// somebody who was typing did not mean to answer it.
const deaf = 700 * time.Millisecond

var errUnanswered = errors.New("the question was left without an answer")
