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
	Jobs                  int              // rows judged concurrently; 0 means 1
	OnlySplit             string           // only rows of this split; "" means all
	OnlySource            string           // only rows of this source; "" means all
	OnlyIDs               map[string]Label // if not nil: only these rows, under these labels
	UnlabelledActionLabel Label            // label of records that are plain actions; 0: such records are malformed
	MaxMisses             int              // number of misses to keep, of each kind

	// OnDenied is called for an action of a session that was denied and did not run. OnResult is
	// called for one that ran; its result is a string or another JSON value, nil if unknown. They
	// are called concurrently; nil: no call. If they return an error, the row counts as blocked.
	OnDenied func(context.Context, *action.Action) error
	OnResult func(ctx context.Context, a *action.Action, result any) error

	OnRow func(Row) error // receives the outcome of each row, in input order; can be nil

	OnProgress  func(rows int) // is called from time to time with the number of rows read; can be nil
	OnMalformed func(error)    // receives the error of each malformed row; can be nil
}

// An Outcome is the outcome of an action: its verdict, the steps of the tiers with latencies, and the
// total duration.
type Outcome struct {
	Verdict verdict.Verdict
	Trail   []verdict.Step
	Latency time.Duration
}

// A Row is the outcome of a row.
type Row = report.CorpusRowOutcome

// A Judge judges an action. It is safe for concurrent use.
type Judge func(context.Context, *action.Action) Outcome

// A Counter judges rows and counts the outcomes.
type CorpusOutcomeCounter struct {
	judge Judge
	opts  Options

	readMutex                                                             sync.Mutex
	readRows, excludedRows, unjudgedTextRows, malformedRows, selectedRows int
	readError                                                             error
	lastRowDoneBySession                                                  map[string]chan struct{} // by session: closed when the latest row read of the session is judged

	countMutex                   sync.Mutex
	judgedRows                   int
	countsByLabel                [Ask + 1]labelCounts
	tierLatencies                [4]durationHistogram
	totalLatency                 durationHistogram
	curve                        scoreCounts
	hasScores                    bool
	passedAttacks, stoppedBenign worstMisses

	rowsPassedToOnRow int         // rows whose outcome was forwarded, in input order
	waitingOutcomes   map[int]Row // outcomes of rows whose predecessors are not finished
}

// New returns a Counter without rows.
func New(judge Judge, opts Options) *CorpusOutcomeCounter {
	opts.Jobs = max(opts.Jobs, 1)
	return &CorpusOutcomeCounter{judge: judge, opts: opts, waitingOutcomes: map[int]Row{}, passedAttacks: worstMisses{maxKept: opts.MaxMisses}, stoppedBenign: worstMisses{maxKept: opts.MaxMisses}}
}

// maxRowBytes is the maximum length of a row in bytes: a maximal action plus its label.
const maxRowBytes = 2 * action.MaxBytes

// Read judges the rows of one corpus in JSON Lines; name is the corpus name for messages. It can be
// called again for another corpus. The error is a read error or that of an ended context.
func (c *CorpusOutcomeCounter) Read(ctx context.Context, r io.Reader, name string) error {
	in := action.NewReader(r, action.ReaderOptions{Name: name, MaxBytes: maxRowBytes})
	c.readError = nil
	var workers sync.WaitGroup
	for range c.opts.Jobs {
		workers.Go(func() {
			for {
				row, seq, ok := c.nextRow(ctx, in, name)
				if !ok {
					return
				}
				out := c.judgeInTurn(ctx, row, seq)
				if ctx.Err() != nil {
					return // an aborted judgement is not an outcome
				}
				if err := c.countRow(row, seq, &out); err != nil {
					c.setReadError(err)
				}
			}
		})
	}
	workers.Wait()
	return cmp.Or(c.readError, ctx.Err())
}

// setReadError stops the reading with an error.
func (c *CorpusOutcomeCounter) setReadError(err error) {
	c.readMutex.Lock()
	defer c.readMutex.Unlock()
	c.readError = cmp.Or(c.readError, err)
}

// nextRow returns the next selected row, and its position in the input.
func (c *CorpusOutcomeCounter) nextRow(ctx context.Context, in *action.Reader, name string) (*corpusRow, int, bool) {
	c.readMutex.Lock()
	defer c.readMutex.Unlock()
	for c.readError == nil && ctx.Err() == nil {
		rec, err := in.Next()
		if err != nil {
			if c.readError = err; errors.Is(err, io.EOF) {
				c.readError = nil
			}
			return nil, 0, false
		}
		if c.readRows++; c.opts.OnProgress != nil && c.readRows%256 == 0 {
			c.opts.OnProgress(c.readRows)
		}
		r, err := (*corpusRow)(nil), rec.Err
		if err == nil {
			if r, err = parseRow(rec.Raw, c.opts.UnlabelledActionLabel); err == nil {
				r.file, r.line = name, rec.Line
			} else {
				err = &action.LineError{Name: name, Line: rec.Line, Err: err}
			}
		}
		switch {
		case err != nil:
			c.malformedRows++
			if c.opts.OnMalformed != nil {
				c.opts.OnMalformed(err)
			}
		case !c.isRowSelected(r):
			c.excludedRows++
		case r.Text != nil && len(r.Action) == 0:
			c.unjudgedTextRows++
		default:
			c.selectedRows++
			c.enqueueRow(r)
			return r, c.selectedRows, true
		}
	}
	return nil, 0, false
}

// enqueueRow appends a row to the queue of its session.
func (c *CorpusOutcomeCounter) enqueueRow(r *corpusRow) {
	id := r.sessionID()
	if id == "" {
		return
	}
	if c.lastRowDoneBySession == nil {
		c.lastRowDoneBySession = map[string]chan struct{}{}
	}
	r.sessionQueue = sessionQueue{c.lastRowDoneBySession[id], make(chan struct{})}
	c.lastRowDoneBySession[id] = r.sessionQueue.ownDone
}

// judgeInTurn judges a row after the earlier rows of its session.
func (c *CorpusOutcomeCounter) judgeInTurn(ctx context.Context, r *corpusRow, seq int) Outcome {
	if r.sessionQueue.previousDone != nil {
		<-r.sessionQueue.previousDone
	}
	if r.sessionQueue.ownDone != nil {
		defer c.releaseNextRow(r)
	}
	return c.judgeRow(ctx, r, seq)
}

// releaseNextRow lets the next row of the session start.
func (c *CorpusOutcomeCounter) releaseNextRow(r *corpusRow) {
	close(r.sessionQueue.ownDone)
	c.readMutex.Lock()
	defer c.readMutex.Unlock()
	if id := r.sessionID(); c.lastRowDoneBySession[id] == r.sessionQueue.ownDone {
		delete(c.lastRowDoneBySession, id)
	}
}

// isRowSelected reports whether a row is selected, and sets its adjudicated label.
func (c *CorpusOutcomeCounter) isRowSelected(r *corpusRow) bool {
	if c.opts.OnlySplit != "" && r.Split != c.opts.OnlySplit || c.opts.OnlySource != "" && r.Source != c.opts.OnlySource {
		return false
	}
	if c.opts.OnlyIDs == nil {
		return true
	}
	label, ok := c.opts.OnlyIDs[r.ID]
	r.label = label
	return ok
}

// judgeAction judges an action; session, if not "", replaces the action's session.
func (c *CorpusOutcomeCounter) judgeAction(ctx context.Context, raw []byte, session string) Outcome {
	a, err := action.Parse(jsontext.Value(raw))
	if err != nil { // an invalid action is blocked, as in a stream of actions
		return Outcome{Verdict: verdict.Verdict{Decision: verdict.Block, Confidence: 1, Error: string(action.CodeOf(err)), Reasoning: err.Error()}}
	}
	a.Session = cmp.Or(session, a.Session)
	return c.judge(ctx, a)
}

// countRow adds a judged row.
func (c *CorpusOutcomeCounter) countRow(r *corpusRow, seq int, out *Outcome) error {
	c.countMutex.Lock()
	defer c.countMutex.Unlock()
	c.judgedRows++
	v := &out.Verdict
	c.countsByLabel[r.label].add(r, v)
	var asked [len(c.tierLatencies)]bool
	var took [len(c.tierLatencies)]int64 // the steps of one tier run concurrently
	for _, st := range out.Trail {
		if st.Tier >= 0 && st.Tier < len(c.tierLatencies) {
			asked[st.Tier], took[st.Tier] = true, max(took[st.Tier], st.Latency)
		}
		if st.Source == "model" && st.Error == "" {
			c.hasScores = true
			c.curve.add(r.label, attackProbability(st))
		}
	}
	for tier, n := range took {
		if asked[tier] {
			c.tierLatencies[tier].add(time.Duration(n) * time.Microsecond)
		}
	}
	if len(out.Trail) > 0 {
		c.totalLatency.add(out.Latency)
	}
	miss := func() report.MisjudgedRow { return newMiss(r, v) }
	switch {
	case r.label == Attack && v.Decision == verdict.Allow:
		c.passedAttacks.add(v.Confidence, seq, miss)
	case r.label == Benign && v.Decision != verdict.Allow:
		c.stoppedBenign.add(float64(v.Decision)+v.Confidence, seq, miss)
	}
	if c.opts.OnRow == nil {
		return nil
	}
	c.waitingOutcomes[seq] = Row{Label: r.label.String(), MisjudgedRow: miss()}
	for {
		row, ok := c.waitingOutcomes[c.rowsPassedToOnRow+1]
		if !ok {
			return nil
		}
		c.rowsPassedToOnRow++
		delete(c.waitingOutcomes, c.rowsPassedToOnRow)
		if err := c.opts.OnRow(row); err != nil {
			return err
		}
	}
}

// attackProbability returns the attack probability in a model's step, whose confidence refers to its label.
func attackProbability(st verdict.Step) float64 {
	if st.Decision == verdict.Allow {
		return 1 - st.Confidence
	}
	return st.Confidence
}

func newMiss(r *corpusRow, v *verdict.Verdict) report.MisjudgedRow {
	return report.MisjudgedRow{
		ID: shortenText(r.ID, maxGroupNameRunes), Source: shortenText(r.Source, maxGroupNameRunes), Category: shortenText(r.Category, maxGroupNameRunes),
		Decision: v.Decision.String(), Tier: v.Tier, Confidence: v.Confidence, Rule: v.Rule,
		Reasoning: shortenText(v.Reasoning, 2*maxActionTextRunes), Text: actionSummary(r.Action),
		File: r.file, Line: r.line,
	}
}

// actionSummary returns the command, path or URL of an action, or else the whole action.
func actionSummary(raw []byte) string {
	a, err := action.Parse(raw)
	if err != nil {
		return shortenText(string(raw), maxActionTextRunes)
	}
	for _, field := range []string{"command", "path", "url"} {
		if text := a.Text(field); text != "" {
			return shortenText(a.Type+": "+text, maxActionTextRunes)
		}
	}
	return shortenText(string(raw), maxActionTextRunes)
}

// Report returns the score of the rows read so far.
func (c *CorpusOutcomeCounter) Report() *report.CorpusScore {
	s := &report.CorpusScore{
		JudgedRows: c.judgedRows, ExcludedRows: c.excludedRows, UnjudgedTextRows: c.unjudgedTextRows, MalformedRows: c.malformedRows,
		Attacks: c.countsByLabel[Attack].toReport(), Benign: c.countsByLabel[Benign].toReport(), RequiresPersonDecision: c.countsByLabel[Ask].toReport(),
		PassedAttacks: c.passedAttacks.toReport(), StoppedBenign: c.stoppedBenign.toReport(),
	}
	for tier, name := range []string{"policy", "classify", "evaluate", "approve"} {
		if h := &c.tierLatencies[tier]; h.total > 0 {
			s.Latency = append(s.Latency, summarizeLatency(name, h))
		}
	}
	if c.totalLatency.total > 0 {
		s.Latency = append(s.Latency, summarizeLatency("whole", &c.totalLatency))
	}
	if c.hasScores {
		s.Curve = c.curve.toReport()
	}
	return s
}

func summarizeLatency(name string, h *durationHistogram) report.Latency {
	return report.Latency{Name: name, Count: h.total, P50: h.quantile(0.5), P95: h.quantile(0.95), P99: h.quantile(0.99), Max: h.max}
}
