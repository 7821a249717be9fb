package main

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

// keysFolder contains the public release keys, which programs embed.
const keysFolder = "internal/genuine/keys"

// testVersion is the only version that the test key can sign.
const testVersion = "v0.0.0"

// A Signer signs the files of a release.
type Signer struct {
	key    minisign.PrivateKey
	public string // the public key, the line that begins with RW
}

// newSigner returns a signer for a minisign key file; the first line of the file password decrypts it.
func newSigner(file, password string) (*Signer, error) {
	if file == "" {
		return nil, errors.New("-key: a release is signed; name the secret key, see " + keysFolder + "/README.md")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSpace(text)
	var key minisign.PrivateKey
	if minisign.IsEncrypted(text) {
		if password == "" {
			return nil, fmt.Errorf("%s needs a password: name a file that has it with -password-file", file)
		}
		secret, err := os.ReadFile(password)
		if err != nil {
			return nil, err
		}
		line, _, _ := strings.Cut(string(secret), "\n")
		if key, err = minisign.DecryptKey(line, text); err != nil {
			return nil, fmt.Errorf("%s: the password does not open it, or it is damaged", file)
		}
	} else if err := key.UnmarshalText(text); err != nil {
		return nil, fmt.Errorf("%s: not a secret key of minisign", file)
	}
	return signerOf(key), nil
}

// testSigner returns a signer with a publicly known key, whose signatures prove nothing.
func testSigner() (*Signer, error) {
	_, key, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("a test of releases"), ed25519.SeedSize)))
	return signerOf(key), err
}

func signerOf(key minisign.PrivateKey) *Signer {
	return &Signer{key, key.Public().(minisign.PublicKey).String()}
}

// committed returns an error if the public key is not in the source, since programs could not verify
// the signatures.
func (s *Signer) committed(source Source) error {
	files, err := source.glob(nil, keysFolder+"/*.pub", "")
	if err != nil {
		return err
	}
	for _, f := range files {
		var key minisign.PublicKey
		if err := key.UnmarshalText(bytes.TrimSpace(f.Data)); err != nil {
			return fmt.Errorf("%s/%s: not a public key of minisign", keysFolder, f.Path)
		}
		if key.Equal(s.key.Public()) {
			return nil
		}
	}
	return fmt.Errorf("the public part of the key, %s, is not in %s of the last commit: the owner adds it, see the README there", s.public, keysFolder)
}

// sign writes the signature of a release file next to it. The signed comment includes version and file
// name, so that it is invalid for another file, and no time, so that it is reproducible.
func (r *Release) sign(name string) error {
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return err
	}
	message := minisign.NewReader(bytes.NewReader(data))
	if _, err := io.Copy(io.Discard, message); err != nil {
		return err
	}
	signature := message.SignWithComments(r.signer.key, r.Name+" "+r.Source.Version+" "+name, "verify with "+r.signer.public)
	return os.WriteFile(filepath.Join(r.dir, name+".minisig"), signature, 0o644)
}

// Key is the public key, for templates.
func (r *Release) Key() string { return r.signer.public }

// examples returns an error if release.yaml still contains example values.
func (f Facts) examples() error {
	for name, fact := range map[string]string{"maintainer": f.Maintainer, "homepage": f.Homepage, "downloads": f.Downloads, "security": f.Security} {
		if fact == "" || strings.Contains(strings.ToLower(fact), "example") {
			return fmt.Errorf("release.yaml: %s is %q: the owner fills it in before a release", name, fact)
		}
	}
	return nil
}
