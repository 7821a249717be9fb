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
// share one entry into the audit log.
const maxBatch = 256

// A stage is one pass over the input: what it accepts and which tiers judge.
type stage struct {
	tiers       shield.Range
	actionsOnly bool // verdicts are refused
}

// A job is one record on its way through the stage.
type job struct {
	rec  verdict.Record
	size int           // bytes that are counted for it
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
	await(w, "actions from the terminal, one JSON object a line")
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

// A flow is a stream of records on its way through a stage.
type flow struct {
	stage
	p     *shield.Pipeline
	bytes *inFlight
	gate  gate
	quiet chan struct{} // closed by an interrupt that finds the source silent
}

// stream judges records with n goroutines and writes verdicts in input order.
// After an interrupt nothing more is read, and what was read is blocked.
func (s stage) stream(ctx context.Context, w *World, p *shield.Pipeline, in source, n int) error {
	f := &flow{stage: s, p: p, bytes: newInFlight(maxInFlight), quiet: make(chan struct{})}
	queue := make(chan *job, maxBatch) // in input order
	work := make(chan *job, maxBatch)
	stop := make(chan struct{})
	readErr := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		if f.gate.close() {
			close(f.quiet)
		}
		f.bytes.release()
	})()
	go func() {
		readErr <- f.read(ctx, in, queue, work, stop)
		close(queue)
		close(work)
	}()
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for j := range work {
				f.one(ctx, j)
				close(j.done)
			}
		})
	}
	ready := make(chan *job, maxBatch)
	go f.record(queue, ready)
	t, err := f.write(ctx, w, ready)
	close(stop)
	f.bytes.release()
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

// read queues records until the input ends, an interrupt comes or stop is
// closed.
func (f *flow) read(ctx context.Context, in source, queue, work chan<- *job, stop <-chan struct{}) error {
	for ctx.Err() == nil && f.gate.enter() {
		rec, err := in.Next()
		if !f.gate.leave() {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		j := &job{rec: rec, size: len(rec.Raw), done: make(chan struct{})}
		f.bytes.take(j.size)
		select {
		case queue <- j:
		case <-stop:
			return nil
		}
		work <- j // never blocks for good: workers take all that is queued
	}
	return nil
}

// one judges one record, and lets go of what writing its verdict does not need.
func (f *flow) one(ctx context.Context, j *job) {
	rec := j.rec
	j.rec = verdict.Record{Err: rec.Err}
	switch {
	case rec.Err != nil:
		j.out = f.p.Refuse(rec.Line, code(rec.Err), rec.Err.Error())
	case rec.Verdict != nil && rec.Verdict.Decision != verdict.Escalate:
		if j.out, j.raw = f.p.Pass(&rec); j.raw != nil {
			j.out.Verdict = verdict.Verdict{Decision: rec.Verdict.Decision}
		}
	default:
		line := rec.Line
		if rec.Verdict != nil {
			line = rec.Verdict.Line
		}
		j.out = f.p.Judge(ctx, shield.Item{Line: line, Action: rec.Action, Resume: rec.Verdict, Stages: rec.Stages}, f.tiers)
	}
	size := len(j.raw) + j.out.Size()
	f.bytes.change(j.size, size)
	j.size = size
}

// record hands finished jobs, in the order of the queue, to the audit log and
// on to the writer, until the queue is closed, or until an interrupt has come
// and all that was read is done.
func (f *flow) record(queue <-chan *job, ready chan<- *job) {
	defer close(ready)
	for {
		var j *job
		var ok bool
		select {
		case j, ok = <-queue:
		case <-f.quiet:
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
			f.p.Record(&j.out)
		}
		ready <- j
	}
}

// write writes the verdicts of finished jobs once they are in the audit log.
func (f *flow) write(ctx context.Context, w *World, ready <-chan *job) (tally, error) {
	var t tally
	out := verdict.NewWriter(w.Out)
	line := progress{err: w.Err, live: isTerminal(w.Err) && !isTerminal(w.Out)}
	defer line.clear()
	for j := range ready {
		if j.rec.Err != nil {
			line.clear()
			fmt.Fprintf(w.Err, "shield: %s; blocked\n", withoutSecrets(j.rec.Err))
		}
		var err error
		if j.raw != nil {
			err = out.Pass(j.raw)
		} else {
			f.p.Settle(ctx, &j.out)
			err = out.Write(&j.out.Verdict)
		}
		if err != nil {
			return t, err
		}
		t.count(j.out.Verdict.Decision)
		if n := t.allow + t.escalate + t.block; n%progressEvery == 0 {
			line.show(n, "actions judged")
		}
		f.bytes.change(j.size, 0)
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
