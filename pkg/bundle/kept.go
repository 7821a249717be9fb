package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/shieldcli/shield/internal/owner"
)

// A StoredBundle is the stored last valid bundle of a source. It is used until it expires, even if the source
// cannot be reached.
type StoredBundle struct {
	Dir               string // folder of the stored bundles
	SourcePathOrURL   string
	Keys              TrustedPublicKeys
	ExpiryGracePeriod time.Duration
}

// FileNameWithoutExt returns the name, without the extension, of the file in which the bundle of this source is
// stored.
func (k *StoredBundle) FileNameWithoutExt() string {
	sum := sha256.Sum256([]byte(k.SourcePathOrURL))
	return hex.EncodeToString(sum[:12])
}

// Path returns the file of the archive.
func (k *StoredBundle) Path() string { return filepath.Join(k.Dir, k.FileNameWithoutExt()+".tar.gz") }

// Read returns the stored archive; nil if there is none.
func (k *StoredBundle) Read() ([]byte, error) {
	data, info, err := owner.ReadRegularFile(k.Path(), MaxArchiveBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return data, owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits)
}

// Load returns the stored bundle. It returns an error if the bundle is missing or invalid, or if it
// expired longer than the grace period before now.
func (k *StoredBundle) Load(now time.Time) (*Bundle, error) {
	fail := func(err error) (*Bundle, error) {
		return nil, fmt.Errorf("policy bundle %s: %w", RedactSourceURL(k.SourcePathOrURL), err)
	}
	if k.Dir == "" {
		return fail(errors.New("there is no state folder to store the bundle in; set HOME, or name one with --state"))
	}
	archive, err := k.Read()
	switch {
	case err != nil:
		return fail(err)
	case archive == nil:
		return fail(errors.New("no bundle is installed yet; download it with 'shield policy bundle update'"))
	}
	b, err := Open(archive, k.Keys)
	if err != nil {
		return fail(fmt.Errorf("the bundle in %s cannot be used: %w; download it again with 'shield policy bundle update'", k.Path(), err))
	}
	if _, err := b.CheckExpiry(now, k.ExpiryGracePeriod); err != nil {
		return fail(err)
	}
	return b, nil
}

// Write replaces the stored archive.
func (k *StoredBundle) Write(archive []byte) error {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(k.Dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(archive)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), k.Path())
}
