package shield

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shieldcli/shield/internal/stack"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An InputRecordSource yields records until [io.EOF]. It is called by one goroutine at a time.
type InputRecordSource interface {
	Next() (verdict.ActionOrVerdictRecord, error)
}

// NewRecordReader returns a source of actions and of verdicts sealed by this pipeline, or by an
// equally configured one of the same installation. inputName is the input's name in messages;
// maxActionBytes is the length of the longest action. The pipeline must have a state folder.
func (p *Pipeline) NewRecordReader(r io.Reader, inputName string, maxActionBytes int) *verdict.Reader {
	return verdict.NewReader(r, verdict.ReaderOptions{InputName: inputName, MaxActionBytes: maxActionBytes, Sealer: p.sealer, Now: p.now})
}

// NewActionSource returns a source of actions alone: a record in the form of a verdict is refused. The
// parameters are those of [Pipeline.NewRecordReader].
func NewActionSource(r io.Reader, inputName string, maxBytes int) InputRecordSource {
	return &actionSource{action.NewReader(r, action.ReaderOptions{InputName: inputName, MaxRecordBytes: maxBytes}), inputName}
}

type actionSource struct {
	reader    *action.Reader
	inputName string
}

func (s *actionSource) Next() (verdict.ActionOrVerdictRecord, error) {
	in, err := s.reader.Next()
	rec := verdict.ActionOrVerdictRecord{Line: in.StartLine, Raw: in.Raw, Err: in.Err}
	if err != nil || rec.Err != nil {
		return rec, err
	}
	if rec.Action, err = action.Parse(rec.Raw); err != nil {
		rec.Err = &action.LineError{InputName: s.inputName, Line: rec.Line, Err: err}
	}
	return rec, nil
}

// An InputRecordResult is the result for one record.
type InputRecordResult struct {
	Verdict                  verdict.Verdict // the verdict to write; if RawEarlierProcessVerdict is set, only the field Decision is set
	RawEarlierProcessVerdict []byte          // the verdict of an earlier stage, to be written byte for byte; nil for one of this stage
	Err                      error           // why the record was refused without being judged; nil if it was judged
	IsNextResultReady        bool            // another record is ready, so both can be written together
}

// A ResultSink receives the results of records, in order, each after it is in the audit log. One goroutine
// calls it; its error ends the stream.
type ResultSink func(*InputRecordResult) error

// StreamOptions are the options of a stream.
type StreamOptions struct {
	Tiers TierRange // the tiers that judge; verdicts decided by an earlier stage pass unchanged
	Jobs  int       // records judged at a time; 0 means 1

	// OmitExplanations leaves out the texts for agent and user of an ESCALATE, [verdict.Explanation]: for verdicts that
	// only another stage reads.
	OmitExplanations bool
}

// A ReadError is the error that ended reading a source.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return "read: " + e.Err.Error() }

// Unwrap returns the source's error.
func (e *ReadError) Unwrap() error { return e.Err }

// JudgeStream judges the records of a source and passes the results to a sink. It gives a result for each record
// that it reads, if the sink accepts it, also after a failure: see [Pipeline.EvaluateThroughTier]. When ctx
// ends, it stops reading and blocks what was read. It reads only a bounded number of bytes and records ahead of
// the sink.
//
// The error is the sink's, a [*ReadError], or that of ctx; or opts.Tiers is not a range of tiers. A goroutine
// blocked in the source then stays until the source returns.
func (p *Pipeline) JudgeStream(ctx context.Context, in InputRecordSource, out ResultSink, opts StreamOptions) error {
	if r := opts.Tiers; r.First < TierPolicy || r.Last > TierApprove || r.First > r.Last {
		return fmt.Errorf("tiers %d to %d do not exist; choose from 0 to 3", r.First, r.Last)
	}
	if p.sessionStoreForJudging != nil && p.agentHostName == "" && p.persistentSessionStore == nil { // each stream is a session of its own
		own := *p
		own.sessionStoreForJudging, own.persistentSessionStore, own.actionStreamID = p.sessionStoreForJudging.NewMemoryOverlay(), p.sessionStoreForJudging, rand.Text()
		p = &own
	}
	f := &inputRecordStream{pipeline: p, tiers: opts.Tiers, omitExplanations: opts.OmitExplanations, inFlightBytes: newByteLimiter(maxInFlightRecordBytes), blockedReadInterrupted: make(chan struct{})}
	queue := make(chan *streamJob, maxVerdictsPerAuditWrite) // in input order
	work := make(chan *streamJob, maxVerdictsPerAuditWrite)
	stop := make(chan struct{})
	readErr := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		if f.readGate.stopReads() {
			close(f.blockedReadInterrupted)
		}
		f.inFlightBytes.stopLimiting()
	})()
	go func() {
		readErr <- f.readRecords(ctx, in, queue, work, stop)
		close(queue)
		close(work)
	}()
	var workers sync.WaitGroup
	for range max(opts.Jobs, 1) {
		workers.Go(func() { f.judgeJobs(ctx, work) })
	}
	ready := make(chan *streamJob, maxVerdictsPerAuditWrite)
	go f.storeDeltasAndQueueLogEntries(ctx, queue, ready, stop)
	err := f.writeResults(ctx, out, ready)
	close(stop)
	f.inFlightBytes.stopLimiting()
	if err != nil {
		return err
	}
	select {
	case err := <-readErr:
		if err != nil {
			return &ReadError{err}
		}
	default: // ctx ended while a read of the source was blocked
		return ctx.Err()
	}
	workers.Wait()
	return ctx.Err()
}

// maxVerdictsPerAuditWrite is how many finished verdicts are written together, so that they share one write to the
// audit log.
const maxVerdictsPerAuditWrite = 256

// An inputRecordStream is a stream of records between a source and a sink.
type inputRecordStream struct {
	pipeline                        *Pipeline
	tiers                           TierRange
	omitExplanations                bool
	inFlightBytes                   *byteLimiter
	readGate                        recordReadGate
	blockedReadInterrupted          chan struct{} // closed by an interrupt while a read of the source is blocked
	verdictBatchesForwardedToOutput atomic.Uint64 // how often a worker has passed verdicts on
	lastActionPolicyTierDone        chan struct{} // closed when Tier 0 has judged the action that was read last; used only by the goroutine that reads the input
}

// A streamJob is one record between input and output.
type streamJob struct {
	record           verdict.ActionOrVerdictRecord
	inFlightBytes    int                  // bytes counted as in flight
	turn             *policyTierQueueSlot // nil if actions need no order
	done             chan struct{}        // closed when outcome is set
	outcome          VerdictWithLogData
	forwardedVerdict []byte // a verdict to forward unchanged; nil if outcome is to be written
}

// readRecords queues records until the input ends, an interrupt comes or stop is
// closed.
func (f *inputRecordStream) readRecords(ctx context.Context, in InputRecordSource, queue, work chan<- *streamJob, stop <-chan struct{}) error {
	for ctx.Err() == nil && f.readGate.tryBeginRead() {
		rec, err := in.Next()
		if !f.readGate.tryEndRead() {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		j := &streamJob{record: rec, inFlightBytes: len(rec.Raw), done: make(chan struct{})}
		if f.pipeline.sessionStoreForJudging != nil { // without sessions, actions do not affect later ones
			j.turn = &policyTierQueueSlot{previousTurnDone: f.lastActionPolicyTierDone, done: make(chan struct{})}
			f.lastActionPolicyTierDone = j.turn.done
		}
		f.inFlightBytes.reserveBytes(j.inFlightBytes)
		select {
		case queue <- j:
		case <-stop:
			return nil
		}
		work <- j // does not block for long: workers drain the queue
	}
	return nil
}

// The most that a worker holds back: verdicts, and the time spent judging them.
const (
	maxVerdictsPerWorkerBatch = 64
	maxVerdictHoldTime        = 5 * time.Millisecond
)

// judgeJobs judges records. While more records wait it forwards results in small batches, since each batch
// wakes another goroutine; before and after slow records it forwards at once.
func (f *inputRecordStream) judgeJobs(ctx context.Context, work <-chan *streamJob) {
	stack.GrowToReservedBytes()
	var held []*streamJob
	var took time.Duration
	looked := &fileIdentityCache{verdictBatchesForwardedToOutput: &f.verdictBatchesForwardedToOutput}
	handOn := func() {
		if len(held) > 0 {
			f.verdictBatchesForwardedToOutput.Add(1)
		}
		for _, j := range held {
			close(j.done)
		}
		held, took = held[:0], 0
	}
	defer handOn()
	for {
		var j *streamJob
		var more bool
		select {
		case j, more = <-work:
		default:
			handOn()
			j, more = <-work
		}
		if !more {
			return
		}
		f.judgeJob(ctx, j, looked, handOn)
		held = append(held, j)
		if took += j.outcome.latency; len(held) == maxVerdictsPerWorkerBatch || took > maxVerdictHoldTime {
			handOn()
		}
	}
}

// judgeJob judges one record, and frees what is not needed to write its verdict.
// forwardHeldVerdicts is called before another process or a person is asked.
func (f *inputRecordStream) judgeJob(ctx context.Context, j *streamJob, fileChecks *fileIdentityCache, forwardHeldVerdicts func()) {
	defer j.turn.passToNextAction()
	rec := j.record
	j.record = verdict.ActionOrVerdictRecord{Err: rec.Err}
	switch {
	case rec.Err != nil:
		j.outcome = f.pipeline.refuseRecord(rec.Line, string(action.CodeOf(rec.Err)), rec.Err.Error())
	case rec.Verdict != nil && rec.Verdict.Decision != verdict.Escalate:
		if j.outcome, j.forwardedVerdict = f.pipeline.forwardVerdict(&rec); j.forwardedVerdict != nil {
			j.outcome.Verdict = verdict.Verdict{Decision: rec.Verdict.Decision}
		}
	default:
		line := rec.Line
		if rec.Verdict != nil {
			line = rec.Verdict.Line
		}
		j.outcome = f.pipeline.judgeAndSealWithMAC(ctx, judgeRequest{RecordLine: line, Action: rec.Action, EarlierVerdict: rec.Verdict, EarlierJudgedTiers: rec.JudgedTiers, PolicyTierQueueSlot: j.turn, FileIdentityCache: fileChecks, ForwardHeldVerdictsBeforeAsking: forwardHeldVerdicts, OmitExplanations: f.omitExplanations}, f.tiers)
	}
	size := len(j.forwardedVerdict) + j.outcome.estimatedBytes()
	f.inFlightBytes.adjustBytes(j.inFlightBytes, size)
	j.inFlightBytes = size
}

// storeDeltasAndQueueLogEntries stores what finished jobs add to sessions, in the order of the queue, and passes them to the
// audit log and the writer. It ends when the queue is closed, when everything read before an interrupt
// is done, or when stop is closed.
func (f *inputRecordStream) storeDeltasAndQueueLogEntries(ctx context.Context, queue <-chan *streamJob, ready chan<- *streamJob, stop <-chan struct{}) {
	defer close(ready)
	for {
		var j *streamJob
		var ok bool
		select {
		case j, ok = <-queue:
		case <-f.blockedReadInterrupted:
			select {
			case j, ok = <-queue: // already read
			default:
			}
		}
		if !ok {
			return
		}
		<-j.done
		if j.forwardedVerdict == nil {
			f.pipeline.storeSessionDeltaOrBlock(ctx, &j.outcome)
			f.pipeline.queueLogEntry(&j.outcome)
		}
		select {
		case ready <- j:
		case <-stop:
			return
		}
	}
}

// writeResults passes finished jobs to the sink once they are in the audit log.
func (f *inputRecordStream) writeResults(ctx context.Context, out ResultSink, ready <-chan *streamJob) error {
	for j := range ready {
		for j != nil {
			if j.forwardedVerdict == nil {
				f.pipeline.awaitLogEntry(ctx, &j.outcome)
			}
			var next *streamJob
			select {
			case next = <-ready:
			default:
			}
			more := next != nil && (next.forwardedVerdict != nil || next.outcome.isLogged())
			if err := out(&InputRecordResult{Verdict: j.outcome.Verdict, RawEarlierProcessVerdict: j.forwardedVerdict, Err: j.record.Err, IsNextResultReady: more}); err != nil {
				return err
			}
			f.inFlightBytes.adjustBytes(j.inFlightBytes, 0)
			j = next
		}
	}
	return nil
}

// EvaluateThroughTier judges an action in the tiers up to and including lastTier. It always returns a verdict; a
// failure is a BLOCK, unless the settings (fail_closed) or a person who can be asked allow another answer.
func (p *Pipeline) EvaluateThroughTier(ctx context.Context, a *action.Action, lastTier int) VerdictWithLogData {
	if lastTier < TierPolicy || lastTier > TierApprove {
		return p.refuseRecord(1, "tier", fmt.Sprintf("tier %d does not exist; choose from 0 to 3", lastTier))
	}
	if p.judgesSingleAction && a.Type == "execute_command" && lastTier >= TierClassify {
		go p.buildClassifierRuleTables() // prepare the classifier while the command is analyzed; actions of other types are mostly decided by Tier 0, without it
	}
	o := p.judgeAndSealWithMAC(ctx, judgeRequest{RecordLine: 1, Action: a}, TierRange{TierPolicy, lastTier})
	p.queueLogEntry(&o)
	p.awaitLogEntry(ctx, &o)
	return o
}

// Evaluate judges an action in all tiers. It always returns a verdict; any failure is a BLOCK.
func (p *Pipeline) Evaluate(ctx context.Context, a *action.Action) verdict.Verdict {
	return p.EvaluateThroughTier(ctx, a, TierApprove).Verdict
}

// EvaluateInProcess judges an action in the tiers that ask no other process. isDecided is false if a later tier
// has to decide, if anything failed, or if ctx ended; then nothing was remembered or logged, unless
// the log itself failed, and the caller must use [Pipeline.Evaluate].
func (p *Pipeline) EvaluateInProcess(ctx context.Context, a *action.Action) (v verdict.Verdict, isDecided bool) {
	return p.evaluateInProcess(ctx, judgeRequest{RecordLine: 1, Action: a, StopsAfterClassifierTier: true}, AllTiers)
}

// EvaluateOnlyStreamActionInProcess judges the only action of a stream like [Pipeline.EvaluateInProcess]. If
// isDecided is false, the caller must use [Pipeline.JudgeStream].
func (p *Pipeline) EvaluateOnlyStreamActionInProcess(ctx context.Context, a *action.Action, tiers TierRange) (v verdict.Verdict, isDecided bool) {
	if tiers.First > TierClassify {
		return v, false
	}
	return p.evaluateInProcess(ctx, judgeRequest{RecordLine: 1, Action: a, StopsAfterClassifierTier: true, IsOnlyActionOfStream: true}, tiers)
}

func (p *Pipeline) evaluateInProcess(ctx context.Context, request judgeRequest, tiers TierRange) (v verdict.Verdict, isDecided bool) {
	o := p.judgeAndSealWithMAC(ctx, request, tiers)
	if request.needsLaterTier(o.Verdict, tiers) || o.Verdict.ErrorCode != "" || ctx.Err() != nil {
		return verdict.Verdict{}, false
	}
	p.storeSessionDeltaOrBlock(ctx, &o)
	p.queueLogEntry(&o)
	p.awaitLogEntry(ctx, &o)
	return o.Verdict, o.Verdict.ErrorCode == ""
}
