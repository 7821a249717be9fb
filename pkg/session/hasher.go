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

// A hasher makes the hashes of values, under keys that come from that of the
// installation. It belongs to one goroutine.
type hasher struct {
	mac        hash.Hash
	sum        [sha256.Size]byte
	block      cipher.Block // which gives a piece its hash
	in, out    [aes.BlockSize]byte
	tagFactors [2]uint64 // which give a piece its tag
}

func newHasher(key [32]byte) *hasher {
	h := &hasher{mac: hmac.New(sha256.New, key[:])}
	own := h.hash("pieces of values")
	block, err := aes.NewCipher(own[:16])
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	h.block, h.tagFactors = block, [2]uint64{binary.LittleEndian.Uint64(own[16:]), binary.LittleEndian.Uint64(own[24:]) | 1}
	return h
}

// hash returns the hash of a text. It is good until the next call.
func (h *hasher) hash(text string) []byte {
	h.mac.Reset()
	_, _ = h.mac.Write([]byte(text)) // a hash does not fail
	return h.mac.Sum(h.sum[:0])
}

// pieceAt returns the pieceSize bytes of a text that begin at i.
func pieceAt(text string, i int) uint64 {
	s := text[i : i+pieceSize]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// pieceTag returns the tag of a piece, tagBits of it.
func (h *hasher) pieceTag(piece uint64) uint32 {
	high, low := mathbits.Mul64(piece^h.tagFactors[0], h.tagFactors[1])
	return uint32((high ^ low) >> (64 - tagBits))
}

// pieceHash returns the hash of a piece.
func (h *hasher) pieceHash(piece uint64) uint64 {
	binary.LittleEndian.PutUint64(h.in[:], piece)
	h.block.Encrypt(h.out[:], h.in[:])
	return binary.LittleEndian.Uint64(h.out[:])
}

// value returns what is kept of a credential.
func (h *hasher) value(text, name string) Value {
	v := Value{Length: len(text), Sum: slices.Clone(h.hash(text)[:sumSize]), Tag: h.pieceTag(pieceAt(text, 0)), Service: serviceWords(name, text)}
	for i := 0; len(text) >= minWholeValue && !keyID().MatchString(text) && i+pieceSize <= min(len(text), maxValue); i++ {
		if characterKinds(text[i:i+pieceSize]) > 1 || characterKinds(text) == 1 { // the beginnings of all keys of a service are words
			piece := pieceAt(text, i)
			tag := h.pieceTag(piece)
			v.Pieces = binary.LittleEndian.AppendUint64(append(v.Pieces, byte(tag), byte(tag>>8), byte(tag>>16)), h.pieceHash(piece))
		}
	}
	return v
}

// eachPiece calls fn with the tag and the hash of each piece that is kept.
func (v *Value) eachPiece(fn func(tag uint32, sum uint64)) {
	for kept := range slices.Chunk(v.Pieces, keptSize) {
		fn(uint32(kept[0])|uint32(kept[1])<<8|uint32(kept[2])<<16, binary.LittleEndian.Uint64(kept[tagSize:]))
	}
}
