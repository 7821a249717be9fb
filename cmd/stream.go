package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// maxBatch is how many finished verdicts are written together, so that they
// share one entry into the audit log. It also bounds what waits in memory.
const maxBatch = 256

// A stage is one pass over the input: what it accepts and which tiers judge.
type stage struct {
	tiers       shield.Range
	actionsOnly bool // verdicts are refused
}

// A job is one record on its way through the stage.
type job struct {
	rec  verdict.Record
	done chan struct{} // closed when out is set
	out  shield.Outcome
	raw  []byte // a verdict to pass on byte for byte; nil if out is to be written
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
	set, p, err := pipeline(c, w)
	if err != nil {
		return refuseAll(c.Context, w, err)
	}
	err = s.stream(c.Context, w, p, s.records(w, p, set.MaxRecordLen), n)
	if closing := p.Close(); err == nil {
		err = closing
	}
	return err
}

// records returns the input's records.
func (s stage) records(w *World, p *shield.Pipeline, maxBytes int) source {
	if s.actionsOnly {
		return &actions{action.NewReader(w.In, action.ReaderOptions{Name: "stdin", MaxBytes: maxBytes})}
	}
	return p.Reader(w.In, "stdin", maxBytes)
}

// A source yields records until io.EOF.
type source interface {
	Next() (verdict.Record, error)
}

// actions is a source of actions alone: what poses as a verdict is an error.
type actions struct{ r *action.Reader }

func (s *actions) Next() (verdict.Record, error) {
	in, err := s.r.Next()
	rec := verdict.Record{Line: in.Line, Raw: in.Raw, Err: in.Err}
	if err != nil || rec.Err != nil {
		return rec, err
	}
	if rec.Action, err = action.Parse(rec.Raw); err != nil {
		rec.Err = &action.LineError{Name: "stdin", Line: rec.Line, Err: err}
	}
	return rec, nil
}

// stream judges records with n goroutines and writes verdicts in input order.
func (s stage) stream(ctx context.Context, w *World, p *shield.Pipeline, in source, n int) error {
	queue := make(chan *job, maxBatch) // in input order
	work := make(chan *job, maxBatch)
	stop := make(chan struct{})
	readErr := make(chan error, 1)
	go func() {
		readErr <- read(in, queue, work, stop)
		close(queue)
		close(work)
	}()
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for j := range work {
				s.one(ctx, p, j)
				close(j.done)
			}
		})
	}
	ready := make(chan *job, maxBatch)
	go record(ctx, p, queue, ready)
	t, err := write(ctx, w, p, ready)
	close(stop)
	if err != nil {
		return err
	}
	select {
	case err := <-readErr:
		if err != nil {
			return &statusError{statusBlock, fmt.Errorf("read standard input: %w", err)}
		}
	default: // interrupted while waiting for input
		return &statusError{statusBlock, nil}
	}
	workers.Wait()
	if ctx.Err() != nil {
		return &statusError{statusBlock, nil}
	}
	if status := t.status(); status != statusAllow {
		return &statusError{status, t.silence()}
	}
	return nil
}

// read queues records until the input ends or stop is closed.
func read(in source, queue, work chan<- *job, stop <-chan struct{}) error {
	for {
		rec, err := in.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		j := &job{rec: rec, done: make(chan struct{})}
		select {
		case queue <- j:
		case <-stop:
			return nil
		}
		work <- j // never blocks for good: workers take all that is queued
	}
}

// one judges one record.
func (s stage) one(ctx context.Context, p *shield.Pipeline, j *job) {
	switch {
	case j.rec.Err != nil:
		j.out = p.Refuse(j.rec.Line, code(j.rec.Err), j.rec.Err.Error())
	case j.rec.Verdict != nil && j.rec.Verdict.Decision != verdict.Escalate:
		j.out, j.raw = p.Pass(&j.rec)
	default:
		line := j.rec.Line
		if j.rec.Verdict != nil {
			line = j.rec.Verdict.Line
		}
		j.out = p.Judge(ctx, shield.Item{Line: line, Action: j.rec.Action, Resume: j.rec.Verdict, Stages: j.rec.Stages}, s.tiers)
	}
}

// record hands finished jobs, in the order of the queue, to the audit log and
// on to the writer, until the queue is closed, or until ctx ends and all that
// was read is done.
func record(ctx context.Context, p *shield.Pipeline, queue <-chan *job, ready chan<- *job) {
	defer close(ready)
	for {
		var j *job
		var ok bool
		select {
		case j, ok = <-queue:
		case <-ctx.Done():
			select {
			case j, ok = <-queue: // read already
			default:
			}
		}
		if !ok {
			return
		}
		<-j.done
		if j.raw == nil {
			p.Record(&j.out)
		}
		ready <- j
	}
}

// write writes the verdicts of finished jobs once they are in the audit log.
func write(ctx context.Context, w *World, p *shield.Pipeline, ready <-chan *job) (tally, error) {
	var t tally
	out := verdict.NewWriter(w.Out)
	for j := range ready {
		if j.rec.Err != nil {
			fmt.Fprintf(w.Err, "shield: %s; blocked\n", withoutSecrets(j.rec.Err))
		}
		var err error
		if j.raw != nil {
			err = out.Pass(j.raw)
		} else {
			p.Settle(ctx, &j.out)
			err = out.Write(&j.out.Verdict)
		}
		if err != nil {
			return t, err
		}
		t.count(j.out.Verdict.Decision)
	}
	return t, nil
}

// code returns the short code of a record's error.
func code(err error) string {
	var e *action.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return "input"
}

// refuseAll blocks every record, because shield itself cannot work as it was
// told to.
func refuseAll(ctx context.Context, w *World, cause error) error {
	in := action.NewReader(w.In, action.ReaderOptions{Name: "stdin"})
	out := verdict.NewWriter(w.Out)
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

// silence explains the status of a stream without records.
func (t *tally) silence() error {
	if t.allow+t.escalate+t.block == 0 {
		return errors.New("no action was read, so nothing is allowed")
	}
	return nil
}
