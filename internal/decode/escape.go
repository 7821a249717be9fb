package decode

import (
	"strings"
	"unicode/utf8"
)

// unescape decodes the escapes of programming languages: \xHH, \uHHHH,
// \u{H…}, \UHHHHHHHH and \NNN.
func unescape(s string) string {
	var b strings.Builder
	kept := 0 // up to where s is in b
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		r, n := escape(s[i:])
		if n == 0 {
			continue
		}
		b.WriteString(s[kept:i])
		if r < utf8.RuneSelf || s[i+1] != 'x' {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		kept = i + n
		i = kept - 1
	}
	if kept == 0 {
		return s
	}
	b.WriteString(s[kept:])
	return b.String()
}

// escape reads the escape that s starts with and its length in bytes, 0 if it
// starts with none.
func escape(s string) (r rune, n int) {
	if len(s) < 3 {
		return 0, 0
	}
	switch c := s[1]; {
	case c == 'x':
		return digits(s, 2, 2, 16)
	case c == 'u' && s[2] == '{':
		r, n := digits(s, 3, 0, 16)
		if n == 0 || n == len(s) || s[n] != '}' {
			return 0, 0
		}
		return r, n + 1
	case c == 'u':
		return digits(s, 2, 4, 16)
	case c == 'U':
		return digits(s, 2, 8, 16)
	case '0' <= c && c <= '3' && len(s) > 3:
		return digits(s, 1, 3, 8)
	}
	return 0, 0
}

// digits reads want digits of a base from an index on, up to six for 0, and
// returns the character and the index behind them.
func digits(s string, from, want int, base rune) (r rune, end int) {
	most := want
	if want == 0 {
		most = 6
	}
	for end = from; end < len(s) && end-from < most; end++ {
		d := rune(unhex(s[end]))
		if d < 0 || d >= base {
			break
		}
		r = r*base + d
	}
	if end == from || want > 0 && end-from < want || r > utf8.MaxRune || 0xd800 <= r && r < 0xe000 {
		return 0, 0
	}
	return r, end
}

// hexBytes returns the text in a list of at least four bytes such as
// "72 6d 20 2d", "72:6d" or "0x72, 0x6d", or "".
func hexBytes(s string) string {
	var best, b []byte
	for i := 0; i+1 < len(s); {
		if unhex(s[i]) < 0 || i > 0 && isNameByte(s[i-1]) {
			if len(b) > len(best) {
				best = b
			}
			b = nil
			if i++; isNameByte(s[i-1]) { // the rest of a word
				for i < len(s) && isNameByte(s[i]) {
					i++
				}
			}
			continue
		}
		j := i
		if s[j] == '0' && s[j+1]|0x20 == 'x' && j+3 < len(s) {
			j += 2
		}
		hi, lo := unhex(s[j]), unhex(s[min(j+1, len(s)-1)])
		edge := j+2 >= len(s) || !isNameByte(s[j+2])
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
	if len(best) < 4 || !readable(string(best)) || !sensible(best) && len(best) < 12 {
		return ""
	}
	return string(best)
}

// Percent decodes %XX once; other text stays as it is.
func Percent(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi >= 0 && lo >= 0 {
				b = append(b, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
