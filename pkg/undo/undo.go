// Package undo keeps files that an action is about to delete or overwrite, and restores them. The
// folder of a [Store] is outside the workspace. [Store.Keep] runs before the action, and [Store.Apply]
// afterwards, when the user asks for it.
//
// A deleted file is kept by a hard link, a file that is changed in place by a clone or copy. If a file
// cannot be kept, Keep returns an error, and the action is judged as if there were no store. Apply
// deletes nothing and, unless it is forced, does not overwrite files that are newer than the action.
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
	NotifyAboveNames, MaxNames int           // names in a set; above the first number, the answer to the agent mentions the set
	NotifyAboveBytes, MaxBytes int64         // bytes that are copied
	NotifyAboveTime, MaxTime   time.Duration // time limit of keeping a set
	MaxAge                     time.Duration // age after which a set is deleted
	ProtectedAge               time.Duration // sets younger than this, and sets of a session with such a set, are not deleted to make room
	MaxTotalBytes              int64         // bytes of the store; in addition, at most a twentieth of the disk
}

// DefaultLimits are the documented limits.
var DefaultLimits = Limits{
	NotifyAboveNames: 5_000, MaxNames: 20_000, NotifyAboveBytes: 500 << 20, MaxBytes: 2 << 30, NotifyAboveTime: 200 * time.Millisecond, MaxTime: 3 * time.Second,
	MaxAge: 7 * 24 * time.Hour, ProtectedAge: 24 * time.Hour, MaxTotalBytes: 5 << 30,
}

// Options describe a store.
type Options struct {
	Dir    string           // the folder, outside every workspace; created with mode 0700
	Limits Limits           // the zero value means [DefaultLimits]
	Clock  func() time.Time // the current time; required

	// IsSecret reports whether a file is a credential by its name or, with start, by its first
	// bytes. Such a file is not kept. nil means that no file is a credential.
	IsSecret func(path string, start []byte) bool
	// IsBuildOutput reports whether a path is build output that can be recreated; it is not kept,
	// and the set lists it. nil means that no path is build output.
	IsBuildOutput func(path string) bool
}

// A Store keeps sets of files in a folder. Processes can share it.
type Store struct{ o Options }

// New returns the store of a folder, which need not exist yet.
func New(o Options) *Store {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	return &Store{o}
}

// A FileLoss is something that an action deletes or changes.
type FileLoss struct {
	Path  string                 // absolute and canonical; its folder contains no symbolic link
	Under bool                   // Path is a folder, and all names in it that Match accepts are lost
	Deep  bool                   // with Under: Match is called for everything below Path
	Match func(path string) bool `json:"-"` // with Under
	Skip  func(path string) bool `json:"-"` // with Deep: folders that are not searched
	Tree  bool                   // the folder is lost with everything below it
	Write bool                   // the content changes in place, so a hard link would change, too
	Store bool                   // an SQLite database: its log files are kept too, and it must not be in use
	Text  string                 // content with which undo creates a file that did not exist, such as a git ref that is only in packed-refs
}

// ActionInfo describes the action that a set belongs to.
type ActionInfo struct {
	Session     string `json:"session,omitempty"`
	Host        string `json:"host,omitempty"`
	CWD         string `json:"cwd,omitempty"`
	Type        string `json:"type,omitempty"`
	Hash        string `json:"action_hash,omitempty"`
	Description string `json:"what,omitempty"` // the action in words, redacted
	RestoredSet string `json:"of,omitempty"`   // ID of the set whose restoration replaced these files
}

// A Set is the files kept for one action.
type Set struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
	ActionInfo
	Names           int      `json:"names"`
	Bytes           int64    `json:"bytes"`              // bytes of the kept content, linked content included
	MentionInAnswer bool     `json:"said,omitempty"`     // the set is large or took long to store, so the verdict's reasoning mentions its size
	LeftOut         []string `json:"left_out,omitempty"` // paths that were not kept: build output and sockets
	AppliedAt       string   `json:"applied,omitempty"`  // time of the last restoring; not stored with the set
	Entries         []Entry  `json:"entries,omitempty"`  // set by Get only
}

// nameOverheadBytes is the assumed cost of a name in bytes, so that the limit in bytes also limits the number
// of small files and sets.
const nameOverheadBytes = 4 << 10

// cost returns the number of bytes that a set uses of the store's size limit.
func (s *Set) cost() int64 { return s.Bytes + int64(s.Names+2)*nameOverheadBytes }

// An Entry is one kept name: a file, folder, symbolic link or text.
type Entry struct {
	Path           string    `json:"path"`
	Raw            []byte    `json:"raw,omitempty"` // the path as bytes, if it is not UTF-8
	Kind           string    `json:"kind"`          // kind: file, dir, link or text
	Mode           uint32    `json:"mode,omitempty"`
	Size           int64     `json:"size,omitempty"`
	OriginalStamp  fileStamp `json:"was,omitzero"`
	StoredName     string    `json:"kept,omitempty"` // name of the content in the set's folder
	KeptBy         string    `json:"by,omitempty"`   // how the content is kept: link, clone or copy
	StoredStamp    fileStamp `json:"copy,omitzero"`  // stamp of the kept file, if it was not hashed
	Hash           string    `json:"hash,omitempty"` // see hashFile
	Target         string    `json:"target,omitempty"`
	HasHardLinks   bool      `json:"links,omitempty"` // the file had other names (hard links)
	ContentDropped bool      `json:"gone,omitempty"`  // the content was dropped, because the action did not delete the file
}

// path returns the original path of an entry.
func (e *Entry) path() string {
	if e.Raw != nil {
		return string(e.Raw)
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
	Restored = "restored" // the file is as it was before the action
	Same     = "same"     // unchanged: the file is the kept one
	Beside   = "beside"   // restored under another name, because a newer file exists
	Failed   = "failed"
)

// A Result is what happened to one entry.
type Result struct {
	Path      string `json:"path"`
	Outcome   string `json:"did"`
	OtherPath string `json:"at,omitempty"`  // the path under which the file was restored if Outcome is Beside
	Why       string `json:"why,omitempty"` // the error, with Failed
}

// A KeepError names a file that could not be kept, and the reason.
type KeepError struct{ Path, Why string }

func (e *KeepError) Error() string {
	if e.Path == "" {
		return "shield cannot keep a copy: " + e.Why
	}
	return fmt.Sprintf("shield cannot keep a copy of %s: %s", e.Path, e.Why)
}

// The names of files in the store and in a set.
const (
	counterName     = "store.json"
	lockName        = "lock"
	headName        = "set.json"
	entriesName     = "entries.json"
	stampsAfterName = "left.json"
	appliedName     = "applied"
	overwritingName = "writing"
	pendingName     = "pending"
	reportedName    = "told"
	goneSuffix      = ".gone"
)

// lockWait limits the wait for the lock of the store.
const lockWait = 2 * time.Second

// A counter is the store's totals over all sets.
type counter struct {
	Next   int   `json:"next"`
	Used   int64 `json:"used"`
	Pruned int64 `json:"pruned"` // Unix time
}

// withLock calls f with the counter under the store's lock, and writes the counter afterwards.
func (s *Store) withLock(ctx context.Context, f func(c *counter) error) error {
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(s.o.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a folder; remove it", s.o.Dir)
	} else if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(s.o.Dir, 0o700); err != nil {
			return err
		}
	}
	lock, err := flock.New(filepath.Join(s.o.Dir, lockName))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Lock(ctx, lockWait); err != nil {
		return err
	}
	var c counter
	data, err := os.ReadFile(filepath.Join(s.o.Dir, counterName))
	if err != nil || json.Unmarshal(data, &c) != nil || c.Next < 1 || c.Used < 0 {
		c = s.recount()
	}
	if err := f(&c); err != nil {
		return err
	}
	return writeFile(s.o.Dir, counterName, c)
}

// recount computes the counter from the sets.
func (s *Store) recount() (c counter) {
	c.Next = 1
	names, _ := os.ReadDir(s.o.Dir)
	for _, n := range names {
		id, _, _ := strings.Cut(n.Name(), ".")
		if i := setNumber(id); i >= c.Next {
			c.Next = i + 1
		}
		if h, err := s.readHead(n.Name()); err == nil {
			c.Used += h.cost()
		}
	}
	return c
}

// setNumber returns the number in the ID of a set, or 0.
func setNumber(id string) int {
	rest, ok := strings.CutPrefix(id, "u")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil || n < 1 || strconv.Itoa(n) != rest {
		return 0
	}
	return n
}

// writeFile writes a value as JSON, atomically.
func writeFile(dir, name string, v any) error {
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

// readHead returns a set without its entries.
func (s *Store) readHead(id string) (*Set, error) {
	if setNumber(id) == 0 {
		return nil, fmt.Errorf("%q is not the ID of a set; 'shield undo' lists the sets", id)
	}
	dir := filepath.Join(s.o.Dir, id)
	data, err := os.ReadFile(filepath.Join(dir, headName))
	if err != nil {
		return nil, err
	}
	var set Set
	if err := json.Unmarshal(data, &set); err != nil || set.ID != id {
		return nil, fmt.Errorf("set %s is damaged and cannot be restored; 'shield undo' lists the other sets", id)
	}
	if at, err := os.ReadFile(filepath.Join(dir, appliedName)); err == nil {
		set.AppliedAt = string(at)
	}
	return &set, nil
}

// Get returns a set with its entries.
func (s *Store) Get(id string) (*Set, error) {
	set, err := s.readHead(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no set %s; 'shield undo' lists the sets", id)
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(s.o.Dir, id, entriesName))
	if err == nil {
		err = json.Unmarshal(data, &set.Entries)
	}
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", id, err)
	}
	return set, nil
}

// List returns the sets without their entries, the newest first.
func (s *Store) List() ([]Set, error) {
	names, err := os.ReadDir(s.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Set
	for _, n := range names {
		if set, err := s.readHead(n.Name()); err == nil {
			out = append(out, *set)
		}
	}
	sorted.By(out, func(a, b Set) int { return setNumber(b.ID) - setNumber(a.ID) })
	return out, err
}

// Prune deletes the sets that are older than keep, and unfinished ones. Unless keep is 0, young sets
// and those of a session with a young set stay, see [Limits]. It returns how many were deleted, and
// their bytes.
func (s *Store) Prune(ctx context.Context, keep time.Duration) (dropped int, bytes int64, err error) {
	if _, err := os.Stat(s.o.Dir); errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	err = s.withLock(ctx, func(c *counter) error {
		dropped, bytes = s.prune(c, keep, -1)
		return nil
	})
	return dropped, bytes, err
}

// abandonedAge is the age at which a set without a readable head file is deleted: a process was
// killed while it wrote the set.
const abandonedAge = time.Hour

// prune deletes the sets that are older than the duration keep. If the parameter most is not
// negative, it then deletes the oldest sets that are not protected until the store holds at most
// that many bytes.
func (s *Store) prune(c *counter, keep time.Duration, most int64) (dropped int, bytes int64) {
	now := s.o.Clock()
	names, _ := os.ReadDir(s.o.Dir)
	var sets []Set
	live := map[string]bool{}
	c.Used = 0
	for _, n := range names {
		if !n.IsDir() {
			continue
		}
		set, err := s.readHead(n.Name())
		if err != nil {
			if info, err := n.Info(); strings.HasSuffix(n.Name(), goneSuffix) || err == nil && setNumber(n.Name()) > 0 && now.Sub(info.ModTime()) > abandonedAge {
				_ = os.RemoveAll(filepath.Join(s.o.Dir, n.Name()))
			}
			continue
		}
		sets = append(sets, *set)
		c.Used += set.cost()
		if now.Sub(set.At) < s.o.Limits.ProtectedAge {
			live[set.Session] = true
		}
	}
	for _, folder := range [...]string{pendingName, reportedName} {
		marks, _ := os.ReadDir(filepath.Join(s.o.Dir, folder))
		for _, m := range marks {
			if info, err := m.Info(); err == nil && now.Sub(info.ModTime()) > max(keep, s.o.Limits.MaxAge) {
				_ = os.Remove(filepath.Join(s.o.Dir, folder, m.Name()))
			}
		}
	}
	sorted.By(sets, func(a, b Set) int { return setNumber(a.ID) - setNumber(b.ID) })
	for i := range sets {
		set := &sets[i]
		age := now.Sub(set.At)
		young := age < s.o.Limits.ProtectedAge || set.Session != "" && live[set.Session]
		if old := age >= keep; !old && (most < 0 || c.Used <= most || young) || old && keep > 0 && young {
			continue
		}
		from := filepath.Join(s.o.Dir, set.ID)
		if os.Rename(from, from+goneSuffix) != nil {
			continue
		}
		testCrashPoint()
		_ = os.RemoveAll(from + goneSuffix)
		c.Used -= set.cost()
		dropped++
		bytes += set.Bytes
	}
	c.Pruned = now.Unix()
	return dropped, bytes
}

// reserve creates the folder of a new set and returns its ID, and how many bytes are left in the
// store.
func (s *Store) reserve(ctx context.Context) (id string, room int64, err error) {
	err = s.withLock(ctx, func(c *counter) error {
		most := min(s.o.Limits.MaxTotalBytes, diskSize(s.o.Dir)/20)
		if now := s.o.Clock(); now.Unix()-c.Pruned >= 3600 || c.Used > most-most/10 {
			s.prune(c, s.o.Limits.MaxAge, most-most/10)
		}
		if room = most - c.Used; room <= 0 {
			return &KeepError{Why: "the undo store is full; run 'shield undo prune'"}
		}
		for ; ; c.Next++ {
			id = "u" + strconv.Itoa(c.Next)
			if err := os.Mkdir(filepath.Join(s.o.Dir, id), 0o700); err == nil {
				c.Next++
				return nil
			} else if !errors.Is(err, fs.ErrExist) {
				id = ""
				return err
			}
		}
	})
	if err != nil && id != "" {
		_ = os.Remove(filepath.Join(s.o.Dir, id))
	}
	return id, room, err
}

// commit adds a completed set to the store.
func (s *Store) commit(ctx context.Context, set *Set) error {
	dir := filepath.Join(s.o.Dir, set.ID)
	if err := writeFile(dir, entriesName, set.Entries); err != nil {
		return err
	}
	testCrashPoint()
	head := *set
	head.Entries, head.AppliedAt = nil, ""
	if err := writeFile(dir, headName, head); err != nil {
		return err
	}
	testCrashPoint()
	if set.Hash != "" {
		if err := os.MkdirAll(filepath.Join(s.o.Dir, pendingName), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(s.pendingPath(set.Session, set.Hash), []byte(set.ID), 0o600); err != nil {
			return err
		}
	}
	return s.withLock(ctx, func(c *counter) error { c.Used += set.cost(); return nil })
}

// TakeNewSets returns the sets of a session that it has not returned before, without their entries, newest
// first.
func (s *Store) TakeNewSets(session string) ([]Set, error) {
	names, err := os.ReadDir(s.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(session))
	mark := filepath.Join(s.o.Dir, reportedName, hex.EncodeToString(sum[:12]))
	told := 0
	if text, err := os.ReadFile(mark); err == nil {
		told = setNumber(string(text))
	}
	var out []Set
	for _, n := range names {
		if setNumber(n.Name()) <= told {
			continue
		}
		if set, err := s.readHead(n.Name()); err == nil && set.Session == session {
			out = append(out, *set)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	sorted.By(out, func(a, b Set) int { return setNumber(b.ID) - setNumber(a.ID) })
	if err := os.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return nil, err
	}
	return out, os.WriteFile(mark, []byte(out[0].ID), 0o600)
}

// pendingPath returns the path of the file that contains the set ID of an action that has not ended.
func (s *Store) pendingPath(session, hash string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + hash))
	return filepath.Join(s.o.Dir, pendingName, hex.EncodeToString(sum[:12]))
}
