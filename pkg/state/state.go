// Package state keeps what shield must remember between actions: how much of
// the evaluator's rate and daily budget is used, how many approvals were asked
// for in the last hour, verdicts that may be reused, and the head of the audit
// log. It is one file that many processes share; [Open] it, and each method is
// one transaction that is on the disk when the method returns.
//
// # Time
//
// Limits are kept on the store's own clock, which starts as UTC and then only
// goes forward, by the time that passed between two transactions. Setting the
// system's clock back therefore neither refills a limit early nor blocks it
// longer than it would have lasted, and correcting a clock that was wrong by
// years locks no one out. Where [Options.Uptime] tells the time since boot,
// setting the clock forward refills nothing either: passed is the lesser of
// what both clocks say. Without it, time that a wrong clock claims has passed
// is believed, once.
//
// The daily budget refills at an instant that is computed when the budget
// before it refilled, as the next midnight, and at least 23 hours after the
// refill that was due then. Changing the time zone later does not move it, and
// hopping from zone to zone yields no more than one refill in 23 hours.
package state

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
)

// Names of the files in the state folder.
const (
	fileName = "state.db"
	lockName = "state.lock"
)

// Options say how a [Store] sees the world around it.
type Options struct {
	Clock    func() time.Time // the wall clock; required
	Location *time.Location   // whose midnight refills the daily budget; nil is UTC

	// Uptime returns an identifier of this boot of the machine and the time
	// passed since; ok is false where that is unknown. It is [Uptime] outside
	// tests; nil trusts the wall clock alone.
	Uptime func() (boot string, up time.Duration, ok bool)

	// Used returns what shows that this installation was used before, such as
	// "the audit log has entries", or "". It is asked only when the state file is
	// missing: used limits must not be forgotten by removing it. nil takes a
	// missing file for a first start.
	Used func() (string, error)

	// LockWait is how long a transaction waits for other processes; 0 means
	// [LockWait].
	LockWait time.Duration
}

// LockWait is how long a transaction waits for other processes unless told
// otherwise. Dozens of them finish their turns in that time.
const LockWait = 10 * time.Second

// A Store is the state of one installation. Goroutines may share it, and
// transactions that are ready together are committed together.
type Store struct {
	path string
	opts Options

	mu    sync.Mutex
	queue []*request
	busy  bool // a goroutine works through the queue
	lock  *flock.Lock
	seen  bool // the file has existed; like broken, of the goroutine that works

	broken   os.FileInfo // the file that made bbolt panic
	brokenBy error

	stamps stamps
}

// Open returns the store kept in dir, and creates the folder (mode 0700) if
// need be. The state file itself is looked at by the first transaction.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Clock == nil {
		return nil, errors.New("open state: no clock given")
	}
	if opts.Location == nil {
		opts.Location = time.UTC
	}
	opts.LockWait = cmp.Or(opts.LockWait, LockWait)
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	return &Store{path: filepath.Join(dir, fileName), opts: opts, stamps: stamps{open: map[string]stampFile{}}}, nil
}

// Close waits for transactions that have begun and frees the files that are open.
func (s *Store) Close() error {
	s.stamps.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil || s.busy {
		return nil // the process is ending with a transaction under way; the kernel cleans up
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}

// checkFolder makes sure that no other user can replace what is in the folder.
func checkFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: err}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: err}
	}
	if !info.IsDir() {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: errors.New("not a folder")}
	}
	if err := owner.Check(info, owner.Write); err != nil {
		return &Error{Kind: ErrExposed, Path: dir, Err: err}
	}
	return nil
}

// A tx is one view of the file inside a transaction.
type tx struct {
	*bolt.Tx
	now time.Time // wall clock, read while the lock was held
	rec *record

	changed bool // something is to be written; reading and refusing are not worth a sync
}

func (r *request) writes() bool { return !r.looks }

// errUnchanged ends a transaction that wrote nothing.
var errUnchanged = errors.New("nothing to write")

// A request is a transaction that waits for its turn.
type request struct {
	fn    func(*tx) error
	looks bool // fn writes nothing
	done  chan error
	taken atomic.Bool // set by whoever is first: the one that runs it or the one that gives up waiting
}

// change is [Store.read] for a fn that writes, unless it returns an error.
func (s *Store) change(ctx context.Context, fn func(*tx) error) error {
	return s.read(ctx, func(t *tx) error {
		if err := fn(t); err != nil {
			return err
		}
		t.changed = true
		return nil
	})
}

// read runs fn in a transaction and returns when that is on the disk. If ctx
// ends before fn has begun, fn never runs. fn must leave the transaction as it
// was when it returns an error, since it shares it with others.
func (s *Store) read(ctx context.Context, fn func(*tx) error) error {
	return s.run(ctx, &request{fn: fn, done: make(chan error, 1)})
}

// look is [Store.read] for a fn that never writes. It works on a folder that
// cannot be written to.
func (s *Store) look(ctx context.Context, fn func(*tx) error) error {
	return s.run(ctx, &request{fn: fn, looks: true, done: make(chan error, 1)})
}

func (s *Store) run(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for the state file: %w", err)
	}
	s.mu.Lock()
	s.queue = append(s.queue, r)
	if !s.busy {
		s.busy = true
		go s.work()
	}
	s.mu.Unlock()
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return fmt.Errorf("wait for the state file %s: %w", s.path, ctx.Err())
		}
		return <-r.done
	}
}

// work commits what waits, all of it at once, until nothing waits any more.
func (s *Store) work() {
	debug.SetPanicOnFault(true) // a state file cut short under its mapping must not kill the process
	for {
		err := s.acquire()
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		s.mu.Unlock()
		errs := make([]error, len(batch))
		switch {
		case err == nil:
			err = s.commit(batch, errs, s.transact)
			if uerr := s.lock.Unlock(); err == nil {
				err = uerr
			}
		case errors.Is(err, errNoLock) && !slices.ContainsFunc(batch, (*request).writes):
			err = s.commit(batch, errs, s.peek)
		}
		for i, r := range batch {
			if errs[i] == nil {
				errs[i] = err
			}
			r.done <- errs[i]
		}
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// errNoLock means that the lock file cannot be opened, as in a folder that is
// read-only.
var errNoLock = errors.New("no lock file")

// acquire waits for the lock that all processes share. bbolt has one of its
// own, but looks at it only every 50 ms; held under ours it is always free.
func (s *Store) acquire() error {
	if s.lock == nil {
		l, err := flock.New(filepath.Join(filepath.Dir(s.path), lockName))
		if err != nil {
			return &Error{Kind: ErrUnwritable, Path: s.path, Err: fmt.Errorf("%w: %w", errNoLock, err)}
		}
		s.mu.Lock()
		s.lock = l
		s.mu.Unlock()
	}
	if err := s.lock.Lock(context.Background(), s.opts.LockWait); err != nil {
		return s.notLocked(err)
	}
	return nil
}

// notLocked returns the error for a lock that could not be taken.
func (s *Store) notLocked(err error) error {
	if errors.As(err, new(*flock.HeldError)) {
		return &Error{Kind: ErrBusy, Path: s.path, Err: err}
	}
	return &Error{Kind: ErrUnwritable, Path: s.path, Err: err}
}

// commit runs the requests in one transaction of the file. Its own error is the
// error of each request.
func (s *Store) commit(batch []*request, errs []error, transact func(func(*tx) error) error) error {
	if err := s.ensure(); err != nil {
		return err
	}
	return transact(func(t *tx) error {
		for i, r := range batch {
			if r.taken.CompareAndSwap(false, true) {
				errs[i] = r.fn(t)
			}
		}
		return nil
	})
}

// transact opens the file, runs fn and commits. The lock is held.
func (s *Store) transact(fn func(*tx) error) error {
	return s.with(false, func(db *bolt.DB) error {
		return db.Update(func(btx *bolt.Tx) error { return s.apply(btx, fn) })
	})
}

// peek opens the file for reading alone and runs fn. bbolt's own lock keeps
// those away who write.
func (s *Store) peek(fn func(*tx) error) error {
	return s.with(true, func(db *bolt.DB) error {
		return db.View(func(btx *bolt.Tx) error {
			t, err := s.begin(btx)
			if err != nil {
				return err
			}
			return fn(t)
		})
	})
}

// with runs do on the opened file.
func (s *Store) with(readOnly bool, do func(*bolt.DB) error) (err error) {
	var file *os.File
	defer func() {
		// bbolt panics on pages that make no sense, and leaves the file mapped
		// and locked. What was mapped stays so, hence the same file is not
		// tried again.
		if recover() != nil {
			err = &Error{Kind: ErrCorrupt, Path: s.path, Err: errors.New("its pages are inconsistent")}
			s.broken, _ = file.Stat()
			s.brokenBy = err
			if ferr := flock.Free(file); ferr != nil {
				err = errors.Join(err, ferr)
			}
			file.Close()
		}
	}()
	db, err := s.open(readOnly, &file)
	if err != nil {
		return err
	}
	err = do(db)
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err != nil && !errors.As(err, new(*Error)) {
		err = &Error{Kind: ErrUnwritable, Path: s.path, Err: err}
	}
	return err
}

// apply gives fn the record and writes it back.
func (s *Store) apply(btx *bolt.Tx, fn func(*tx) error) error {
	t, err := s.begin(btx)
	if err != nil {
		return err
	}
	if err := fn(t); err != nil {
		return err
	}
	if !t.changed {
		return errUnchanged
	}
	return btx.Bucket(limitsBucket).Put(recordKey, t.rec.encode())
}

// begin reads the record and brings it up to now.
func (s *Store) begin(btx *bolt.Tx) (*tx, error) {
	t := &tx{Tx: btx, now: s.opts.Clock()}
	limits := btx.Bucket(limitsBucket)
	if limits == nil || btx.Bucket(cacheBucket) == nil {
		return nil, &Error{Kind: ErrCorrupt, Path: s.path, Err: errors.New("no limits in it")}
	}
	rec, err := decodeRecord(limits.Get(recordKey))
	if err != nil {
		return nil, &Error{Kind: ErrCorrupt, Path: s.path, Err: err}
	}
	t.rec = rec
	boot, up, ok := "", time.Duration(0), false
	if s.opts.Uptime != nil {
		boot, up, ok = s.opts.Uptime()
	}
	restarted := rec.advance(t.now, boot, up, ok)
	t.changed = rec.refill(t.now, s.opts.Location) || restarted
	return t, nil
}

var (
	limitsBucket = []byte("limits")
	cacheBucket  = []byte("cache")
	recordKey    = []byte("record")
	headKey      = []byte("audit head")
)

// uint64 keys and counters are stored big-endian.
var order = binary.BigEndian
