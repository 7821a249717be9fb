package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A stage is one pass over the input: which records it accepts and which tiers judge.
type stage struct {
	tiers       shield.Range
	actionsOnly bool // verdicts are refused
}

// judge runs a stage over standard input and returns its status as an error.
func (s stage) judge(c *cli.Context, w *World) error {
	n, err := jobs(c)
	if err != nil {
		return err
	}
	if _, err := operands(c); err != nil {
		return err
	}
	var out output = verdict.NewWriter(w.Out)
	if c.String("format") == "text" {
		if w.served != nil {
			return errUndecided
		}
		style := report.Style{Color: coloured(c, w, w.Out)}
		if isTerminal(w.Out) {
			style.Columns = columns(w.Out)
		}
		out = &textOutput{w.Out, style}
	}
	if w.served != nil {
		return s.answer(c, w)
	}
	noteTerminalInput(w, "actions from the terminal, one JSON object a line")
	if c.String("format") == "json" {
		if line, d, ok := s.askService(w); ok {
			return writeServedVerdict(w, line, d)
		}
	}
	set, p, err := pipeline(c, w, false)
	if err != nil {
		return refuseAll(c.Context, w, out, err)
	}
	err = s.stream(c.Context, w, p, s.records(w, p, set.MaxRecordLen), out, n)
	if closing := p.Close(); err == nil {
		err = closing
	}
	return err
}

// records returns the input's records.
func (s stage) records(w *World, p *shield.Pipeline, maxBytes int) shield.Source {
	if s.actionsOnly {
		return shield.Actions(w.In, "stdin", maxBytes)
	}
	return p.Reader(w.In, "stdin", maxBytes)
}

// stream judges records, n in parallel, writes their verdicts, and returns the status as an error.
func (s stage) stream(ctx context.Context, w *World, p *shield.Pipeline, in shield.Source, out output, n int) error {
	var t tally
	line := progress{err: w.Err, live: isTerminal(w.Err) && !isTerminal(w.Out)}
	err := p.Stream(ctx, in, func(j *shield.Judged) error {
		if j.Err != nil {
			line.clear()
			fmt.Fprintf(w.Err, "shield: %s; blocked\n", withoutSecrets(j.Err))
		}
		t.count(j.Verdict.Decision)
		if n := t.allow + t.escalate + t.block; n%progressEvery == 0 {
			line.show(n, "actions judged")
		}
		if lines, ok := out.(*verdict.Writer); ok {
			lines.More = j.More
		}
		if j.Raw != nil {
			return out.Pass(j.Raw)
		}
		return out.Write(&j.Verdict)
	}, shield.StreamOptions{Tiers: s.tiers, Jobs: n, Untold: true})
	line.clear()
	var unread *shield.ReadError
	switch {
	case errors.As(err, &unread):
		return &statusError{statusBlock, fmt.Errorf("read standard input: %w", unread.Err)}
	case err != nil && errors.Is(err, ctx.Err()):
		return &statusError{statusBlock, nil}
	case err != nil:
		return err
	}
	if status := t.status(); status != statusAllow {
		return &statusError{status, t.explainNoRecords()}
	}
	return nil
}

// refuseAll blocks every record, because shield itself is misconfigured.
func refuseAll(ctx context.Context, w *World, out output, cause error) error {
	in := action.NewReader(w.In, action.ReaderOptions{Name: "stdin"})
	now := w.Now().UTC().Truncate(time.Millisecond)
	for ctx.Err() == nil {
		rec, err := in.Next()
		if err != nil {
			break
		}
		v := verdict.Verdict{
			Line: rec.Line, Decision: verdict.Block, Confidence: 1, Error: "config",
			Reasoning: withoutSecrets(cause), Evaluated: now, Expires: now,
		}
		if a, err := action.Parse(rec.Raw); err == nil {
			v.ID, v.ActionHash = a.ID, a.Hash
		}
		if err := out.Write(&v); err != nil {
			return err
		}
	}
	return &statusError{statusBlock, cause}
}

// explainNoRecords returns an explanation for the status of a stream without records.
func (t *tally) explainNoRecords() error {
	if t.allow+t.escalate+t.block == 0 {
		return errors.New("standard input contains no action, so the result is BLOCK; write one JSON object a line")
	}
	return nil
}
