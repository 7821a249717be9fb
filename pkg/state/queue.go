package state

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shieldcli/shield/internal/stack"
)

// A transactionQueue runs transactions on a [storageBackend]. Transactions that wait at the same time share a
// commit.
type transactionQueue struct {
	backend    storageBackend
	budgetZone *time.Location // time zone whose midnight refills the daily budget

	mu                 sync.Mutex
	waiting            []*queuedTransaction
	isCommitterRunning bool // a goroutine is processing the queue

	beforeCommit func(*tx) error // called in each transaction that writes, to add further data before the commit; may be nil
}

// A queuedTransaction is a transaction that waits for its turn.
type queuedTransaction struct {
	fn                 func(*tx) error
	readOnly           bool // fn does not write
	prefetch           []prefetchKey
	done               chan error
	startedOrAbandoned atomic.Bool // set by what happens first: a goroutine starts fn, or the caller gives up waiting
}

func (r *queuedTransaction) mayWrite() bool { return !r.readOnly }

// A tx is the view of the stored values, and of the clocks, inside one transaction.
type tx struct {
	backendTransaction
	clockReading
	record *limitRecord

	hasWrites bool // something was written; reads and refusals need no fsync
}

// errUnchanged ends a transaction without writes.
var errUnchanged = errors.New("there is nothing to write")

// runWriting is [transactionQueue.runPossiblyWriting] for an fn that writes unless it returns an error.
func (q *transactionQueue) runWriting(ctx context.Context, fn func(*tx) error, wants ...prefetchKey) error {
	return q.runPossiblyWriting(ctx, func(t *tx) error {
		if err := fn(t); err != nil {
			return err
		}
		t.hasWrites = true
		return nil
	}, wants...)
}

// runPossiblyWriting runs fn in a transaction and returns when its writes are stored. If ctx ends before fn starts,
// fn never runs. fn may run several times; the last run counts. If fn returns an error it must have
// written nothing, because other requests share the transaction. wants are the values that it usually
// reads.
func (q *transactionQueue) runPossiblyWriting(ctx context.Context, fn func(*tx) error, wants ...prefetchKey) error {
	return q.enqueueAndAwait(ctx, &queuedTransaction{fn: fn, prefetch: wants, done: make(chan error, 1)})
}

// runReadOnly is [transactionQueue.runPossiblyWriting] for an fn that never writes. It works on a
// read-only backend.
func (q *transactionQueue) runReadOnly(ctx context.Context, fn func(*tx) error, wants ...prefetchKey) error {
	return q.enqueueAndAwait(ctx, &queuedTransaction{fn: fn, prefetch: wants, readOnly: true, done: make(chan error, 1)})
}

func (q *transactionQueue) enqueueAndAwait(ctx context.Context, transaction *queuedTransaction) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for the lock of the state file: %w", err)
	}
	q.mu.Lock()
	q.waiting = append(q.waiting, transaction)
	if !q.isCommitterRunning {
		q.isCommitterRunning = true
		go q.commitWaiting()
	}
	q.mu.Unlock()
	select {
	case err := <-transaction.done:
		return err
	case <-ctx.Done():
		if transaction.startedOrAbandoned.CompareAndSwap(false, true) {
			return fmt.Errorf("the state file %s is still locked: %w; another shield process holds the lock: end that process, or try again", q.backend.name(), ctx.Err())
		}
		return <-transaction.done
	}
}

// close closes the storage backend, unless a transaction is under way while the process ends: the
// kernel then closes it.
func (q *transactionQueue) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isCommitterRunning {
		return nil
	}
	return q.backend.close()
}

// commitWaiting commits all waiting requests in batches until none is left.
func (q *transactionQueue) commitWaiting() {
	stack.GrowToReservedBytes()
	debug.SetPanicOnFault(true) // a state file truncated while mapped must not kill the process
	for {
		err := q.backend.acquireLock()
		q.mu.Lock()
		batch := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		errs := make([]error, len(batch))
		switch {
		case err == nil:
			err = q.commit(batch, errs, true)
			if uerr := q.backend.releaseLock(); err == nil {
				err = uerr
			}
		case errors.Is(err, errNoLock) && !slices.ContainsFunc(batch, (*queuedTransaction).mayWrite):
			err = q.commit(batch, errs, false)
		}
		for i, r := range batch {
			if err != nil {
				errs[i] = err
			}
			r.done <- errs[i]
		}
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.isCommitterRunning = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
	}
}

// commit runs requests in one transaction. An error of the transaction is the error of each request.
func (q *transactionQueue) commit(batch []*queuedTransaction, errs []error, writes bool) error {
	begun := make([]bool, len(batch))
	do := q.backend.update
	if !writes {
		do = q.backend.runReadOnly
	}
	var wants []prefetchKey
	for _, r := range batch {
		wants = append(wants, r.prefetch...)
	}
	return do(wants, func(v backendTransaction) error {
		t, err := q.beginTransaction(v)
		if err != nil {
			return err
		}
		for i, r := range batch {
			if begun[i] || r.startedOrAbandoned.CompareAndSwap(false, true) {
				begun[i] = true
				errs[i] = r.fn(t)
			}
		}
		if !t.hasWrites || !writes {
			return errUnchanged
		}
		if q.beforeCommit != nil {
			if err := q.beforeCommit(t); err != nil {
				return err
			}
		}
		return t.put(limitsBucket, limitRecordKey, t.record.encode())
	})
}

// beginTransaction reads the record of the used limits, advances the store's clock in it, and refills the daily
// budget if that is due.
func (q *transactionQueue) beginTransaction(v backendTransaction) (*tx, error) {
	t := &tx{backendTransaction: v, clockReading: v.now()}
	rec, err := decodeLimitRecord(v.get(limitsBucket, limitRecordKey))
	switch {
	case errors.As(err, new(newerRecordVersionError)):
		return nil, &Error{Kind: ErrNewerStateFile, Path: q.backend.name(), Err: err}
	case err != nil:
		return nil, &Error{Kind: ErrCorrupt, Path: q.backend.name(), Err: err}
	}
	t.record = rec
	restarted := rec.advanceClock(t.clockReading)
	t.hasWrites = rec.refillBudget(t.wallTime, q.budgetZone) || restarted
	return t, nil
}
