package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLayers is how many wrappings within each other are undone.
const maxLayers = 3

// find returns the secrets in s, in whatever form; layers more wrappings are
// undone.
func (r *Redactor) find(s string, layers int) []span {
	spans := r.plain(s, nil)
	if text := unescape(s, "", nil); text != "" {
		spans = r.unescaped(s, text, "", layers, spans)
		// A secret with "%3B" in it, in JSON, is whole only while that stands.
		if strings.IndexByte(s, '%') >= 0 {
			if text := unescape(s, "%", nil); text != "" {
				spans = r.unescaped(s, text, "%", layers, spans)
			}
		}
	}
	if layers > 0 {
		spans = r.wrapped(s, layers, spans)
	}
	if r != nil && r.found != nil {
		for _, sp := range spans {
			r.note(sp.secret)
		}
	}
	return spans
}

// unescaped returns the secrets in what [unescape] makes of s and keep.
func (r *Redactor) unescaped(s, text, keep string, layers int, spans []span) []span {
	inner := r.plain(text, nil)
	if layers > 0 {
		inner = r.wrapped(text, layers, inner)
	}
	if len(inner) == 0 {
		return spans
	}
	at := make([]int, 0, len(s)+1)
	unescape(s, keep, &at)
	for _, sp := range inner {
		spans = append(spans, span{at[sp.start], at[sp.end], sp.kind, sp.secret})
	}
	return spans
}

// plain returns the secrets that are in s as they are.
func (r *Redactor) plain(s string, spans []span) []span {
	if r != nil {
		for _, k := range r.known {
			for at := 0; ; {
				i := strings.Index(s[at:], k)
				if i < 0 {
					break
				}
				spans = append(spans, newSpan(s, at+i, at+i+len(k), "secret"))
				at += i + len(k)
			}
		}
	}
	spans = r.recalled(s, spans)
	return logins(s, assignments(s, credentials(s, spans)))
}

// wrappings returns a secret and the texts that it becomes when it is encoded,
// alone or in the midst of something else.
func wrappings(s string) []string {
	forms := []string{s}
	add := func(f string) {
		if f != s && len(f) >= 8 {
			forms = append(forms, f)
		}
	}
	add(url.QueryEscape(s))
	add(hex.EncodeToString([]byte(s)))
	add(strings.ToUpper(hex.EncodeToString([]byte(s))))
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 { // what comes before it moves the borders of the groups
			b := enc.EncodeToString(append(make([]byte, shift), s...))
			from := (shift*8 + 5) / 6
			to := (shift + len(s)) * 8 / 6
			add(b[from:to])
		}
	}
	return forms
}

// unescape decodes escapes (\x41, \u0041, \101, %41, &#65;), joins the pieces
// of a text that quotes, concatenation or line ends cut apart ("AK""IA",
// "AK" + "IA", AK\⏎IA), and drops characters of no width. It appends to at, if
// that is not nil, where each byte of the result and its end come from. It returns
// "" where there is nothing to undo. What begins with one of the bytes in keep
// stays.
func unescape(s, keep string, at *[]int) string {
	var b []byte
	from := 0 // what is before it has been copied
	for i := 0; i < len(s); {
		if !escapes[s[i]] {
			i++
			continue
		}
		c, n := rune(0), 0
		if strings.IndexByte(keep, s[i]) < 0 {
			c, n = decode(s[i:])
		}
		if n == 0 {
			i++
			continue
		}
		if b == nil {
			b = make([]byte, 0, len(s))
		}
		b = copyPlain(b, at, s, from, i)
		if c >= 0 {
			was := len(b)
			b = utf8.AppendRune(b, c)
			for ; at != nil && was < len(b); was++ {
				*at = append(*at, i)
			}
		}
		i += n
		from = i
	}
	if b == nil {
		return ""
	}
	b = copyPlain(b, at, s, from, len(s))
	if at != nil {
		*at = append(*at, len(s))
	}
	return string(b)
}

// escapes are the bytes with which an escape may begin.
var escapes = [256]bool{'\\': true, '%': true, '&': true, '"': true, '\'': true, 0xc2: true, 0xe2: true, 0xef: true, 0xf3: true}

// copyPlain appends s[from:to], which stands for itself.
func copyPlain(b []byte, at *[]int, s string, from, to int) []byte {
	for i := from; at != nil && i < to; i++ {
		*at = append(*at, i)
	}
	return append(b, s[from:to]...)
}

// decode returns the character that an escape at the start of s means, or -1
// for one that means nothing, and the escape's length; 0 if there is none.
func decode(s string) (rune, int) {
	number := func(from, digits, base int) (rune, int) {
		if len(s) < from+digits {
			return 0, 0
		}
		n, err := strconv.ParseUint(s[from:from+digits], base, 32)
		if err != nil || n == 0 || n > utf8.MaxRune {
			return 0, 0
		}
		return rune(n), from + digits
	}
	switch s[0] {
	case '\\':
		if len(s) < 2 {
			return 0, 0
		}
		switch c := s[1]; {
		case c == 'x':
			return number(2, 2, 16)
		case c == 'u' && len(s) > 2 && s[2] == '{':
			if end := strings.IndexByte(s[:min(len(s), 12)], '}'); end > 3 {
				if c, n := number(3, end-3, 16); n > 0 {
					return c, n + 1
				}
			}
			return 0, 0
		case c == 'u':
			return number(2, 4, 16)
		case c == 'U':
			return number(2, 8, 16)
		case '0' <= c && c <= '3':
			return number(1, 3, 8)
		case c == '\n':
			return -1, 2
		case c == '\r' && len(s) > 2 && s[2] == '\n':
			return -1, 3
		case c == '"' || c == '\'' || c == '\\' || c == '/' || c == '=' || c == ':' || c == '-' || c == '_' || 'A' <= c && c <= 'Z':
			return rune(c), 2 // escaped for no reason, or quoted within a quotation
		}
	case '%':
		return number(1, 2, 16)
	case '&':
		return entity(s)
	case '"', '\'':
		return join(s)
	case 0xc2, 0xe2, 0xef, 0xf3: // what the characters of no width begin with
		switch r, n := utf8.DecodeRuneInString(s); {
		case r == 0xad, 0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f, r == 0xfeff, 0xe0000 <= r && r <= 0xe007f:
			return -1, n
		}
	}
	return 0, 0
}

// entity decodes a numeric character reference.
func entity(s string) (rune, int) {
	end := strings.IndexByte(s[:min(len(s), 12)], ';')
	if end < 3 || s[1] != '#' {
		return 0, 0
	}
	digits, base := s[2:end], 10
	if digits[0] == 'x' || digits[0] == 'X' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n == 0 || n > utf8.MaxRune {
		return 0, 0
	}
	return rune(n), end + 1
}

// join returns the length of what ends one piece of a string and begins the
// next: "", ”, "'", " + ", '.'.
func join(s string) (rune, int) {
	i := 1
	for i < len(s) && i < 8 && (s[i] == ' ' || s[i] == '+' || s[i] == '.' || s[i] == '\n') {
		i++
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		if gap := s[1:i]; gap == "" || strings.ContainsAny(gap, "+.\n") || gap == " " && s[0] == s[i] {
			return -1, i + 1
		}
	}
	return 0, 0
}

// wrapped returns the runs of base64 and hex in s that hold a secret.
func (r *Redactor) wrapped(s string, layers int, spans []span) []span {
	for i := 0; i < len(s); {
		end := i + run(s[i:])
		if end-i >= minWrapped {
			if kind := r.unwrap(s[i:end], layers); kind != "" {
				spans = append(spans, newSpan(s, i, end, kind))
			}
		}
		i = max(end, i+1)
	}
	return spans
}

// minWrapped is less than the shortest credential takes in base64.
const minWrapped = 20

// run returns how many bytes of s may be one piece of base64; it may be broken
// into lines of 60 or more, as encoders do.
func run(s string) int {
	line := 0
	for i := range len(s) {
		if base64Bytes[s[i]] {
			line++
			continue
		}
		switch c := s[i]; {
		case (c == '\n' || c == '\r') && line >= 60, c == '\n' && i > 0 && s[i-1] == '\r':
			line = 0
		default:
			return i
		}
	}
	return len(s)
}

// base64Bytes are those of both alphabets of base64.
var base64Bytes = func() (set [256]bool) {
	for _, c := range []byte(letters + "0123456789+/-_") {
		set[c] = true
	}
	return set
}()

var toStd = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "")

// unwrap returns the kind of secret that an encoded text holds, or "".
func (r *Redactor) unwrap(s string, layers int) string {
	std := toStd.Replace(s)
	if len(std)%2 == 0 && strings.Trim(std, "0123456789abcdefABCDEF") == "" {
		if b, err := hex.DecodeString(std); err == nil && printable(b) {
			if found := r.find(string(b), layers-1); len(found) > 0 {
				return found[0].kind
			}
		}
	}
	var few [512]byte
	for shift := range min(4, len(std)) { // what is before it may look like a part of it
		part := std[shift:]
		if len(part)%4 == 1 {
			part = part[:len(part)-1]
		}
		b := sense(few[:0], part)
		if len(b) == 0 {
			continue
		}
		if found := r.find(string(b), layers-1); len(found) > 0 {
			return found[0].kind
		}
	}
	return ""
}

// sense appends what base64 without padding decodes to, or nothing if that is
// noise: it stops as soon as it is.
func sense(dst []byte, part string) []byte {
	n := base64.RawStdEncoding.DecodedLen(len(part))
	odd := 0
	var in [64]byte
	for len(part) > 0 {
		piece := part[:min(len(part), len(in))]
		part = part[len(piece):]
		was := len(dst)
		var err error
		if dst, err = base64.RawStdEncoding.AppendDecode(dst, in[:copy(in[:], piece)]); err != nil {
			return nil
		}
		for _, c := range dst[was:] {
			if oddByte(c) {
				odd++
			}
		}
		if odd*4 > n {
			return nil
		}
	}
	return dst
}

// printable says whether decoding made sense: noise is not worth a look.
func printable(b []byte) bool {
	odd := 0
	for _, c := range b {
		if oddByte(c) {
			odd++
		}
	}
	return odd*4 <= len(b)
}

func oddByte(c byte) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' || c >= 0x7f }
