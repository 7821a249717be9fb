package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A storeIDAndTxCount identifies the state of a shared store: a random ID and the number of its
// transactions. Each machine keeps the last one that it saw, to detect that the store was emptied,
// replaced or restored from a backup.
type storeIDAndTxCount struct {
	storeID          [16]byte // random ID, set when the store was first used
	transactionCount uint64
}

const storeIDAndTxCountBytes = 16 + 8

// repairTxCountStep is the number that a repair adds to the store's transaction count. It exceeds
// any difference between the counts that two machines have seen, so that one repair is enough for
// all.
const repairTxCountStep = 1 << 32

func newStoreIDAndTxCount() (e storeIDAndTxCount) {
	_, _ = rand.Read(e.storeID[:]) // never fails
	return e
}

func (e storeIDAndTxCount) encode() []byte {
	return byteOrder.AppendUint64(append(make([]byte, 0, storeIDAndTxCountBytes), e.storeID[:]...), e.transactionCount)
}

func decodeStoreIDAndTxCount(b []byte) (e storeIDAndTxCount, err error) {
	if len(b) < storeIDAndTxCountBytes {
		return e, errors.New("its transaction counter is missing")
	}
	copy(e.storeID[:], b)
	e.transactionCount = byteOrder.Uint64(b[16:])
	return e, nil
}

// checkFollows returns an error if the shared store was replaced or rolled back since this machine saw it last:
// the store ID differs or the transaction count is lower. e is the state of the store now, and old is the state
// that this machine saw last.
func (e storeIDAndTxCount) checkFollows(old storeIDAndTxCount) error {
	switch {
	case e.storeID != old.storeID:
		return errors.New("the store is not the one that this machine used before: the store was emptied or replaced")
	case e.transactionCount < old.transactionCount:
		return fmt.Errorf("the store was rolled back by %d transactions", old.transactionCount-e.transactionCount)
	}
	return nil
}

// A storeIDAndTxCountFile is the file in which a machine keeps the ID and the transaction count of the
// shared store, as the machine saw them last.
type storeIDAndTxCountFile struct{ path string }

// read returns the store ID and the transaction count that this machine saw last; seen is false if the file does
// not exist.
func (m storeIDAndTxCountFile) read() (e storeIDAndTxCount, seen bool, err error) {
	f, err := os.OpenFile(m.path, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, os.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, &Error{Kind: ErrUnwritable, Path: m.path, Err: err}
	}
	defer f.Close()
	var b [storeIDAndTxCountBytes]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return e, false, &Error{Kind: ErrCorrupt, Path: m.path, Err: err}
	}
	e, err = decodeStoreIDAndTxCount(b[:])
	return e, true, err
}

// write stores the ID and the transaction count of the shared store. The first write is synced to disk, so that
// a crash leaves no empty file.
func (m storeIDAndTxCountFile) write(e storeIDAndTxCount, isFirstWrite bool) error {
	f, err := os.OpenFile(m.path, os.O_WRONLY|os.O_CREATE|noFollow, 0o600)
	if err == nil {
		_, err = f.WriteAt(e.encode(), 0)
		if isFirstWrite && err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err == nil && isFirstWrite {
		err = syncFolder(filepath.Dir(m.path))
	}
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: m.path, Err: err}
	}
	return nil
}
