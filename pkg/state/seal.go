package state

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// KeySize is the length of the key that machines with a shared store have in
// common, in bytes.
const KeySize = 32

// A sealer makes what a shared store is given: names that say nothing, and values
// that only who has the key can read, write, or move under another name.
type sealer struct{ names, values []byte }

func newSealer(key [KeySize]byte) sealer {
	return sealer{derive(key[:], "names"), derive(key[:], "values")}
}

func derive(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		_, _ = mac.Write(order.AppendUint32(nil, uint32(len(part)))) // a hash does not fail
		_, _ = mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// tenant names all that is kept under the key.
func (s sealer) tenant() string { return hex.EncodeToString(derive(s.names, "tenant")[:8]) }

// hash returns the name of the hash that holds a place. Its braces have a cluster
// keep all of a tenant together.
func (s sealer) hash(at place) string {
	return "shield:{" + s.tenant() + "}:" + hex.EncodeToString(derive(s.names, "place", at.shelf, at.group)[:12])
}

// field returns the name of a key in the hash of a place.
func (s sealer) field(at place, key []byte) string {
	return string(derive(s.names, "key", at.shelf, at.group, string(key))[:12])
}

// aead encrypts what is in one field: each has a key of its own.
func (s sealer) aead(hash, field string) cipher.AEAD {
	block, err := aes.NewCipher(derive(s.values, hash, field))
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return gcm
}

// seal returns the field and what is kept in it.
func (s sealer) seal(at place, key, value []byte) (field, sealed string) {
	field = s.field(at, key)
	plain := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
	return field, string(s.aead(s.hash(at), field).Seal(nil, nil, append(plain, value...), nil))
}

var errSealed = errors.New("the seal of a value is wrong: it was written with another key, or moved from another record")

// open returns the key and the value that were sealed into a field.
func (s sealer) open(at place, field, sealed string) (key, value []byte, err error) {
	plain, err := s.aead(s.hash(at), field).Open(nil, nil, []byte(sealed), nil)
	if err != nil {
		return nil, nil, errSealed
	}
	n, size := binary.Uvarint(plain)
	if size <= 0 || n > uint64(len(plain)-size) {
		return nil, nil, errSealed
	}
	plain = plain[size:]
	return plain[:n:n], append([]byte{}, plain[n:]...), nil
}
