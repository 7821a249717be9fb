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
// longer than it would have lasted, and a clock that was wrong by years and is
// put right leaves nobody locked out. Where [Options.Uptime] tells the time
// since boot, setting the clock forward refills nothing either: passed is the
// lesser of what both clocks say. Without it, time that a wrong clock claims
// has passed is believed, once.
//
// The daily budget refills at an instant that is computed when the budget
// before it refilled, as the next midnight, and at least 23 hours after the
// refill that was due then. Changing the time zone later does not move it, and
// hopping from zone to zone yields no more than one refill in 23 hours.
package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/shieldcli/shield/internal/flock"
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

	// Logged tells whether the audit log has entries. It is asked only when the
	// state file is missing: used limits must not be forgotten by removing it.
	// nil takes a missing file for a first start.
	Logged func() (bool, error)
}

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
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	return &Store{path: filepath.Join(dir, fileName), opts: opts}, nil
}

// Close waits for transactions that have begun and frees the lock file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil || s.busy {
		return nil // the process is ending with a transaction under way; the kernel cleans up
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}

// checkFolder makes sure that nobody else can replace what is in the folder.
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
	if othersMayWrite(info) {
		return &Error{Kind: ErrExposed, Path: dir, Err: fmt.Errorf("mode %v", info.Mode().Perm())}
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

// errUnchanged ends a transaction that wrote nothing.
var errUnchanged = errors.New("nothing to write")

// A request is a transaction that waits for its turn.
type request struct {
	fn    func(*tx) error
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
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for state: %w", err)
	}
	r := &request{fn: fn, done: make(chan error, 1)}
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
			return fmt.Errorf("wait for state: %w", ctx.Err())
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
		if err == nil {
			err = s.commit(batch, errs)
			if uerr := s.lock.Unlock(); err == nil {
				err = uerr
			}
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

// acquire waits for the lock that all processes share. bbolt has one of its
// own, but looks at it only every 50 ms; held under ours it is always free.
func (s *Store) acquire() error {
	if s.lock == nil {
		l, err := flock.New(filepath.Join(filepath.Dir(s.path), lockName))
		if err != nil {
			return &Error{Kind: ErrUnwritable, Path: s.path, Err: err}
		}
		s.mu.Lock()
		s.lock = l
		s.mu.Unlock()
	}
	if err := s.lock.Lock(); err != nil {
		return &Error{Kind: ErrUnwritable, Path: s.path, Err: err}
	}
	return nil
}

// commit runs the requests in one transaction of the file. An error of its own
// is everybody's.
func (s *Store) commit(batch []*request, errs []error) error {
	if err := s.ensure(); err != nil {
		return err
	}
	return s.transact(func(t *tx) error {
		for i, r := range batch {
			if r.taken.CompareAndSwap(false, true) {
				errs[i] = r.fn(t)
			}
		}
		return nil
	})
}

// transact opens the file, runs fn and commits. The lock is held.
func (s *Store) transact(fn func(*tx) error) (err error) {
	var file *os.File
	defer func() {
		// bbolt panics on pages that make no sense, and leaves the file mapped
		// and locked. What was mapped stays so, hence the same file is not
		// tried again.
		if p := recover(); p != nil {
			err = &Error{Kind: ErrCorrupt, Path: s.path, Err: fmt.Errorf("%v", p)}
			s.broken, _ = file.Stat()
			s.brokenBy = err
			if ferr := flock.Free(file); ferr != nil {
				err = errors.Join(err, ferr)
			}
			file.Close()
		}
	}()
	db, err := open(s.path, &file)
	if err != nil {
		return err
	}
	err = db.Update(func(btx *bolt.Tx) error { return s.apply(btx, fn) })
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
	t := &tx{Tx: btx, now: s.opts.Clock()}
	limits := btx.Bucket(limitsBucket)
	if limits == nil || btx.Bucket(cacheBucket) == nil {
		return &Error{Kind: ErrCorrupt, Path: s.path, Err: errors.New("no limits in it")}
	}
	rec, err := decodeRecord(limits.Get(recordKey))
	if err != nil {
		return &Error{Kind: ErrCorrupt, Path: s.path, Err: err}
	}
	t.rec = rec
	boot, up, ok := "", time.Duration(0), false
	if s.opts.Uptime != nil {
		boot, up, ok = s.opts.Uptime()
	}
	anew := rec.advance(t.now, boot, up, ok)
	t.changed = rec.refill(t.now, s.opts.Location) || anew
	if err := fn(t); err != nil {
		return err
	}
	if !t.changed {
		return errUnchanged
	}
	return limits.Put(recordKey, rec.encode())
}

// open opens the bbolt file at path, which must exist, and leaves the open
// file in *file.
func open(path string, file **os.File) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      5 * time.Second, // a process that just died may still be giving up bbolt's own lock
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag&^os.O_CREATE|noFollow, mode)
			if err != nil {
				return nil, err
			}
			*file = f
			return f, checkFile(f)
		},
	})
	switch {
	case err == nil:
		return db, nil
	case errors.As(err, new(*Error)):
		return nil, err
	case errors.As(err, new(*os.PathError)), errors.Is(err, bolterrors.ErrTimeout):
		return nil, &Error{Kind: ErrUnwritable, Path: path, Err: err}
	}
	return nil, &Error{Kind: ErrCorrupt, Path: path, Err: err}
}

// checkFile refuses a state file that others can change, or that is shorter
// than its own header says, before it is mapped into memory.
func checkFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: f.Name(), Err: err}
	}
	if !info.Mode().IsRegular() {
		return &Error{Kind: ErrCorrupt, Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if othersMayWrite(info) {
		return &Error{Kind: ErrExposed, Path: f.Name(), Err: fmt.Errorf("mode %v", info.Mode().Perm())}
	}
	if info.Size() == 0 { // bbolt would start afresh
		return &Error{Kind: ErrCorrupt, Path: f.Name(), Err: errors.New("empty")}
	}
	if info.Size() > maxFileSize {
		return &Error{Kind: ErrCorrupt, Path: f.Name(), Err: fmt.Errorf("%d bytes long", info.Size())}
	}
	return nil
}

// maxFileSize is far more than [maxCached] entries of [MaxCachedValue] bytes need.
const maxFileSize = 256 << 20

// ensure creates the state file where there is none. It is made under another
// name, so that a process that dies here leaves no half of it.
func (s *Store) ensure() error {
	info, err := os.Lstat(s.path)
	if err == nil {
		s.seen = true
		if !info.Mode().IsRegular() {
			return &Error{Kind: ErrCorrupt, Path: s.path, Err: errors.New("not a regular file")}
		}
		if b := s.broken; b != nil && os.SameFile(b, info) && b.ModTime().Equal(info.ModTime()) && b.Size() == info.Size() {
			return s.brokenBy
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return &Error{Kind: ErrUnwritable, Path: s.path, Err: err}
	}
	logged := s.seen
	if !logged && s.opts.Logged != nil {
		if logged, err = s.opts.Logged(); err != nil {
			return &Error{Kind: ErrVanished, Path: s.path, Err: err}
		}
	}
	if logged {
		return &Error{Kind: ErrVanished, Path: s.path, Err: errors.New("the audit log has entries")}
	}
	if err := create(s.path, &record{}); err != nil {
		return err
	}
	s.seen = true
	return nil
}

// create puts a new state file with the given limits at path. The lock is held.
func create(path string, rec *record) error {
	fail := func(err error) error { return &Error{Kind: ErrUnwritable, Path: path, Err: err} }
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail(err)
	}
	db, err := bolt.Open(fresh, 0o600, &bolt.Options{Timeout: time.Second, NoStatistics: true})
	if err != nil {
		return fail(err)
	}
	err = db.Update(func(btx *bolt.Tx) error {
		limits, err := btx.CreateBucket(limitsBucket)
		if err != nil {
			return err
		}
		if _, err := btx.CreateBucket(cacheBucket); err != nil {
			return err
		}
		return limits.Put(recordKey, rec.encode())
	})
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fail(err)
	}
	return syncFolder(filepath.Dir(path))
}

var (
	limitsBucket = []byte("limits")
	cacheBucket  = []byte("cache")
	recordKey    = []byte("record")
	headKey      = []byte("audit head")
)

// uint64 keys and counters are stored big-endian.
var order = binary.BigEndian
