package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/shieldcli/shield/internal/flock"
)

// ReadChainHead returns the head of the log at path from its last line, without verifying the log; the zero
// ChainHead if there is no log.
func ReadChainHead(path string) (ChainHead, error) {
	head, _, err := headAndTailLines(path)
	return head, err
}

// headAndTailLines returns the head of the log at path, and the last lines of its current file.
func headAndTailLines(path string) (head ChainHead, tailLines [][]byte, err error) {
	head, tailLines, err = headAndTailLinesOfFile(path)
	if head.Seq > 0 || err != nil {
		return head, tailLines, err
	}
	head, err = headOfNewestRotatedFile(path)
	return head, nil, err
}

// headOfNewestRotatedFile returns the head of the newest full file of a log, or the zero Head.
func headOfNewestRotatedFile(path string) (ChainHead, error) {
	full, err := listRotatedFiles(path)
	if err != nil || len(full) == 0 {
		return ChainHead{}, err
	}
	head, _, err := headAndTailLinesOfFile(full[len(full)-1])
	return head, err
}

// headAndTailLinesOfFile returns the sequence number and hash of the last line of a file, and its last lines.
func headAndTailLinesOfFile(path string) (head ChainHead, tailLines [][]byte, err error) {
	f, err := openRead(path)
	if errors.Is(err, os.ErrNotExist) {
		return ChainHead{}, nil, nil
	}
	if err != nil {
		return ChainHead{}, nil, fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ChainHead{}, nil, fmt.Errorf("read audit log: %w", err)
	}
	tail, err := readTail(f, info.Size())
	if err != nil {
		return ChainHead{}, nil, fmt.Errorf("read audit log: %w", err)
	}
	tailLines, _ = splitTail(tail)
	if len(tailLines) == 0 {
		return ChainHead{}, nil, nil
	}
	head, err = headOfLine(tailLines[len(tailLines)-1])
	if err != nil {
		return ChainHead{}, nil, &Error{FaultSentinel: ErrLogChanged, Path: path, Err: err}
	}
	return head, tailLines, nil
}

// CheckLogMatchesStoredHead returns the error that appending to the log at path would return because the log does not
// match the stored head. It reads only the end of the log.
func CheckLogMatchesStoredHead(logPath string, storedHead ChainHead) error {
	last, tailLines, err := headAndTailLines(logPath)
	if err != nil {
		return err
	}
	l := Log{path: logPath, lastHead: last}
	return l.checkAgainstStoredHead(storedHead, tailLines)
}

// damagedSuffix separates a log's name from the time at which it was moved aside.
const damagedSuffix = ".damaged-"

// Repair moves a damaged log aside and starts a new one. The new log's first entry continues from
// the stored head, and records the fault and the name of the old log. Repair returns the old log's
// new name.
//
// If adding a recovery entry to the log is enough, Repair moves nothing and returns path. If the
// log is not damaged, Repair changes nothing and returns "", so that Repair cannot be used to empty
// a log.
func Repair(ctx context.Context, path string, opts Options) (movedLogPath string, err error) {
	if opts.HeadStore == nil {
		return "", errors.New("repair audit log: the state file does not know the last entry; run 'shield doctor --repair-state' first")
	}
	l, err := Open(path, opts)
	if err != nil {
		return "", err
	}
	defer l.closeFiles()
	if l.lock, err = flock.New(path + ".lock"); err != nil {
		return "", &Error{FaultSentinel: ErrLogUnwritable, Path: path, Err: err}
	}
	if err := l.acquireLock(ctx); err != nil {
		return "", err
	}
	var gap ChainHead
	err = opts.HeadStore.AdvanceAuditHead(ctx, func(seq uint64, hash string) (uint64, string, error) {
		kept := ChainHead{seq, hash}
		at, repaired, err := l.seekEndRemovingTornLine(kept)
		switch {
		case err == nil && repaired == nil:
			return seq, hash, nil
		case err == nil:
			movedLogPath = path
			h, err := l.appendRecovery(at, l.lastHead, repaired)
			return h.Seq, h.Hash, err
		case !errors.Is(err, ErrLogTruncated) && !errors.Is(err, ErrLogChanged):
			return 0, "", err
		}
		reason := err.Error()
		movedLogPath = path + damagedSuffix + opts.Clock().UTC().Format("20060102T150405.000000000")
		if err := os.Rename(path, movedLogPath); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, "", err
		}
		if _, err := l.reopen(); err != nil {
			return 0, "", err
		}
		recovery, err := describeMovedLog(path, movedLogPath)
		if err != nil {
			return 0, "", err
		}
		recovery.Reason = reason
		gap, err = l.appendRecovery(0, kept, recovery)
		return gap.Seq, gap.Hash, err
	})
	if keeper, ok := opts.HeadStore.(RecoveryEntryStore); ok && err == nil && gap.Seq > 0 {
		err = keeper.StoreAuditRecoveryEntry(ctx, gap.Seq, gap.Hash)
	}
	if err != nil {
		return "", fmt.Errorf("repair audit log: %w", err)
	}
	return movedLogPath, nil
}

// describeMovedLog returns the recovery entry for a damaged log whose new path is aside: the new
// path, the log's hash, and the last entry of the full log files before it, so that a later removal
// of these full files is detected. It moves nothing.
func describeMovedLog(path, aside string) (*LogRecovery, error) {
	full, err := listRotatedFiles(path)
	if err != nil {
		return nil, err
	}
	r := &LogRecovery{MovedLogPath: aside, LastIntactSeq: new(uint64)}
	if len(full) > 0 {
		name := full[len(full)-1]
		if *r.LastIntactSeq, err = strconv.ParseUint(name[len(name)-seqDigits:], 10, 64); err != nil {
			return nil, err
		}
	}
	r.DamagedDataSHA256, err = hashFile(aside)
	if errors.Is(err, fs.ErrNotExist) { // the log was removed
		return r, nil
	}
	return r, err
}

// hashFile returns the SHA-256 of a file, in hex.
func hashFile(name string) (string, error) {
	f, err := openRead(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// appendRecovery writes a recovery entry after the entry of head.
func (l *Log) appendRecovery(at int64, head ChainHead, what *LogRecovery) (ChainHead, error) {
	e := Entry{Kind: EntryKindLogRecovery, Recovery: what}
	line, head := appendChained(nil, head, e.encodeRedacted(l.opts.Clock(), l.opts.Redactor))
	return head, l.writeAndSync(at, line)
}
