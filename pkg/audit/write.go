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

// LockFilePath returns the lock file of a log.
func LockFilePath(path string) string { return path + ".lock" }

// writeBatch appends a batch of entries, syncs, and advances the head, under the lock of all processes.
func (l *Log) writeBatch(batch []*PendingEntries) (err error) {
	if l.lock == nil {
		if l.lock, err = flock.New(LockFilePath(l.path)); err != nil {
			return &Error{FaultSentinel: ErrLogUnwritable, Path: l.path, Err: err}
		}
	}
	ctx := context.Background() // each lock has a deadline of its own
	if err := l.acquireLock(ctx); err != nil {
		return err
	}
	defer func() {
		if uerr := l.lock.Unlock(); err == nil {
			err = uerr
		}
	}()
	if l.opts.HeadStore == nil {
		_, err := l.appendLines(ChainHead{}, batch)
		return err
	}
	err = l.opts.HeadStore.AdvanceAuditHead(ctx, func(seq uint64, hash string) (uint64, string, error) {
		h, err := l.appendLines(ChainHead{seq, hash}, batch)
		return h.Seq, h.Hash, err
	})
	if err != nil {
		l.endOffset = -1
		return fmt.Errorf("append to audit log: %w", err)
	}
	return nil
}

// acquireLock takes the lock that all processes share.
func (l *Log) acquireLock(ctx context.Context) error {
	err := l.lock.Lock(ctx, l.opts.LockWait)
	if errors.As(err, new(*flock.HeldError)) {
		return &Error{FaultSentinel: ErrLogBusy, Path: l.path, Err: err}
	}
	if err != nil {
		return &Error{FaultSentinel: ErrLogUnwritable, Path: l.path, Err: err}
	}
	return nil
}

// appendLines writes the batch after the last line and returns the new head. The log must not end
// before the stored head.
func (l *Log) appendLines(storedHead ChainHead, batch []*PendingEntries) (ChainHead, error) {
	at, repaired, err := l.seekEndRemovingTornLine(storedHead)
	if err != nil {
		return ChainHead{}, err
	}
	size := 0
	for _, t := range batch {
		for _, b := range t.encodedEntries {
			size += len(b) + 120
		}
	}
	buf := make([]byte, 0, size)
	head := l.lastHead
	if repaired != nil {
		e := Entry{Kind: EntryKindLogRecovery, Recovery: repaired}
		buf, head = appendChained(buf, head, e.encodeRedacted(l.opts.Clock(), nil))
	}
	for _, t := range batch {
		for _, b := range t.encodedEntries {
			buf, head = appendChained(buf, head, b)
		}
	}
	if len(buf) == 0 {
		return head, nil
	}
	if at > 0 && at+int64(len(buf)) > l.opts.MaxFileBytes {
		if at, err = l.rotateFile(at); err != nil {
			return ChainHead{}, err
		}
	}
	if err := l.writeAndSync(at, buf); err != nil {
		return ChainHead{}, err
	}
	l.endOffset, l.lastHead = at+int64(len(buf)), head
	l.lastLineOffset = at + int64(bytes.LastIndexByte(buf[:max(len(buf)-1, 0)], '\n')) + 1
	return head, nil
}

// writeAndSync writes complete lines at offset at, the end of the log, and syncs.
func (l *Log) writeAndSync(at int64, lines []byte) error {
	l.endOffset = -1
	n, err := l.file.Write(lines)
	if err == nil {
		err = syncData(l.file)
	}
	if err == nil {
		return nil
	}
	// A full disk can leave a partial write. If truncating it fails, the next process that appends
	// finds it.
	if n > 0 {
		err = errors.Join(err, l.file.Truncate(at))
	}
	return &Error{FaultSentinel: ErrLogUnwritable, Path: l.path, Err: err}
}

// appendChained appends the line that follows head and returns the new head.
func appendChained(buf []byte, head ChainHead, body []byte) ([]byte, ChainHead) {
	from := len(buf)
	prev := head.Hash
	if head.Seq == 0 {
		prev = genesisHash
	}
	buf = append(buf, `{"seq":`...)
	buf = strconv.AppendUint(buf, head.Seq+1, 10)
	buf = append(buf, `,"prev":"`...)
	buf = append(buf, prev...)
	buf = append(buf, `",`...)
	buf = append(buf, body...)
	head = ChainHead{head.Seq + 1, hashLine(buf[from:])}
	return append(buf, '\n'), head
}

// genesisHash is the previous hash in the first entry.
const genesisHash = "0000000000000000000000000000000000000000000000000000000000000000"

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// seekEndRemovingTornLine updates the open file and [Log.lastHead] to the log's current end, and returns the offset
// to write at. It removes a line that a crash left incomplete, and describes it: the verdict in
// that line was never returned.
func (l *Log) seekEndRemovingTornLine(storedHead ChainHead) (writeOffset int64, repaired *LogRecovery, err error) {
	info, err := l.reopen()
	if err != nil {
		return 0, nil, err
	}
	if info.Size() == l.endOffset && l.isLastWrittenLineIntact() {
		return l.endOffset, nil, l.checkAgainstStoredHead(storedHead, nil)
	}
	tail, err := readTail(l.file, info.Size())
	if err != nil {
		return 0, nil, &Error{FaultSentinel: ErrLogUnwritable, Path: l.path, Err: err}
	}
	writeOffset = info.Size()
	lines, torn := splitTail(tail)
	if len(torn) > 0 {
		if len(lines) == 0 && int64(len(tail)) < info.Size() {
			return 0, nil, &Error{FaultSentinel: ErrLogChanged, Path: l.path, Err: fmt.Errorf("its last line is longer than %d bytes", len(tail))}
		}
		writeOffset -= int64(len(torn))
		repaired = &LogRecovery{Reason: "incomplete line", RemovedBytes: int64(len(torn)), DamagedDataSHA256: hashLine(torn)}
	}
	if len(lines) > 0 {
		l.lastHead, err = headOfLine(lines[len(lines)-1])
	} else {
		l.lastHead, err = headOfNewestRotatedFile(l.path)
	}
	if err != nil {
		return 0, nil, &Error{FaultSentinel: ErrLogChanged, Path: l.path, Err: fmt.Errorf("last line: %w", err)}
	}
	if err := l.checkAgainstStoredHead(storedHead, lines); err != nil {
		return 0, nil, err
	}
	if n := l.lastHead.Seq - storedHead.Seq; storedHead.Seq > 0 && n > 0 && repaired == nil {
		// A process was killed before it advanced the head, or another program added the entries.
		return writeOffset, &LogRecovery{Reason: fmt.Sprintf("the state file does not record the last %d entries; run 'shield doctor --repair-audit'", n)}, nil
	}
	if repaired != nil {
		if err := l.file.Truncate(writeOffset); err != nil {
			return 0, nil, &Error{FaultSentinel: ErrLogUnwritable, Path: l.path, Err: err}
		}
	}
	return writeOffset, repaired, nil
}

// isLastWrittenLineIntact reports whether the last written line is still there.
func (l *Log) isLastWrittenLineIntact() bool {
	line := make([]byte, max(l.endOffset-l.lastLineOffset-1, 0))
	_, err := l.file.ReadAt(line, l.lastLineOffset)
	return err == nil && hashLine(line) == l.lastHead.Hash
}

// checkAgainstStoredHead returns an error if the log lost or changed the entry of the stored head.
// If a process was killed between writing entries and advancing the head, the log has entries after
// the stored head. tailLines are the last lines of the log.
func (l *Log) checkAgainstStoredHead(storedHead ChainHead, tailLines [][]byte) error {
	switch {
	case storedHead.Seq == 0: // no entry is recorded
		return nil
	case storedHead.Seq > l.lastHead.Seq:
		return &Error{FaultSentinel: ErrLogTruncated, Path: l.path, Err: fmt.Errorf("the log ends with entry %d, and %d were written", l.lastHead.Seq, storedHead.Seq)}
	case storedHead == l.lastHead:
		return nil
	case storedHead.Seq == l.lastHead.Seq:
		return &Error{FaultSentinel: ErrLogChanged, Path: l.path, Err: fmt.Errorf("the hash of entry %d is not the one in the state file", storedHead.Seq)}
	}
	for _, line := range tailLines {
		if h, err := headOfLine(line); err == nil && h.Seq == storedHead.Seq && h != storedHead {
			return &Error{FaultSentinel: ErrLogChanged, Path: l.path, Err: fmt.Errorf("the hash of entry %d is not the one in the state file", storedHead.Seq)}
		}
	}
	return nil
}

// reopen opens the log file if it is not open, or if another file has replaced it at its path.
func (l *Log) reopen() (os.FileInfo, error) {
	fail := func(err error) (os.FileInfo, error) {
		return nil, &Error{FaultSentinel: ErrLogUnwritable, Path: l.path, Err: err}
	}
	if l.file != nil {
		named, err := os.Lstat(l.path)
		info, ferr := l.file.Stat()
		if err == nil && ferr == nil && os.SameFile(named, info) {
			return info, nil
		}
		l.file.Close()
		l.file, l.endOffset = nil, -1
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
		if err := errors.Join(owner.CheckOwnerAndDeniedModeBits(info, forbiddenAuditFileModeBits), owner.CheckSingleLink(info)); err != nil {
			f.Close()
			return nil, &Error{FaultSentinel: ErrLogExposed, Path: l.path, Err: err}
		}
	}
	if err != nil {
		f.Close()
		return fail(err)
	}
	l.file = f
	return info, nil
}

// forbiddenAuditFileModeBits are the mode bits that an audit file must not have: any access for other
// users, and write and execute access for the group. Read access for the group (0o040) is allowed.
const forbiddenAuditFileModeBits = owner.GroupOrOtherAccessBits &^ 0o040

// rotateFile renames the full log file and returns the offset for the next line. If renaming fails,
// it returns at, so that the log continues in the same file: a log that is too large is better than
// none. If the process is killed in between, there is no current file, and the next process
// continues from the full one.
func (l *Log) rotateFile(at int64) (int64, error) {
	name := rotatedFilePath(l.path, l.lastHead.Seq)
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return 0, &Error{FaultSentinel: ErrLogChanged, Path: l.path, Err: fmt.Errorf("%s, the name for the full log, is already taken; move that file", name)}
	}
	// Windows cannot rename an open file.
	l.file.Close()
	l.file, l.endOffset = nil, -1
	renamed := os.Rename(l.path, name) == nil
	if _, err := l.reopen(); err != nil {
		return 0, err
	}
	if !renamed {
		return at, nil
	}
	if err := syncFolder(filepath.Dir(l.path)); err != nil {
		return 0, &Error{FaultSentinel: ErrLogUnwritable, Path: l.path, Err: err}
	}
	return 0, nil
}

// tailSize is how many bytes are read at the end of a log to continue it; it has room for two lines.
const tailSize = 2 * maxLineBytes

// readTail returns the end of a file, starting at a line start unless it is the whole file.
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

// splitTail splits the end of a log into complete lines and an incomplete last line.
func splitTail(tail []byte) (lines [][]byte, torn []byte) {
	n := bytes.LastIndexByte(tail, '\n') + 1
	if n > 0 {
		lines = bytes.Split(tail[:n-1], []byte("\n"))
	}
	return lines, tail[n:]
}

// headOfLine returns the head for a line: its sequence number and hash.
func headOfLine(line []byte) (ChainHead, error) {
	seq, _, err := parseChainFields(line)
	if err != nil {
		return ChainHead{}, err
	}
	return ChainHead{seq, hashLine(line)}, nil
}

// parseChainFields returns the sequence number and previous hash in a line.
func parseChainFields(line []byte) (seq uint64, prev string, err error) {
	if !json.Valid(line) {
		return 0, "", errors.New("not JSON")
	}
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	number, rest, found := bytes.Cut(rest, []byte(`,"prev":"`))
	if !ok || !found || len(rest) < len(genesisHash)+1 || rest[len(genesisHash)] != '"' {
		return 0, "", errors.New("the line is not an entry of an audit log")
	}
	if seq, err = strconv.ParseUint(string(number), 10, 64); err != nil || seq == 0 {
		return 0, "", errors.New("the line is not an entry of an audit log: its sequence number is wrong")
	}
	return seq, string(rest[:len(genesisHash)]), nil
}
