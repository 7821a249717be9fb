package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A Checkpoint is a log's last entry at the time of signing, with a signature. Stored where the
// log's writers cannot change it, it later proves whether the log up to that entry is unchanged.
type Checkpoint struct {
	ChainHead
	Time            time.Time `json:"time"`
	PublicKeyBase64 string    `json:"key"`       // the signer's public key, in base64; tells which key verifies the signature
	Signature       string    `json:"signature"` // the signature, in base64
}

// ErrBadSignature is the error for a checkpoint that the key did not sign.
var ErrBadSignature = errors.New("the checkpoint's signature is wrong for this key: use the public key of the signer, or a copy of the checkpoint from before it was changed")

// signedBytes returns the signed bytes. Their first line keeps the signature from being valid for other data.
func (c *Checkpoint) signedBytes() []byte {
	return fmt.Appendf(nil, "shield audit checkpoint v1\n%d\n%s\n%s\n%s\n", c.Seq, c.Hash, c.Time.UTC().Format(time.RFC3339Nano), c.PublicKeyBase64)
}

// Sign returns a signed checkpoint of a head.
func Sign(key ed25519.PrivateKey, head ChainHead, now time.Time) Checkpoint {
	c := Checkpoint{ChainHead: head, Time: now.UTC().Truncate(time.Millisecond)}
	c.PublicKeyBase64 = base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	c.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, c.signedBytes()))
	return c
}

// VerifySignature returns [ErrBadSignature] unless the private key for key signed the checkpoint. It does not
// compare it with a log: pass the checkpoint's ChainHead to [Verify].
func (c *Checkpoint) VerifySignature(key ed25519.PublicKey) error {
	sig, err := base64.StdEncoding.DecodeString(c.Signature)
	if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, c.signedBytes(), sig) {
		return ErrBadSignature
	}
	return nil
}

// ParseCheckpoint parses a checkpoint. It does not check the signature.
func ParseCheckpoint(data []byte) (Checkpoint, error) {
	var c Checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	return c, nil
}

const maxKeyFileBytes = 4 << 10 // maximum size of a key file or a checkpoint file, in bytes

// LoadCheckpoint reads a checkpoint from a file. It does not check the signature.
func LoadCheckpoint(path string) (Checkpoint, error) {
	f, err := os.Open(path)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFileBytes))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	c, err := ParseCheckpoint(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, err
}

// GenerateSigningKey writes a new signing key to path (mode 0600), and its public key to path.pub. It fails
// if path exists.
func GenerateSigningKey(path string) (ed25519.PublicKey, error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate checkpoint key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("generate checkpoint key: %w", err)
	}
	if err := writeNewKeyFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return nil, err
	}
	if der, err = x509.MarshalPKIXPublicKey(pub); err != nil {
		return nil, fmt.Errorf("generate checkpoint key: %w", err)
	}
	return pub, writeNewKeyFile(path+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// writeNewKeyFile writes a new file; it fails if the file exists.
func writeNewKeyFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("generate checkpoint key: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("generate checkpoint key: %w", err)
	}
	return nil
}

// LoadSigningKey reads a signing key. A file that other users can read is an error.
func LoadSigningKey(path string) (ed25519.PrivateKey, error) {
	der, err := loadPEM(path, "PRIVATE KEY", true)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("load checkpoint key %s: the file is not an ed25519 key; make one with 'shield audit checkpoint --generate'", path)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("load checkpoint key %s: the file is not an ed25519 key; make one with 'shield audit checkpoint --generate'", path)
	}
	return private, nil
}

// LoadPublicKey reads the public key that checkpoints are checked with.
func LoadPublicKey(path string) (ed25519.PublicKey, error) {
	der, err := loadPEM(path, "PUBLIC KEY", false)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("load checkpoint key %s: the file is not an ed25519 key; make one with 'shield audit checkpoint --generate'", path)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("load checkpoint key %s: the file is not an ed25519 key; make one with 'shield audit checkpoint --generate'", path)
	}
	return public, nil
}

func loadPEM(path, kind string, private bool) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("load checkpoint key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("load checkpoint key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("load checkpoint key %s: the path is not a regular file; name the file itself", path)
	}
	if private && othersMayRead(info) {
		return nil, fmt.Errorf("load checkpoint key %s: other users can read it (mode %v); run 'chmod 600 %q'", path, info.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFileBytes))
	if err != nil {
		return nil, fmt.Errorf("load checkpoint key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("load checkpoint key %s: the file has no %s block; name a PEM file made with 'shield audit checkpoint --generate'", path, kind)
	}
	return block.Bytes, nil
}
