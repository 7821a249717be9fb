package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	mathbits "math/bits"
	"slices"
)

// A hasher computes keyed hashes of values, with keys derived from the installation's key. It belongs
// to one goroutine.
type hasher struct {
	mac                        hash.Hash
	sumBuffer                  [sha256.Size]byte
	ngramHashCipher            cipher.Block // computes the long hash of a piece: ngramBytes bytes of a value or a text
	cipherInput, cipherOutput  [aes.BlockSize]byte
	shortHashMaskAndMultiplier [2]uint64 // XOR mask and multiplier that compute the short hash of a piece of a value
}

func newHasher(key [32]byte) *hasher {
	h := &hasher{mac: hmac.New(sha256.New, key[:])}
	own := h.hash("pieces of values")
	block, err := aes.NewCipher(own[:16])
	if err != nil {
		panic(err) // a 16-byte key is always valid
	}
	h.ngramHashCipher, h.shortHashMaskAndMultiplier = block, [2]uint64{binary.LittleEndian.Uint64(own[16:]), binary.LittleEndian.Uint64(own[24:]) | 1}
	return h
}

// hash returns the keyed hash of a text. It is valid until the next call.
func (h *hasher) hash(text string) []byte {
	h.mac.Reset()
	_, _ = h.mac.Write([]byte(text)) // writing to a hash does not fail
	return h.mac.Sum(h.sumBuffer[:0])
}

// littleEndianUint64At returns the ngramBytes bytes of a text from offset i.
func littleEndianUint64At(text string, i int) uint64 {
	s := text[i : i+ngramBytes]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// ngramShortHash returns the short hash of a piece, that is, of ngramBytes bytes of a value or a text.
// The short hash has shortHashBits bits.
func (h *hasher) ngramShortHash(piece uint64) uint32 {
	high, low := mathbits.Mul64(piece^h.shortHashMaskAndMultiplier[0], h.shortHashMaskAndMultiplier[1])
	return uint32((high ^ low) >> (64 - shortHashBits))
}

func (h *hasher) ngramHash(piece uint64) uint64 {
	binary.LittleEndian.PutUint64(h.cipherInput[:], piece)
	h.ngramHashCipher.Encrypt(h.cipherOutput[:], h.cipherInput[:])
	return binary.LittleEndian.Uint64(h.cipherOutput[:])
}

// hashSensitiveValue returns the stored form of a credential.
func (h *hasher) hashSensitiveValue(sensitiveText, valueName string) HashedSensitiveValue {
	v := HashedSensitiveValue{Length: len(sensitiveText), Hash: slices.Clone(h.hash(sensitiveText)[:valueHashBytes]), PrefixShortHash: h.ngramShortHash(littleEndianUint64At(sensitiveText, 0)), ServiceHostNameWords: serviceHostNameWords(valueName, sensitiveText)}
	for i := 0; len(sensitiveText) >= minNonCoincidentalValueBytes && !awsKeyIDPattern().MatchString(sensitiveText) && i+ngramBytes <= min(len(sensitiveText), maxValueBytes); i++ {
		if characterClassCount(sensitiveText[i:i+ngramBytes]) > 1 || characterClassCount(sensitiveText) == 1 { // keys of a service share a prefix of plain words, such as "sk_live_"
			piece := littleEndianUint64At(sensitiveText, i)
			tag := h.ngramShortHash(piece)
			v.NGramHashes = binary.LittleEndian.AppendUint64(append(v.NGramHashes, byte(tag), byte(tag>>8), byte(tag>>16)), h.ngramHash(piece))
		}
	}
	return v
}

// eachNGramHashes calls fn with the short hash (tag) and the long hash (sum) of each piece of the
// value that is stored in NGramHashes.
func (v *HashedSensitiveValue) eachNGramHashes(fn func(tag uint32, sum uint64)) {
	for kept := range slices.Chunk(v.NGramHashes, storedNGramBytes) {
		fn(uint32(kept[0])|uint32(kept[1])<<8|uint32(kept[2])<<16, binary.LittleEndian.Uint64(kept[storedShortHashBytes:]))
	}
}
