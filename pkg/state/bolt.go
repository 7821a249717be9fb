package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/shieldcli/shield/internal/flock"
)

// A boltFile is the state file. Each transaction opens it, so that many processes can share it.
type boltFile struct {
	path string
	opts Options

	lock              *flock.Lock
	wasFoundOrCreated bool // this process has already found or created the file

	infoAfterLastTransaction atomic.Pointer[os.FileInfo] // file info after the last transaction; nil if it failed
	corruptFileInfo          os.FileInfo                 // the file on which bbolt panicked
	corruptFileError         error

	revisionFiles namespaceRevisionFiles
}

func newBoltFile(dir string, opts Options) *boltFile {
	return &boltFile{path: filepath.Join(dir, stateFileName), opts: opts, revisionFiles: namespaceRevisionFiles{openFileByNamespace: map[string]namespaceRevisionFile{}}}
}

func (b *boltFile) name() string { return b.path }

func (b *boltFile) close() error {
	b.revisionFiles.close()
	if b.lock == nil {
		return nil
	}
	err := b.lock.Close()
	b.lock = nil
	return err
}

// errNoLock means that the lock file cannot be opened, as in a folder that is
// read-only.
var errNoLock = errors.New("the lock file cannot be opened")

// acquireLock waits for shield's lock. bbolt polls its own lock only every 50 ms; while shield's lock is
// held, bbolt's is free.
func (b *boltFile) acquireLock() error {
	if b.lock == nil {
		l, err := flock.New(filepath.Join(filepath.Dir(b.path), stateLockFileName))
		if err != nil {
			return &Error{Kind: ErrUnwritable, Path: b.path, Err: fmt.Errorf("%w: %w", errNoLock, err)}
		}
		b.lock = l
	}
	if err := b.lock.Lock(context.Background(), b.opts.MaxFileLockWait); err != nil {
		return b.lockError(err)
	}
	return nil
}

// lockError returns the error for a lock that could not be taken.
func (b *boltFile) lockError(err error) error {
	if errors.As(err, new(*flock.HeldError)) {
		return &Error{Kind: ErrStateFileLocked, Path: b.path, Err: err}
	}
	return &Error{Kind: ErrUnwritable, Path: b.path, Err: err}
}

func (b *boltFile) releaseLock() error { return b.lock.Unlock() }

// update opens the file, runs fn and commits. The caller holds the lock.
func (b *boltFile) update(_ []prefetchKey, fn func(backendTransaction) error) error {
	return b.withDB(false, func(db *bolt.DB) error {
		return db.Update(func(btx *bolt.Tx) error { return b.runTransaction(btx, fn) })
	})
}

// runReadOnly opens the file read-only and runs fn. bbolt's own lock keeps writers out.
func (b *boltFile) runReadOnly(_ []prefetchKey, fn func(backendTransaction) error) error {
	return b.withDB(true, func(db *bolt.DB) error {
		return db.View(func(btx *bolt.Tx) error { return b.runTransaction(btx, fn) })
	})
}

func (b *boltFile) runTransaction(btx *bolt.Tx, fn func(backendTransaction) error) error {
	for _, at := range [...]bucketPath{limitsBucket, cacheBucket} {
		if btx.Bucket([]byte(at.namespaceName)) == nil {
			return &Error{Kind: ErrCorrupt, Path: b.path, Err: errors.New("the record of rate limit and budget is missing")}
		}
	}
	return fn(boltTransaction{btx, b})
}

// withDB opens the file and runs do on it.
func (b *boltFile) withDB(readOnly bool, do func(*bolt.DB) error) (err error) {
	if err := b.ensureExists(); err != nil {
		return err
	}
	var file *os.File
	defer func() {
		// bbolt panics on corrupt pages, and leaves the file mapped and locked. It cannot be unmapped,
		// so the same file is not tried again.
		if recover() != nil {
			err = &Error{Kind: ErrCorrupt, Path: b.path, Err: errors.New("the database pages are inconsistent")}
			b.corruptFileInfo, _ = file.Stat()
			b.corruptFileError = err
			if ferr := flock.UnlockFile(file); ferr != nil {
				err = errors.Join(err, ferr)
			}
			file.Close()
		}
	}()
	b.infoAfterLastTransaction.Store(nil)
	db, err := b.open(readOnly, &file)
	if err != nil {
		return err
	}
	err = do(db)
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	if info, serr := file.Stat(); err == nil && serr == nil {
		b.infoAfterLastTransaction.Store(&info)
	}
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err != nil && !errors.As(err, new(*Error)) {
		err = &Error{Kind: ErrUnwritable, Path: b.path, Err: err}
	}
	return err
}

// isUnchangedSinceOwnTransaction reports whether the file is as this process's last transaction left it, so it cannot have
// been damaged since.
func (b *boltFile) isUnchangedSinceOwnTransaction() bool {
	was := b.infoAfterLastTransaction.Load()
	if was == nil {
		return false
	}
	now, err := os.Lstat(b.path)
	return err == nil && os.SameFile(*was, now) && now.Size() == (*was).Size() && now.Mode() == (*was).Mode() && now.ModTime().Equal((*was).ModTime())
}

func (b *boltFile) now() clockReading {
	at := clockReading{wallTime: b.opts.Clock()}
	if b.opts.BootIDAndUptime != nil {
		at.bootID, at.uptime, at.uptimeKnown = b.opts.BootIDAndUptime()
	}
	return at
}

// A boltTransaction is one transaction of the state file: each namespace is a bucket, and each group is a
// bucket in its namespace.
type boltTransaction struct {
	*bolt.Tx
	file *boltFile
}

func (v boltTransaction) now() clockReading { return v.file.now() }

// bucket returns the database bucket at a path, or nil if there is none.
func (v boltTransaction) bucket(path bucketPath) *bolt.Bucket {
	b := v.Bucket([]byte(path.namespaceName))
	if b == nil || path.groupName == "" {
		return b
	}
	return b.Bucket([]byte(path.groupName))
}

func (v boltTransaction) get(at bucketPath, key []byte) []byte {
	if b := v.bucket(at); b != nil {
		return b.Get(key)
	}
	return nil
}

func (v boltTransaction) each(at bucketPath, fn func(key, value []byte) error) error {
	if b := v.bucket(at); b != nil {
		return b.ForEach(fn)
	}
	return nil
}

func (v boltTransaction) eachGroupValue(namespace string, key []byte, fn func(name, value []byte) error) error {
	b := v.Bucket([]byte(namespace))
	if b == nil {
		return nil
	}
	return b.ForEachBucket(func(name []byte) error { return fn(name, b.Bucket(name).Get(key)) })
}

func (v boltTransaction) put(at bucketPath, key, value []byte) error {
	b, err := v.CreateBucketIfNotExists([]byte(at.namespaceName))
	if err == nil && at.groupName != "" {
		b, err = b.CreateBucketIfNotExists([]byte(at.groupName))
	}
	switch {
	case err != nil:
		return err
	case value == nil:
		return b.Delete(key)
	}
	return b.Put(key, value)
}

func (v boltTransaction) dropBucket(at bucketPath) error {
	switch b := v.Bucket([]byte(at.namespaceName)); {
	case v.bucket(at) == nil:
		return nil
	case at.groupName == "":
		if err := v.DeleteBucket([]byte(at.namespaceName)); err != nil {
			return err
		}
		_, err := v.CreateBucket([]byte(at.namespaceName))
		return err
	default:
		return b.DeleteBucket([]byte(at.groupName))
	}
}

func (v boltTransaction) renewNamespaceRevision(namespace string) error {
	return v.file.renewNamespaceRevision(namespace)
}
