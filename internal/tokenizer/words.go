package tokenizer

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// A packedVocab is the vocabulary of a WordPiece model in two strings that are used without
// parsing: a hash table with open addressing, and the entries at the offsets in the table. An entry
// is four bytes with the token's ID and the length of its text minus 1, followed by the text.
type packedVocab struct {
	hashSlots  string // hash table of 4-byte slots, whose number is a power of two; a slot is 0 if empty, else 1 + an offset in entryBytes
	entryBytes string
}

// newPackedVocab builds the hash table and the entries of tokens. A token may occur twice, if it has the same ID
// both times.
func newPackedVocab(tokens []token) packedVocab {
	size := 1 << bits.Len(uint(4*len(tokens)))
	slots, texts := make([]byte, 4*size), make([]byte, 0, 16*len(tokens))
	for i := range tokens {
		t := &tokens[i]
		at := hashText(emptyTextHash, t.text)
		for binary.LittleEndian.Uint32(slots[4*(at&uint32(size-1)):]) != 0 {
			at++
		}
		binary.LittleEndian.PutUint32(slots[4*(at&uint32(size-1)):], uint32(len(texts)+1))
		texts = binary.LittleEndian.AppendUint32(texts, uint32(t.id)<<8|uint32(len(t.text)-1))
		texts = append(texts, t.text...)
	}
	return packedVocab{string(slots), string(texts)}
}

// findID returns the ID of the token whose text is prefix followed by text. tokenHash is the
// token's hash [hashText].
func (w *packedVocab) findID(tokenHash uint32, prefix, text string) (id int64, ok bool) {
	mask := uint32(len(w.hashSlots)/4 - 1)
	for {
		slot := w.hashSlots[4*(tokenHash&mask):]
		entry := uint32(slot[0]) | uint32(slot[1])<<8 | uint32(slot[2])<<16 | uint32(slot[3])<<24
		if entry == 0 {
			return 0, false
		}
		id, found := w.readEntry(int(entry - 1))
		if len(found) == len(prefix)+len(text) && found[:len(prefix)] == prefix && found[len(prefix):] == text {
			return id, true
		}
		tokenHash++
	}
}

func (w *packedVocab) readEntry(at int) (id int64, text string) {
	e := w.entryBytes[at:]
	n := int(e[0]) + 1
	return int64(e[1]) | int64(e[2])<<8 | int64(e[3])<<16, e[4 : 4+n]
}

// allTokens yields the tokens and their ids.
func (w *packedVocab) allTokens() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for at := 0; at < len(w.entryBytes); {
			id, text := w.readEntry(at)
			if !yield(text, id) {
				return
			}
			at += 4 + len(text)
		}
	}
}

// emptyTextHash is the hash of nothing.
const emptyTextHash uint32 = 2166136261

// hashText continues the FNV-1a hash h (32 bits) with a text.
func hashText(h uint32, text string) uint32 {
	for i := range len(text) {
		h = hashByte(h, text[i])
	}
	return h
}

func hashByte(h uint32, b byte) uint32 { return (h ^ uint32(b)) * 16777619 }
