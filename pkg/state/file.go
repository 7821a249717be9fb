package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
)

// open opens the bbolt file, which must exist, and stores the open file in *file.
func (b *boltFile) open(readOnly bool, file **os.File) (*bolt.DB, error) {
	path := b.path
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      b.opts.MaxFileLockWait, // a process that just died may not have released bbolt's lock yet
		ReadOnly:     readOnly,
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag&^os.O_CREATE|noFollow, mode)
			if err != nil {
				return nil, err
			}
			*file = f
			return f, checkStateFile(f)
		},
	})
	switch {
	case err == nil:
		return db, nil
	case errors.As(err, new(*Error)):
		return nil, err
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &Error{Kind: ErrStateFileLocked, Path: path, Err: &flock.HeldError{
			Path: path, Waited: b.opts.MaxFileLockWait, HolderProcessDescription: lockHolderDescription(path), Err: flock.ErrHeld,
		}}
	case errors.As(err, new(*os.PathError)):
		return nil, &Error{Kind: ErrUnwritable, Path: path, Err: err}
	}
	return nil, &Error{Kind: ErrCorrupt, Path: path, Err: err}
}

// lockHolderDescription names the process that holds bbolt's lock.
func lockHolderDescription(path string) string {
	f, err := owner.OpenNoFollow(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	return flock.DescribeLockHolderProcess(f)
}

// checkStateFile rejects, before it is mapped into memory, a state file that is not a regular file, that other
// users can access, that has a second hard link, or that has an impossible size.
func checkStateFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: f.Name(), Err: err}
	}
	if !info.Mode().IsRegular() {
		return &Error{Kind: ErrCorrupt, Path: f.Name(), Err: errors.New("the path is not a regular file; put a regular file there")}
	}
	if err := errors.Join(owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherAccessBits), owner.CheckSingleLink(info)); err != nil {
		return &Error{Kind: ErrStateAccessibleToOtherUsers, Path: f.Name(), Err: err}
	}
	if info.Size() == 0 { // bbolt would initialise an empty file
		return &Error{Kind: ErrCorrupt, Path: f.Name(), Err: errors.New("the file is empty")}
	}
	if info.Size() > maxStateFileBytes {
		return &Error{Kind: ErrCorrupt, Path: f.Name(), Err: fmt.Errorf("%d bytes long", info.Size())}
	}
	return nil
}

// maxStateFileBytes is far more than [maxCachedEntries] entries of [MaxCachedValueBytes] bytes need, in bytes.
const maxStateFileBytes = 256 << 20

// ensureExists creates the state file if it is missing. It is created under a temporary name, so that a
// crash leaves no partial file.
func (b *boltFile) ensureExists() error {
	info, err := os.Lstat(b.path)
	if err == nil {
		b.wasFoundOrCreated = true
		if !info.Mode().IsRegular() {
			return &Error{Kind: ErrCorrupt, Path: b.path, Err: errors.New("the path is not a regular file; put a regular file there")}
		}
		if was := b.corruptFileInfo; was != nil && os.SameFile(was, info) && was.ModTime().Equal(info.ModTime()) && was.Size() == info.Size() {
			return b.corruptFileError
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return &Error{Kind: ErrUnwritable, Path: b.path, Err: err}
	}
	used := ""
	if b.wasFoundOrCreated {
		used = "the file was removed while shield read it"
	} else if b.opts.EvidenceOfEarlierStateFile != nil {
		if used, err = b.opts.EvidenceOfEarlierStateFile(); err != nil {
			return &Error{Kind: ErrStateFileMissing, Path: b.path, Err: err}
		}
	}
	if used != "" {
		return &Error{Kind: ErrStateFileMissing, Path: b.path, Err: errors.New(used)}
	}
	if err := createStateFile(b.path, &limitRecord{}); err != nil {
		return err
	}
	b.wasFoundOrCreated = true
	return nil
}

// createStateFile creates a state file with the given limits at path. The caller holds the lock.
func createStateFile(path string, rec *limitRecord) error {
	fail := func(err error) error { return &Error{Kind: ErrUnwritable, Path: path, Err: err} }
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail(err)
	}
	db, err := bolt.Open(fresh, 0o600, &bolt.Options{Timeout: time.Second, NoStatistics: true})
	if err != nil {
		return fail(err)
	}
	err = db.Update(func(btx *bolt.Tx) error {
		limits, err := btx.CreateBucket([]byte(limitsBucket.namespaceName))
		if err != nil {
			return err
		}
		if _, err := btx.CreateBucket([]byte(cacheBucket.namespaceName)); err != nil {
			return err
		}
		return limits.Put(limitRecordKey, rec.encode())
	})
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fail(err)
	}
	return syncFolder(filepath.Dir(path))
}

// AuditHeadAndStateLockPaths returns the lock files of a state folder, in the order in which to look for the process
// that holds one: a process that waits for the first lock may hold the second.
func AuditHeadAndStateLockPaths(dir string) []string {
	return []string{filepath.Join(dir, auditHeadLockFileName), filepath.Join(dir, stateLockFileName)}
}
