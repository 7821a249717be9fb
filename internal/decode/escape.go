package decode

import (
	"html"
	"strings"
	"unicode/utf8"
)

// EscapeKinds is a set of kinds of escape sequences.
type EscapeKinds uint8

const (
	PercentEscapes             EscapeKinds = 1 << iota // %41, of URLs
	NumericBackslashEscapes                            // \x41, \u0041, \u{41}, \U00000041, \101, of programming languages
	HTMLReferenceEscapes                               // &#65;, &#x41;, &amp;, of HTML
	BackslashQuoteEscapes                              // \", and escaped line ends
	StringConcatenationEscapes                         // string concatenation: AK""IA, "AK" + "IA"
	ZeroWidthEscapes                                   // zero-width characters
)

// escapesByFirstByte are the kinds of escapes that can begin with each byte.
var escapesByFirstByte = [256]EscapeKinds{
	'%': PercentEscapes, '\\': NumericBackslashEscapes | BackslashQuoteEscapes, '&': HTMLReferenceEscapes, '"': StringConcatenationEscapes, '\'': StringConcatenationEscapes,
	0xc2: ZeroWidthEscapes, 0xcd: ZeroWidthEscapes, 0xd8: ZeroWidthEscapes, 0xe1: ZeroWidthEscapes, 0xe2: ZeroWidthEscapes, 0xe3: ZeroWidthEscapes, 0xef: ZeroWidthEscapes, 0xf0: ZeroWidthEscapes, 0xf3: ZeroWidthEscapes,
}

// Unescape decodes the given kinds of escapes. If sourceOffsets is not nil, it appends to it the
// source offset of each result byte, and of the end. changed is false if there is nothing to
// decode; sourceOffsets is then unchanged.
func Unescape(s string, kinds EscapeKinds, sourceOffsets *[]int) (text string, changed bool) {
	var b []byte
	kept := 0 // everything before this offset is in b
	for i := 0; i < len(s); {
		if escapesByFirstByte[s[i]]&kinds == 0 {
			i++
			continue
		}
		var few [8]byte
		out, n := appendDecodedEscape(few[:0], s[i:], kinds)
		if n == 0 {
			i++
			continue
		}
		if b == nil {
			b = make([]byte, 0, len(s))
		}
		b = append(append(b, s[kept:i]...), out...)
		if sourceOffsets != nil {
			for from := kept; from < i; from++ {
				*sourceOffsets = append(*sourceOffsets, from)
			}
			for range out {
				*sourceOffsets = append(*sourceOffsets, i)
			}
		}
		i += n
		kept = i
	}
	if kept == 0 {
		return s, false
	}
	if sourceOffsets != nil {
		for from := kept; from <= len(s); from++ {
			*sourceOffsets = append(*sourceOffsets, from)
		}
	}
	return string(append(b, s[kept:]...)), true
}

// EscapeLength returns the length of the escape at the start of a text; 0 if there is none of the
// given kinds.
func EscapeLength(s string, kinds EscapeKinds) int {
	if s == "" || escapesByFirstByte[s[0]]&kinds == 0 {
		return 0
	}
	var few [8]byte
	_, n := appendDecodedEscape(few[:0], s, kinds)
	return n
}

// appendDecodedEscape appends the decoded escape at the start of s, and returns the escape's length; 0 if
// there is none.
func appendDecodedEscape(b []byte, s string, kinds EscapeKinds) ([]byte, int) {
	switch kinds &= escapesByFirstByte[s[0]]; s[0] {
	case '%':
		if c, n := parseDigits(s, 1, 2, 16); n > 0 {
			return append(b, byte(c)), n
		}
	case '\\':
		if kinds&NumericBackslashEscapes != 0 {
			if c, n := decodeBackslash(s); n > 0 && s[1] == 'x' {
				return append(b, byte(c)), n
			} else if n > 0 {
				return utf8.AppendRune(b, c), n
			}
		}
		if kinds&BackslashQuoteEscapes != 0 {
			return appendBackslashQuotedCharacter(b, s)
		}
	case '&':
		if n := htmlCharacterReferenceLen(s); n > 0 {
			if text := html.UnescapeString(s[:n]); text != s[:n] {
				return append(b, text...), n
			}
		}
	case '"', '\'':
		return b, stringConcatenationLength(s)
	default:
		if r, n := utf8.DecodeRuneInString(s); Invisible(r) {
			return b, n
		}
	}
	return b, 0
}

// decodeBackslash decodes the backslash escape at the start of s, and returns its length.
func decodeBackslash(s string) (r rune, n int) {
	if len(s) < 3 {
		return 0, 0
	}
	switch c := s[1]; {
	case c == 'x':
		return parseDigits(s, 2, 2, 16)
	case c == 'u' && s[2] == '{':
		r, n := parseDigits(s, 3, 0, 16)
		if n == 0 || n == len(s) || s[n] != '}' {
			return 0, 0
		}
		return r, n + 1
	case c == 'u':
		return parseDigits(s, 2, 4, 16)
	case c == 'U':
		return parseDigits(s, 2, 8, 16)
	case '0' <= c && c <= '3':
		return parseDigits(s, 1, 3, 8)
	}
	return 0, 0
}

// parseDigits parses digitCount digits of a base from startIndex on, and returns the character with
// that code and the index after the digits. digitCount = 0 means one to eight digits. It returns 0,
// 0 if the digits encode no character.
func parseDigits(s string, startIndex, digitCount int, base rune) (r rune, endIndex int) {
	most := digitCount
	if digitCount == 0 {
		most = 8
	}
	for endIndex = startIndex; endIndex < len(s) && endIndex-startIndex < most; endIndex++ {
		d := rune(hexDigitValue(s[endIndex]))
		if d < 0 || d >= base {
			break
		}
		r = r*base + d
	}
	if endIndex == startIndex || digitCount > 0 && endIndex-startIndex < digitCount || r > utf8.MaxRune || 0xd800 <= r && r < 0xe000 {
		return 0, 0
	}
	return r, endIndex
}

// appendBackslashQuotedCharacter decodes a backslash before a literal character or a line end.
func appendBackslashQuotedCharacter(b []byte, s string) ([]byte, int) {
	switch rest := s[1:]; {
	case strings.HasPrefix(rest, "\n"):
		return b, 2
	case strings.HasPrefix(rest, "\r\n"):
		return b, 3
	case rest != "" && (strings.IndexByte("\"'\\/=:-_", rest[0]) >= 0 || 'A' <= rest[0] && rest[0] <= 'Z'):
		return append(b, rest[0]), 2 // an unnecessary escape, or one within nested quotes
	}
	return b, 0
}

// stringConcatenationLength returns the length of a string concatenation at the start of s, which ends one literal and
// starts the next: two quotes with nothing, a blank, a line end, a plus sign or a dot between them.
func stringConcatenationLength(s string) int {
	i := 1
	for i < len(s) && i < 8 && (s[i] == ' ' || s[i] == '+' || s[i] == '.' || s[i] == '\n') {
		i++
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		if gap := s[1:i]; gap == "" || strings.ContainsAny(gap, "+.\n") || gap == " " && s[0] == s[i] {
			return i + 1
		}
	}
	return 0
}

// htmlCharacterReferenceLen returns the length of the "&name;" or "&#number;" at the start of a text; 0 if there
// is none.
func htmlCharacterReferenceLen(s string) int {
	end := 1
	for end < len(s) && end < 32 && (isIdentifierByte(s[end]) || s[end] == '#') {
		end++
	}
	if end > 2 && end < len(s) && s[end] == ';' {
		return end + 1
	}
	return 0
}

// DecodePercentEscapes decodes %XX once; other text stays as it is.
func DecodePercentEscapes(s string) string {
	text, _ := Unescape(s, PercentEscapes, nil)
	return text
}

// hexDigitValue returns the value of a hexadecimal digit, or -1.
func hexDigitValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// decodeHexByteList returns the text encoded by a list of at least four bytes such as "72 6d 20 2d", "72:6d" or
// "0x72, 0x6d"; "" if there is none.
func decodeHexByteList(s string) string {
	var best, b []byte
	for i := 0; i+1 < len(s); {
		if hexDigitValue(s[i]) < 0 || i > 0 && isIdentifierByte(s[i-1]) {
			if len(b) > len(best) {
				best = b
			}
			b = nil
			if i++; isIdentifierByte(s[i-1]) { // skip the rest of a word that is not a hexadecimal byte
				for i < len(s) && isIdentifierByte(s[i]) {
					i++
				}
			}
			continue
		}
		j := i
		if s[j] == '0' && s[j+1]|0x20 == 'x' && j+3 < len(s) {
			j += 2
		}
		hi, lo := hexDigitValue(s[j]), hexDigitValue(s[min(j+1, len(s)-1)])
		edge := j+2 >= len(s) || !isIdentifierByte(s[j+2])
		if j+1 >= len(s) || hi < 0 || lo < 0 || !edge {
			if len(b) > len(best) {
				best = b
			}
			b = nil
			i++
			continue
		}
		b = append(b, byte(hi<<4|lo))
		i = j + 2
		for i < len(s) && strings.IndexByte(" ,:;\t\n", s[i]) >= 0 {
			i++
		}
	}
	if len(b) > len(best) {
		best = b
	}
	if len(best) < 4 || !isReadable(string(best)) || !isProbablyText(best) && len(best) < 12 {
		return ""
	}
	return string(best)
}
