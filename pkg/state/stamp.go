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

// A NamespaceRevisionID identifies the content of a namespace: any process that changes the
// namespace changes its ID.
type NamespaceRevisionID [16]byte

// namespaceRevisionFiles are the open revision files of a state folder, by namespace. A revision
// file holds the [NamespaceRevisionID] of its namespace. Goroutines share the files.
type namespaceRevisionFiles struct {
	mu                  sync.Mutex
	openFileByNamespace map[string]namespaceRevisionFile
}

type namespaceRevisionFile struct {
	file *os.File
	info os.FileInfo // file info at opening
}

// NamespaceRevisionID returns the current stamp of a namespace, a random value that changes with the content,
// without a lock and without opening the state file. ok is false if there is no stamp and none can
// be created. Data read in a transaction is still valid if the stamp equals the one taken before
// the transaction.
func (s *Store) NamespaceRevisionID(namespace string) (stamp NamespaceRevisionID, ok bool) {
	return s.limitsAndNamespacesQueue.backend.namespaceRevisionID(namespace)
}

func (b *boltFile) namespaceRevisionID(namespace string) (stamp NamespaceRevisionID, ok bool) {
	b.revisionFiles.mu.Lock()
	defer b.revisionFiles.mu.Unlock()
	path := b.revisionFilePath(namespace)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) && b.renewNamespaceRevision(namespace) == nil {
		info, err = os.Lstat(path)
	}
	if err != nil || !info.Mode().IsRegular() {
		return stamp, false
	}
	f, known := b.revisionFiles.openFileByNamespace[namespace]
	if !known || !os.SameFile(f.info, info) {
		if known {
			_ = f.file.Close() // only read, so no write can be lost
			delete(b.revisionFiles.openFileByNamespace, namespace)
		}
		if f, ok = openRevisionFile(path); !ok {
			return stamp, false
		}
		b.revisionFiles.openFileByNamespace[namespace] = f
	}
	n, _ := f.file.ReadAt(stamp[:], 0)
	return stamp, n == len(stamp)
}

func openRevisionFile(path string) (f namespaceRevisionFile, ok bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return f, false
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		return namespaceRevisionFile{file, info}, true
	}
	_ = file.Close() // nothing was read from it
	return f, false
}

// close closes the open files.
func (s *namespaceRevisionFiles) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.openFileByNamespace {
		_ = f.file.Close() // only read, so no write can be lost
	}
	clear(s.openFileByNamespace)
}

// renewNamespaceRevision changes the stamp of a namespace, the random value that identifies its content. If the
// content changes, renewNamespaceRevision is called under the lock and before the commit, so that a reader that
// sees the new stamp waits for the commit. A new stamp without a change of the content does no
// harm.
func (b *boltFile) renewNamespaceRevision(namespace string) error {
	var stamp NamespaceRevisionID
	_, _ = rand.Read(stamp[:]) // never fails
	f, err := os.OpenFile(b.revisionFilePath(namespace), os.O_WRONLY|os.O_CREATE|noFollow, 0o600)
	if err == nil {
		_, err = f.WriteAt(stamp[:], 0)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: b.revisionFilePath(namespace), Err: err}
	}
	return nil
}

// renewAllNamespaceRevisions changes the [NamespaceRevisionID] of each namespace that has a
// revision file.
func (b *boltFile) renewAllNamespaceRevisions() error {
	entries, err := os.ReadDir(filepath.Dir(b.path))
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: b.path, Err: err}
	}
	for _, entry := range entries {
		if shelf, ok := strings.CutSuffix(entry.Name(), ".stamp"); ok {
			err = errors.Join(err, b.renewNamespaceRevision(shelf))
		}
	}
	return err
}

func (b *boltFile) revisionFilePath(namespace string) string {
	return filepath.Join(filepath.Dir(b.path), namespace+".stamp")
}
