package sanitize

import (
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// Limits of decoding.
const (
	minRun      = 16        // characters of the shortest run of base64 or hexadecimal
	minEscapes  = 6         // escapes that a stretch of percent encoding, entities or \u has at least
	maxDecoded  = 256 << 10 // bytes of all that is decoded in one string, and of all layers in that
	maxStretch  = 32 << 10  // bytes of one encoded stretch that are decoded
	gapOfEscape = 24        // bytes between two escapes of one stretch
)

// encoded finds encoded text that decodes to a prompt injection, and removes it, since people do not
// read it.
func (t *text) encoded() {
	room := maxDecoded
	t.decodeRuns(&room)
	t.escapes(&room)
	t.unread = t.unread || room < 0
}

// decodeRuns decodes base64, base32 and hexadecimal, also where it is broken into lines.
func (t *text) decodeRuns(room *int) {
	for start, end := range decode.Runs(t.s, minRun) {
		run := t.s[start:min(end, start+maxStretch)]
		if isPathOrWords(run) {
			continue
		}
		for n := 0; n < 2 && end < len(t.s) && t.s[end] == '='; n++ { // the padding
			end++
		}
		decode.Run(run, func(name, text string) bool {
			*room -= len(text)
			return t.decoded(start, end, name, text, *room)
		})
	}
}

// isPathOrWords reports whether a run is probably not an encoding: a path, or words joined by hyphens
// or slashes.
func isPathOrWords(run string) bool {
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

// decoded reports a stretch that decodes to a prompt injection, also through nested encodings, and
// whether it does.
func (t *text) decoded(start, end int, name, text string, room int) bool {
	if room < 0 || t.layers > maxDecoded {
		t.unread = true
		return true
	}
	rule, whole := hiddenTextRule(text)
	t.unread = t.unread || !whole
	if rule == nil {
		for _, l := range decode.Layers(text) {
			if t.layers += len(l.Text); t.layers > maxDecoded {
				t.unread = true
				break
			}
			rule, whole = hiddenTextRule(l.Text)
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
	return rule != nil
}

// escapesOf are the kinds of escapes, by their first character.
var escapesOf = map[byte]decode.Escapes{'%': decode.Percents, '&': decode.References, '\\': decode.Backslashes}

// escapes decodes stretches of percent encoding, character references and backslash escapes.
func (t *text) escapes(room *int) {
	s := t.s
	var start, last, count int
	var kind byte
	flush := func() {
		if count >= minEscapes {
			start, last = t.widenSpan(start, last)
			stretch := s[start:min(last, start+maxStretch)]
			text, _ := decode.Unescape(stretch, escapesOf[kind], nil)
			name := "escapes"
			switch kind {
			case '%':
				name, text = "percent", strings.ReplaceAll(text, "+", " ")
			case '&':
				name = "character references"
			}
			*room -= len(text)
			t.decoded(start, last, name, text, *room)
		}
		count = 0
	}
	for i := 0; i < len(s); {
		n := 0
		if c := s[i]; c == '%' || c == '&' && strings.HasPrefix(s[i+1:], "#") || c == '\\' {
			n = decode.EscapeLength(s[i:], escapesOf[c])
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

// maxPlain is how many unescaped characters at either end belong to a stretch.
const maxPlain = 64

// widenSpan returns a stretch extended by the plain characters at its ends.
func (t *text) widenSpan(start, end int) (int, int) {
	ends := func(c byte) bool { return c <= ' ' || strings.IndexByte("\"'=?<>()[]{}`,;", c) >= 0 }
	for n := 0; n < maxPlain && start > 0 && !ends(t.s[start-1]); n++ {
		start--
	}
	for n := 0; n < maxPlain && end < len(t.s) && !ends(t.s[end]); n++ {
		end++
	}
	return start, end
}
