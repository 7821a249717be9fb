package decode

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Base64 decodes a whole text in the standard or the URL alphabet. It ignores spaces and line
// breaks; the padding is optional. Text after the padding is an error, since programs differ in how
// they decode it.
func Base64(text string) (decoded string, ok bool) {
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == ' ' || r == '\r' {
			return -1
		}
		return r
	}, text)
	clean = strings.TrimRight(clean, "=")
	if out, err := base64.RawStdEncoding.DecodeString(clean); err == nil {
		return string(out), true
	}
	out, err := base64.RawURLEncoding.DecodeString(clean)
	return string(out), err == nil
}

// Base32 decodes a text that is Base32 as a whole. White space in the text is ignored.
func Base32(text string) (decoded string, ok bool) {
	out, err := base32.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	return string(out), err == nil
}

// Hex decodes a whole text.
func Hex(text string) (decoded string, ok bool) {
	out, err := hex.DecodeString(text)
	return string(out), err == nil
}

// Gunzip decompresses a whole text of less than 64 KiB.
func Gunzip(text string) (plain string, ok bool) {
	out, by, err := decompress([]byte(text), maxLayerBytes)
	return string(out), by == "gzip" && err == nil && len(out) < maxLayerBytes
}

// DecodeUTF16LE decodes bytes of little-endian UTF-16.
func DecodeUTF16LE(raw string) string {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i]) | uint16(raw[2*i+1])<<8
	}
	return string(utf16.Decode(units))
}

// Base64RunStartsAndEnds yields the start and end offset in s of each run of base64 characters, without padding,
// that is at least minRunBytes long. A run can be wrapped into lines of at least 60 bytes.
func Base64RunStartsAndEnds(s string, minRunBytes int) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for i := 0; i < len(s); i++ {
			start, line, end := i, 0, i
			for ; i < len(s); i++ {
				if isBase64OrHexByte[s[i]] {
					line++
					end = i + 1
				} else if (s[i] == '\n' || s[i] == '\r') && line >= 60 || s[i] == '\n' && i > start && s[i-1] == '\r' {
					line = 0
				} else {
					break
				}
			}
			if end-start >= minRunBytes && !yield(start, end) {
				return
			}
		}
	}
}

// isBase64OrHexByte are the characters of base64, in both alphabets, and of hexadecimal.
var isBase64OrHexByte = func() (set [256]bool) {
	for c := range byte(128) {
		set[c] = isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_'
	}
	return set
}()

// base64Values are the values of the digits of base64 in both alphabets.
var base64Values = func() (values [256]byte) {
	for i := range values {
		values[i] = noDigit
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		values[c] = byte(i)
	}
	values['-'], values['_'] = 62, 63
	return values
}()

const noDigit = 0xff

// appendDecodedBase64 appends the decoded bytes of a run of base64, and skips other characters.
func appendDecodedBase64(dst []byte, run string) []byte {
	var bits uint
	n := 0
	for i := range len(run) {
		v := base64Values[run[i]]
		if v == noDigit {
			continue
		}
		bits = bits<<6 | uint(v)
		if n += 6; n >= 8 {
			n -= 8
			dst = append(dst, byte(bits>>n))
		}
	}
	return dst
}

// appendDecodedHex appends the decoded bytes of a run of hexadecimal; ok is false if it is not
// hexadecimal.
func appendDecodedHex(dst []byte, run string) (out []byte, ok bool) {
	half := -1
	for _, c := range []byte(strings.TrimPrefix(run, "0x")) {
		v := hexDigitValue(c)
		switch {
		case c == '\n' || c == '\r':
		case v < 0:
			return nil, false
		case half < 0:
			half = v
		default:
			dst = append(dst, byte(half<<4|v))
			half = -1
		}
	}
	return dst, half < 0
}

// appendDecodedBase32 appends the decoded bytes of a run of upper-case base32; ok is false if it is not
// base32.
func appendDecodedBase32(dst []byte, run string) (out []byte, ok bool) {
	var bits uint
	n := 0
	for i := range len(run) {
		c := run[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c -= 'A'
		case '2' <= c && c <= '7':
			c -= '2' - 26
		case c == '\n' || c == '\r':
			continue
		default:
			return nil, false
		}
		bits = bits<<5 | uint(c)
		if n += 5; n >= 8 {
			n -= 8
			dst = append(dst, byte(bits>>n))
		}
	}
	return dst, true
}

// maxBase64Alignments is how many starts of a run are tried. Characters before encoded text can look like a part
// of it, and base64 encodes in groups of four characters.
const maxBase64Alignments = 4

// maxDecompressionRatio limits how much data [TryDecodingsOfBase64Run] decompresses, as a multiple of the
// compressed length. A text can consist of runs that all expand, and each result is searched again.
const maxDecompressionRatio = 4

// TryDecodingsOfBase64Run decodes a run from [Base64RunStartsAndEnds] by each encoding that it may be in, and calls
// found with each result until found returns true. It reports whether found returned true. Results
// that are mostly noise are left out; the others can contain bytes that are not valid UTF-8.
func TryDecodingsOfBase64Run(run string, found func(name, text string) bool) bool {
	var few [512]byte
	is := func(name string, b []byte) bool {
		by, text := name, withoutUTF16ZeroBytes(b)
		if compressionFormat(b) != "bzip2" { // even a few bytes of it take a block of 900 KB
			by, text, _ = decompressAndDropUTF16Zeros(name, b, maxDecompressionRatio*len(b))
		}
		if !isBinaryData(text) && found(by, string(text)) {
			return true
		}
		// If b was decompressed, also try b as it is: text can follow the compressed data.
		return by != name && !isBinaryData(b) && found(name, string(b))
	}
	if b, ok := appendDecodedHex(few[:0], run); ok && is("hex", b) {
		return true
	}
	if b, ok := appendDecodedBase32(few[:0], run); ok && is("base32", b) {
		return true
	}
	for shift := range min(maxBase64Alignments, len(run)) {
		if is("base64", appendDecodedBase64(few[:0], run[shift:])) {
			return true
		}
	}
	return false
}

// decompressAndDropUTF16Zeros returns the text in decoded bytes, which can be compressed or UTF-16,
// and its encoding. It returns at most maxDecompressedBytes bytes of decompressed text; the last
// result is false if there can be more.
func decompressAndDropUTF16Zeros(encodingName string, b []byte, maxDecompressedBytes int) (string, []byte, bool) {
	whole := true
	if unzipped, by, _ := decompress(b, maxDecompressedBytes); by != "" {
		encodingName, b, whole = encodingName+"+"+by, unzipped, len(unzipped) < maxDecompressedBytes
	}
	return encodingName, withoutUTF16ZeroBytes(b), whole
}

// withoutUTF16ZeroBytes removes zero bytes, if there are so many that the text can be UTF-16.
func withoutUTF16ZeroBytes(b []byte) []byte {
	if 4*bytes.Count(b, []byte{0}) >= len(b) {
		return bytes.ReplaceAll(b, []byte{0}, nil)
	}
	return b
}

// isBinaryData reports whether more than a quarter of some bytes are not text.
func isBinaryData(b []byte) bool {
	odd := 0
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
				odd++
			}
			i++
		} else {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError {
				odd++
			}
			i += n
		}
		if odd*4 > len(b) {
			return true
		}
	}
	return len(b) == 0
}
