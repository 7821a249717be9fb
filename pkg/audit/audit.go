// Package audit records every verdict in an append-only log. The log is JSON Lines; each entry
// contains the SHA-256 of the line before (a hash chain), so that a changed, removed, inserted or
// moved entry is detected. The head of the chain is also stored outside the log ([HeadStore]), so that
// truncation is detected. [Open] a [Log] to append; [Verify] checks a log.
//
// An attacker who can write both the log and the stored head can forge the whole log. A [Checkpoint],
// signed and stored on another machine, detects that too.
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

// A ChainHead is the end of a chain: the sequence number of its last entry and the SHA-256, in hex, of that
// entry's line without its line feed. The zero ChainHead is that of an empty log.
type ChainHead struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// HeadStore stores the head of the log, outside the log.
type HeadStore interface {
	// AdvanceAuditHead calls next with the stored head and stores the head that next returns, unless it
	// returns an error. Calls are serialized, also between processes.
	AdvanceAuditHead(ctx context.Context, next func(seq uint64, hash string) (uint64, string, error)) error
}

// A RecoveryEntryStore is a [HeadStore] that can also store which recovery entries continue a log
// that was moved aside.
type RecoveryEntryStore interface {
	StoreAuditRecoveryEntry(ctx context.Context, seq uint64, hash string) error
}

// Faults of a log, for [errors.Is]. Nothing can be appended to a faulty log.
var (
	ErrLogTruncated  = errors.New("entries are missing from the end of the audit log")
	ErrLogChanged    = errors.New("the audit log was changed")
	ErrLogUnwritable = errors.New("audit log cannot be written")
	ErrLogExposed    = errors.New("audit log is open to other users")
	ErrLogBusy       = errors.New("audit log is in use")
	ErrLogClosed     = errors.New("the audit log is closed, because shield is ending; try again")
)

// RepairCommand is the command by which a user continues after a log was damaged.
const RepairCommand = "shield doctor --repair-audit"

// An Error is a damaged or unwritable log, with the fix.
type Error struct {
	FaultSentinel error // ErrLogTruncated, ErrLogChanged, ErrLogUnwritable, ErrLogExposed or ErrLogBusy
	Path          string
	Err           error // the cause
}

// Error returns the fault, the path and the fix.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v: %s: %v", e.FaultSentinel, e.Path, e.Err)
	switch e.FaultSentinel {
	case ErrLogBusy, ErrLogExposed: // the text of Err already says how to solve the problem
		return text
	case ErrLogUnwritable:
		return text + "; free disk space and make the file writable, or name another with audit.file"
	}
	return text + "; see 'shield audit verify', then run '" + RepairCommand + "'"
}

// Unwrap returns the fault and its cause.
func (e *Error) Unwrap() []error { return []error{e.FaultSentinel, e.Err} }

// Options are the settings of a [Log].
type Options struct {
	Clock        func() time.Time // required
	HeadStore    HeadStore        // where the last entry is recorded; nil: the end of the log is not guarded
	Redactor     *redact.Redactor // redacts configured secrets; nil redacts only text in the format of a credential
	MaxFileBytes int64            // size at which the log continues in a new file; 0 means [DefaultMaxFileBytes]
	LockWait     time.Duration    // how long to wait for other processes; 0 means [DefaultLockWait]
}

// Default limits.
const (
	DefaultMaxFileBytes = 64 << 20
	DefaultLockWait     = 10 * time.Second
)

// A Log appends to an audit log that processes and goroutines can share. Entries that are ready at the
// same time are written and synced together.
type Log struct {
	path string
	opts Options

	mu        sync.Mutex
	queue     []*PendingEntries
	isWriting bool // a goroutine is writing the queue
	isClosed  bool

	// Only the goroutine that writes the queue uses these fields:
	lock           *flock.Lock
	file           *os.File
	endOffset      int64     // the file's size after our last write, or -1
	lastHead       ChainHead // the last entry in the file before endOffset
	lastLineOffset int64     // file offset of the line with the last entry
}

// Open returns the log at path. It creates the folder (mode 0700) if needed; the first entry creates
// the file. Open does not read existing entries.
func Open(path string, opts Options) (*Log, error) {
	if opts.Clock == nil {
		return nil, errors.New("internal error: the audit log is opened without a clock; please report this")
	}
	opts.MaxFileBytes, opts.LockWait = cmp.Or(opts.MaxFileBytes, DefaultMaxFileBytes), cmp.Or(opts.LockWait, DefaultLockWait)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, &Error{FaultSentinel: ErrLogUnwritable, Path: path, Err: err}
	}
	return &Log{path: path, opts: opts, endOffset: -1}, nil
}

// HasEntries reports whether the log at path exists and is not empty.
func HasEntries(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("look for audit log: %w", err)
	}
	if err == nil && info.Size() > 0 {
		return true, nil
	}
	full, err := listRotatedFiles(path)
	return len(full) > 0, err
}

// Close refuses new entries, and closes the file after the submitted ones were written.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isClosed = true
	if l.isWriting {
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

// A PendingEntries represents entries that are being written to the log.
type PendingEntries struct {
	encodedEntries [][]byte // encoded entries without sequence number and hash
	err            error
	written        chan struct{}
}

// EncodedByteCount returns the number of bytes of the encoded entries. Call it before [Log.Enqueue].
func (t *PendingEntries) EncodedByteCount() int {
	n := 0
	for _, b := range t.encodedEntries {
		n += len(b)
	}
	return n
}

// Wait blocks until the entries are on the disk, or returns the error of writing them. If ctx ends
// first, the entries may or may not be written.
func (t *PendingEntries) Wait(ctx context.Context) error {
	select {
	case <-t.written:
		return t.err
	default:
	}
	select {
	case <-t.written:
		return t.err
	case <-ctx.Done():
		return fmt.Errorf("append to audit log: %w", ctx.Err())
	}
}

// Done reports whether Wait would return at once.
func (t *PendingEntries) Done() bool {
	select {
	case <-t.written:
		return true
	default:
		return false
	}
}

// Append writes entries and returns when they are on the disk.
func (l *Log) Append(ctx context.Context, entries ...Entry) error {
	return l.EncodeAndQueue(entries...).Wait(ctx)
}

// EncodeAndQueue queues entries to be written in the order of the calls, without blocking. A stream shares one
// sync between many verdicts by waiting for the [PendingEntries] only before it outputs them.
func (l *Log) EncodeAndQueue(entries ...Entry) *PendingEntries {
	return l.Enqueue(l.EncodeWithoutQueueing(entries...))
}

// EncodeWithoutQueueing redacts and encodes entries. The order of entries does not matter here, so
// goroutines can call EncodeWithoutQueueing in parallel; each result must then be passed to [Log.Enqueue]
// once.
func (l *Log) EncodeWithoutQueueing(entries ...Entry) *PendingEntries {
	t := &PendingEntries{written: make(chan struct{})}
	for i := range entries {
		t.encodedEntries = append(t.encodedEntries, entries[i].encodeRedacted(l.opts.Clock(), l.opts.Redactor))
	}
	return t
}

// Enqueue queues prepared entries to be written, in the order of the calls.
func (l *Log) Enqueue(t *PendingEntries) *PendingEntries {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		t.err = ErrLogClosed
		close(t.written)
		return t
	}
	l.queue = append(l.queue, t)
	if !l.isWriting {
		l.isWriting = true
		go l.writeQueue()
	}
	return t
}

// maxPendingEntriesPerBatch is the maximum number of [PendingEntries] that are written and synced together.
const maxPendingEntriesPerBatch = 1024

// writeQueue writes the queued entries in large batches until the queue is empty.
func (l *Log) writeQueue() {
	for {
		l.mu.Lock()
		n := min(len(l.queue), maxPendingEntriesPerBatch)
		if n == 0 {
			l.isWriting = false
			if l.isClosed {
				l.closeFiles()
			}
			l.mu.Unlock()
			return
		}
		batch := l.queue[:n:n]
		l.queue = l.queue[n:]
		l.mu.Unlock()
		err := l.writeBatch(batch)
		for _, t := range batch {
			t.err = err
			t.encodedEntries = nil
			close(t.written)
		}
	}
}
