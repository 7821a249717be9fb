package analysis

import (
	"bytes"
	"encoding/ascii85"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	mathbits "math/bits"
	"math/rand/v2"
	"net/url"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// spellings returns what a text says in other spellings, readable or not: what it
// encodes, turned about, in numbers, and put together from parts.
func spellings(text string) (out []string) {
	rotated, backwards := decode.Turned(text)
	out = append(out, rotated, backwards)
	parts := apart.Replace(text)
	for _, t := range [...]string{text, parts, capitals(parts)} {
		for _, l := range decode.Layers(t) {
			out = append(out, l.Text)
		}
	}
	for _, s := range [...]string{text, queries(text)} {
		if s == "" {
			continue
		}
		for _, t := range [...]string{words(s), words(apart.Replace(s)), numbers(s), bits(s), together(s)} {
			if t != "" {
				out = append(out, t)
			}
		}
	}
	return out
}

// capitals returns the words of a text that may be base32 in small letters, in
// capitals.
func capitals(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		start, fits, small := i, true, false
		for ; i < len(text) && is[text[i]]&inBase64 != 0; i++ {
			fits, small = fits && is[text[i]]&isBase32 != 0, small || text[i] >= 'a'
		}
		if fits && small && i-start >= leastBase32 {
			b.WriteString(strings.ToUpper(text[start:i]))
			b.WriteByte(' ')
		}
		switch {
		case i+2 < len(text) && text[i] == '%' && hexadecimal(text[i+1:i+3]):
			i += 2
		case i < len(text) && text[i] == '\n' && b.Len() > 0:
			b.WriteByte('\n') // a word may go on in the next line
		}
	}
	return b.String()
}

func alphanumeric(c byte) bool { return is[c]&inName != 0 }

// The kinds of bytes that the spellings are made of.
const (
	inName   = 1 << iota // a letter or a digit
	inBase64             // or one of + - _
	inPart
	inQuery  // not one that ends a word of a query
	isBase32 // in capitals or not
	byParts  // may be between two parts
	byNumbers
	byBits
)

// is has the kinds of each byte: texts are read byte by byte, and most of what is read
// says nothing.
var is = func() (kinds [256]uint8) {
	for i := range kinds {
		c := byte(i)
		add := func(kind uint8, yes bool) {
			if yes {
				kinds[i] |= kind
			}
		}
		name := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		add(inName, name)
		add(inBase64, name || strings.IndexByte("+-_", c) >= 0)
		add(inPart, name || strings.IndexByte("+/=_~!%", c) >= 0)
		add(inQuery, c > ' ' && strings.IndexByte("?&=\"'", c) < 0)
		add(byParts, strings.IndexByte(" \t.,;:|-", c) >= 0)
		add(byNumbers, strings.IndexByte(" ,;:|-", c) >= 0)
		add(byBits, strings.IndexByte(" ,_-", c) >= 0)
		add(isBase32, (c >= 'A' || '2' <= c && c <= '7') && c != '_')
	}
	return kinds
}()

// queries returns what the values of queries in a text say.
func queries(text string) string {
	var b strings.Builder
	if !strings.ContainsAny(text, "%+") {
		return ""
	}
	for i := 0; i < len(text); i++ {
		start, escaped := i, false
		for ; i < len(text) && is[text[i]]&inQuery != 0; i++ {
			escaped = escaped || text[i] == '%' || text[i] == '+'
		}
		if !escaped {
			continue
		}
		if said, err := url.QueryUnescape(text[start:i]); err == nil {
			b.WriteString(said)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// The lengths of words that are decoded, in bytes: a short piece of a credential in
// hexadecimal looks like nothing, and the work for base58 grows with the square.
const (
	leastHex    = 8
	leastBase32 = 12
	leastDense  = 16
	mostDense   = 256
)

// words returns what the words of a text are in hexadecimal, base58 and base85.
func words(text string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		if len(word) >= leastHex && len(word)%2 == 0 && hexadecimal(word) {
			raw, _ := hex.DecodeString(word) // it is
			b.Write(raw)
			b.WriteByte('\n')
		}
		if len(word) < leastDense || len(word) > mostDense {
			continue
		}
		for _, raw := range [...]string{base58(word), base85(word, rfc1924), base85(word, nil)} {
			if raw != "" {
				b.WriteString(raw)
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

func hexadecimal(word string) bool {
	for i := range len(word) {
		if c := word[i]; !alphanumeric(c) || c|0x20 > 'f' {
			return false
		}
	}
	return true
}

// digits58 are the digits of base58, in their order.
const digits58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// base58 decodes a word, "" if it is not one that is plain text.
func base58(word string) string {
	if strings.Trim(word, digits58) != "" {
		return ""
	}
	n, base := new(big.Int), big.NewInt(int64(len(digits58)))
	for i := range len(word) {
		n.Add(n.Mul(n, base), big.NewInt(int64(strings.IndexByte(digits58, word[i]))))
	}
	return plain(n.Bytes())
}

// rfc1924 has the digits of base85 as RFC 1924 orders them, which are not those of
// Ascii85.
var rfc1924 = func() *strings.Replacer {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	var pairs []string
	for i := range digits {
		pairs = append(pairs, digits[i:i+1], string(rune('!'+i)))
	}
	return strings.NewReplacer(pairs...)
}()

// base85 decodes a word whose digits are first replaced by those of Ascii85; "" if it
// is not one that is plain text.
func base85(word string, digits *strings.Replacer) string {
	if digits != nil {
		word = digits.Replace(word)
	}
	raw := make([]byte, 4*len(word))
	n, _, err := ascii85.Decode(raw, []byte(word), true)
	if err != nil {
		return ""
	}
	return plain(raw[:n])
}

// plain returns what was decoded if it is ASCII that prints, else "".
func plain(raw []byte) string {
	for _, c := range raw {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return string(raw)
}

// The shape of a text in parts: at least so many of so many bytes, with one byte
// between two of them.
const (
	leastParts = 4
	mostPart   = 7
)

// together returns what short parts of a text make together.
func together(text string) string {
	var b strings.Builder
	var parts []string
	end := func() {
		if len(parts) >= leastParts {
			for _, part := range parts {
				b.WriteString(part)
			}
			b.WriteByte('\n')
		}
		parts = parts[:0]
	}
	for i := 0; i < len(text); {
		n := 0
		for i+n < len(text) && is[text[i+n]]&inPart != 0 {
			n++
		}
		if n == 0 || n > mostPart {
			end()
		} else {
			parts = append(parts, text[i:i+n])
		}
		if i += n; i < len(text) && is[text[i]]&byParts == 0 {
			end()
		}
		i++
	}
	end()
	unrepeated(&b, text)
	return b.String()
}

// mostParts is how many parts of a text are counted.
const mostParts = 4096

// unrepeated writes the short parts of a text that it does not repeat: what differs
// between commands or addresses of the same form. What a command says may be in
// the text twice, as it is and resolved.
func unrepeated(to *strings.Builder, text string) {
	var parts []uint64
	for i := 0; i < len(text) && len(parts) < mostParts; i++ {
		start, packed := i, uint64(0)
		for i < len(text) && is[text[i]]&inPart != 0 && text[i] != '=' && text[i] != '/' {
			packed = packed<<8 | uint64(text[i])
			i++
		}
		if start < i && i-start <= mostPart {
			parts = append(parts, packed)
		}
	}
	count := counter{seed: rand.Uint64() | 1, slots: make([]uint64, 1<<mathbits.Len(uint(2*len(parts))))}
	for _, part := range parts {
		if slot := count.of(part); *slot>>partBits < often {
			*slot += 1 << partBits
		}
	}
	for _, part := range parts {
		slot := count.of(part)
		if *slot>>partBits == often {
			continue
		}
		*slot |= often << partBits
		var raw [mostPart + 1]byte
		binary.BigEndian.PutUint64(raw[:], part)
		to.Write(bytes.TrimLeft(raw[:], "\x00"))
	}
}

// A counter counts parts. Anyone who writes a text cannot know which of them meet in it.
type counter struct {
	seed  uint64
	slots []uint64 // a part, and how often it is there: a power of two of them, at most half of them taken
}

const (
	partBits = 8 * mostPart
	often    = 3 // times or more; one that was written counts so, too
)

func (c *counter) of(part uint64) *uint64 {
	high, low := mathbits.Mul64(part, c.seed)
	for at := high ^ low; ; at++ {
		slot := &c.slots[at&uint64(len(c.slots)-1)]
		if have := *slot & (1<<partBits - 1); have == part {
			return slot
		} else if have == 0 {
			*slot = part
			return slot
		}
	}
}
