package sanitize

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/decode"
)

// Bounds of what is decoded.
const (
	minRun      = 16        // characters of the shortest run of base64 or hexadecimal
	minEscapes  = 6         // escapes that a stretch of percent encoding, entities or \u has at least
	maxDecoded  = 256 << 10 // bytes of all that is decoded in one string
	maxStretch  = 32 << 10  // bytes of one encoded stretch that are decoded
	gapOfEscape = 24        // bytes between two escapes of one stretch
)

// encoded finds runs that decode to what speaks to the agent. Such a run is taken
// out: no one reads it.
func (t *text) encoded() {
	room := maxDecoded
	t.runs(&room)
	t.escapes(&room)
	t.unread = t.unread || room < 0
}

// runBytes are the characters of base64, both alphabets, and of hexadecimal.
var runBytes = func() (set [256]bool) {
	for c := range byte(128) {
		set[c] = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '/' || c == '-' || c == '_'
	}
	return set
}()

// runs decodes base64 and hexadecimal, also where it is broken into lines.
func (t *text) runs(room *int) {
	s := t.s
	for i := 0; i < len(s); {
		if !runBytes[s[i]] {
			i++
			continue
		}
		start, line := i, i
		for i < len(s) && (runBytes[s[i]] || s[i] == '\n' && i-line >= 60 && i+1 < len(s) && runBytes[s[i+1]]) {
			if s[i] == '\n' {
				line = i + 1
			}
			i++
		}
		if i-start < minRun {
			continue
		}
		run := s[start:min(i, start+maxStretch)]
		if name, text := decodeRun(run); text != "" {
			*room -= len(text)
			for n := 0; n < 2 && i < len(s) && s[i] == '='; n++ { // the padding
				i++
			}
			t.decoded(start, i, name, text, *room)
		}
	}
}

var unwrap = strings.NewReplacer("\n", "", "-", "+", "_", "/")

// decodeRun returns the text that a run stands for, "" if it is not text.
func decodeRun(run string) (name, text string) {
	if words(run) {
		return "", ""
	}
	std := unwrap.Replace(run)
	if len(std)%2 == 0 {
		if b, err := hex.DecodeString(std); err == nil && prose(b) {
			return "hex", strings.ToValidUTF8(string(b), "?")
		}
	}
	std = std[:len(std)/4*4+min(len(std)%4, 3)]
	if len(std)%4 == 1 {
		std = std[:len(std)-1]
	}
	if b, err := base64.RawStdEncoding.DecodeString(std); err == nil {
		if prose(b) {
			return "base64", strings.ToValidUTF8(string(b), "?")
		}
		if text := utf16(b); text != "" {
			return "base64 of UTF-16", text
		}
	}
	return "", ""
}

// words reports whether a run is hardly an encoding: a path, or words with a line
// or slash between them.
func words(run string) bool {
	upper, digits, marks := 0, 0, 0
	for i := range min(len(run), 64) {
		switch c := run[i]; {
		case 'A' <= c && c <= 'Z':
			upper++
		case '0' <= c && c <= '9':
			digits++
		case c == '/' || c == '-' || c == '_':
			marks++
		}
	}
	return digits == 0 && upper == 0 || upper+digits < 3 && marks > 0
}

// prose reports whether decoded bytes are text that may say something: with blanks
// between words, and little that does not print.
func prose(b []byte) bool {
	blanks, odd := 0, 0
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == ' ' || r == '\n':
			blanks++
		case r < ' ' && r != '\t' && r != '\r' || r == 0x7f || r == utf8.RuneError && n == 1:
			odd++
		}
		if b = b[n:]; odd > 8 && odd > len(b)/8 {
			return false
		}
	}
	return blanks > 0 && odd <= 8
}

// utf16 returns the text of little-endian UTF-16 of ASCII characters, "" if b is
// none.
func utf16(b []byte) string {
	if len(b) < 20 || len(b)%2 != 0 {
		return ""
	}
	out := make([]byte, 0, len(b)/2)
	for i := 0; i < len(b); i += 2 {
		if b[i+1] != 0 || b[i] >= utf8.RuneSelf {
			return ""
		}
		out = append(out, b[i])
	}
	if !prose(out) {
		return ""
	}
	return string(out)
}

// decoded reports what a stretch decodes to if that speaks to the agent, in however
// many encodings within each other.
func (t *text) decoded(start, end int, name, text string, room int) {
	if room < 0 {
		return
	}
	rule, whole := spoken(text)
	t.unread = t.unread || !whole
	if rule == nil {
		for _, l := range decode.Layers(text) {
			rule, whole = spoken(l.Text)
			t.unread = t.unread || !whole
			if rule != nil {
				name, text = name+"+"+l.Name, l.Text
				break
			}
		}
	}
	if rule != nil {
		t.find(Encoded, rule.ID, High, start, end, name+": "+excerpt(text))
		t.cut(start, end)
	}
}

// escapes decodes stretches of percent encoding, of character references and of
// escapes with a backslash.
func (t *text) escapes(room *int) {
	s := t.s
	var start, last, count int
	var kind byte
	flush := func() {
		if count >= minEscapes {
			start, last = t.widened(start, last)
			stretch := s[start:min(last, start+maxStretch)]
			name, text := unescape(kind, stretch)
			*room -= len(text)
			t.decoded(start, last, name, text, *room)
		}
		count = 0
	}
	for i := 0; i < len(s); {
		n := 0
		if c := s[i]; c == '%' || c == '&' || c == '\\' {
			n = escapeLength(s[i:])
			if n > 0 && count > 0 && (c != kind || i-last > gapOfEscape) {
				flush()
			}
			if n > 0 {
				if count == 0 {
					start, kind = i, c
				}
				count++
				last = i + n
			}
		}
		i += max(n, 1)
	}
	flush()
}

// maxPlain is how much of what is not escaped belongs to a stretch at either end.
const maxPlain = 64

// widened returns a stretch with the plain characters at its ends.
func (t *text) widened(start, end int) (int, int) {
	ends := func(c byte) bool { return c <= ' ' || strings.IndexByte("\"'=?<>()[]{}`,;", c) >= 0 }
	for n := 0; n < maxPlain && start > 0 && !ends(t.s[start-1]); n++ {
		start--
	}
	for n := 0; n < maxPlain && end < len(t.s) && !ends(t.s[end]); n++ {
		end++
	}
	return start, end
}

// escapeLength returns how long the escape is that a text begins with, 0 if it
// begins with none.
func escapeLength(s string) int {
	digits := func(from, n int) int {
		if len(s) < from+n {
			return 0
		}
		for i := from; i < from+n; i++ {
			if c := s[i] | 0x20; !('0' <= s[i] && s[i] <= '9' || 'a' <= c && c <= 'f') {
				return 0
			}
		}
		return from + n
	}
	switch {
	case s[0] == '%':
		return digits(1, 2)
	case s[0] == '&':
		if len(s) > 3 && s[1] == '#' {
			if end := strings.IndexByte(s[:min(len(s), 10)], ';'); end > 2 {
				return end + 1
			}
		}
		return 0
	case len(s) > 1 && s[1] == 'x':
		return digits(2, 2)
	case len(s) > 1 && s[1] == 'u':
		return digits(2, 4)
	}
	return 0
}

// unescape decodes one kind of escapes.
func unescape(kind byte, s string) (name, text string) {
	switch kind {
	case '%':
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] == '%' && escapeLength(s[i:]) > 0 {
				c, _ := hex.DecodeString(s[i+1 : i+3])
				b.Write(c)
				i += 2
				continue
			}
			b.WriteByte(s[i])
		}
		return "percent", strings.ToValidUTF8(strings.ReplaceAll(b.String(), "+", " "), "?")
	case '&':
		return "character references", html.UnescapeString(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if n := escapeLength(s[i:]); s[i] == '\\' && n > 0 {
			c := 0
			for _, d := range s[i+2 : i+n] {
				c = c<<4 | strings.IndexRune("0123456789abcdef", d|0x20)
			}
			b.WriteRune(rune(c))
			i += n - 1
			continue
		}
		b.WriteByte(s[i])
	}
	return "escapes", b.String()
}
