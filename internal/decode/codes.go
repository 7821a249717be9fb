package decode

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A textEncoding is a binary-to-text encoding. read finds text that can be in this encoding and passes the
// decoded bytes to found.
type textEncoding struct {
	name              string
	isUnambiguous     bool // [Layers] decodes this encoding; [DecodeAmbiguousEncodings] skips it
	decodeOccurrences func(s string, found func([]byte))
}

var textEncodings = [...]textEncoding{
	{"base64", true, decodeBase64Runs},
	{"base64", true, decodeBase64SkippingOtherChars},
	{"base32", true, decodeBase32Runs},
	{"hex", false, func(s string, found func([]byte)) { found(decodeCharCodeNumbers(s, 16, minWordsBetweenCharCodeLists)) }},
	{"decimal", false, func(s string, found func([]byte)) { found(decodeCharCodeNumbers(s, 10, minWordsBetweenCharCodeLists)) }},
	{"octal", false, func(s string, found func([]byte)) { found(decodeCharCodeNumbers(s, 8, minWordsBetweenCharCodeLists)) }},
	{"binary", false, func(s string, found func([]byte)) { found(decodeCharCodeNumbers(s, 2, minWordsBetweenCharCodeLists)) }},
	{"binary", false, func(s string, found func([]byte)) { found(decodeBits(s)) }},
	{"base58", false, decodeBase58},
	{"base85", false, decodeBase85},
	{"uuencode", false, func(s string, found func([]byte)) { found(uudecode(s)) }},
	{"tags", true, func(s string, found func([]byte)) { found([]byte(decodeTagCharacters(s))) }},
	{"variation selectors", false, func(s string, found func([]byte)) { found(decodeVariationSelectors(s)) }},
	{"zero width", false, decodeZeroWidth},
}

// DecodeAmbiguousEncodings calls found with the result of decoding a text by each encoding that [Layers] does not use,
// readable or not.
func DecodeAmbiguousEncodings(s string, found func(string)) {
	for _, c := range textEncodings {
		if !c.isUnambiguous {
			c.decodeOccurrences(s, func(b []byte) { found(string(b)) })
		}
	}
	found(string(decodeNumberLists(s)))
}

// decodeBase64Runs decodes each run of base64 characters in a text. It passes each piece of
// compressed data to found separately, and all other decoded bytes together.
func decodeBase64Runs(s string, found func([]byte)) {
	var all []byte
	decode := func(run string) {
		if b := appendDecodedBase64(nil, run); compressionFormat(b) != "" {
			found(b)
		} else {
			all = append(append(all, b...), 0)
		}
	}
	for start, end := range Base64RunStartsAndEnds(s, minEncodedRunChars) {
		run := s[start:end]
		decode(run)
		if strings.ContainsAny(run, "\r\n") {
			for line := range strings.FieldsSeq(run) {
				decode(line)
			}
		}
	}
	found(all)
}

// decodeBase64SkippingOtherChars decodes a whole text as if all other characters (spaces, quotes, comment signs) were
// separators within one base64 run. The start of the run is unknown, so each of its four alignments
// is tried.
func decodeBase64SkippingOtherChars(s string, found func([]byte)) {
	for _, more := range [...]string{"+/", "-_"} {
		run := strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && (isAlnum(byte(r)) || strings.ContainsRune(more, r)) {
				return r
			}
			return -1
		}, s)
		for start := range min(4, len(run)) {
			found(appendDecodedBase64(nil, run[start:]))
		}
	}
}

func isAlnum(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// decodeBase32Runs decodes runs of base32 that contain blanks or hyphens.
func decodeBase32Runs(s string, found func([]byte)) {
	var all []byte
	for stretch := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return r >= utf8.RuneSelf || !isLetter(byte(r)) && (r < '2' || r > '7') && strings.IndexByte(" \t\r\n-=", byte(r)) < 0
	}) {
		run := strings.Map(func(r rune) rune {
			if isAlnum(byte(r)) {
				return r
			}
			return -1
		}, strings.ToUpper(stretch))
		if len(run) < minEncodedRunChars {
			continue
		}
		if b, ok := appendDecodedBase32(nil, run); ok {
			all = append(append(all, b...), 0)
		}
	}
	found(all)
}

// decodeCharCodeNumbers converts the numbers in a text to the characters with these codes. base is
// the base of the numbers: "105, 103", "chr(105)+chr(103)", "151 147", "01101001", "\x69\x67",
// "U+0069". In base 16 and 2 a number can encode several bytes. If minWordsBetweenLists words in a
// row are not numbers, the result contains a zero byte in their place.
func decodeCharCodeNumbers(s string, base, minWordsBetweenLists int) []byte {
	var out []byte
	foreign := 0 // how many words in a row are not numbers
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r >= utf8.RuneSelf || !isAlnum(byte(r)) }) {
		b := decodeNumberWord(word, base)
		if b == nil {
			if foreign++; foreign == minWordsBetweenLists {
				out = append(out, 0)
			}
			continue
		}
		foreign = 0
		out = append(out, b...)
	}
	return out
}

// minWordsBetweenCharCodeLists is how many words between two numbers end a text of numbers.
const minWordsBetweenCharCodeLists = 3

// decodeNumberLists reads each list of decimal numbers by itself, so that numbers around it are not taken
// for a part of it.
func decodeNumberLists(s string) (out []byte) {
	for list := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return r >= utf8.RuneSelf || !isAlnum(byte(r)) && strings.IndexByte(" ,;:|-", byte(r)) < 0
	}) {
		out = append(append(out, decodeCharCodeNumbers(list, 10, 1)...), 0)
	}
	return out
}

// decodeNumberWord returns the bytes that a word encodes; nil if it is not a number of the base.
func decodeNumberWord(word string, base int) []byte {
	switch base {
	case 16:
		if digits := strings.TrimLeft(word, "xXuU"); len(digits) < len(word) {
			word = digits
		} else if len(word) > 2 && word[0] == '0' && word[1]|0x20 == 'x' {
			word = word[2:]
		}
		if b, ok := appendDecodedHex(nil, word); ok {
			return b
		}
		return nil
	case 2:
		return decodeBinaryDigits(word)
	case 8:
		word = strings.TrimPrefix(word, "0o")
		if len(word) < 2 || len(word) > 4 {
			return nil
		}
	}
	n, err := strconv.ParseUint(word, base, 21)
	if err != nil || n > utf8.MaxRune {
		return nil
	}
	return utf8.AppendRune(nil, rune(n))
}

// decodeBinaryDigits returns the bytes of a binary number: 7 or 8 digits, or a multiple of 8.
func decodeBinaryDigits(word string) []byte {
	if strings.Trim(word, "01") != "" || len(word) != 7 && len(word)%8 != 0 {
		return nil
	}
	var out []byte
	var b byte
	for i := range len(word) {
		b = b<<1 | word[i]&1
		if (i+1)%8 == 0 || i+1 == 7 && len(word) == 7 {
			out = append(out, b)
			b = 0
		}
	}
	return out
}

// minBinaryDigitsPerRun is the least number of separated binary digits that count as encoded text.
const minBinaryDigitsPerRun = 64

// decodeBits decodes binary digits with at most one other character between two of them.
func decodeBits(s string) []byte {
	var out []byte
	bit := func(i int) bool { return i < len(s) && s[i]|1 == '1' }
	for i := 0; i < len(s); i++ {
		start, n := i, 0
		for bit(i) {
			n++
			if i++; i < len(s) && strings.IndexByte(" ,_-", s[i]) >= 0 && bit(i+1) {
				i++
			}
		}
		if n < minBinaryDigitsPerRun {
			continue
		}
		c, at := byte(0), 0
		for _, digit := range []byte(s[start:i]) {
			if digit|1 == '1' {
				c = c<<1 | digit&1
				if at++; at%8 == 0 {
					out = append(out, c)
				}
			}
		}
		out = append(out, 0)
	}
	return out
}

// The lengths of words that may be base58, in bytes: the work grows with the square.
const (
	minBase58EncodedBytes = 16
	maxBase58EncodedBytes = 256
)

// decodeBase58 decodes the base58 words of a text.
func decodeBase58(s string, found func([]byte)) {
	const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r >= utf8.RuneSelf || strings.IndexByte(digits, byte(r)) < 0 }) {
		if len(word) < minBase58EncodedBytes || len(word) > maxBase58EncodedBytes {
			continue
		}
		n, base := new(big.Int), big.NewInt(int64(len(digits)))
		for i := range len(word) {
			n.Add(n.Mul(n, base), big.NewInt(int64(strings.IndexByte(digits, word[i]))))
		}
		found(n.Bytes())
	}
}

// base85Alphabets are the alphabets of base85: Ascii85, RFC 1924 (Python's b85encode) and ZeroMQ.
var base85Alphabets = [...]string{
	"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu",
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
	"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
}

// base85Values are the values of the digits of each alphabet.
var base85Values = func() (values [len(base85Alphabets)][256]byte) {
	for i, alphabet := range base85Alphabets {
		for c := range 256 {
			values[i][c] = byte(strings.IndexByte(alphabet, byte(c))) // a character outside the alphabet gives byte(-1), which is noDigit
		}
	}
	return values
}()

// minBase85EncodedBytes is the least length of a base85 word.
const minBase85EncodedBytes = 15

// decodeBase85 decodes long words in each alphabet and from each of the five possible start offsets,
// since a name or sign can precede them, and passes on printable results.
func decodeBase85(s string, found func([]byte)) {
	for i := range base85Values {
		digits := &base85Values[i]
		for start := 0; start < len(s); start++ {
			end := start
			for end < len(s) && digits[s[end]] != noDigit {
				end++
			}
			if end-start >= minBase85EncodedBytes {
				for shift := range 5 {
					if text := printableRuns(decodeBase85Run(s[start+shift:end], digits)); text != "" {
						found([]byte(text))
					}
				}
			}
			start = end
		}
	}
}

func decodeBase85Run(s string, digits *[256]byte) []byte {
	out := make([]byte, 0, len(s)+4)
	var v uint32
	n := 0
	for i := range len(s) {
		v = v*85 + uint32(digits[s[i]])
		if n++; n == 5 {
			out = append(out, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
			v, n = 0, 0
		}
	}
	if n > 1 {
		for range 5 - n {
			v = v*85 + 84
		}
		out = append(out, []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8)}[:n-1]...)
	}
	return out
}

// uudecode decodes the lines of a text that are complete uuencoded lines.
func uudecode(s string) []byte {
	var out []byte
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\r\n")
		if len(line) < 2 {
			continue
		}
		n := int(line[0]-' ') & 63
		body := line[1:]
		if n == 0 || len(body) > (n+2)/3*4+1 || len(body) < n*4/3 {
			continue
		}
		var b []byte
		for len(body) > 0 {
			var group [4]byte
			copy(group[:], "    ")
			took := copy(group[:], body)
			body = body[took:]
			for i := range group {
				group[i] = (group[i] - ' ') & 63
			}
			b = append(b, group[0]<<2|group[1]>>4, group[1]<<4|group[2]>>2, group[2]<<6|group[3])
		}
		out = append(out, b[:min(n, len(b))]...)
	}
	return out
}

// decodeVariationSelectors returns the bytes that variation selectors encode; they are invisible and can follow any
// character.
func decodeVariationSelectors(s string) []byte {
	if IsASCII(s) {
		return nil
	}
	var out []byte
	for _, r := range s {
		switch {
		case 0xfe00 <= r && r <= 0xfe0f:
			out = append(out, byte(r-0xfe00))
		case 0xe0100 <= r && r <= 0xe01ef:
			out = append(out, byte(r-0xe0100+16))
		}
	}
	return out
}

// decodeZeroWidth decodes two kinds of zero-width characters as binary digits, with both assignments of 0
// and 1.
func decodeZeroWidth(s string, found func([]byte)) {
	if IsASCII(s) {
		return
	}
	var digits strings.Builder
	for _, r := range s {
		switch r {
		case 0x200b, 0x2062:
			digits.WriteByte('0')
		case 0x200c, 0x2063:
			digits.WriteByte('1')
		}
	}
	word := digits.String()
	word = word[:len(word)/8*8]
	found(decodeBinaryDigits(word))
	found(decodeBinaryDigits(strings.Map(func(r rune) rune { return r ^ 1 }, word)))
}

func isIdentifierByte(c byte) bool { return c == '_' || isAlnum(c) }
