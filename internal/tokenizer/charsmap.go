package tokenizer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxCharsmapBytes is the size of a charsmap in bytes. SentencePiece's own have up to
// 320 KiB.
const maxCharsmapBytes = 4 << 20

// A charsmap is SentencePiece's table of texts to replace. Its double-array trie maps each text to be replaced
// to the offset of its replacement in replacementTexts.
type charsmap struct {
	trie             []uint32
	replacementTexts []byte // the replacement texts, each terminated by a NUL byte
}

func parseCharsmap(raw []byte) (*charsmap, error) {
	if len(raw) < 4 || len(raw) > maxCharsmapBytes {
		return nil, errors.New("the charsmap has an impossible size")
	}
	n := binary.LittleEndian.Uint32(raw)
	if n == 0 || n%4 != 0 || uint64(n) > uint64(len(raw)-4) {
		return nil, errors.New("the charsmap is truncated")
	}
	m := &charsmap{trie: make([]uint32, n/4), replacementTexts: raw[4+n:]}
	for i := range m.trie {
		m.trie[i] = binary.LittleEndian.Uint32(raw[4+4*i:])
	}
	return m, nil
}

// normalize replaces text as HuggingFace's implementation does. A grapheme cluster of up to five
// bytes becomes the replacement of its shortest prefix in the table, and the rest of the cluster is
// lost. Other text is replaced character by character.
func (m *charsmap) normalize(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	state := -1
	for text != "" && b.Len() <= maxUnnormalizedTextBytes {
		// Of ASCII, only CR LF is a cluster of two.
		if text[0] < utf8.RuneSelf && (len(text) == 1 || text[1] < utf8.RuneSelf && text[0] != '\r') {
			m.writeReplaced(&b, text[:1])
			text, state = text[1:], -1
			continue
		}
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		if len(cluster) < 6 {
			if by, ok := m.lookup(cluster); ok {
				b.Write(by)
				continue
			}
		}
		for cluster != "" && b.Len() <= maxUnnormalizedTextBytes {
			_, n := utf8.DecodeRuneInString(cluster)
			m.writeReplaced(&b, cluster[:n])
			cluster = cluster[n:]
		}
	}
	return b.String()
}

func (m *charsmap) writeReplaced(b *strings.Builder, char string) {
	if by, ok := m.lookup(char); ok {
		b.Write(by)
	} else {
		b.WriteString(char)
	}
}

// lookup returns the replacement of the shortest prefix of key that is in the double-array trie. A
// unit of the trie holds a label in its lowest byte, whether a value follows in bit 8, and the
// offset of its child units in the bits above bit 8. A unit with the highest bit set is a value.
func (m *charsmap) lookup(key string) ([]byte, bool) {
	unit, at := m.trie[0], uint32(0)
	for i := 0; i < len(key); i++ {
		at ^= doubleArrayTrieUnitOffset(unit) ^ uint32(key[i])
		if key[i] == 0 || int(at) >= len(m.trie) {
			return nil, false
		}
		if unit = m.trie[at]; unit&(1<<31|0xff) != uint32(key[i]) {
			return nil, false
		}
		if unit>>8&1 == 1 {
			value := at ^ doubleArrayTrieUnitOffset(unit)
			if int(value) >= len(m.trie) {
				return nil, false
			}
			start := m.trie[value] &^ (1 << 31)
			if int(start) >= len(m.replacementTexts) {
				return nil, false
			}
			by, _, _ := bytes.Cut(m.replacementTexts[start:], []byte{0})
			return by, utf8.Valid(by)
		}
	}
	return nil, false
}

func doubleArrayTrieUnitOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
