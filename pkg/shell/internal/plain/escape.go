package plain

import (
	"strconv"
	"strings"
)

// UnescapeANSIC resolves the escapes of $'…' and of printf's format.
func UnescapeANSIC(s string) string {
	out, _ := unescape(s, false)
	return out
}

// UnescapeEcho resolves the escapes of echo -e and of printf's %b, where up to three digits follow \0, and \c ends the
// output.
func UnescapeEcho(s string) (out string, endsOutput bool) { return unescape(s, true) }

func unescape(s string, withEchoEscapes bool) (out string, endsOutput bool) {
	if !strings.Contains(s, `\`) {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'f':
			b.WriteByte(12)
		case 'v':
			b.WriteByte(11)
		case 'e', 'E':
			b.WriteByte(27)
		case 'c':
			if withEchoEscapes {
				return b.String(), true
			}
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 31)
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			most := 3
			if withEchoEscapes && c == '0' {
				most = 4
			}
			n := CountLeadingDigits(s[i:], 8, most)
			v, _ := strconv.ParseUint(s[i:i+n], 8, 16)
			b.WriteByte(byte(v))
			i += n - 1
		case 'x', 'u', 'U':
			width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			n := CountLeadingDigits(s[i+1:], 16, width)
			if n == 0 {
				b.WriteString(s[i-1 : i+1])
				break
			}
			v, _ := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if c == 'x' {
				b.WriteByte(byte(v))
			} else {
				b.WriteRune(rune(v))
			}
			i += n
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), false
}

// CountLeadingDigits returns the number of digits of a base, at most maxDigits, with which a text
// begins.
func CountLeadingDigits(s string, base, maxDigits int) int {
	i := 0
	for i < maxDigits && i < len(s) && digitValue(s[i]) < base {
		i++
	}
	return i
}

func digitValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return int(c|0x20-'a') + 10
	}
	return 99
}

func IsWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// IsURL reports whether a text is a URL of a network protocol.
func IsURL(text string) bool {
	scheme, _, ok := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "://")
	return ok && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "ftp"))
}
