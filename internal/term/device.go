package term

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// ErrBackground is returned for a process that is not in the foreground of its
// terminal: reading there would stop it.
var ErrBackground = errors.New("shield runs in the background of the terminal; bring it to the foreground with 'fg'")

// A Device is the terminal that a person sits at, whatever the standard streams
// are.
type Device struct {
	In, Out    *os.File
	savedState *term.State
}

// Open opens the terminal of this process. It is an error if there is none, or
// if the process may not read from it.
func Open() (*Device, error) {
	in, out, err := openTerminal()
	if err != nil {
		return nil, fmt.Errorf("open the terminal: %w", err)
	}
	d := &Device{In: in, Out: out}
	if !isForeground(in) {
		return nil, errors.Join(ErrBackground, d.Close())
	}
	if err := d.SaveSettings(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Name returns a name for the device that is the same in every process of this
// terminal, and can be part of a file's name.
func (d *Device) Name() string { return deviceName(d.In) }

// Size returns columns and lines, 80 and 24 where they cannot be told.
func (d *Device) Size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(d.Out.Fd()))
	if err != nil || columns < 1 || lines < 1 {
		return 80, 24
	}
	return columns, lines
}

// IsRaw reports whether a program takes keys one by one, as those do that draw on
// the screen.
func (d *Device) IsRaw() bool { return isRaw(d.In) }

// EnableCbreakMode has the terminal forward each key as it is pressed, and show none of
// them. ^C stays a signal. [Device.Restore] undoes it.
func (d *Device) EnableCbreakMode() error {
	if err := setCbreakMode(d.In); err != nil {
		return fmt.Errorf("switch the terminal to raw mode: %w", err)
	}
	return nil
}

// ReadPassword asks for a line that is not shown while it is typed, until ctx ends.
func (d *Device) ReadPassword(ctx context.Context, prompt string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err // a read that starts now could change the terminal's settings after they were restored
	}
	if _, err := d.Out.WriteString(prompt); err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	typed := make(chan line, 1)
	in := int(d.In.Fd())
	go func() {
		text, err := term.ReadPassword(in)
		typed <- line{text, err}
	}()
	defer func() { _, _ = d.Out.WriteString("\n") }()
	select {
	case l := <-typed:
		return string(l.text), l.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), d.Restore())
	}
}

// DiscardInput throws away what was typed and not read yet.
func (d *Device) DiscardInput() error { return discardInput(d.In) }

// resetSequence shows the cursor, turns off bracketed paste and mouse reports, and resets colors
// and other text attributes.
const resetSequence = "\x1b[?25h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[0m"

// ResetToLineMode sets a terminal to read and show whole typed lines, and leaves the alternate screen. It is for
// a terminal whose settings a process changed before it died.
func (d *Device) ResetToLineMode() error {
	if err := setLineMode(d.In); err != nil {
		return fmt.Errorf("restore the terminal: %w", err)
	}
	if err := d.SaveSettings(); err != nil {
		return err
	}
	_, err := d.Out.WriteString("\x1b[?1049l" + resetSequence)
	return err
}

// SaveSettings saves the terminal settings that [Device.Restore] brings back. Open calls it too. If
// several processes use the terminal in turn, each calls it again when its turn begins, because
// another process may have changed the settings when Open ran.
func (d *Device) SaveSettings() error {
	state, err := term.GetState(int(d.In.Fd()))
	if err != nil {
		return fmt.Errorf("the settings of the terminal cannot be read: %w; use another terminal", err)
	}
	d.savedState = state
	return nil
}

// Restore brings the saved settings back.
func (d *Device) Restore() error {
	_, err := d.Out.WriteString(resetSequence)
	return errors.Join(err, term.Restore(int(d.In.Fd()), d.savedState))
}

// Close frees the device.
func (d *Device) Close() error {
	err := d.In.Close()
	if d.Out != d.In {
		err = errors.Join(err, d.Out.Close())
	}
	return err
}
