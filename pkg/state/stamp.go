package state

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A Stamp stands for what a shelf holds: it is another one after each change, by
// whichever process.
type Stamp [16]byte

// stamps are the stamp files of a folder that are open, by shelf. Goroutines share
// them.
type stamps struct {
	mu   sync.Mutex
	open map[string]stampFile
}

type stampFile struct {
	file *os.File
	info os.FileInfo // as it was when it was opened
}

// Stamp returns the stamp of a shelf as it is now, without a lock and without
// opening the state file; false if it has none and can be given none. Who takes it
// before a transaction that reads the shelf, and finds it unchanged later, knows what
// the shelf holds.
func (s *Store) Stamp(shelf string) (stamp Stamp, ok bool) { return s.values.medium.stamp(shelf) }

func (b *boltFile) stamp(shelf string) (stamp Stamp, ok bool) {
	b.stamps.mu.Lock()
	defer b.stamps.mu.Unlock()
	path := b.stampPath(shelf)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) && b.restamp(shelf) == nil {
		info, err = os.Lstat(path)
	}
	if err != nil || !info.Mode().IsRegular() {
		return stamp, false
	}
	f, known := b.stamps.open[shelf]
	if !known || !os.SameFile(f.info, info) {
		if known {
			_ = f.file.Close() // it was only read
			delete(b.stamps.open, shelf)
		}
		if f, ok = openStamp(path); !ok {
			return stamp, false
		}
		b.stamps.open[shelf] = f
	}
	n, _ := f.file.ReadAt(stamp[:], 0)
	return stamp, n == len(stamp)
}

func openStamp(path string) (f stampFile, ok bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return f, false
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		return stampFile{file, info}, true
	}
	_ = file.Close() // nothing is read of it
	return f, false
}

// close closes what is open.
func (s *stamps) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.open {
		_ = f.file.Close() // it was only read
	}
	clear(s.open)
}

// restamp gives a shelf another stamp. Where the shelf changes, the lock is held, and
// the change is not committed yet: who sees the new stamp and reads the shelf waits for
// that. One more stamp than there are changes does no harm.
func (b *boltFile) restamp(shelf string) error {
	var stamp Stamp
	_, _ = rand.Read(stamp[:]) // never fails
	f, err := os.OpenFile(b.stampPath(shelf), os.O_WRONLY|os.O_CREATE|noFollow, 0o600)
	if err == nil {
		_, err = f.WriteAt(stamp[:], 0)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: b.stampPath(shelf), Err: err}
	}
	return nil
}

// restampAll gives all shelves that have a stamp another one.
func (b *boltFile) restampAll() error {
	entries, err := os.ReadDir(filepath.Dir(b.path))
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: b.path, Err: err}
	}
	for _, entry := range entries {
		if shelf, ok := strings.CutSuffix(entry.Name(), ".stamp"); ok {
			err = errors.Join(err, b.restamp(shelf))
		}
	}
	return err
}

func (b *boltFile) stampPath(shelf string) string {
	return filepath.Join(filepath.Dir(b.path), shelf+".stamp")
}
