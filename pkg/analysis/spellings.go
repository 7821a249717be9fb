package analysis

import (
	"bytes"
	"encoding/binary"
	mathbits "math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// decodedForms returns the decoded forms of a text, readable or not: its encodings decoded, the text rotated
// (ROT13) and reversed, and its short parts joined.
func decodedForms(text string) (out []string) {
	rotated, backwards := decode.Rot13AndReversed(text)
	out = append(out, rotated, backwards)
	parts := urlPartSeparators.Replace(text)
	for _, t := range [...]string{text, parts, uppercaseBase32(parts)} {
		for _, l := range decode.Layers(t) {
			out = append(out, l.Text)
		}
	}
	for _, s := range slices.Compact([]string{text, strings.ReplaceAll(decode.Percent(text), "+", " ")}) {
		decode.DecodeUncertain(s, func(raw string) { out = append(out, raw) })
		out = append(out, joinShortParts(s))
	}
	return out
}

// uppercaseBase32 returns the words of a text that may be base32 in lower case, converted to upper case.
func uppercaseBase32(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		start, fits, small := i, true, false
		for ; i < len(text) && byteKinds[text[i]]&base64Byte != 0; i++ {
			fits, small = fits && byteKinds[text[i]]&base32Byte != 0, small || text[i] >= 'a'
		}
		if fits && small && i-start >= minBase32Bytes {
			b.WriteString(strings.ToUpper(text[start:i]))
			b.WriteByte(' ')
		}
		switch {
		case i < len(text) && text[i] == '%':
			i += max(decode.EscapeLength(text[i:], decode.Percents)-1, 0)
		case i < len(text) && text[i] == '\n' && b.Len() > 0:
			b.WriteByte('\n') // a word may continue on the next line
		}
	}
	return b.String()
}

// Kinds of bytes, as bits.
const (
	base64Byte = 1 << iota // a letter, a digit or one of + - _
	partByte
	base32Byte    // a character of base32, in upper or lower case
	separatorByte // can separate two parts
)

// byteKinds holds the kinds of each byte. A table is fast: every byte of a text is looked up.
var byteKinds = func() (kinds [256]uint8) {
	for i := range kinds {
		c := byte(i)
		add := func(kind uint8, yes bool) {
			if yes {
				kinds[i] |= kind
			}
		}
		name := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		add(base64Byte, name || strings.IndexByte("+-_", c) >= 0)
		add(partByte, name || strings.IndexByte("+/=_~!%", c) >= 0)
		add(separatorByte, strings.IndexByte(" \t.,;:|-", c) >= 0)
		add(base32Byte, (c >= 'A' || '2' <= c && c <= '7') && c != '_')
	}
	return kinds
}()

// minBase32Bytes is the minimum length in bytes of a base32 word in lower case.
const minBase32Bytes = 12

// A text in parts has at least minShortParts parts of at most maxShortPartBytes bytes, separated by single bytes.
const (
	minShortParts     = 4
	maxShortPartBytes = 7
)

// joinShortParts joins the short parts of a text, in which a secret may have been split.
func joinShortParts(text string) string {
	var b strings.Builder
	var parts []string
	end := func() {
		if len(parts) >= minShortParts {
			for _, part := range parts {
				b.WriteString(part)
			}
			b.WriteByte('\n')
		}
		parts = parts[:0]
	}
	for i := 0; i < len(text); {
		n := 0
		for i+n < len(text) && byteKinds[text[i+n]]&partByte != 0 {
			n++
		}
		if n == 0 || n > maxShortPartBytes {
			end()
		} else {
			parts = append(parts, text[i:i+n])
		}
		if i += n; i < len(text) && byteKinds[text[i]]&separatorByte == 0 {
			end()
		}
		i++
	}
	end()
	writeUnrepeated(&b, text)
	return b.String()
}

// maxCountedParts is the maximum number of parts of a text that are counted.
const maxCountedParts = 4096

// writeUnrepeated writes the short parts that occur at most twice in a text: those in which commands or URLs
// of the same form differ. Twice, because a command may be in the text as written and resolved.
func writeUnrepeated(to *strings.Builder, text string) {
	var parts []uint64
	for i := 0; i < len(text) && len(parts) < maxCountedParts; i++ {
		start, packed := i, uint64(0)
		for i < len(text) && byteKinds[text[i]]&partByte != 0 && text[i] != '=' && text[i] != '/' {
			packed = packed<<8 | uint64(text[i])
			i++
		}
		if start < i && i-start <= maxShortPartBytes {
			parts = append(parts, packed)
		}
	}
	count := partCounter{seed: rand.Uint64() | 1, slots: make([]uint64, 1<<mathbits.Len(uint(2*len(parts))))}
	for _, part := range parts {
		if slot := count.slotOf(part); *slot>>partCountShift < repeatLimit {
			*slot += 1 << partCountShift
		}
	}
	for _, part := range parts {
		slot := count.slotOf(part)
		if *slot>>partCountShift == repeatLimit {
			continue
		}
		*slot |= repeatLimit << partCountShift
		var raw [maxShortPartBytes + 1]byte
		binary.BigEndian.PutUint64(raw[:], part)
		to.Write(bytes.TrimLeft(raw[:], "\x00"))
	}
}

// A partCounter counts parts in a hash table. The random seed keeps the author of a text from choosing parts
// that collide.
type partCounter struct {
	seed  uint64
	slots []uint64 // a part with its count; the length is a power of two, and at most half of the slots are used
}

const (
	partCountShift = 8 * maxShortPartBytes
	repeatLimit    = 3 // occurrences from which on a part is dropped; a part that was written also gets this count
)

func (c *partCounter) slotOf(part uint64) *uint64 {
	high, low := mathbits.Mul64(part, c.seed)
	for at := high ^ low; ; at++ {
		slot := &c.slots[at&uint64(len(c.slots)-1)]
		if have := *slot & (1<<partCountShift - 1); have == part {
			return slot
		} else if have == 0 {
			*slot = part
			return slot
		}
	}
}
