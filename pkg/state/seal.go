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

// KeySize is the length in bytes of the key that machines with a shared store have in common.
const KeySize = 32

// A sealer encrypts data for a shared store: opaque names, and values that only the key's owner can
// read, write, or move to another name.
type sealer struct{ names, values []byte }

func newSealer(key [KeySize]byte) sealer {
	return sealer{derive(key[:], "names"), derive(key[:], "values")}
}

func derive(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		_, _ = mac.Write(order.AppendUint32(nil, uint32(len(part)))) // writing to a hash does not fail
		_, _ = mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// tenant returns the prefix of all names under the key.
func (s sealer) tenant() string { return hex.EncodeToString(derive(s.names, "tenant")[:8]) }

// hash returns the name of the Redis hash for a place. Its braces make a cluster store all of a tenant
// on one node.
func (s sealer) hash(at place) string {
	return "shield:{" + s.tenant() + "}:" + hex.EncodeToString(derive(s.names, "place", at.shelf, at.group)[:12])
}

// field returns the field name of a key in the Redis hash of a place.
func (s sealer) field(at place, key []byte) string {
	return string(derive(s.names, "key", at.shelf, at.group, string(key))[:12])
}

// aead returns the cipher for one field, which has a key of its own.
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

// seal returns the field name and the encrypted key and value.
func (s sealer) seal(at place, key, value []byte) (field, sealed string) {
	field = s.field(at, key)
	plain := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
	return field, string(s.aead(s.hash(at), field).Seal(nil, nil, append(plain, value...), nil))
}

var errSealed = errors.New("the seal of a value is wrong: it was written with another key, or moved from another record")

// open decrypts the key and value of a field.
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
