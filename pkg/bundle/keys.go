package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"
)

// TrustedPublicKeys are public keys; a bundle must be signed by one of them.
type TrustedPublicKeys []minisign.PublicKey

// ParseKeys parses public keys in minisign's text form, the line that begins with RW.
func ParseKeys(texts []string) (TrustedPublicKeys, error) {
	var keys TrustedPublicKeys
	for _, text := range texts {
		key, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func parseKey(text string) (key minisign.PublicKey, err error) {
	if isPrivateKey([]byte(text)) {
		return key, errors.New("the value is a private key, which only the signer should have; use the public key: the line of NAME.pub that begins with RW")
	}
	if err := key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return key, fmt.Errorf("%.80q is not a minisign public key; use the line of minisign.pub that begins with RW", text)
	}
	return key, nil
}

// verifiedSignerKeyID returns the ID of the key that signed a message.
func (k TrustedPublicKeys) verifiedSignerKeyID(message, signature []byte) (string, error) {
	var s minisign.Signature
	if err := s.UnmarshalText(signature); err != nil {
		return "", fmt.Errorf("%s is not a minisign signature; sign the bundle with 'shield policy bundle sign'", signatureFile)
	}
	known := false
	for _, key := range k {
		if minisign.Verify(key, message, signature) {
			return keyID(key.ID()), nil
		}
		known = known || key.ID() == s.KeyID
	}
	if known {
		return "", fmt.Errorf("the signature by key %s is invalid: the manifest was changed, or a different key with that ID signed it; download the bundle again", keyID(s.KeyID))
	}
	return "", fmt.Errorf("the bundle is signed with key %s, which is not in policy.keys or --key; add the public key if you trust its owner", keyID(s.KeyID))
}

// keyID returns a key ID as minisign writes it.
func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// A PrivateKey signs bundles. It is never printed.
type PrivateKey struct{ key minisign.PrivateKey }

// ID returns the key ID.
func (k *PrivateKey) ID() string { return keyID(k.key.ID()) }

// String returns only the key ID, so that the key is never printed.
func (k *PrivateKey) String() string { return "private key " + k.ID() }

// GoString returns String.
func (k *PrivateKey) GoString() string { return k.String() }

func (k *PrivateKey) sign(message []byte, comment string) []byte {
	r := minisign.NewReader(bytes.NewReader(message))
	_, _ = io.Copy(io.Discard, r) // reading from memory never fails
	return r.SignWithComments(k.key, comment, "signature from shield, key "+k.ID())
}

// isPrivateKey reports whether a text is a minisign private key, encrypted or not.
func isPrivateKey(text []byte) bool {
	var key minisign.PrivateKey
	return IsPrivateKeyEncrypted(text) || key.UnmarshalText(bytes.TrimSpace(text)) == nil
}

// IsPrivateKeyEncrypted reports whether the text of a private key needs a password.
func IsPrivateKeyEncrypted(keyText []byte) bool {
	return minisign.IsEncrypted(bytes.TrimSpace(keyText))
}

// ParsePrivateKey parses a minisign private key. password decrypts an encrypted key.
func ParsePrivateKey(text []byte, password string) (*PrivateKey, error) {
	text = bytes.TrimSpace(text)
	var key minisign.PrivateKey
	if IsPrivateKeyEncrypted(text) {
		var err error
		if key, err = minisign.DecryptKey(password, text); err != nil {
			return nil, errors.New("the password is wrong for the private key, or the key file is damaged; try again")
		}
	} else if err := key.UnmarshalText(text); err != nil {
		return nil, errors.New("the file is not a minisign private key; name the .key file that 'shield policy bundle keygen' wrote")
	}
	return &PrivateKey{key}, nil
}

// GenerateKey returns a new key pair in minisign's text form. With an empty password the private key
// is not encrypted.
func GenerateKey(password string) (private, public []byte, err error) {
	pub, key, err := minisign.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	if password == "" {
		private, err = key.MarshalText()
	} else {
		private, err = minisign.EncryptKey(password, key)
	}
	if err != nil {
		return nil, nil, err
	}
	public, err = pub.MarshalText()
	return append(private, '\n'), append(public, '\n'), err
}
