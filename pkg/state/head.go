package state

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
)

// An auditHeadFile stores the head of the audit log (its last entry) beside the state file. It is
// written after its entry, which is synced, but is not synced itself: writes survive the death of
// the process. After a power cut it may hold an older head than the log.
//
// It is authenticated with a key in the state file. The state file also records the head in each
// transaction that writes, and at least every entriesBetweenAuditHeadRecords entries, which detects an
// older head file with a log truncated to match: the later of both heads counts.
type auditHeadFile struct {
	path      string
	stateFile *boltFile

	mu                    sync.Mutex
	macKey                []byte // nil until the state file is read
	requiresValidMAC      bool   // the head file was authenticated before, so one that is not is forged
	cachedHeadInStateFile atomic.Pointer[auditHeadInStateFile]

	lock     *flock.Lock
	file     *os.File
	fileInfo os.FileInfo // identifies the open file, to detect that path now names another file
}

// An auditHeadInStateFile is the sequence number and the hash of an entry of the audit log: the last entry that
// the state file records.
type auditHeadInStateFile struct {
	seq  uint64
	hash string
}

const (
	auditHeadFileName              = "log.head"
	auditHeadLockFileName          = auditHeadFileName + ".lock"
	auditHeadFileSize              = 128                             // size of the head file; it fits in one disk sector, which a disk writes atomically
	auditHeadFileMACOffset         = auditHeadFileSize - sha256.Size // offset of its authentication code
	entriesBetweenAuditHeadRecords = 16
)

// Keys of the audit log's head in the state file.
var (
	legacyHeadKey          = []byte("audit head")        // where the head was stored before the head file existed
	auditHeadFileStatusKey = []byte("audit head beside") // value: 1 if there is a head file, 2 if it is authenticated
	bucketKeyOfHeadMACKey  = []byte("audit head key")
	recordedAuditHeadKey   = []byte("audit head note") // sequence number and hash
)

// AdvanceAuditHead calls next with the sequence number and hash of the last known entry of the audit log (0
// and "" if there is none) and stores what it returns. If next returns an error, that is returned and
// the head is unchanged.
//
// Other processes wait while next runs, so that log and head agree.
func (s *Store) AdvanceAuditHead(ctx context.Context, next func(seq uint64, hash string) (uint64, string, error)) error {
	h := &s.auditHeadFile
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil || !h.stateFile.isUnchangedSinceOwnTransaction() {
		if err := s.localStateFileQueue.runPossiblyWriting(ctx, h.ensureExists); err != nil {
			return err
		}
	}
	var at uint64
	var last string
	err := h.withLock(ctx, func() error {
		if err := h.reopen(); err != nil {
			return err
		}
		seq, hash, err := h.latestHead(h.file)
		if err != nil {
			return err
		}
		if seq, hash, err = next(seq, hash); err != nil {
			return err
		}
		at, last = seq, hash
		_, err = h.file.WriteAt(encodeHead(seq, hash, h.macKey), 0)
		return h.unwritableError(err)
	})
	if err != nil || h.requiresValidMAC && at < h.headInStateFile().seq+entriesBetweenAuditHeadRecords {
		return err
	}
	err = s.localStateFileQueue.runWriting(ctx, func(t *tx) error { return t.put(limitsBucket, auditHeadFileStatusKey, []byte{2}) }) // the transaction also records the head
	if err == nil {
		h.requiresValidMAC = true
		h.cachedHeadInStateFile.Store(&auditHeadInStateFile{at, last})
	}
	return err
}

// loadMACKeyAndRecordedHead reads the state file's data about the head file.
func (h *auditHeadFile) loadMACKeyAndRecordedHead(t *tx) {
	h.macKey = bytes.Clone(t.get(limitsBucket, bucketKeyOfHeadMACKey))
	h.requiresValidMAC = bytes.Equal(t.get(limitsBucket, auditHeadFileStatusKey), []byte{2})
	if b := t.get(limitsBucket, recordedAuditHeadKey); len(b) >= 8 {
		h.cachedHeadInStateFile.Store(&auditHeadInStateFile{byteOrder.Uint64(b), string(b[8:])})
	}
}

// headInStateFile returns the head recorded in the state file.
func (h *auditHeadFile) headInStateFile() auditHeadInStateFile {
	if n := h.cachedHeadInStateFile.Load(); n != nil {
		return *n
	}
	return auditHeadInStateFile{}
}

// latestHead returns the head in the file or the recorded one, whichever is later.
func (h *auditHeadFile) latestHead(f *os.File) (seq uint64, hash string, err error) {
	seq, hash, err = h.read(f)
	noted := h.headInStateFile()
	switch {
	case err != nil:
		return 0, "", err
	case seq < noted.seq:
		return noted.seq, noted.hash, nil
	case seq == noted.seq && seq > 0 && hash != noted.hash:
		return 0, "", &Error{Kind: ErrCorrupt, Path: h.path, Err: fmt.Errorf("entry %d differs from the hash in the state file", seq)}
	}
	return seq, hash, nil
}

// recordHead adds the head to a transaction that writes. An unreadable head file is left for the next log
// entry to report.
func (h *auditHeadFile) recordHead(t *tx) error {
	f, _, err := h.open(os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	at := auditHeadFile{path: h.path}
	at.loadMACKeyAndRecordedHead(t)
	seq, hash, err := at.read(f)
	if err != nil || seq <= at.headInStateFile().seq {
		return nil
	}
	h.cachedHeadInStateFile.Store(&auditHeadInStateFile{seq, hash})
	return t.put(limitsBucket, recordedAuditHeadKey, append(byteOrder.AppendUint64(nil, seq), hash...))
}

// AuditHead returns the sequence number and hash of the last known entry of the audit log.
func (s *Store) AuditHead(ctx context.Context) (seq uint64, hash string, err error) {
	err = s.localStateFileQueue.runReadOnly(ctx, func(t *tx) (err error) {
		seq, hash, err = s.auditHeadFile.readHeadWithoutLock(t)
		return err
	})
	return seq, hash, err
}

// auditLogGapKeyPrefix begins the keys under which gaps in the audit log are stored. The rest of a
// key is the sequence number of the recovery entry that begins a new log after the old log was
// moved away.
var auditLogGapKeyPrefix = []byte("audit gap ")

// StoreAuditRecoveryEntry stores the sequence number and hash of a recovery entry, which follows an audit log that was
// moved away.
func (s *Store) StoreAuditRecoveryEntry(ctx context.Context, seq uint64, hash string) error {
	return s.localStateFileQueue.runPossiblyWriting(ctx, func(t *tx) error {
		t.hasWrites = true
		return t.put(limitsBucket, byteOrder.AppendUint64(bytes.Clone(auditLogGapKeyPrefix), seq), []byte(hash))
	})
}

// LogGaps returns the hashes of the stored recovery entries, by sequence number. A recovery entry begins a new
// audit log after a damaged log was moved away, which leaves a gap.
func (s *Store) LogGaps(ctx context.Context) (gaps map[uint64]string, err error) {
	gaps = map[uint64]string{}
	err = s.localStateFileQueue.runReadOnly(ctx, func(t *tx) error {
		return t.each(limitsBucket, func(key, value []byte) error {
			if number, ok := bytes.CutPrefix(key, auditLogGapKeyPrefix); ok && len(number) == 8 {
				gaps[byteOrder.Uint64(number)] = string(value)
			}
			return nil
		})
	})
	return gaps, err
}

// readHeadWithoutLock returns the head without taking the lock.
func (h *auditHeadFile) readHeadWithoutLock(t *tx) (seq uint64, hash string, err error) {
	at := auditHeadFile{path: h.path} // a separate value, since another goroutine may use h
	at.loadMACKeyAndRecordedHead(t)
	f, _, err := h.open(os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return h.legacyHead(t)
	}
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	for range 3 { // a concurrent write is over at the next try
		if seq, hash, err = at.latestHead(f); err == nil {
			break
		}
	}
	return seq, hash, err
}

// legacyHead returns the head stored in the state file by versions without a head file.
func (h *auditHeadFile) legacyHead(t *tx) (uint64, string, error) {
	if t.get(limitsBucket, auditHeadFileStatusKey) != nil {
		return 0, "", &Error{Kind: ErrStateFileMissing, Path: h.path, Err: errors.New("the state file refers to this file, but this file does not exist")}
	}
	b := t.get(limitsBucket, legacyHeadKey)
	if b == nil {
		return 0, "", nil
	}
	if len(b) < 8 {
		return 0, "", &Error{Kind: ErrCorrupt, Path: stateFileName, Err: errors.New("the record of the last audit entry is truncated")}
	}
	return byteOrder.Uint64(b), string(b[8:]), nil
}

// ensureExists creates the head file, if there never was one, and records that in the state file.
func (h *auditHeadFile) ensureExists(t *tx) error {
	h.loadMACKeyAndRecordedHead(t)
	seq, hash, err := h.readHeadWithoutLock(t)
	if err != nil {
		return err
	}
	if t.get(limitsBucket, bucketKeyOfHeadMACKey) == nil {
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		t.hasWrites = true
		if err := t.put(limitsBucket, bucketKeyOfHeadMACKey, key); err != nil {
			return err
		}
	}
	h.loadMACKeyAndRecordedHead(t)
	if _, err := os.Lstat(h.path); errors.Is(err, os.ErrNotExist) {
		if err := h.create(seq, hash); err != nil {
			return err
		}
	}
	if t.get(limitsBucket, auditHeadFileStatusKey) != nil {
		return nil
	}
	t.hasWrites = true
	return t.put(limitsBucket, auditHeadFileStatusKey, []byte{1})
}

// recreate recreates a head file that is damaged or missing; any other error is returned.
func (h *auditHeadFile) recreate(ctx context.Context, seq uint64, hash string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.withLock(ctx, func() error {
		f, _, err := h.open(os.O_RDONLY)
		if err == nil {
			defer f.Close()
			_, _, err = h.read(f)
		}
		if errors.Is(err, ErrCorrupt) || errors.Is(err, os.ErrNotExist) {
			return h.create(seq, hash)
		}
		return err
	})
}

// create replaces the head file.
func (h *auditHeadFile) create(seq uint64, hash string) error {
	fresh := h.path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return h.unwritableError(err)
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(encodeHead(seq, hash, h.macKey))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(fresh, h.path)
	}
	if err != nil {
		return h.unwritableError(err)
	}
	return syncFolder(filepath.Dir(h.path))
}

// withLock runs do while it holds the lock of the head file.
func (h *auditHeadFile) withLock(ctx context.Context, do func() error) (err error) {
	if h.lock == nil {
		if h.lock, err = flock.New(filepath.Join(filepath.Dir(h.path), auditHeadLockFileName)); err != nil {
			return h.unwritableError(err)
		}
	}
	if err := h.lock.Lock(ctx, h.stateFile.opts.MaxFileLockWait); err != nil {
		return h.stateFile.lockError(err)
	}
	defer func() {
		if uerr := h.lock.Unlock(); err == nil {
			err = uerr
		}
	}()
	return do()
}

// reopen opens the file, again if the name now refers to another file.
func (h *auditHeadFile) reopen() (err error) {
	if h.file != nil {
		if named, err := os.Lstat(h.path); err == nil && os.SameFile(named, h.fileInfo) {
			return nil
		}
		_ = h.file.Close() // already written, or no longer in use
		h.file = nil
	}
	if h.file, h.fileInfo, err = h.open(os.O_RDWR); errors.Is(err, os.ErrNotExist) {
		err = &Error{Kind: ErrStateFileMissing, Path: h.path, Err: err}
	}
	return err
}

// open opens the file; its error wraps [os.ErrNotExist] if there is none.
func (h *auditHeadFile) open(openFlags int) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(h.path, openFlags|noFollow, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	if err != nil {
		if info, lerr := os.Lstat(h.path); lerr == nil && !info.Mode().IsRegular() {
			return nil, nil, &Error{Kind: ErrCorrupt, Path: h.path, Err: errors.New("the path is not a regular file; put a regular file there")}
		}
		return nil, nil, h.unwritableError(err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = h.unwritableError(err)
	case !info.Mode().IsRegular():
		err = &Error{Kind: ErrCorrupt, Path: h.path, Err: errors.New("the path is not a regular file; put a regular file there")}
	default:
		if err = errors.Join(owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherAccessBits), owner.CheckSingleLink(info)); err != nil {
			err = &Error{Kind: ErrStateAccessibleToOtherUsers, Path: h.path, Err: err}
		}
	}
	if err != nil {
		_ = f.Close() // nothing was written to it
		return nil, nil, err
	}
	return f, info, nil
}

func (h *auditHeadFile) read(f *os.File) (seq uint64, hash string, err error) {
	var b [auditHeadFileSize]byte
	_, err = f.ReadAt(b[:], 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, "", h.unwritableError(err)
	case err != nil || crc32.ChecksumIEEE(b[4:]) != byteOrder.Uint32(b[:]):
		return 0, "", &Error{Kind: ErrCorrupt, Path: h.path, Err: errors.New("the checksum is wrong")}
	case (h.requiresValidMAC || !allZero(b[auditHeadFileMACOffset:])) && (h.macKey == nil || !hmac.Equal(b[auditHeadFileMACOffset:], headMAC(b[4:auditHeadFileMACOffset], h.macKey))):
		return 0, "", &Error{Kind: ErrCorrupt, Path: h.path, Err: errors.New("its seal is wrong: another program wrote the file, or an older shield that still runs")}
	}
	return byteOrder.Uint64(b[4:]), string(bytes.TrimRight(b[12:auditHeadFileMACOffset], "\x00")), nil
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

func headMAC(head, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(head) // writing to a hash does not fail
	return mac.Sum(nil)
}

// encodeHead returns the content of the head file. Without a key it is not authenticated, as in older
// versions.
func encodeHead(seq uint64, hash string, key []byte) []byte {
	b := make([]byte, auditHeadFileSize)
	byteOrder.PutUint64(b[4:], seq)
	copy(b[12:auditHeadFileMACOffset], hash)
	if key != nil {
		copy(b[auditHeadFileMACOffset:], headMAC(b[4:auditHeadFileMACOffset], key))
	}
	byteOrder.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b
}

func (h *auditHeadFile) unwritableError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: ErrUnwritable, Path: h.path, Err: err}
}

// close closes open files, unless the head is being changed while the process ends.
func (h *auditHeadFile) close() (err error) {
	if !h.mu.TryLock() {
		return nil
	}
	defer h.mu.Unlock()
	if h.file != nil {
		err = h.file.Close()
		h.file = nil
	}
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
		h.lock = nil
	}
	return err
}
