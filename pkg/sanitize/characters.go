package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// suspectBytes are the bytes with which a character may begin that is looked at; every
// other byte of a text is passed over.
var suspectBytes = func() (set [256]bool) {
	for c := range byte(' ') {
		set[c] = c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v'
	}
	for _, c := range []byte{0x7f, 0xc2, 0xcd, 0xd8, 0xe1, 0xe2, 0xe3, 0xef, 0xf0, 0xf3} {
		set[c] = true
	}
	return set
}()

// maxSingles is how many zero-width characters may be alone between others that
// do not join with them before they count as a message.
const maxSingles = 16

// characters finds what shows nothing, and what a terminal obeys.
func (t *text) characters() {
	s := t.s
	singles, first := 0, -1
	for i := 0; i < len(s); {
		if !suspectBytes[s[i]] {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r < ' ', r == 0x7f, 0x80 <= r && r < 0xa0:
			i = t.judgeControl(i, r, n)
		case isInvisible(r):
			end := unseenRun(s, i)
			if t.run(i, end) {
				if singles++; first < 0 {
					first = i
				}
			}
			i = end
		default:
			i += n
		}
	}
	if singles > maxSingles {
		t.find(Invisible, "", Medium, first, first+3, fmt.Sprintf("%d zero-width (invisible) characters", singles))
	}
}

// isInvisible reports whether a character shows nothing by itself.
func isInvisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xfeff, r == 0xffa0,
		0x180b <= r && r <= 0x180f, 0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f,
		isVariationSelector(r), 0xfff9 <= r && r <= 0xfffb, 0x1d173 <= r && r <= 0x1d17a, 0xe0000 <= r && r <= 0xe0fff:
		return true
	}
	return false
}

// isVariationSelector reports whether a character chooses a variant of the one before it.
func isVariationSelector(r rune) bool {
	return 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef
}

// control of bidirectional text that lasts until it is ended.
func isBidiControl(r rune) bool { return 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 }

func unseenRun(s string, from int) int {
	for from < len(s) {
		r, n := utf8.DecodeRuneInString(s[from:])
		if !isInvisible(r) {
			break
		}
		from += n
	}
	return from
}

// run judges characters that show nothing and stand together. It reports whether it
// is one alone that says nothing yet.
func (t *text) run(start, end int) (single bool) {
	run := []rune(t.s[start:end])
	before, _ := utf8.DecodeLastRuneInString(t.s[:start])
	after, _ := utf8.DecodeRuneInString(t.s[end:])
	count := func(is func(rune) bool) (n int) {
		for _, r := range run {
			if is(r) {
				n++
			}
		}
		return n
	}
	tags, variants, turns := count(func(r rune) bool { return 0xe0000 <= r && r <= 0xe007f }), count(isVariationSelector), count(isBidiControl)
	ascii := before < utf8.RuneSelf && after < utf8.RuneSelf // the end of a text counts as such
	switch {
	case tags > 0 && before == 0x1f3f4 && tags == len(run) && run[tags-1] == 0xe007f && tags <= 8: // the flag of a region
	case tags > 0:
		t.reportAndRemove(Tags, High, start, end, fmt.Sprintf("%d tag characters that spell %q", tags, excerpt(decodeTagCharacters(run))))
	case variants > 1 && variants == len(run):
		t.reportAndRemove(Tags, High, start, end, fmt.Sprintf("%d variation selectors that spell %q", variants, excerpt(decodeTagCharacters(run))))
	case turns > 0:
		t.judgeBidi(run, start, end)
	case start == 0 && len(run) == 1 && run[0] == 0xfeff: // the mark of an encoding
	case len(run) >= 8:
		t.reportAndRemove(Invisible, High, start, end, fmt.Sprintf("%d invisible characters in a row", len(run)))
	case len(run) > 1 && variants == 0 && ascii:
		t.reportAndRemove(Invisible, Medium, start, end, fmt.Sprintf("%d invisible characters in a row", len(run)))
	case len(run) == 1 && variants == 0 && ascii && run[0] != 0xad && wordRune(before) && wordRune(after):
		t.reportAndRemove(Invisible, Medium, start, end, fmt.Sprintf("an invisible character (U+%04X) inside a word", run[0]))
	default:
		return len(run) == 1 && variants == 0 && ascii
	}
	return false
}

// reportAndRemove reports a run and has it taken out.
func (t *text) reportAndRemove(kind Kind, severity string, start, end int, what string) {
	t.find(kind, "", severity, start, end, what)
	t.cut(start, end)
}

// judgeBidi judges a run with controls of bidirectional text. Overrides are never
// honest; the others are, where there is text from right to left.
func (t *text) judgeBidi(run []rune, start, end int) {
	override := false
	for _, r := range run {
		override = override || r == 0x202d || r == 0x202e
	}
	severity := Medium
	switch {
	case override:
		severity = High
	case t.rightToLeft():
		return
	}
	t.reportAndRemove(Bidi, severity, start, end, fmt.Sprintf("bidirectional control characters (%U), which make text look different from its content", run))
}

// rightToLeft reports whether a text has letters that are written from right to
// left.
func (t *text) rightToLeft() bool {
	if t.rtl == 0 {
		t.rtl = -1
		for i := 0; i < len(t.s); i++ {
			// What the scripts from Hebrew to Arabic, and their presentation forms, begin with.
			if c := t.s[i]; c >= 0xd6 && c <= 0xdf || c == 0xe0 || c == 0xef {
				if r, _ := utf8.DecodeRuneInString(t.s[i:]); unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
					t.rtl = 1
					break
				}
			}
		}
	}
	return t.rtl > 0
}

func wordRune(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// decodeTagCharacters returns the text that tag characters or variation selectors stand for: a
// tag for the character of ASCII below it, the 256 selectors for bytes.
func decodeTagCharacters(run []rune) string {
	var b strings.Builder
	for _, r := range run {
		switch {
		case 0xe0020 <= r && r < 0xe007f:
			b.WriteByte(byte(r))
		case 0xfe00 <= r && r <= 0xfe0f:
			b.WriteByte(byte(r - 0xfe00))
		case 0xe0100 <= r && r <= 0xe01ef:
			b.WriteByte(byte(r - 0xe0100 + 16))
		}
	}
	return b.String()
}

// judgeControl judges a control character and returns where it ends with what belongs to
// it. Colours and overstruck letters are taken out without a finding.
func (t *text) judgeControl(i int, r rune, n int) int {
	s := t.s
	end := i + n
	severity, what := Low, ""
	switch r {
	case 0x1b, 0x9b, 0x9d, 0x90, 0x98, 0x9e, 0x9f:
		end, severity, what = escape(s, i)
	case '\b':
		if isOverstrike(s, i) {
			severity = ""
		}
	case 0x85, 0x00: // a line end, and what a text of two bytes a character has
		severity = ""
	}
	if severity != "" && t.controls < maxControls {
		if t.controls++; what == "" {
			what = fmt.Sprintf("control character U+%04X", r)
		}
		t.find(Escape, "", severity, i, end, what)
	}
	t.cut(i, end)
	return end
}

// maxControls is how many control characters of a string are reported one by one.
const maxControls = 10

// isOverstrike reports whether a backspace strikes a letter over itself or over a line, as
// manual pages do.
func isOverstrike(s string, i int) bool {
	if i == 0 || i+1 >= len(s) {
		return false
	}
	a, _ := utf8.DecodeLastRuneInString(s[:i])
	b, _ := utf8.DecodeRuneInString(s[i+1:])
	return a == b && a != '\b' || a == '_' || b == '_'
}

// maxEscape is how long one order to a terminal may be, in bytes.
const maxEscape = 64 << 10

// escape returns where a terminal escape sequence ends, how severe it is, "" for
// colours, and what it does.
func escape(s string, i int) (end int, severity, what string) {
	r, n := utf8.DecodeRuneInString(s[i:])
	at := i + n
	if r == 0x1b {
		if at == len(s) {
			return at, Low, "an incomplete terminal escape sequence"
		}
		r, at = rune(s[at])+0x40, at+1
	}
	switch r {
	case '[' + 0x40:
		for end = at; end < len(s) && end-at < 64 && s[end] >= 0x20 && s[end] < 0x40; end++ {
		}
		if end == len(s) || s[end] < 0x40 || s[end] > 0x7e {
			return end, Low, "an incomplete terminal escape sequence"
		}
		if severity = csiSeverity(s[at:end], s[end]); severity == "" {
			return end + 1, "", ""
		}
		return end + 1, severity, fmt.Sprintf("a terminal escape sequence (CSI %s)", excerpt(s[at:end+1]))
	case ']' + 0x40, 'P' + 0x40, 'X' + 0x40, '^' + 0x40, '_' + 0x40:
		end = stringEnd(s, at)
		severity = Medium
		if body := s[at:end]; r == ']'+0x40 && strings.HasPrefix(body, "52;") || r == 'P'+0x40 {
			severity = High // writes to the clipboard, or has the terminal answer
		}
		return end, severity, "a terminal escape sequence: " + excerpt(s[at:end])
	}
	return at, Low, "a terminal escape sequence, which can hide text"
}

// csiSeverity returns how severe an order is that ends in final: one that hides
// text, or moves back over it, more than another, colours not at all.
func csiSeverity(params string, final byte) string {
	switch final {
	case 'm':
		for p := range strings.SplitSeq(params, ";") {
			if p == "8" {
				return High
			}
		}
		return ""
	case 'A', 'D', 'F', 'G', 'H', 'J', 'K', 'P', 'S', 'T', 'X', 'f':
		return Medium
	}
	return Low
}

// stringEnd returns the end of an order that ends with BEL or ST.
func stringEnd(s string, at int) int {
	most := min(len(s), at+maxEscape)
	for i := at; i < most; i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2
		case s[i] == '\n' || s[i] == 0x1b: // never ended
			return i
		}
	}
	return most
}
