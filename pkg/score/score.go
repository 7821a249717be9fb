// Package score measures how well a pipeline distinguishes attacks from honest actions, on corpora of
// labelled rows, in constant memory.
package score

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Options select the rows to judge. The zero value judges all rows, one at a time.
type Options struct {
	Jobs   int              // rows judged concurrently; 0 means 1
	Split  string           // only rows of this split; "" means all
	Source string           // only rows of this source; "" means all
	IDs    map[string]Label // if not nil: only these rows, under these labels
	Bare   Label            // label of records that are plain actions; 0: such records are malformed
	Misses int              // number of misses to keep, of each kind

	// Denied and Returned are called for actions of a session: an action was denied and did not run,
	// or it ran and returned a string or another JSON value (nil if unknown). They are called
	// concurrently; nil: no call. If they return an error, the row counts as blocked.
	Denied   func(context.Context, *action.Action) error
	Returned func(ctx context.Context, a *action.Action, result any) error

	Row func(Row) error // receives the outcome of each row, in input order; can be nil

	Progress  func(rows int) // is called from time to time with the number of rows read; can be nil
	Malformed func(error)    // receives the error of each malformed row; can be nil
}

// A Judged is the outcome of an action: its verdict, the steps of the tiers with latencies, and the
// total duration.
type Judged struct {
	Verdict verdict.Verdict
	Trail   []verdict.Step
	Latency time.Duration
}

// A Row is the outcome of a row.
type Row = report.Row

// A Judge judges an action. It is safe for concurrent use.
type Judge func(context.Context, *action.Action) Judged

// A Counter judges rows and counts the outcomes.
type Counter struct {
	judge Judge
	opts  Options

	reading                               sync.Mutex
	read, leftOut, texts, malformed, seen int
	err                                   error
	lines                                 map[string]chan struct{} // by session: closed when the latest row read of the session is judged

	counting        sync.Mutex
	judged          int
	parts           [Ask + 1]part
	tiers           [4]histogram
	whole           histogram
	curve           curve
	scored          bool
	passed, stopped worst

	told    int         // rows whose outcome was forwarded, in input order
	waiting map[int]Row // outcomes of rows whose predecessors are not finished
}

// New returns a Counter without rows.
func New(judge Judge, opts Options) *Counter {
	opts.Jobs = max(opts.Jobs, 1)
	return &Counter{judge: judge, opts: opts, waiting: map[int]Row{}, passed: worst{most: opts.Misses}, stopped: worst{most: opts.Misses}}
}

// maxRow is the maximum length of a row in bytes: a maximal action plus its label.
const maxRow = 2 * action.MaxBytes

// Read judges the rows of one corpus in JSON Lines; name is the corpus name for messages. It can be
// called again for another corpus. The error is a read error or that of an ended context.
func (c *Counter) Read(ctx context.Context, r io.Reader, name string) error {
	in := action.NewReader(r, action.ReaderOptions{Name: name, MaxBytes: maxRow})
	c.err = nil
	var workers sync.WaitGroup
	for range c.opts.Jobs {
		workers.Go(func() {
			for {
				row, seq, ok := c.next(ctx, in, name)
				if !ok {
					return
				}
				out := c.inTurn(ctx, row, seq)
				if ctx.Err() != nil {
					return // an aborted judgement is not an outcome
				}
				if err := c.count(row, seq, &out); err != nil {
					c.fail(err)
				}
			}
		})
	}
	workers.Wait()
	return cmp.Or(c.err, ctx.Err())
}

// fail stops the reading with an error.
func (c *Counter) fail(err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.err = cmp.Or(c.err, err)
}

// next returns the next selected row, and its position in the input.
func (c *Counter) next(ctx context.Context, in *action.Reader, name string) (*row, int, bool) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for c.err == nil && ctx.Err() == nil {
		rec, err := in.Next()
		if err != nil {
			if c.err = err; errors.Is(err, io.EOF) {
				c.err = nil
			}
			return nil, 0, false
		}
		if c.read++; c.opts.Progress != nil && c.read%256 == 0 {
			c.opts.Progress(c.read)
		}
		r, err := (*row)(nil), rec.Err
		if err == nil {
			if r, err = parseRow(rec.Raw, c.opts.Bare); err == nil {
				r.file, r.line = name, rec.Line
			} else {
				err = &action.LineError{Name: name, Line: rec.Line, Err: err}
			}
		}
		switch {
		case err != nil:
			c.malformed++
			if c.opts.Malformed != nil {
				c.opts.Malformed(err)
			}
		case !c.choose(r):
			c.leftOut++
		case r.Text != nil && len(r.Action) == 0:
			c.texts++
		default:
			c.seen++
			c.line(r)
			return r, c.seen, true
		}
	}
	return nil, 0, false
}

// line appends a row to the queue of its session.
func (c *Counter) line(r *row) {
	id := r.sessionOf()
	if id == "" {
		return
	}
	if c.lines == nil {
		c.lines = map[string]chan struct{}{}
	}
	r.after = queue{c.lines[id], make(chan struct{})}
	c.lines[id] = r.after.done
}

// inTurn judges a row after the earlier rows of its session.
func (c *Counter) inTurn(ctx context.Context, r *row, seq int) Judged {
	if r.after.before != nil {
		<-r.after.before
	}
	if r.after.done != nil {
		defer c.end(r)
	}
	return c.row(ctx, r, seq)
}

// end lets the next row of the session start.
func (c *Counter) end(r *row) {
	close(r.after.done)
	c.reading.Lock()
	defer c.reading.Unlock()
	if id := r.sessionOf(); c.lines[id] == r.after.done {
		delete(c.lines, id)
	}
}

// choose reports whether a row is selected, and sets its adjudicated label.
func (c *Counter) choose(r *row) bool {
	if c.opts.Split != "" && r.Split != c.opts.Split || c.opts.Source != "" && r.Source != c.opts.Source {
		return false
	}
	if c.opts.IDs == nil {
		return true
	}
	label, ok := c.opts.IDs[r.ID]
	r.label = label
	return ok
}

// one judges an action; session, if not "", replaces the action's session.
func (c *Counter) one(ctx context.Context, raw []byte, session string) Judged {
	a, err := action.Parse(jsontext.Value(raw))
	if err != nil { // count an invalid action as a stream would
		return Judged{Verdict: verdict.Verdict{Decision: verdict.Block, Confidence: 1, Error: string(action.CodeOf(err)), Reasoning: err.Error()}}
	}
	a.Session = cmp.Or(session, a.Session)
	return c.judge(ctx, a)
}

// count adds a judged row.
func (c *Counter) count(r *row, seq int, out *Judged) error {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.judged++
	v := &out.Verdict
	c.parts[r.label].add(r, v)
	var asked [len(c.tiers)]bool
	var took [len(c.tiers)]int64 // the steps of one tier run concurrently
	for _, st := range out.Trail {
		if st.Tier >= 0 && st.Tier < len(c.tiers) {
			asked[st.Tier], took[st.Tier] = true, max(took[st.Tier], st.Latency)
		}
		if st.Source == "model" && st.Error == "" {
			c.scored = true
			c.curve.add(r.label, injection(st))
		}
	}
	for tier, n := range took {
		if asked[tier] {
			c.tiers[tier].add(time.Duration(n) * time.Microsecond)
		}
	}
	if len(out.Trail) > 0 {
		c.whole.add(out.Latency)
	}
	miss := func() report.Miss { return missed(r, v) }
	switch {
	case r.label == Attack && v.Decision == verdict.Allow:
		c.passed.add(v.Confidence, seq, miss)
	case r.label == Honest && v.Decision != verdict.Allow:
		c.stopped.add(float64(v.Decision)+v.Confidence, seq, miss)
	}
	if c.opts.Row == nil {
		return nil
	}
	c.waiting[seq] = Row{Label: r.label.String(), Miss: miss()}
	for {
		row, ok := c.waiting[c.told+1]
		if !ok {
			return nil
		}
		c.told++
		delete(c.waiting, c.told)
		if err := c.opts.Row(row); err != nil {
			return err
		}
	}
}

// injection returns the attack probability in a model's step, whose confidence refers to its label.
func injection(st verdict.Step) float64 {
	if st.Decision == verdict.Allow {
		return 1 - st.Confidence
	}
	return st.Confidence
}

func missed(r *row, v *verdict.Verdict) report.Miss {
	return report.Miss{
		ID: cut(r.ID, maxName), Source: cut(r.Source, maxName), Category: cut(r.Category, maxName),
		Decision: v.Decision.String(), Tier: v.Tier, Confidence: v.Confidence, Rule: v.Rule,
		Reasoning: cut(v.Reasoning, 2*maxText), Text: gist(r.Action),
		File: r.file, Line: r.line,
	}
}

// gist returns the command, path or URL of an action, or else the whole action.
func gist(raw []byte) string {
	a, err := action.Parse(raw)
	if err != nil {
		return cut(string(raw), maxText)
	}
	for _, field := range []string{"command", "path", "url"} {
		if text := a.Text(field); text != "" {
			return cut(a.Type+": "+text, maxText)
		}
	}
	return cut(string(raw), maxText)
}

// Report returns the score of the rows read so far.
func (c *Counter) Report() *report.Score {
	s := &report.Score{
		Judged: c.judged, LeftOut: c.leftOut, Texts: c.texts, Malformed: c.malformed,
		Attacks: c.parts[Attack].report(), Honest: c.parts[Honest].report(), Ask: c.parts[Ask].report(),
		Passed: c.passed.report(), Stopped: c.stopped.report(),
	}
	for tier, name := range []string{"policy", "classify", "evaluate", "approve"} {
		if h := &c.tiers[tier]; h.n > 0 {
			s.Latency = append(s.Latency, latency(name, h))
		}
	}
	if c.whole.n > 0 {
		s.Latency = append(s.Latency, latency("whole", &c.whole))
	}
	if c.scored {
		s.Curve = c.curve.report()
	}
	return s
}

func latency(name string, h *histogram) report.Latency {
	return report.Latency{Name: name, Count: h.n, P50: h.quantile(0.5), P95: h.quantile(0.95), P99: h.quantile(0.99), Max: h.max}
}
