package analysis

import (
	"encoding/ascii85"
	"encoding/hex"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// spellings returns what a text says in other spellings, readable or not: what it
// encodes, turned about, in numbers, and put together from parts.
func spellings(text string) (out []string) {
	rotated, backwards := effect.Turned(text)
	out = append(out, rotated, backwards)
	parts := apart.Replace(text)
	for _, t := range [...]string{text, parts, strings.ToUpper(parts)} { // of which base32 is in capitals
		for _, l := range effect.Layers(t) {
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

// queries returns what the values of queries in a text say.
func queries(text string) string {
	var b strings.Builder
	if !strings.ContainsAny(text, "%+") {
		return ""
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("?&=\"'", r) }) {
		if !strings.ContainsAny(word, "%+") {
			continue
		}
		if said, err := url.QueryUnescape(word); err == nil {
			b.WriteString(said)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// The lengths of words that are decoded, in bytes: a short piece of a credential in
// hexadecimal looks like nothing, and the work for base58 grows with the square.
const (
	leastHex   = 8
	leastDense = 16
	mostDense  = 256
)

// words returns what the words of a text are in hexadecimal, base58 and base85.
func words(text string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		if raw, err := hex.DecodeString(word); err == nil && len(word) >= leastHex {
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

// digits58 are the digits of base58, in their order.
const digits58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// base58 decodes a word, "" if it is not one that is plain text.
func base58(word string) string {
	n, base := new(big.Int), big.NewInt(int64(len(digits58)))
	for i := range len(word) {
		digit := strings.IndexByte(digits58, word[i])
		if digit < 0 {
			return ""
		}
		n.Add(n.Mul(n, base), big.NewInt(int64(digit)))
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

// Texts in numbers.
var (
	inNumbers = prefilter.Lazy(`(?:\b\d{2,3}\b[ ,;:|-]*){8,}`)
	number    = prefilter.Lazy(`\d+`)
	inBits    = prefilter.Lazy(`[01](?:[ ,_-]?[01]){63,}`)
)

// numbers returns the texts whose characters a text gives as decimal numbers.
func numbers(text string) string {
	var b strings.Builder
	if countOf(text, '0', '9') < 16 {
		return ""
	}
	for _, run := range inNumbers().FindAllString(text, -1) {
		for _, digits := range number().FindAllString(run, -1) {
			if n, err := strconv.ParseUint(digits, 10, 8); err == nil {
				b.WriteByte(byte(n))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// countOf returns how many bytes of a text are between two, which count.
func countOf(text string, from, to byte) (n int) {
	for i := range len(text) {
		if from <= text[i] && text[i] <= to {
			n++
		}
	}
	return n
}

// bits returns the texts whose characters a text gives as eight bits each.
func bits(text string) string {
	var b strings.Builder
	if countOf(text, '0', '1') < 64 {
		return ""
	}
	for _, run := range inBits().FindAllString(text, -1) {
		n, at := byte(0), 0
		for i := range len(run) {
			if run[i] != '0' && run[i] != '1' {
				continue
			}
			n = n<<1 | run[i]&1
			if at++; at%8 == 0 {
				b.WriteByte(n)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
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
		for i+n < len(text) && inPart(text[i+n]) {
			n++
		}
		if n == 0 || n > mostPart {
			end()
		} else {
			parts = append(parts, text[i:i+n])
		}
		if i += n; i < len(text) && strings.IndexByte(" \t.,;:|-", text[i]) < 0 {
			end()
		}
		i++
	}
	end()
	for _, part := range unrepeated(text) {
		b.WriteString(part)
	}
	return b.String()
}

// mostParts is how many parts of a text are counted.
const mostParts = 4096

// unrepeated returns the short parts of a text that it does not repeat: what differs
// between commands or addresses of the same form. What a command says may stand in
// the text twice, as it is and resolved.
func unrepeated(text string) (out []string) {
	count := map[string]int{}
	var parts []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r >= utf8.RuneSelf || r == '=' || r == '/' || !inPart(byte(r)) }) {
		if len(part) > mostPart {
			continue
		}
		if len(parts) == mostParts {
			break
		}
		parts = append(parts, part)
		count[part]++
	}
	for _, part := range parts {
		if count[part] == 1 || count[part] == 2 {
			out = append(out, part)
			count[part] = 0
		}
	}
	return out
}

func inPart(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || strings.IndexByte("+/=_~!%", c) >= 0
}
