package approve

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A sealedFolder is a folder of small files that only this installation can have written: each begins
// with an HMAC of its name and text under a key derived from the installation's, and only this user
// can access folder and files.
type sealedFolder struct {
	dir string
	key []byte
}

// maxSealedFileBytes is the size of the largest file in a sealed folder, in bytes.
const maxSealedFileBytes = 16 << 20

// openSealedFolder opens a sealed folder in a state folder and creates it if needed.
func openSealedFolder(stateDir, name string) (*sealedFolder, error) {
	if stateDir == "" {
		return nil, errors.New("questions need a state folder; name one with --state")
	}
	key, err := verdict.LoadKey(stateDir)
	if err != nil {
		return nil, err
	}
	b := &sealedFolder{dir: filepath.Join(stateDir, name)}
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte("shield approval " + name))
	b.key = mac.Sum(nil)
	if err := os.Mkdir(b.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("create approval inbox: %w", err)
	}
	info, err := os.Lstat(b.dir)
	switch {
	case err != nil:
	case !info.IsDir():
		err = errors.New("not a folder")
	default:
		err = owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherAccessBits)
	}
	if err != nil {
		return nil, fmt.Errorf("the approval inbox %s: %w", b.dir, err)
	}
	return b, nil
}

func (b *sealedFolder) path(name string) string { return filepath.Join(b.dir, name) }

// fileHMAC returns the HMAC, in hex, of a file's name and text.
func (b *sealedFolder) fileHMAC(name string, text []byte) string {
	mac := hmac.New(sha256.New, b.key)
	fmt.Fprintf(mac, "%d %s\n", len(name), name)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

// write stores a value in a file, atomically.
func (b *sealedFolder) write(name string, value any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // escaping takes six bytes for one
	if err := enc.Encode(value); err != nil {
		return err
	}
	text := out.Bytes()
	if len(text) > maxSealedFileBytes-2*sha256.Size-1 {
		return fmt.Errorf("%s: the record has %d bytes, more than the limit of %d; delete it", name, len(text), maxSealedFileBytes-2*sha256.Size-1)
	}
	return replaceFile(b.path(name), b.fileHMAC(name, text)+"\n"+string(text), nil)
}

// replaceFile replaces a file by a text, atomically. check, unless it is nil, checks the new file
// first.
func replaceFile(path, text string, check func(path string) error) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil && check != nil {
		err = check(fresh)
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.Remove(fresh) // its error is ignored: the first error is returned
	}
	return err
}

// errForged means that a file was not written by this installation, or was
// changed.
var errForged = errors.New("another installation of shield wrote this record, so it does not count; let the agent try again")

// read reads a value stored by write. The error wraps [os.ErrNotExist] if the file is missing; a file
// that another user could have written is an error too.
func (b *sealedFolder) read(name string, value any) error {
	f, err := owner.OpenNoFollow(b.path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file; delete it", f.Name())
	}
	if err := owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherAccessBits); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSealedFileBytes+1))
	if err != nil {
		return err
	}
	seal, text, found := bytes.Cut(data, []byte("\n"))
	if !found || len(data) > maxSealedFileBytes || !equalSecrets(string(seal), b.fileHMAC(name, text)) {
		return fmt.Errorf("%s: %w", f.Name(), errForged)
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}
