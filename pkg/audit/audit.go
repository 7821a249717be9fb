// Package audit records every verdict in an append-only log. The log is JSON
// Lines; each entry names the SHA-256 of the line before, so that nothing in it
// can be changed, removed, inserted or moved unnoticed, and the head of that
// chain is also kept outside of it ([Heads]), so that its end cannot be cut off
// either. [Open] a [Log] and append to it; [Verify] reads one.
//
// Who can write both the log and what keeps its head can still forge all of
// it. A [Checkpoint], signed and kept elsewhere, shows that as well.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/redact"
)

// A Head is the end of a chain: the sequence number of its last entry and the
// SHA-256, in hex, of that entry's line without its line feed. The zero Head is
// that of an empty log.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Heads keeps the head of the log, apart from the log.
type Heads interface {
	// AdvanceHead gives next the head that is kept and keeps the one it
	// returns, unless it returns an error. No two calls overlap, between
	// processes as well.
	AdvanceHead(ctx context.Context, next func(seq uint64, hash string) (uint64, string, error)) error
}

// Gaps are [Heads] that also keep which recovery entries go on from a log that was put
// aside.
type Gaps interface {
	KeepGap(ctx context.Context, seq uint64, hash string) error
}

// What can be wrong with a log; use [errors.Is]. Nothing can be appended then.
var (
	ErrCut        = errors.New("entries are missing from the end of the audit log")
	ErrChanged    = errors.New("the audit log was changed")
	ErrUnwritable = errors.New("audit log cannot be written")
	ErrExposed    = errors.New("audit log is open to other users")
	ErrBusy       = errors.New("audit log is in use")
	ErrClosed     = errors.New("the audit log is closed, because shield is ending; try again")
)

// RepairCommand is the command by which a user continues after a log was damaged.
const RepairCommand = "shield doctor --repair-audit"

// An Error is a damaged or unwritable log, with the fix.
type Error struct {
	Kind error // ErrCut, ErrChanged, ErrUnwritable, ErrExposed or ErrBusy
	Path string
	Err  error // the cause
}

// Error returns the fault, the path and the fix.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v: %s: %v", e.Kind, e.Path, e.Err)
	switch e.Kind {
	case ErrBusy, ErrExposed: // the text of Err has a fix
		return text
	case ErrUnwritable:
		return text + "; free disk space and make the file writable, or name another with audit.file"
	}
	return text + "; see 'shield audit verify', then run '" + RepairCommand + "'"
}

// Unwrap gives both the kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// Options are the settings of a [Log].
type Options struct {
	Clock    func() time.Time // required
	Heads    Heads            // where the last entry is recorded; nil: the end of the log is not guarded
	Redactor *redact.Redactor // redacts the program's own secrets; nil redacts only what has the form of a secret
	MaxBytes int64            // size at which the log continues in a new file; 0 means [MaxBytes]
	LockWait time.Duration    // how long to wait for other processes; 0 means [LockWait]
}

// Default limits.
const (
	MaxBytes = 64 << 20
	LockWait = 10 * time.Second
)

// A Log appends to an audit log that several processes may share. Goroutines
// may share it as well: entries that are ready together are written and synced
// together.
type Log struct {
	path string
	opts Options

	mu    sync.Mutex
	queue []*Ticket
	busy  bool // a goroutine writes the queue
	done  bool

	// Used by that goroutine only:
	lock *flock.Lock
	file *os.File
	end  int64 // the file's size after our last write, or -1
	last Head  // the last entry before end
	from int64 // offset of the line of that entry
}

// Open returns the log at path. The file is created by the first entry, and
// its folder (mode 0700) if need be; how long it is does not matter.
func Open(path string, opts Options) (*Log, error) {
	if opts.Clock == nil {
		return nil, errors.New("internal error: the audit log is opened without a clock; please report this")
	}
	opts.MaxBytes, opts.LockWait = cmp.Or(opts.MaxBytes, MaxBytes), cmp.Or(opts.LockWait, LockWait)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, &Error{Kind: ErrUnwritable, Path: path, Err: err}
	}
	return &Log{path: path, opts: opts, end: -1}, nil
}

// HasEntries tells whether there is a log at path with anything in it.
func HasEntries(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("look for audit log: %w", err)
	}
	if err == nil && info.Size() > 0 {
		return true, nil
	}
	full, err := fullFiles(path)
	return len(full) > 0, err
}

// Close refuses new entries, and closes the file after the submitted ones were written.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	if l.busy {
		return nil // the worker closes the file when the queue is empty
	}
	return l.closeFiles()
}

func (l *Log) closeFiles() error {
	var err error
	if l.file != nil {
		err = l.file.Close()
		l.file = nil
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
		l.lock = nil
	}
	return err
}

// A Ticket represents entries that are being written to the log.
type Ticket struct {
	bodies [][]byte // encoded entries without sequence number and hash
	err    error
	ready  chan struct{}
}

// Size returns how many bytes of entries wait to be written. It is to be called
// before the Ticket is queued.
func (t *Ticket) Size() int {
	n := 0
	for _, b := range t.bodies {
		n += len(b)
	}
	return n
}

// Wait returns when the entries are on the disk, or the error that keeps them
// from it. If ctx ends first, the entries may or may not be written.
func (t *Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.ready:
		return t.err
	default:
	}
	select {
	case <-t.ready:
		return t.err
	case <-ctx.Done():
		return fmt.Errorf("append to audit log: %w", ctx.Err())
	}
}

// Done reports whether Wait would return at once.
func (t *Ticket) Done() bool {
	select {
	case <-t.ready:
		return true
	default:
		return false
	}
}

// Append writes entries and returns when they are on the disk.
func (l *Log) Append(ctx context.Context, entries ...Entry) error {
	return l.Submit(entries...).Wait(ctx)
}

// Submit hands entries over to be written in the order of the calls, and does
// not wait for it: a stream that has more to judge shares one sync between many
// verdicts by waiting for the [Ticket] only before it writes them.
func (l *Log) Submit(entries ...Entry) *Ticket {
	return l.Queue(l.Prepare(entries...))
}

// Prepare does the part of Submit that does not depend on the order: redacting and encoding. Goroutines
// can prepare entries in parallel; each Ticket must then be queued once.
func (l *Log) Prepare(entries ...Entry) *Ticket {
	t := &Ticket{ready: make(chan struct{})}
	for i := range entries {
		t.bodies = append(t.bodies, entries[i].body(l.opts.Clock(), l.opts.Redactor))
	}
	return t
}

// Queue hands prepared entries over to be written, in the order of the calls.
func (l *Log) Queue(t *Ticket) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		t.err = ErrClosed
		close(t.ready)
		return t
	}
	l.queue = append(l.queue, t)
	if !l.busy {
		l.busy = true
		go l.work()
	}
	return t
}

// maxBatch bounds what is written at once, in tickets.
const maxBatch = 1024

// work writes the waiting entries, as many at once as possible, until none is left.
func (l *Log) work() {
	for {
		l.mu.Lock()
		n := min(len(l.queue), maxBatch)
		if n == 0 {
			l.busy = false
			if l.done {
				l.closeFiles()
			}
			l.mu.Unlock()
			return
		}
		batch := l.queue[:n:n]
		l.queue = l.queue[n:]
		l.mu.Unlock()
		err := l.write(batch)
		for _, t := range batch {
			t.err = err
			t.bodies = nil
			close(t.ready)
		}
	}
}
