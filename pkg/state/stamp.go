package state

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// A Stamp stands for what a shelf holds: it is another one after each change, by
// whichever process.
type Stamp [16]byte

// Stamp returns the stamp of a shelf as it is now, without a lock and without
// opening the state file; false if it has none. Who takes it before a transaction
// that reads the shelf, and finds it unchanged later, knows what the shelf holds.
func (s *Store) Stamp(shelf string) (stamp Stamp, ok bool) { return s.values.medium.stamp(shelf) }

func (b *boltFile) stamp(shelf string) (stamp Stamp, ok bool) {
	f, err := os.OpenFile(b.stampPath(shelf), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return stamp, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return stamp, false
	}
	n, _ := f.ReadAt(stamp[:], 0)
	return stamp, n == len(stamp)
}

// restamp gives a shelf another stamp. The lock is held, and what changes is not
// committed yet: who sees the new stamp and reads the shelf waits for that.
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

func (b *boltFile) stampPath(shelf string) string {
	return filepath.Join(filepath.Dir(b.path), shelf+".stamp")
}
