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

// deobfuscatedTexts returns the decoded forms of a text, readable or not: its encodings decoded, the text rotated
// (ROT13) and reversed, and its short parts joined.
func deobfuscatedTexts(text string) (out []string) {
	rotated, backwards := decode.Rot13AndReversed(text)
	out = append(out, rotated, backwards)
	parts := urlPartSeparators.Replace(text)
	for _, t := range [...]string{text, parts, extractUppercasedBase32Words(parts)} {
		for _, l := range decode.Layers(t) {
			out = append(out, l.Text)
		}
	}
	for _, s := range slices.Compact([]string{text, strings.ReplaceAll(decode.DecodePercentEscapes(text), "+", " ")}) {
		decode.DecodeAmbiguousEncodings(s, func(raw string) { out = append(out, raw) })
		out = append(out, joinSplitSecretParts(s))
	}
	return out
}

// extractUppercasedBase32Words returns the words of a text that may be base32 in lower case, converted to upper case.
func extractUppercasedBase32Words(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		start, fits, small := i, true, false
		for ; i < len(text) && byteKindMasks[text[i]]&byteKindBase64 != 0; i++ {
			fits, small = fits && byteKindMasks[text[i]]&byteKindBase32 != 0, small || text[i] >= 'a'
		}
		if fits && small && i-start >= minLowercaseBase32Bytes {
			b.WriteString(strings.ToUpper(text[start:i]))
			b.WriteByte(' ')
		}
		switch {
		case i < len(text) && text[i] == '%':
			i += max(decode.EscapeLength(text[i:], decode.PercentEscapes)-1, 0)
		case i < len(text) && text[i] == '\n' && b.Len() > 0:
			b.WriteByte('\n') // a word may continue on the next line
		}
	}
	return b.String()
}

// Kinds of bytes, as bits.
const (
	byteKindBase64 = 1 << iota // a letter, a digit or one of + - _
	byteKindSecretCharacter
	byteKindBase32               // a character of base32, in upper or lower case
	byteKindSplitSecretSeparator // can separate two parts
)

// byteKindMasks holds the kinds of each byte. A table is fast: every byte of a text is looked up.
var byteKindMasks = func() (kinds [256]uint8) {
	for i := range kinds {
		c := byte(i)
		add := func(kind uint8, yes bool) {
			if yes {
				kinds[i] |= kind
			}
		}
		name := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		add(byteKindBase64, name || strings.IndexByte("+-_", c) >= 0)
		add(byteKindSecretCharacter, name || strings.IndexByte("+/=_~!%", c) >= 0)
		add(byteKindSplitSecretSeparator, strings.IndexByte(" \t.,;:|-", c) >= 0)
		add(byteKindBase32, (c >= 'A' || '2' <= c && c <= '7') && c != '_')
	}
	return kinds
}()

// minLowercaseBase32Bytes is the minimum length in bytes of a base32 word in lower case.
const minLowercaseBase32Bytes = 12

// A text in parts has at least minSplitSecretParts parts of at most maxSplitSecretPartBytes bytes, separated by single bytes.
const (
	minSplitSecretParts     = 4
	maxSplitSecretPartBytes = 7
)

// joinSplitSecretParts joins the short parts of a text, in which a secret may have been split.
func joinSplitSecretParts(text string) string {
	var b strings.Builder
	var parts []string
	end := func() {
		if len(parts) >= minSplitSecretParts {
			for _, part := range parts {
				b.WriteString(part)
			}
			b.WriteByte('\n')
		}
		parts = parts[:0]
	}
	for i := 0; i < len(text); {
		n := 0
		for i+n < len(text) && byteKindMasks[text[i+n]]&byteKindSecretCharacter != 0 {
			n++
		}
		if n == 0 || n > maxSplitSecretPartBytes {
			end()
		} else {
			parts = append(parts, text[i:i+n])
		}
		if i += n; i < len(text) && byteKindMasks[text[i]]&byteKindSplitSecretSeparator == 0 {
			end()
		}
		i++
	}
	end()
	writePartsOccurringAtMostTwice(&b, text)
	return b.String()
}

// maxCountedSplitSecretParts is the maximum number of parts of a text that are counted.
const maxCountedSplitSecretParts = 4096

// writePartsOccurringAtMostTwice writes the short parts of a text that occur at most twice, because parts
// that occur more often do not distinguish commands or URLs of the same form. Two occurrences are
// allowed because the text may contain a command both as written and as resolved.
func writePartsOccurringAtMostTwice(to *strings.Builder, text string) {
	var parts []uint64
	for i := 0; i < len(text) && len(parts) < maxCountedSplitSecretParts; i++ {
		start, packed := i, uint64(0)
		for i < len(text) && byteKindMasks[text[i]]&byteKindSecretCharacter != 0 && text[i] != '=' && text[i] != '/' {
			packed = packed<<8 | uint64(text[i])
			i++
		}
		if start < i && i-start <= maxSplitSecretPartBytes {
			parts = append(parts, packed)
		}
	}
	count := splitSecretPartCounter{seed: rand.Uint64() | 1, hashTableSlots: make([]uint64, 1<<mathbits.Len(uint(2*len(parts))))}
	for _, part := range parts {
		if slot := count.findOrAddPartSlot(part); *slot>>secretPartCountShift < minOmittedSplitPartCount {
			*slot += 1 << secretPartCountShift
		}
	}
	for _, part := range parts {
		slot := count.findOrAddPartSlot(part)
		if *slot>>secretPartCountShift == minOmittedSplitPartCount {
			continue
		}
		*slot |= minOmittedSplitPartCount << secretPartCountShift
		var raw [maxSplitSecretPartBytes + 1]byte
		binary.BigEndian.PutUint64(raw[:], part)
		to.Write(bytes.TrimLeft(raw[:], "\x00"))
	}
}

// A splitSecretPartCounter counts parts in a hash table. The random seed keeps the author of a text from choosing parts
// that collide.
type splitSecretPartCounter struct {
	seed           uint64
	hashTableSlots []uint64 // each: a part of the text with its count, or 0; a power of two of slots, at most half of them used
}

const (
	secretPartCountShift     = 8 * maxSplitSecretPartBytes
	minOmittedSplitPartCount = 3 // a part with this count is not written: it occurs at least 3 times, or was already written to the output
)

func (c *splitSecretPartCounter) findOrAddPartSlot(part uint64) *uint64 {
	high, low := mathbits.Mul64(part, c.seed)
	for at := high ^ low; ; at++ {
		slot := &c.hashTableSlots[at&uint64(len(c.hashTableSlots)-1)]
		if have := *slot & (1<<secretPartCountShift - 1); have == part {
			return slot
		} else if have == 0 {
			*slot = part
			return slot
		}
	}
}
