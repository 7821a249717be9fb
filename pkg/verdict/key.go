package verdict

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/shieldcli/shield/internal/owner"
)

// KeySize is the length of the key of seals, in bytes.
const KeySize = 32

// KeyFile is the name of the key's file in the state folder.
const KeyFile = "seal.key"

// LoadKey reads the key of seals from the state folder dir. On first use it
// creates the folder, with mode 0700, and the key, with mode 0600; several
// processes may do so at once and all get the same key.
//
// A key that others could have read or replaced is refused: one that is not a
// plain file of 32 bytes, that belongs to another user or that group or others
// may read, and any in a folder where they may write.
func LoadKey(dir string) (key [KeySize]byte, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return key, fmt.Errorf("create state folder: %w", err)
	}
	if err := owner.CheckFolder(dir); err != nil {
		return key, fmt.Errorf("state folder %s: %w", dir, err)
	}
	path := filepath.Join(dir, KeyFile)
	key, err = readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createKey(dir, path); err == nil || errors.Is(err, fs.ErrExist) {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return [KeySize]byte{}, fmt.Errorf("seal key %s: %w", path, err)
	}
	return key, nil
}

// HasKey tells whether there is something in the place of the key.
func HasKey(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, KeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the seal key: %w", err)
	}
	return true, nil
}

// createKey makes a key that appears under its name all at once: no process
// reads a part of it, and of two that come at the same time one wins.
func createKey(dir, path string) error {
	var random [KeySize + 8]byte
	rand.Read(random[:]) // never fails
	temp := filepath.Join(dir, "."+KeyFile+"."+hex.EncodeToString(random[KeySize:]))
	if err := writeKey(temp, random[:KeySize]); err != nil {
		return err
	}
	err := os.Link(temp, path)
	if removed := os.Remove(temp); removed != nil && err == nil {
		err = removed
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// No hard links here. The other way leaves a moment in which the file is
	// not complete, for which readKey waits.
	return writeKey(path, random[:KeySize])
}

func writeKey(path string, key []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(key)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path) // the first error is the one to tell
	}
	return err
}

// How long readKey waits for another process to complete the file.
const (
	keyTries = 50
	keyPause = 10 * time.Millisecond
)

func readKey(path string) (key [KeySize]byte, err error) {
	for try := 1; ; try++ {
		n, err := tryKey(path, &key)
		switch {
		case errors.As(err, new(linkedError)) && try < keyTries: // createKey is about to remove the other name
		case err != nil:
			return [KeySize]byte{}, err
		case n == KeySize && key == [KeySize]byte{}:
			return key, errors.New("the key is all zeros, which is not a secret; delete the file, and shield creates a new one")
		case n == KeySize:
			return key, nil
		case n > KeySize || try == keyTries:
			return [KeySize]byte{}, fmt.Errorf("the file is not %d bytes long; delete it, and shield creates a new one", KeySize)
		}
		time.Sleep(keyPause)
	}
}

// A linkedError is the error for a key that has another name.
type linkedError struct{ error }

// tryKey reads the file once and returns how many bytes there are, at most one
// more than a key has. What is checked is what was opened.
func tryKey(path string, key *[KeySize]byte) (int, error) {
	f, err := owner.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("the key is not a regular file; delete it, and shield creates a new one")
	}
	if err := owner.Check(info, 0o077); err != nil {
		return 0, err
	}
	if err := owner.Single(info); err != nil {
		return 0, linkedError{err}
	}
	var buf [KeySize + 1]byte
	n, err := io.ReadFull(f, buf[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, err
	}
	copy(key[:], buf[:])
	return n, nil
}
