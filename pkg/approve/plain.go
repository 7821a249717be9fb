package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/charmbracelet/huh"
	"github.com/muesli/cancelreader"

	"github.com/shieldcli/shield/internal/term"
)

// askPlain asks in lines of text, for terminals that cannot be drawn on and for
// screen readers. The request stands before the choices, which are printed
// last.
func (t *tty) askPlain(ctx context.Context, d *term.Device, r *Request) (Answer, error) {
	in, err := cancelreader.NewReader(d.In)
	if err != nil {
		return Answer{}, fmt.Errorf("ask at the terminal: %w", err)
	}
	defer in.Close()
	defer context.AfterFunc(ctx, func() { in.Cancel() })()
	columns, _ := d.Size()
	for _, line := range content(r, columns-1) {
		if _, err := fmt.Fprintf(d.Out, "%s\n", line); err != nil {
			return Answer{}, fmt.Errorf("ask at the terminal: %w", err)
		}
	}
	fmt.Fprintf(d.Out, "shield: allow this? %s left\n", r.TimeLeft().Round(time.Second))
	if err := d.Flush(); err != nil {
		return Answer{}, fmt.Errorf("discard what was typed before: %w", err)
	}
	r.Shown()
	keys := &reader{r: in}
	choice, reason := choiceDeny, ""
	field := huh.NewSelect[string]().Title("Choose").Options(options(r)...).Value(&choice)
	err = field.RunAccessible(d.Out, keys)
	if err == nil && choice == choiceWhy && keys.err == nil {
		err = huh.NewInput().Title("Why not? The agent reads this.").CharLimit(maxReason).Value(&reason).RunAccessible(d.Out, keys)
	}
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case keys.err != nil && !errors.Is(keys.err, io.EOF):
		return Answer{}, fmt.Errorf("ask at the terminal: %w", keys.err)
	case err != nil || keys.err != nil:
		return Answer{}, errUnanswered
	}
	return chosen(choice, reason)
}

// A reader hands a terminal on one byte at a time, since each prompt reads
// ahead as far as it can, and notes the error that ended it: an end of input
// must not choose what stands first in a list.
type reader struct {
	r   io.Reader
	err error
}

func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.r.Read(p[:1])
	if err != nil {
		r.err = err
	}
	return n, err
}
