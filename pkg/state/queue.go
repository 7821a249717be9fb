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
)

// A queue runs transactions on a medium. Transactions that are ready at the same time share a commit.
type queue struct {
	medium medium
	loc    *time.Location // time zone whose midnight refills the daily budget

	mu      sync.Mutex
	waiting []*request
	busy    bool // a goroutine is processing the queue

	note func(*tx) error // adds to each transaction that writes; may be nil
}

// A request is a transaction that waits for its turn.
type request struct {
	fn    func(*tx) error
	looks bool // fn does not write
	wants []want
	done  chan error
	taken atomic.Bool // set by the first of: the goroutine that runs it, the caller that gives up waiting
}

func (r *request) writes() bool { return !r.looks }

// A tx is a view of the medium inside a transaction.
type tx struct {
	view
	instant
	rec *record

	changed bool // something was written; reads and refusals need no fsync
}

// errUnchanged ends a transaction without writes.
var errUnchanged = errors.New("there is nothing to write")

// change is [queue.read] for an fn that writes unless it returns an error.
func (q *queue) change(ctx context.Context, fn func(*tx) error, wants ...want) error {
	return q.read(ctx, func(t *tx) error {
		if err := fn(t); err != nil {
			return err
		}
		t.changed = true
		return nil
	}, wants...)
}

// read runs fn in a transaction and returns when its writes are stored. If ctx ends before fn starts,
// fn never runs. fn may run several times; the last run counts. If fn returns an error it must have
// written nothing, because other requests share the transaction. wants are the values that it usually
// reads.
func (q *queue) read(ctx context.Context, fn func(*tx) error, wants ...want) error {
	return q.run(ctx, &request{fn: fn, wants: wants, done: make(chan error, 1)})
}

// look is [queue.read] for an fn that never writes. It works on a read-only medium.
func (q *queue) look(ctx context.Context, fn func(*tx) error, wants ...want) error {
	return q.run(ctx, &request{fn: fn, wants: wants, looks: true, done: make(chan error, 1)})
}

func (q *queue) run(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for the lock of the state file: %w", err)
	}
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	if !q.busy {
		q.busy = true
		go q.work()
	}
	q.mu.Unlock()
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return fmt.Errorf("wait for the lock of the state file %s: %w; another shield process holds it: end that process, or try again", q.medium.name(), ctx.Err())
		}
		return <-r.done
	}
}

// close closes the medium, unless a transaction is under way while the process ends: the kernel then
// closes it.
func (q *queue) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return nil
	}
	return q.medium.close()
}

// work commits all waiting requests in batches until none is left.
func (q *queue) work() {
	debug.SetPanicOnFault(true) // a state file truncated while mapped must not kill the process
	for {
		err := q.medium.acquire()
		q.mu.Lock()
		batch := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		errs := make([]error, len(batch))
		switch {
		case err == nil:
			err = q.commit(batch, errs, true)
			if uerr := q.medium.release(); err == nil {
				err = uerr
			}
		case errors.Is(err, errNoLock) && !slices.ContainsFunc(batch, (*request).writes):
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
			q.busy = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
	}
}

// commit runs requests in one transaction. An error of the transaction is the error of each request.
func (q *queue) commit(batch []*request, errs []error, writes bool) error {
	begun := make([]bool, len(batch))
	do := q.medium.update
	if !writes {
		do = q.medium.look
	}
	var wants []want
	for _, r := range batch {
		wants = append(wants, r.wants...)
	}
	return do(wants, func(v view) error {
		t, err := q.begin(v)
		if err != nil {
			return err
		}
		for i, r := range batch {
			if begun[i] || r.taken.CompareAndSwap(false, true) {
				begun[i] = true
				errs[i] = r.fn(t)
			}
		}
		if !t.changed || !writes {
			return errUnchanged
		}
		if q.note != nil {
			if err := q.note(t); err != nil {
				return err
			}
		}
		return t.put(limitsPlace, recordKey, t.rec.encode())
	})
}

// begin reads the record and advances it to the current time.
func (q *queue) begin(v view) (*tx, error) {
	t := &tx{view: v, instant: v.now()}
	rec, err := decodeRecord(v.get(limitsPlace, recordKey))
	switch {
	case errors.As(err, new(newerError)):
		return nil, &Error{Kind: ErrNewer, Path: q.medium.name(), Err: err}
	case err != nil:
		return nil, &Error{Kind: ErrCorrupt, Path: q.medium.name(), Err: err}
	}
	t.rec = rec
	restarted := rec.advance(t.instant)
	t.changed = rec.refill(t.wall, q.loc) || restarted
	return t, nil
}
