// Package undo keeps files that an action is about to delete or overwrite, and restores them. The
// folder of a [Store] is outside the workspace. [Store.BackUpFiles] runs before the action, and
// [Store.RestoreBackupSet] afterwards, when the user asks for it.
//
// A file that is to be deleted is kept by a hard link, and a file that is to be changed in place by
// a clone or copy. If a file cannot be kept, BackUpFiles returns an error, and the action is judged
// as if there were no store. RestoreBackupSet deletes nothing and, unless it is forced, does not
// overwrite files that are newer than the action.
//
// Every path is walked from the root of the file system by descriptors, without following symbolic
// links.
package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/sorted"
)

// Limits bound one set, and the store.
type Limits struct {
	VerdictMentionThresholdEntries, MaxEntriesPerSet         int           // numbers of entries in a set: above the first, the verdict mentions the set; above the second, the backup fails
	VerdictMentionThresholdCopiedBytes, MaxCopiedBytesPerSet int64         // copied bytes of a set: above the first, the verdict mentions the set; above the second, the backup fails
	VerdictMentionThresholdBackupTime, MaxBackupTimePerSet   time.Duration // durations of a backup: above the first, the verdict mentions the set; above the second, the backup fails
	MaxSetAge                                                time.Duration // age after which a set is deleted
	MinSetPruneAge                                           time.Duration // sets younger than this, and sets of a session with such a set, are not deleted to make room
	MaxTotalBytes                                            int64         // maximum bytes of the store; a second limit is a twentieth of the file system
}

// DefaultLimits are the documented limits.
var DefaultLimits = Limits{
	VerdictMentionThresholdEntries: 5_000, MaxEntriesPerSet: 20_000, VerdictMentionThresholdCopiedBytes: 500 << 20, MaxCopiedBytesPerSet: 2 << 30, VerdictMentionThresholdBackupTime: 200 * time.Millisecond, MaxBackupTimePerSet: 3 * time.Second,
	MaxSetAge: 7 * 24 * time.Hour, MinSetPruneAge: 24 * time.Hour, MaxTotalBytes: 5 << 30,
}

// Options describe a store.
type Options struct {
	Dir    string           // the folder, outside every workspace; created with mode 0700
	Limits Limits           // the zero value means [DefaultLimits]
	Clock  func() time.Time // the current time; required

	// IsSecret reports whether a file is a credential by its name or, with start, by its first
	// bytes. Such a file is not kept. nil means that no file is a credential.
	IsSecret func(path string, start []byte) bool
	// IsBuildOutput reports whether a path is build output that can be recreated. Build output below a backed-up
	// folder is not backed up; the [BackupSet] lists its path in NotBackedUpPaths. nil means that no path is
	// build output.
	IsBuildOutput func(path string) bool
}

// A Store keeps sets of files in a folder. Processes can share it.
type Store struct{ options Options }

// New returns the store of a folder, which need not exist yet.
func New(o Options) *Store {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	return &Store{o}
}

// A FileLoss is something that an action deletes or changes.
type FileLoss struct {
	Path           string                 // absolute and canonical; no folder above the last name is a symbolic link
	Under          bool                   // Path is a folder, and all paths in it that IsLostPath accepts are lost
	Deep           bool                   // if Under is set: IsLostPath is asked about all names below Path, not only those directly in Path
	IsLostPath     func(path string) bool `json:"-"` // with Under
	MustSkipFolder func(path string) bool `json:"-"` // if Deep is set: reports the folders that are not searched; may be nil
	Tree           bool                   // the folder is lost with everything below it
	Write          bool                   // the content changes in place, so a hard link would change, too
	Store          bool                   // an SQLite database: its log files are kept too, and it must not be in use
	Text           string                 // content with which undo creates a file that did not exist, such as a git ref that is only in packed-refs
}

// UndoableAction describes the action whose lost files a [BackupSet] keeps.
type UndoableAction struct {
	Session       string `json:"session,omitempty"`
	AgentHostName string `json:"host,omitempty"`
	CWD           string `json:"cwd,omitempty"`
	Type          string `json:"type,omitempty"`
	Hash          string `json:"action_hash,omitempty"`
	Description   string `json:"what,omitempty"` // the action in words, redacted
	RestoredSetID string `json:"of,omitempty"`   // ID of the set whose restoration replaced these files
}

// A BackupSet is the files kept for one action.
type BackupSet struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
	UndoableAction
	EntryCount            int           `json:"names"`
	BackedUpContentBytes  int64         `json:"bytes"`              // bytes of the kept content, including files of which the store keeps a hard link
	MustMentionInVerdict  bool          `json:"said,omitempty"`     // the set is large or took long to store, so the verdict's reasoning mentions its size
	NotBackedUpPaths      []string      `json:"left_out,omitempty"` // paths that were not kept: build output and sockets
	LastRestoredAtRFC3339 string        `json:"applied,omitempty"`  // when the set was last restored; kept in a separate file; "" if never
	Entries               []BackupEntry `json:"entries,omitempty"`  // set by Get only
}

// assumedEntryOverheadBytes is the assumed cost of a name in bytes, so that the limit in bytes also limits the number
// of small files and sets.
const assumedEntryOverheadBytes = 4 << 10

// usedStoreBytes returns the number of bytes that a set uses of the store's size limit.
func (s *BackupSet) usedStoreBytes() int64 {
	return s.BackedUpContentBytes + int64(s.EntryCount+2)*assumedEntryOverheadBytes
}

// A BackupEntry is one path that a backup set keeps: a file, a folder or a symbolic link; or a text with which
// undo creates a file that did not exist, see [FileLoss].
type BackupEntry struct {
	Path                    string    `json:"path"`
	RawPath                 []byte    `json:"raw,omitempty"` // the path as bytes, if it is not UTF-8
	Kind                    string    `json:"kind"`          // kind: file, dir, link or text
	Mode                    uint32    `json:"mode,omitempty"`
	Size                    int64     `json:"size,omitempty"`
	OriginalStamp           fileStamp `json:"was,omitzero"`
	StoredName              string    `json:"kept,omitempty"` // name of the file in the folder of the [BackupSet] that holds the content; "" if there is no content
	BackupMethod            string    `json:"by,omitempty"`   // how the content is kept: link, clone or copy
	StoredStamp             fileStamp `json:"copy,omitzero"`  // stamp of the kept file, if it was not hashed
	Hash                    string    `json:"hash,omitempty"` // see hashFile
	SymlinkTargetOrFileText string    `json:"target,omitempty"`
	HasHardLinks            bool      `json:"links,omitempty"` // the file had other names (hard links)
	IsDiscardedAsUnchanged  bool      `json:"gone,omitempty"`  // the content was dropped, because the action did not delete the file
}

// rawOrUTF8Path returns the original path of an entry.
func (e *BackupEntry) rawOrUTF8Path() string {
	if e.RawPath != nil {
		return string(e.RawPath)
	}
	return e.Path
}

// A fileStamp identifies the state of a file, without its content.
type fileStamp struct {
	Dev   uint64 `json:"dev,omitempty"`
	Ino   uint64 `json:"ino,omitempty"`
	Size  int64  `json:"size,omitempty"`
	MTime int64  `json:"mtime,omitempty"` // modification time, ns
	CTime int64  `json:"ctime,omitempty"` // change time, ns; 0 if unknown
}

// isSameState reports whether two stamps are of the same state. The change time detects programs that set the
// modification time back, but a new hard link changes it, too.
func (s fileStamp) isSameState(o fileStamp) bool {
	if s.CTime == 0 || o.CTime == 0 {
		return s.isSameIgnoringCTime(o)
	}
	return s == o
}

// isSameIgnoringCTime is like [fileStamp.isSameState], but ignores the change time.
func (s fileStamp) isSameIgnoringCTime(o fileStamp) bool {
	s.CTime, o.CTime = 0, 0
	return s == o
}

// Outcomes of restoring an entry.
const (
	OutcomeRestored               = "restored" // the file is as it was before the action
	OutcomeSameAsBackup           = "same"     // unchanged: the file is the kept one
	OutcomeRestoredUnderOtherName = "beside"   // restored under another name, because a newer file exists
	OutcomeFailed                 = "failed"
)

// A RestoreResult is what happened to one entry.
type RestoreResult struct {
	Path                   string `json:"path"`
	Outcome                string `json:"did"`
	RestoredUnderOtherPath string `json:"at,omitempty"`  // the path under which the file was restored if Outcome is OutcomeRestoredUnderOtherName
	Why                    string `json:"why,omitempty"` // the error if Outcome is OutcomeFailed
}

// A BackupError names a file that could not be kept, and the reason.
type BackupError struct{ Path, Why string }

func (e *BackupError) Error() string {
	if e.Path == "" {
		return "shield cannot keep a copy: " + e.Why
	}
	return fmt.Sprintf("shield cannot keep a copy of %s: %s", e.Path, e.Why)
}

// The names of files in the store and in a set.
const (
	storeTotalsFileName         = "store.json"
	storeLockFileName           = "lock"
	backupSetHeadFileName       = "set.json"
	backupSetEntriesFileName    = "entries.json"
	stampsAfterActionFileName   = "left.json"
	lastRestoreTimeFileName     = "applied"
	overwriteInProgressFileName = "writing"
	unfinishedActionsFolderName = "pending"
	lastReportedSetsFolderName  = "told"
	deletedSetFolderSuffix      = ".gone"
)

// maxStoreLockWait limits the wait for the lock of the store.
const maxStoreLockWait = 2 * time.Second

// A storeTotals value is the store's totals over all sets.
type storeTotals struct {
	NextSetNumber       int   `json:"next"`
	UsedBytes           int64 `json:"used"`
	PrunedAtUnixSeconds int64 `json:"pruned"` // Unix time
}

// withLockedTotals calls f with the store's totals under the store's lock, and writes the totals
// afterwards.
func (s *Store) withLockedTotals(ctx context.Context, f func(c *storeTotals) error) error {
	if err := os.MkdirAll(s.options.Dir, 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(s.options.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a folder; remove it", s.options.Dir)
	} else if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(s.options.Dir, 0o700); err != nil {
			return err
		}
	}
	lock, err := flock.New(filepath.Join(s.options.Dir, storeLockFileName))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Lock(ctx, maxStoreLockWait); err != nil {
		return err
	}
	var c storeTotals
	data, err := os.ReadFile(filepath.Join(s.options.Dir, storeTotalsFileName))
	if err != nil || json.Unmarshal(data, &c) != nil || c.NextSetNumber < 1 || c.UsedBytes < 0 {
		c = s.computeTotalsFromSets()
	}
	if err := f(&c); err != nil {
		return err
	}
	return writeJSONFileAtomically(s.options.Dir, storeTotalsFileName, c)
}

// computeTotalsFromSets computes the store's totals from the sets.
func (s *Store) computeTotalsFromSets() (c storeTotals) {
	c.NextSetNumber = 1
	names, _ := os.ReadDir(s.options.Dir)
	for _, n := range names {
		id, _, _ := strings.Cut(n.Name(), ".")
		if i := parseSetNumberOrZero(id); i >= c.NextSetNumber {
			c.NextSetNumber = i + 1
		}
		if h, err := s.readSetWithoutEntries(n.Name()); err == nil {
			c.UsedBytes += h.usedStoreBytes()
		}
	}
	return c
}

// parseSetNumberOrZero returns the number in the ID of a set, or 0.
func parseSetNumberOrZero(setID string) int {
	rest, ok := strings.CutPrefix(setID, "u")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil || n < 1 || strconv.Itoa(n) != rest {
		return 0
	}
	return n
}

// writeJSONFileAtomically writes a value as JSON, atomically.
func writeJSONFileAtomically(dir, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, name+".tmp")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	testCrashPoint()
	return os.Rename(tmp, filepath.Join(dir, name))
}

// testCrashPoint is called between two changes on the disk; tests kill the process there.
var testCrashPoint = func() {}

// readSetWithoutEntries returns a set without its entries.
func (s *Store) readSetWithoutEntries(id string) (*BackupSet, error) {
	if parseSetNumberOrZero(id) == 0 {
		return nil, fmt.Errorf("%q is not the ID of a set; 'shield undo' lists the sets", id)
	}
	dir := filepath.Join(s.options.Dir, id)
	data, err := os.ReadFile(filepath.Join(dir, backupSetHeadFileName))
	if err != nil {
		return nil, err
	}
	var set BackupSet
	if err := json.Unmarshal(data, &set); err != nil || set.ID != id {
		return nil, fmt.Errorf("set %s is damaged and cannot be restored; 'shield undo' lists the other sets", id)
	}
	if at, err := os.ReadFile(filepath.Join(dir, lastRestoreTimeFileName)); err == nil {
		set.LastRestoredAtRFC3339 = string(at)
	}
	return &set, nil
}

// Get returns a set with its entries.
func (s *Store) Get(id string) (*BackupSet, error) {
	set, err := s.readSetWithoutEntries(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no set %s; 'shield undo' lists the sets", id)
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(s.options.Dir, id, backupSetEntriesFileName))
	if err == nil {
		err = json.Unmarshal(data, &set.Entries)
	}
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", id, err)
	}
	return set, nil
}

// List returns the sets without their entries, the newest first.
func (s *Store) List() ([]BackupSet, error) {
	names, err := os.ReadDir(s.options.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []BackupSet
	for _, n := range names {
		if set, err := s.readSetWithoutEntries(n.Name()); err == nil {
			out = append(out, *set)
		}
	}
	sorted.SortStableBy(out, func(a, b BackupSet) int { return parseSetNumberOrZero(b.ID) - parseSetNumberOrZero(a.ID) })
	return out, err
}

// Prune deletes the sets that are older than keep, and those that have been unfinished for an hour. Unless keep
// is 0, young sets and those of a session with a young set stay, see [Limits]. It returns how many were deleted,
// and their bytes; unfinished sets are not counted.
func (s *Store) Prune(ctx context.Context, keep time.Duration) (dropped int, bytes int64, err error) {
	if _, err := os.Stat(s.options.Dir); errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	err = s.withLockedTotals(ctx, func(c *storeTotals) error {
		dropped, bytes = s.prune(c, keep, -1)
		return nil
	})
	return dropped, bytes, err
}

// maxUnfinishedSetAge is the age at which a set without a readable head file is deleted: a process was
// killed while it wrote the set.
const maxUnfinishedSetAge = time.Hour

// prune deletes the sets that are older than maxAge. If maxBytes is not negative, it then deletes
// the oldest sets until the store holds at most maxBytes bytes. It keeps each set that is younger
// than MinSetPruneAge and the other sets of the same session, unless maxAge is 0.
func (s *Store) prune(c *storeTotals, maxAge time.Duration, maxBytes int64) (dropped int, bytes int64) {
	now := s.options.Clock()
	names, _ := os.ReadDir(s.options.Dir)
	var sets []BackupSet
	live := map[string]bool{}
	c.UsedBytes = 0
	for _, n := range names {
		if !n.IsDir() {
			continue
		}
		set, err := s.readSetWithoutEntries(n.Name())
		if err != nil {
			if info, err := n.Info(); strings.HasSuffix(n.Name(), deletedSetFolderSuffix) || err == nil && parseSetNumberOrZero(n.Name()) > 0 && now.Sub(info.ModTime()) > maxUnfinishedSetAge {
				_ = os.RemoveAll(filepath.Join(s.options.Dir, n.Name()))
			}
			continue
		}
		sets = append(sets, *set)
		c.UsedBytes += set.usedStoreBytes()
		if now.Sub(set.At) < s.options.Limits.MinSetPruneAge {
			live[set.Session] = true
		}
	}
	for _, folder := range [...]string{unfinishedActionsFolderName, lastReportedSetsFolderName} {
		marks, _ := os.ReadDir(filepath.Join(s.options.Dir, folder))
		for _, m := range marks {
			if info, err := m.Info(); err == nil && now.Sub(info.ModTime()) > max(maxAge, s.options.Limits.MaxSetAge) {
				_ = os.Remove(filepath.Join(s.options.Dir, folder, m.Name()))
			}
		}
	}
	sorted.SortStableBy(sets, func(a, b BackupSet) int { return parseSetNumberOrZero(a.ID) - parseSetNumberOrZero(b.ID) })
	for i := range sets {
		set := &sets[i]
		age := now.Sub(set.At)
		young := age < s.options.Limits.MinSetPruneAge || set.Session != "" && live[set.Session]
		if old := age >= maxAge; !old && (maxBytes < 0 || c.UsedBytes <= maxBytes || young) || old && maxAge > 0 && young {
			continue
		}
		from := filepath.Join(s.options.Dir, set.ID)
		if os.Rename(from, from+deletedSetFolderSuffix) != nil {
			continue
		}
		testCrashPoint()
		_ = os.RemoveAll(from + deletedSetFolderSuffix)
		c.UsedBytes -= set.usedStoreBytes()
		dropped++
		bytes += set.BackedUpContentBytes
	}
	c.PrunedAtUnixSeconds = now.Unix()
	return dropped, bytes
}

// createSetFolder creates the folder of a new set and returns its ID, and how many bytes are left in the
// store.
func (s *Store) createSetFolder(ctx context.Context) (setID string, remainingBytes int64, err error) {
	err = s.withLockedTotals(ctx, func(c *storeTotals) error {
		most := min(s.options.Limits.MaxTotalBytes, totalFileSystemBytes(s.options.Dir)/20)
		if now := s.options.Clock(); now.Unix()-c.PrunedAtUnixSeconds >= 3600 || c.UsedBytes > most-most/10 {
			s.prune(c, s.options.Limits.MaxSetAge, most-most/10)
		}
		if remainingBytes = most - c.UsedBytes; remainingBytes <= 0 {
			return &BackupError{Why: "the undo store is full; run 'shield undo prune'"}
		}
		for ; ; c.NextSetNumber++ {
			setID = "u" + strconv.Itoa(c.NextSetNumber)
			if err := os.Mkdir(filepath.Join(s.options.Dir, setID), 0o700); err == nil {
				c.NextSetNumber++
				return nil
			} else if !errors.Is(err, fs.ErrExist) {
				setID = ""
				return err
			}
		}
	})
	if err != nil && setID != "" {
		_ = os.Remove(filepath.Join(s.options.Dir, setID))
	}
	return setID, remainingBytes, err
}

// commit adds a completed set to the store.
func (s *Store) commit(ctx context.Context, set *BackupSet) error {
	dir := filepath.Join(s.options.Dir, set.ID)
	if err := writeJSONFileAtomically(dir, backupSetEntriesFileName, set.Entries); err != nil {
		return err
	}
	testCrashPoint()
	head := *set
	head.Entries, head.LastRestoredAtRFC3339 = nil, ""
	if err := writeJSONFileAtomically(dir, backupSetHeadFileName, head); err != nil {
		return err
	}
	testCrashPoint()
	if set.Hash != "" {
		if err := os.MkdirAll(filepath.Join(s.options.Dir, unfinishedActionsFolderName), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(s.unfinishedActionFilePath(set.Session, set.Hash), []byte(set.ID), 0o600); err != nil {
			return err
		}
	}
	return s.withLockedTotals(ctx, func(c *storeTotals) error { c.UsedBytes += set.usedStoreBytes(); return nil })
}

// ClaimSetsUnreportedToUser returns the sets of a session that it has not returned before, without their entries, newest
// first.
func (s *Store) ClaimSetsUnreportedToUser(sessionID string) ([]BackupSet, error) {
	names, err := os.ReadDir(s.options.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(sessionID))
	mark := filepath.Join(s.options.Dir, lastReportedSetsFolderName, hex.EncodeToString(sum[:12]))
	told := 0
	if text, err := os.ReadFile(mark); err == nil {
		told = parseSetNumberOrZero(string(text))
	}
	var out []BackupSet
	for _, n := range names {
		if parseSetNumberOrZero(n.Name()) <= told {
			continue
		}
		if set, err := s.readSetWithoutEntries(n.Name()); err == nil && set.Session == sessionID {
			out = append(out, *set)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	sorted.SortStableBy(out, func(a, b BackupSet) int { return parseSetNumberOrZero(b.ID) - parseSetNumberOrZero(a.ID) })
	if err := os.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return nil, err
	}
	return out, os.WriteFile(mark, []byte(out[0].ID), 0o600)
}

// unfinishedActionFilePath returns the path of the file that contains the set ID of an action that has not ended.
func (s *Store) unfinishedActionFilePath(sessionID, actionHash string) string {
	sum := sha256.Sum256([]byte(sessionID + "\x00" + actionHash))
	return filepath.Join(s.options.Dir, unfinishedActionsFolderName, hex.EncodeToString(sum[:12]))
}
