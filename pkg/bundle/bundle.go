// Package bundle reads and writes signed policy bundles: policies that an organisation distributes
// to many machines. A bundle is a tar archive, compressed with gzip, without folders.
//
//	manifest.json           what the bundle is, and the digest of every file
//	manifest.json.minisig   its signature, in minisign's format
//	policy.yaml             the policy
//
// A bundle can contain further files, such as cases for 'shield policy test'. [Open] verifies the
// signature before it parses the manifest, and the digest of each file before it uses the file.
package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/sorted"
)

// Limits of a bundle.
const (
	MaxArchiveBytes  = 4 << 20  // bytes, compressed
	maxUnpackedBytes = 16 << 20 // bytes
	maxFiles         = 64       // in addition to the manifest and its signature
	maxFileNameBytes = 80       // bytes
	maxManifestBytes = 64 << 10 // maximum size of the manifest, and of its signature, in bytes
)

// Names of the files that every bundle has.
const (
	manifestFile  = "manifest.json"
	signatureFile = manifestFile + ".minisig"
	PolicyFile    = "policy.yaml"
)

// ErrUnsigned is the error for a bundle without a signature.
var ErrUnsigned = errors.New("the bundle has no signature; run 'shield policy bundle sign' on it")

// A Manifest describes a bundle.
type Manifest struct {
	Format           int               `json:"shield_policy_bundle"` // 1
	Name             string            `json:"name"`                 // letters, digits, '_', '-' and '.'
	Version          int64             `json:"version"`              // starts at 1; must increase
	Expires          time.Time         `json:"expires"`
	DigestByFileName map[string]string `json:"files"` // file name to "sha256:" and hex digits
}

// A Bundle is a policy bundle whose archive has been read: its manifest and the files that the manifest lists.
type Bundle struct {
	Manifest
	ManifestDigest string // digest of the manifest: "sha256:" and hex; does not depend on how the archive is packed
	SigningKeyID   string // ID of the signing key, in hex as in minisign; "" if the signature was not checked
	files          map[string][]byte
}

// Policy returns the content of the policy file.
func (b *Bundle) Policy() []byte { return b.files[PolicyFile] }

// String returns name and version.
func (b *Bundle) String() string { return fmt.Sprintf("%s version %d", b.Name, b.Version) }

// Open returns the bundle in an archive that one of the keys has signed. It does not check the expiry:
// see [Bundle.CheckExpiry].
func Open(archive []byte, keys TrustedPublicKeys) (*Bundle, error) {
	files, err := unpackFiles(archive)
	if err != nil {
		return nil, err
	}
	manifest, signature := files[manifestFile], files[signatureFile]
	switch {
	case manifest == nil:
		return nil, errors.New(manifestFile + " is missing, so this is not a policy bundle; make one with 'shield policy bundle build'")
	case signature == nil:
		return nil, ErrUnsigned
	}
	signer, err := keys.verifiedSignerKeyID(manifest, signature)
	if err != nil {
		return nil, err
	}
	b, err := newBundle(files)
	if err != nil {
		return nil, err
	}
	b.SigningKeyID = signer
	return b, nil
}

// newBundle returns a bundle that consists of the given files. It checks their digests against the
// manifest, but not the signature.
func newBundle(files map[string][]byte) (*Bundle, error) {
	manifest := files[manifestFile]
	b := &Bundle{ManifestDigest: sha256Digest(manifest), files: maps.Clone(files)}
	delete(b.files, manifestFile)
	delete(b.files, signatureFile)
	if err := json.Unmarshal(manifest, &b.Manifest, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if err := b.Manifest.validateFields(); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	for _, name := range sorted.Keys(b.files) {
		switch want, listed := b.DigestByFileName[name]; {
		case !listed:
			return nil, fmt.Errorf("the bundle contains %s, which is not in the manifest; ask its publisher for a new bundle", name)
		case sha256Digest(b.files[name]) != want:
			return nil, fmt.Errorf("%s is not the file that was signed: the digests differ; fetch it again, or ask its publisher", name)
		}
	}
	for _, name := range sorted.Keys(b.DigestByFileName) {
		if _, there := b.files[name]; !there {
			return nil, fmt.Errorf("the manifest lists %s, which is not in the bundle; download it again", name)
		}
	}
	return b, nil
}

// validateFields returns an error for an invalid manifest; it does not check digests.
func (m *Manifest) validateFields() error {
	switch {
	case m.Format != 1:
		return fmt.Errorf("the bundle has format %d, and this shield reads format 1; upgrade shield, or ask the publisher for format 1", m.Format)
	case checkPortableFileName(m.Name) != nil:
		return fmt.Errorf("name: %w", checkPortableFileName(m.Name))
	case m.Version < 1:
		return fmt.Errorf("the bundle's version is %d; use 1 or more", m.Version)
	case m.Expires.IsZero():
		return errors.New("the expiry date is missing; build the bundle with --expires DATE")
	case len(m.DigestByFileName) > maxFiles:
		return fmt.Errorf("the bundle's manifest lists more than %d files; use fewer", maxFiles)
	case m.DigestByFileName[PolicyFile] == "":
		return errors.New(PolicyFile + " is missing")
	}
	return nil
}

// checkPortableFileName returns an error for a name that is not a plain file name on every system.
func checkPortableFileName(name string) error {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.')
	}
	if name == "" || len(name) > maxFileNameBytes || strings.ContainsFunc(name, odd) || name[0] == '.' || name[0] == '-' {
		return fmt.Errorf("%.80q is not a valid file name; use up to %d letters, digits, '_', '-' and '.', and no folder", name, maxFileNameBytes)
	}
	return nil
}

// CheckExpiry reports whether the bundle has expired at the time now. An expired bundle can be used
// for the duration grace after its expiry; after that, CheckExpiry returns an error.
func (b *Bundle) CheckExpiry(now time.Time, grace time.Duration) (expired bool, err error) {
	if now.Before(b.Expires) {
		return false, nil
	}
	if end := b.Expires.Add(grace); !now.Before(end) {
		return true, &ExpiredError{b.String(), b.Expires}
	}
	return true, nil
}

// An ExpiredError is the error for a bundle that expired more than its grace period ago.
type ExpiredError struct {
	BundleNameAndVersion string
	Expires              time.Time
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("%s expired on %s; get a newer one with 'shield policy bundle update'", e.BundleNameAndVersion, e.Expires.UTC().Format(time.RFC3339))
}

func sha256Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Build returns an unsigned archive of files. It fills in the manifest's digests; the same files give
// the same bytes.
func Build(m Manifest, files map[string][]byte) ([]byte, error) {
	m.Format, m.DigestByFileName, m.Expires = 1, map[string]string{}, m.Expires.UTC().Truncate(time.Second)
	for name, data := range files {
		if err := checkPortableFileName(name); err != nil {
			return nil, err
		}
		if strings.EqualFold(name, manifestFile) || strings.EqualFold(name, signatureFile) {
			return nil, fmt.Errorf("%s is written by shield; remove it from the folder", name)
		}
		if isPrivateKey(data) {
			return nil, fmt.Errorf("%s is a private key, and everyone can read a bundle; keep the key in another folder", name)
		}
		m.DigestByFileName[name] = sha256Digest(data)
	}
	if err := m.validateFields(); err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(m, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	all := maps.Clone(files)
	all[manifestFile] = append(manifest, '\n')
	return packFiles(all)
}

// Sign returns the archive with its manifest signed. An existing signature is replaced.
func Sign(archive []byte, key *PrivateKey) ([]byte, *Bundle, error) {
	files, err := unpackFiles(archive)
	if err != nil {
		return nil, nil, err
	}
	if files[manifestFile] == nil {
		return nil, nil, errors.New(manifestFile + " is missing; make a bundle with 'shield policy bundle build'")
	}
	b, err := newBundle(files)
	if err != nil {
		return nil, nil, err
	}
	b.SigningKeyID = key.ID()
	comment := fmt.Sprintf("shield policy bundle %s version %d expires %s", b.Name, b.Version, b.Expires.UTC().Format(time.RFC3339))
	files[signatureFile] = key.sign(files[manifestFile], comment)
	signed, err := packFiles(files)
	return signed, b, err
}
