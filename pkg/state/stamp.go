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

// A Stamp identifies the content of a namespace: any process that changes the namespace changes its
// stamp.
type Stamp [16]byte

// stampFiles are the open stamp files of a folder, by namespace. Goroutines share them.
type stampFiles struct {
	mu        sync.Mutex
	openFiles map[string]stampFile
}

type stampFile struct {
	file *os.File
	info os.FileInfo // file info at opening
}

// Stamp returns the current stamp of a namespace, a random value that changes with the content,
// without a lock and without opening the state file. ok is false if there is no stamp and none can
// be created. Data read in a transaction is still valid if the stamp equals the one taken before
// the transaction.
func (s *Store) Stamp(shelf string) (stamp Stamp, ok bool) { return s.valueQueue.backend.stamp(shelf) }

func (b *boltFile) stamp(shelf string) (stamp Stamp, ok bool) {
	b.stamps.mu.Lock()
	defer b.stamps.mu.Unlock()
	path := b.stampPath(shelf)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) && b.renewStamp(shelf) == nil {
		info, err = os.Lstat(path)
	}
	if err != nil || !info.Mode().IsRegular() {
		return stamp, false
	}
	f, known := b.stamps.openFiles[shelf]
	if !known || !os.SameFile(f.info, info) {
		if known {
			_ = f.file.Close() // only read, so no write can be lost
			delete(b.stamps.openFiles, shelf)
		}
		if f, ok = openStamp(path); !ok {
			return stamp, false
		}
		b.stamps.openFiles[shelf] = f
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
	_ = file.Close() // nothing was read from it
	return f, false
}

// close closes the open files.
func (s *stampFiles) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.openFiles {
		_ = f.file.Close() // only read, so no write can be lost
	}
	clear(s.openFiles)
}

// renewStamp changes the stamp of a namespace, the random value that identifies its content. If the
// content changes, renewStamp is called under the lock and before the commit, so that a reader that
// sees the new stamp waits for the commit. A new stamp without a change of the content does no
// harm.
func (b *boltFile) renewStamp(shelf string) error {
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

// renewAllStamps changes the stamps of all namespaces that have one.
func (b *boltFile) renewAllStamps() error {
	entries, err := os.ReadDir(filepath.Dir(b.path))
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: b.path, Err: err}
	}
	for _, entry := range entries {
		if shelf, ok := strings.CutSuffix(entry.Name(), ".stamp"); ok {
			err = errors.Join(err, b.renewStamp(shelf))
		}
	}
	return err
}

func (b *boltFile) stampPath(shelf string) string {
	return filepath.Join(filepath.Dir(b.path), shelf+".stamp")
}
