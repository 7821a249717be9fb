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

// KeySize is the length of the key for seals, in bytes.
const KeySize = 32

// KeyFile is the name of the key file in the state folder.
const KeyFile = "seal.key"

// LoadKey reads the key for seals from the state folder dir. On first use it creates the folder, with mode 0700,
// and the key, with mode 0600. Concurrent processes all get the same key.
//
// LoadKey returns an error for a key that other users could have read or replaced: a key that is not a regular
// file of 32 bytes, has several hard links, belongs to a user other than this one and root or is accessible to
// group or others, and any key in a folder that they can write to.
func LoadKey(dir string) (key [KeySize]byte, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return key, fmt.Errorf("create state folder: %w", err)
	}
	if err := owner.CheckFolderOwnerAndMode(dir); err != nil {
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

// HasKey reports whether something exists at the path of the key.
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

// createKey creates the key file atomically: no process reads a part of it, and of two concurrent processes
// one wins.
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
	// This file system has no hard links. Until the direct write is complete, readKey of another process
	// waits.
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
		_ = os.Remove(path) // return the first error
	}
	return err
}

// How often, and at what interval, readKey retries while another process completes the file.
const (
	maxSealKeyReadAttempts = 50
	keyRetryInterval       = 10 * time.Millisecond
)

func readKey(path string) (key [KeySize]byte, err error) {
	for try := 1; ; try++ {
		n, err := readKeyFileOnce(path, &key)
		switch {
		case errors.As(err, new(multipleHardLinksError)) && try < maxSealKeyReadAttempts: // createKey of another process is about to remove the second name
		case err != nil:
			return [KeySize]byte{}, err
		case n == KeySize && key == [KeySize]byte{}:
			return key, errors.New("the key consists of zeros only; delete the file, and shield creates a new key")
		case n == KeySize:
			return key, nil
		case n > KeySize || try == maxSealKeyReadAttempts:
			return [KeySize]byte{}, fmt.Errorf("the file is not %d bytes long; delete the file, and shield creates a new key", KeySize)
		}
		time.Sleep(keyRetryInterval)
	}
}

// A multipleHardLinksError reports a key file with more than one hard link.
type multipleHardLinksError struct{ error }

// readKeyFileOnce reads the file once and returns its length, at most one byte more than a key has. It checks the
// opened file, not the path.
func readKeyFileOnce(path string, key *[KeySize]byte) (int, error) {
	f, err := owner.OpenNoFollow(path)
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
	if err := owner.CheckOwnerAndDeniedModeBits(info, 0o077); err != nil {
		return 0, err
	}
	if err := owner.CheckSingleLink(info); err != nil {
		return 0, multipleHardLinksError{err}
	}
	var buf [KeySize + 1]byte
	n, err := io.ReadFull(f, buf[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, err
	}
	copy(key[:], buf[:])
	return n, nil
}
