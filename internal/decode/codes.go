package decode

import (
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A code is an encoding of bytes as text. read finds text that may be in this
// encoding and passes the decoded bytes to found.
type code struct {
	name string
	read func(s string, found func([]byte))
}

var codes = [...]code{
	{"base64", base64Runs},
	{"base64", base64Spread},
	{"base32", base32Runs},
	{"hex", func(s string, found func([]byte)) { found(numbers(s, 16)) }},
	{"decimal", func(s string, found func([]byte)) { found(numbers(s, 10)) }},
	{"octal", func(s string, found func([]byte)) { found(numbers(s, 8)) }},
	{"binary", func(s string, found func([]byte)) { found(numbers(s, 2)) }},
	{"base85", base85},
	{"uuencode", func(s string, found func([]byte)) { found(uudecode(s)) }},
	{"tags", func(s string, found func([]byte)) { found([]byte(tagged(s))) }},
	{"variation selectors", func(s string, found func([]byte)) { found(selected(s)) }},
	{"zero width", zeroWidth},
}

// base64Runs decodes each run of base64, one after the other; compressed ones
// by themselves.
func base64Runs(s string, found func([]byte)) {
	var all []byte
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return r >= utf8.RuneSelf || !encodedByte(byte(r)) }) {
		if len(run) < minEncoded {
			continue
		}
		b := decode64(strings.Map(standard, run))
		if _, by := decompress(b); by != "" {
			found(b)
			continue
		}
		all = append(append(all, b...), 0)
	}
	found(all)
}

// base64Spread decodes a whole text as if all other characters stood between
// the groups of one run: spaces, quotes, signs of comments. The start
// of the run is unknown, so each of its four positions is tried.
func base64Spread(s string, found func([]byte)) {
	for _, more := range [...]string{"+/", "-_"} {
		run := strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && (isAlnum(byte(r)) || strings.ContainsRune(more, r)) {
				return standard(r)
			}
			return -1
		}, s)
		for start := range min(4, len(run)) {
			found(decode64(run[start:]))
		}
	}
}

// standard turns the alphabet for URLs into the usual one.
func standard(r rune) rune {
	switch r {
	case '-':
		return '+'
	case '_':
		return '/'
	}
	return r
}

// decode64 decodes a run of base64 without padding.
func decode64(run string) []byte {
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	b, err := base64.RawStdEncoding.DecodeString(run)
	if err != nil {
		return nil
	}
	return b
}

func isAlnum(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// base32Runs decodes stretches of base32 with blanks or hyphens in them.
func base32Runs(s string, found func([]byte)) {
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
		if len(run) < minEncoded {
			continue
		}
		for n := len(run) % 8; n == 1 || n == 3 || n == 6; n = len(run) % 8 {
			run = run[:len(run)-1] // not a valid length
		}
		if b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(run); err == nil {
			all = append(append(all, b...), 0)
		}
	}
	found(all)
}

// numbers reads the numbers of a base in a text as characters: "105, 103",
// "chr(105)+chr(103)", "151 147", "01101001", "\x69\x67", "U+0069". A number
// of several bytes is as many characters in base 16 and base 2. A byte of zero
// stands for what is none.
func numbers(s string, base int) []byte {
	var out []byte
	foreign := 0 // words since the last number
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r >= utf8.RuneSelf || !isAlnum(byte(r)) }) {
		b := number(word, base)
		if b == nil {
			if foreign++; foreign == 3 {
				out = append(out, 0)
			}
			continue
		}
		foreign = 0
		out = append(out, b...)
	}
	return out
}

// number returns the bytes that one word stands for, or nil if it is not a number
// of the base.
func number(word string, base int) []byte {
	switch base {
	case 16:
		if digits := strings.TrimLeft(word, "xXuU"); len(digits) < len(word) {
			word = digits
		} else if len(word) > 2 && word[0] == '0' && word[1]|0x20 == 'x' {
			word = word[2:]
		}
		if len(word)%2 != 0 {
			return nil
		}
		return hexDecode(word)
	case 2:
		return binary(word)
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

// binary returns the bytes of a number in base 2: one of 7 or 8 digits, or
// several of 8.
func binary(word string) []byte {
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

// The alphabets of base 85 that have no form in the standard library: that of
// RFC 1924, which Python's b85encode writes, and that of ZeroMQ.
const (
	alphabetRFC1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	alphabetZ85     = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)

// base85 decodes long words, each as all three forms and from each of the five
// places where it may start, since a name or sign may be before it.
func base85(s string, found func([]byte)) {
	for word := range strings.FieldsSeq(s) {
		word = strings.Trim(word, "\"'`")
		if len(word) < 15 {
			continue
		}
		for start := range 5 {
			found(ascii85Bytes(word[start:]))
			found(bytes85(word[start:], alphabetRFC1924))
			found(bytes85(word[start:], alphabetZ85))
		}
	}
}

func ascii85Bytes(s string) []byte {
	s = strings.TrimPrefix(s, "<~")
	s, _, _ = strings.Cut(s, "~>")
	out := make([]byte, 4*len(s))
	n, _, _ := ascii85.Decode(out, []byte(s), true) // what comes before an error counts
	return out[:n]
}

func bytes85(s, alphabet string) []byte {
	out := make([]byte, 0, len(s))
	var v uint64
	n := 0
	for i := range len(s) {
		d := strings.IndexByte(alphabet, s[i])
		if d < 0 {
			break
		}
		v = v*85 + uint64(d)
		if n++; n == 5 {
			out = append(out, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
			v, n = 0, 0
		}
	}
	if n > 1 {
		for i := n; i < 5; i++ {
			v = v*85 + 84
		}
		out = append(out, []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8)}[:n-1]...)
	}
	return out
}

// uudecode decodes the lines of a text that are whole lines of uuencode.
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

// selected returns the bytes that variation selectors stand for, which can be
// hung on any character and are not seen.
func selected(s string) []byte {
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

// zeroWidth reads two kinds of characters without width as the two digits of
// base 2, either way around.
func zeroWidth(s string, found func([]byte)) {
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
	found(binary(word))
	found(binary(strings.Map(func(r rune) rune { return r ^ 1 }, word)))
}

func isNameByte(c byte) bool { return c == '_' || isAlnum(c) }
