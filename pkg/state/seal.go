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

// EncryptionMasterKeySize is the length in bytes of the key that machines with a shared store have in common.
const EncryptionMasterKeySize = 32

// A sealer encrypts data for a shared store: opaque names, and values that only the key's owner can
// read, write, or move to another name.
type sealer struct{ nameHMACKey, valueKey []byte }

func newSealer(key [EncryptionMasterKeySize]byte) sealer {
	return sealer{deriveKey(key[:], "names"), deriveKey(key[:], "values")}
}

func deriveKey(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		_, _ = mac.Write(byteOrder.AppendUint32(nil, uint32(len(part)))) // writing to a hash does not fail
		_, _ = mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// redisNamePrefix returns the part that all Redis names under one encryption master key have in common: 16
// hexadecimal digits derived from the key.
func (s sealer) redisNamePrefix() string {
	return hex.EncodeToString(deriveKey(s.nameHMACKey, "tenant")[:8])
}

// hashName returns the name of the Redis hash for a bucket. The braces in the name make a cluster
// store all hashes of a tenant on one node.
func (s sealer) hashName(at bucketPath) string {
	return "shield:{" + s.redisNamePrefix() + "}:" + hex.EncodeToString(deriveKey(s.nameHMACKey, "place", at.namespaceName, at.groupName)[:12])
}

// fieldName returns the field name of a key in the Redis hash of a bucket.
func (s sealer) fieldName(at bucketPath, key []byte) string {
	return string(deriveKey(s.nameHMACKey, "key", at.namespaceName, at.groupName, string(key))[:12])
}

// fieldCipher returns the cipher for one field, which has a key of its own.
func (s sealer) fieldCipher(hash, field string) cipher.AEAD {
	block, err := aes.NewCipher(deriveKey(s.valueKey, hash, field))
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
func (s sealer) seal(at bucketPath, key, value []byte) (field, sealed string) {
	field = s.fieldName(at, key)
	plain := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
	return field, string(s.fieldCipher(s.hashName(at), field).Seal(nil, nil, append(plain, value...), nil))
}

var errWrongSeal = errors.New("the seal of a value is wrong: it was written with another key, or moved from another record")

// open decrypts the key and value of a field.
func (s sealer) open(at bucketPath, field, sealed string) (key, value []byte, err error) {
	plain, err := s.fieldCipher(s.hashName(at), field).Open(nil, nil, []byte(sealed), nil)
	if err != nil {
		return nil, nil, errWrongSeal
	}
	n, size := binary.Uvarint(plain)
	if size <= 0 || n > uint64(len(plain)-size) {
		return nil, nil, errWrongSeal
	}
	plain = plain[size:]
	return plain[:n:n], append([]byte{}, plain[n:]...), nil
}
