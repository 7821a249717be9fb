package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// An epoch identifies the state of a shared store: a random ID and the number of its transactions.
// Each machine keeps the last epoch that it saw, to detect that the store was emptied, replaced or
// restored from a backup.
type epoch struct {
	storeID      [16]byte // random ID, set when the store was first used
	transactions uint64
}

const epochSize = 16 + 8

// repairEpochStep is the number of transactions that a repair adds to the epoch. It exceeds any
// difference between the epochs of two machines, so that one repair is enough for all.
const repairEpochStep = 1 << 32

func newEpoch() (e epoch) {
	_, _ = rand.Read(e.storeID[:]) // never fails
	return e
}

func (e epoch) encode() []byte {
	return byteOrder.AppendUint64(append(make([]byte, 0, epochSize), e.storeID[:]...), e.transactions)
}

func decodeEpoch(b []byte) (e epoch, err error) {
	if len(b) < epochSize {
		return e, errors.New("its transaction counter is missing")
	}
	copy(e.storeID[:], b)
	e.transactions = byteOrder.Uint64(b[16:])
	return e, nil
}

// checkFollows returns an error if the store at epoch e cannot be a later state of the store at
// epoch old, which this machine saw last: it is another store, or was rolled back.
func (e epoch) checkFollows(old epoch) error {
	switch {
	case e.storeID != old.storeID:
		return errors.New("the store is not the one that this machine used before: the store was emptied or replaced")
	case e.transactions < old.transactions:
		return fmt.Errorf("the store was rolled back by %d transactions", old.transactions-e.transactions)
	}
	return nil
}

// An epochFile is the file in which a machine keeps the last epoch it saw.
type epochFile struct{ path string }

// read returns the last epoch seen; seen is false if there is none.
func (m epochFile) read() (e epoch, seen bool, err error) {
	f, err := os.OpenFile(m.path, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, os.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, &Error{Kind: ErrUnwritable, Path: m.path, Err: err}
	}
	defer f.Close()
	var b [epochSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return e, false, &Error{Kind: ErrCorrupt, Path: m.path, Err: err}
	}
	e, err = decodeEpoch(b[:])
	return e, true, err
}

// write stores an epoch. The first write is synced, so that a crash leaves no empty file.
func (m epochFile) write(e epoch, first bool) error {
	f, err := os.OpenFile(m.path, os.O_WRONLY|os.O_CREATE|noFollow, 0o600)
	if err == nil {
		_, err = f.WriteAt(e.encode(), 0)
		if first && err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err == nil && first {
		err = syncFolder(filepath.Dir(m.path))
	}
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: m.path, Err: err}
	}
	return nil
}
