package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
)

// LockFile returns the lock file of a log.
func LockFile(path string) string { return path + ".lock" }

// write appends the entries of a batch, syncs, and moves the head, while no
// other process writes.
func (l *Log) write(batch []*Ticket) (err error) {
	if l.lock == nil {
		if l.lock, err = flock.New(LockFile(l.path)); err != nil {
			return &Error{Kind: ErrUnwritable, Path: l.path, Err: err}
		}
	}
	ctx := context.Background() // each lock has a deadline of its own
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer func() {
		if uerr := l.lock.Unlock(); err == nil {
			err = uerr
		}
	}()
	if l.opts.Heads == nil {
		_, err := l.appendLines(Head{}, batch)
		return err
	}
	err = l.opts.Heads.AdvanceHead(ctx, func(seq uint64, hash string) (uint64, string, error) {
		h, err := l.appendLines(Head{seq, hash}, batch)
		return h.Seq, h.Hash, err
	})
	if err != nil {
		l.end = -1
		return fmt.Errorf("append to audit log: %w", err)
	}
	return nil
}

// acquire waits for the lock that all processes share.
func (l *Log) acquire(ctx context.Context) error {
	err := l.lock.Lock(ctx, l.opts.LockWait)
	if errors.As(err, new(*flock.HeldError)) {
		return &Error{Kind: ErrBusy, Path: l.path, Err: err}
	}
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: l.path, Err: err}
	}
	return nil
}

// appendLines writes the batch after the last line, which must not be older
// than the head that is kept, and returns the new head.
func (l *Log) appendLines(kept Head, batch []*Ticket) (Head, error) {
	at, repaired, err := l.seek(kept)
	if err != nil {
		return Head{}, err
	}
	size := 0
	for _, t := range batch {
		for _, b := range t.bodies {
			size += len(b) + 120
		}
	}
	buf := make([]byte, 0, size)
	head := l.last
	if repaired != nil {
		e := Entry{Kind: KindRecovery, Recovery: repaired}
		buf, head = chain(buf, head, e.body(l.opts.Clock(), nil))
	}
	for _, t := range batch {
		for _, b := range t.bodies {
			buf, head = chain(buf, head, b)
		}
	}
	if len(buf) == 0 {
		return head, nil
	}
	if at > 0 && at+int64(len(buf)) > l.opts.MaxBytes {
		if at, err = l.rotate(at); err != nil {
			return Head{}, err
		}
	}
	if err := l.flush(at, buf); err != nil {
		return Head{}, err
	}
	l.end, l.last = at+int64(len(buf)), head
	l.from = at + int64(bytes.LastIndexByte(buf[:max(len(buf)-1, 0)], '\n')) + 1
	return head, nil
}

// flush writes whole lines at the end of the log, which is at, and syncs.
func (l *Log) flush(at int64, lines []byte) error {
	l.end = -1
	n, err := l.file.Write(lines)
	if err == nil {
		err = syncData(l.file)
	}
	if err == nil {
		return nil
	}
	// A full disk may have taken a part. What cannot be taken away again is
	// found by the next process that appends.
	if n > 0 {
		err = errors.Join(err, l.file.Truncate(at))
	}
	return &Error{Kind: ErrUnwritable, Path: l.path, Err: err}
}

// chain appends the line that follows head and returns the new head.
func chain(buf []byte, head Head, body []byte) ([]byte, Head) {
	from := len(buf)
	prev := head.Hash
	if head.Seq == 0 {
		prev = genesis
	}
	buf = append(buf, `{"seq":`...)
	buf = strconv.AppendUint(buf, head.Seq+1, 10)
	buf = append(buf, `,"prev":"`...)
	buf = append(buf, prev...)
	buf = append(buf, `",`...)
	buf = append(buf, body...)
	head = Head{head.Seq + 1, hashLine(buf[from:])}
	return append(buf, '\n'), head
}

// genesis is what the first entry names as the hash of the line before.
const genesis = "0000000000000000000000000000000000000000000000000000000000000000"

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// seek makes the open file and l.last those of the log as it is now, and
// returns where to write. A line that a crash left incomplete is taken away and
// described: its verdict was never given.
func (l *Log) seek(kept Head) (at int64, repaired *Recovery, err error) {
	info, err := l.reopen()
	if err != nil {
		return 0, nil, err
	}
	if info.Size() == l.end && l.unchanged() {
		return l.end, nil, l.compare(kept, nil)
	}
	tail, err := readTail(l.file, info.Size())
	if err != nil {
		return 0, nil, &Error{Kind: ErrUnwritable, Path: l.path, Err: err}
	}
	at = info.Size()
	lines, torn := wholeLines(tail)
	if len(torn) > 0 {
		if len(lines) == 0 && int64(len(tail)) < info.Size() {
			return 0, nil, &Error{Kind: ErrChanged, Path: l.path, Err: fmt.Errorf("its last line is longer than %d bytes", len(tail))}
		}
		at -= int64(len(torn))
		repaired = &Recovery{Reason: "incomplete line", Bytes: int64(len(torn)), SHA256: hashLine(torn)}
	}
	if len(lines) > 0 {
		l.last, err = headOf(lines[len(lines)-1])
	} else {
		l.last, err = fullHead(l.path)
	}
	if err != nil {
		return 0, nil, &Error{Kind: ErrChanged, Path: l.path, Err: fmt.Errorf("last line: %w", err)}
	}
	if err := l.compare(kept, lines); err != nil {
		return 0, nil, err
	}
	if n := l.last.Seq - kept.Seq; kept.Seq > 0 && n > 0 && repaired == nil {
		// A process was killed before it moved the head, or another program added them.
		return at, &Recovery{Reason: fmt.Sprintf("the state file does not record the last %d entries; run 'shield doctor --repair-audit'", n)}, nil
	}
	if repaired != nil {
		if err := l.file.Truncate(at); err != nil {
			return 0, nil, &Error{Kind: ErrUnwritable, Path: l.path, Err: err}
		}
	}
	return at, repaired, nil
}

// unchanged says whether the line that was written last is still there.
func (l *Log) unchanged() bool {
	line := make([]byte, max(l.end-l.from-1, 0))
	_, err := l.file.ReadAt(line, l.from)
	return err == nil && hashLine(line) == l.last.Hash
}

// compare refuses a log that has lost or changed the entry that was its head.
// A process killed between writing and moving the head leaves a log that goes
// on after it; lines are its last ones.
func (l *Log) compare(kept Head, lines [][]byte) error {
	switch {
	case kept.Seq == 0: // no entry is known of
		return nil
	case kept.Seq > l.last.Seq:
		return &Error{Kind: ErrCut, Path: l.path, Err: fmt.Errorf("the log ends with entry %d, and %d were written", l.last.Seq, kept.Seq)}
	case kept == l.last:
		return nil
	case kept.Seq == l.last.Seq:
		return &Error{Kind: ErrChanged, Path: l.path, Err: fmt.Errorf("the hash of entry %d is not the one in the state file", kept.Seq)}
	}
	for _, line := range lines {
		if h, err := headOf(line); err == nil && h.Seq == kept.Seq && h != kept {
			return &Error{Kind: ErrChanged, Path: l.path, Err: fmt.Errorf("the hash of entry %d is not the one in the state file", kept.Seq)}
		}
	}
	return nil
}

// reopen opens the log, or opens it again if the name stands for another file
// than before.
func (l *Log) reopen() (os.FileInfo, error) {
	fail := func(err error) (os.FileInfo, error) {
		return nil, &Error{Kind: ErrUnwritable, Path: l.path, Err: err}
	}
	if l.file != nil {
		named, err := os.Lstat(l.path)
		info, ferr := l.file.Stat()
		if err == nil && ferr == nil && os.SameFile(named, info) {
			return info, nil
		}
		l.file.Close()
		l.file, l.end = nil, -1
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND|noFollow, 0o600)
	if err != nil {
		return fail(err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("not a regular file")
	default:
		if err := errors.Join(owner.Check(info, others), owner.Single(info)); err != nil {
			f.Close()
			return nil, &Error{Kind: ErrExposed, Path: l.path, Err: err}
		}
	}
	if err != nil {
		f.Close()
		return fail(err)
	}
	l.file = f
	return info, nil
}

// others is what of a log's mode lets others do more than a group may, which is
// to read it.
const others = owner.Access &^ 0o040

// rotate gives the full file its own name and returns where the next line
// belongs, which is at where that cannot be done: a log that grows on is better
// than none. A process that dies in between leaves no current file; anyone who
// comes next goes on from the full one.
func (l *Log) rotate(at int64) (int64, error) {
	name := fullName(l.path, l.last.Seq)
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return 0, &Error{Kind: ErrChanged, Path: l.path, Err: fmt.Errorf("%s, the name for the full log, is already taken; move that file", name)}
	}
	// It cannot be renamed while it is open on Windows.
	l.file.Close()
	l.file, l.end = nil, -1
	renamed := os.Rename(l.path, name) == nil
	if _, err := l.reopen(); err != nil {
		return 0, err
	}
	if !renamed {
		return at, nil
	}
	if err := syncFolder(filepath.Dir(l.path)); err != nil {
		return 0, &Error{Kind: ErrUnwritable, Path: l.path, Err: err}
	}
	return 0, nil
}

// tailSize is how much of a log's end is read to go on with it; it has room
// for two lines at least.
const tailSize = 2 * maxLine

// readTail returns the end of a file. It starts with a whole line if it does
// not hold the whole file.
func readTail(f io.ReaderAt, size int64) ([]byte, error) {
	n := min(size, tailSize)
	b := make([]byte, n)
	if _, err := f.ReadAt(b, size-n); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n < size {
		if i := bytes.IndexByte(b, '\n'); i >= 0 && i+1 < len(b) {
			b = b[i+1:]
		}
	}
	return b, nil
}

// wholeLines cuts a log's end into lines and the incomplete one after them.
func wholeLines(tail []byte) (lines [][]byte, torn []byte) {
	n := bytes.LastIndexByte(tail, '\n') + 1
	if n > 0 {
		lines = bytes.Split(tail[:n-1], []byte("\n"))
	}
	return lines, tail[n:]
}

// headOf returns the head that a line is.
func headOf(line []byte) (Head, error) {
	seq, _, err := links(line)
	if err != nil {
		return Head{}, err
	}
	return Head{seq, hashLine(line)}, nil
}

// links returns what a line says about its place in the chain.
func links(line []byte) (seq uint64, prev string, err error) {
	if !json.Valid(line) {
		return 0, "", errors.New("not JSON")
	}
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	number, rest, found := bytes.Cut(rest, []byte(`,"prev":"`))
	if !ok || !found || len(rest) < len(genesis)+1 || rest[len(genesis)] != '"' {
		return 0, "", errors.New("the line is not an entry of an audit log")
	}
	if seq, err = strconv.ParseUint(string(number), 10, 64); err != nil || seq == 0 {
		return 0, "", errors.New("the line is not an entry of an audit log: its sequence number is wrong")
	}
	return seq, string(rest[:len(genesis)]), nil
}
