package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isFirstByteOfSuspectRune are the first bytes of characters that are examined; all other bytes are skipped.
var isFirstByteOfSuspectRune = func() (set [256]bool) {
	for c := range byte(' ') {
		set[c] = c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v'
	}
	for _, c := range []byte{0x7f, 0xc2, 0xcd, 0xd8, 0xe1, 0xe2, 0xe3, 0xef, 0xf0, 0xf3} {
		set[c] = true
	}
	return set
}()

// maxIsolatedZeroWidthChars is how many single invisible characters between ASCII characters are allowed before
// they count as a hidden message.
const maxIsolatedZeroWidthChars = 16

// examineCharacters finds invisible characters and terminal control characters.
func (t *examinedText) examineCharacters() {
	s := t.content
	singles, first := 0, -1
	for i := 0; i < len(s); {
		if !isFirstByteOfSuspectRune[s[i]] {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r < ' ', r == 0x7f, 0x80 <= r && r < 0xa0:
			i = t.scanControlSequence(i, r, n)
		case isInvisible(r):
			end := invisibleRunEnd(s, i)
			if t.reportSuspiciousInvisibleRun(i, end) {
				if singles++; first < 0 {
					first = i
				}
			}
			i = end
		default:
			i += n
		}
	}
	if singles > maxIsolatedZeroWidthChars {
		t.addFinding(FindingInvisibleCharacters, "", SeverityMedium, first, first+3, fmt.Sprintf("%d zero-width (invisible) characters", singles))
	}
}

// isInvisible reports whether a character has no visible form.
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

// isVariationSelector reports whether a character selects a variant of the character before it.
func isVariationSelector(r rune) bool {
	return 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef
}

// isBidiControl reports whether a character changes the text direction until it is ended.
func isBidiControl(r rune) bool { return 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 }

func invisibleRunEnd(s string, from int) int {
	for from < len(s) {
		r, n := utf8.DecodeRuneInString(s[from:])
		if !isInvisible(r) {
			break
		}
		from += n
	}
	return from
}

// reportSuspiciousInvisibleRun reports a run of adjacent invisible characters as a finding if the run is
// suspicious. The result is true for a single invisible character between ASCII characters that is
// not suspicious on its own.
func (t *examinedText) reportSuspiciousInvisibleRun(start, end int) (isIsolatedUnsuspicious bool) {
	run := []rune(t.content[start:end])
	before, _ := utf8.DecodeLastRuneInString(t.content[:start])
	after, _ := utf8.DecodeRuneInString(t.content[end:])
	count := func(is func(rune) bool) (n int) {
		for _, r := range run {
			if is(r) {
				n++
			}
		}
		return n
	}
	tags, variants, turns := count(func(r rune) bool { return 0xe0000 <= r && r <= 0xe007f }), count(isVariationSelector), count(isBidiControl)
	ascii := before < utf8.RuneSelf && after < utf8.RuneSelf // the start or end of the text counts as ASCII
	switch {
	case tags > 0 && before == 0x1f3f4 && tags == len(run) && run[tags-1] == 0xe007f && tags <= 8: // a regional flag emoji
	case tags > 0:
		t.reportAndRemove(FindingTagCharacters, SeverityHigh, start, end, fmt.Sprintf("%d tag characters that spell %q", tags, excerpt(decodeTagCharacters(run))))
	case variants > 1 && variants == len(run):
		t.reportAndRemove(FindingTagCharacters, SeverityHigh, start, end, fmt.Sprintf("%d variation selectors that spell %q", variants, excerpt(decodeTagCharacters(run))))
	case turns > 0:
		t.reportSuspiciousBidiRun(run, start, end)
	case start == 0 && len(run) == 1 && run[0] == 0xfeff: // the byte order mark
	case len(run) >= 8:
		t.reportAndRemove(FindingInvisibleCharacters, SeverityHigh, start, end, fmt.Sprintf("%d invisible characters in a row", len(run)))
	case len(run) > 1 && variants == 0 && ascii:
		t.reportAndRemove(FindingInvisibleCharacters, SeverityMedium, start, end, fmt.Sprintf("%d invisible characters in a row", len(run)))
	case len(run) == 1 && variants == 0 && ascii && run[0] != 0xad && isWordRune(before) && isWordRune(after):
		t.reportAndRemove(FindingInvisibleCharacters, SeverityMedium, start, end, fmt.Sprintf("an invisible character (U+%04X) inside a word", run[0]))
	default:
		return len(run) == 1 && variants == 0 && ascii
	}
	return false
}

// reportAndRemove reports a run of characters and removes it.
func (t *examinedText) reportAndRemove(kind FindingKind, severity string, start, end int, what string) {
	t.addFinding(kind, "", severity, start, end, what)
	t.markSpanForRemoval(start, end)
}

// reportSuspiciousBidiRun judges a run of bidirectional controls. Overrides are always reported; other controls only
// in a text without right-to-left letters.
func (t *examinedText) reportSuspiciousBidiRun(run []rune, start, end int) {
	override := false
	for _, r := range run {
		override = override || r == 0x202d || r == 0x202e
	}
	severity := SeverityMedium
	switch {
	case override:
		severity = SeverityHigh
	case t.hasRightToLeft():
		return
	}
	t.reportAndRemove(FindingBidiControls, severity, start, end, fmt.Sprintf("bidirectional control characters (%U), which make text look different from its content", run))
}

// hasRightToLeft reports whether a text has letters of a right-to-left script.
func (t *examinedText) hasRightToLeft() bool {
	if t.rightToLeftState == 0 {
		t.rightToLeftState = -1
		for i := 0; i < len(t.content); i++ {
			// First bytes of the scripts from Hebrew to Arabic, and their presentation forms.
			if c := t.content[i]; c >= 0xd6 && c <= 0xdf || c == 0xe0 || c == 0xef {
				if r, _ := utf8.DecodeRuneInString(t.content[i:]); unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko) {
					t.rightToLeftState = 1
					break
				}
			}
		}
	}
	return t.rightToLeftState > 0
}

func isWordRune(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// decodeTagCharacters returns the text that tag characters or variation selectors encode: each tag an
// ASCII character, each of the 256 selectors a byte.
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

// scanControlSequence judges a control character or escape sequence, removes it and returns its end. It reports
// no finding for colours, for the backspaces of overstruck letters, for NEL and NUL, and after the first
// maxReportedControlChars findings.
func (t *examinedText) scanControlSequence(start int, r rune, runeBytes int) int {
	s := t.content
	end := start + runeBytes
	severity, what := SeverityLow, ""
	switch r {
	case 0x1b, 0x9b, 0x9d, 0x90, 0x98, 0x9e, 0x9f:
		end, severity, what = parseTerminalEscape(s, start)
	case '\b':
		if isOverstrike(s, start) {
			severity = ""
		}
	case 0x85, 0x00: // NEL, a line end; and NUL, as in UTF-16 text
		severity = ""
	}
	if severity != "" && t.reportedControlCharCount < maxReportedControlChars {
		if t.reportedControlCharCount++; what == "" {
			what = fmt.Sprintf("control character U+%04X", r)
		}
		t.addFinding(FindingTerminalEscape, "", severity, start, end, what)
	}
	t.markSpanForRemoval(start, end)
	return end
}

// maxReportedControlChars is how many control characters of a string are reported individually.
const maxReportedControlChars = 10

// isOverstrike reports whether a backspace overstrikes a letter with itself or an underscore, as
// manual pages do for bold and underline.
func isOverstrike(s string, i int) bool {
	if i == 0 || i+1 >= len(s) {
		return false
	}
	a, _ := utf8.DecodeLastRuneInString(s[:i])
	b, _ := utf8.DecodeRuneInString(s[i+1:])
	return a == b && a != '\b' || a == '_' || b == '_'
}

// maxTerminalEscapeBytes is the maximum length of a terminal escape sequence, in bytes.
const maxTerminalEscapeBytes = 64 << 10

// parseTerminalEscape returns the end of a terminal escape sequence, its severity ("" for colours) and what it
// does.
func parseTerminalEscape(s string, start int) (end int, severity, description string) {
	r, n := utf8.DecodeRuneInString(s[start:])
	at := start + n
	if r == 0x1b {
		if at == len(s) {
			return at, SeverityLow, "an incomplete terminal escape sequence"
		}
		r, at = rune(s[at])+0x40, at+1
	}
	switch r {
	case '[' + 0x40:
		for end = at; end < len(s) && end-at < 64 && s[end] >= 0x20 && s[end] < 0x40; end++ {
		}
		if end == len(s) || s[end] < 0x40 || s[end] > 0x7e {
			return end, SeverityLow, "an incomplete terminal escape sequence"
		}
		if severity = csiSeverity(s[at:end], s[end]); severity == "" {
			return end + 1, "", ""
		}
		return end + 1, severity, fmt.Sprintf("a terminal escape sequence (CSI %s)", excerpt(s[at:end+1]))
	case ']' + 0x40, 'P' + 0x40, 'X' + 0x40, '^' + 0x40, '_' + 0x40:
		end = terminalStringSequenceEnd(s, at)
		severity = SeverityMedium
		if body := s[at:end]; r == ']'+0x40 && strings.HasPrefix(body, "52;") || r == 'P'+0x40 {
			severity = SeverityHigh // writes to the clipboard, or makes the terminal send input
		}
		return end, severity, "a terminal escape sequence: " + excerpt(s[at:end])
	}
	return at, SeverityLow, "a terminal escape sequence, which can hide text"
}

// csiSeverity returns the severity of a CSI sequence with a final byte: hiding text or moving the
// cursor back is more severe than others; colours have none.
func csiSeverity(params string, final byte) string {
	switch final {
	case 'm':
		if concealsText(params) {
			return SeverityHigh
		}
		return ""
	case 'A', 'D', 'F', 'G', 'H', 'J', 'K', 'P', 'S', 'T', 'X', 'f':
		return SeverityMedium
	}
	return SeverityLow
}

// concealsText reports whether the parameters of an SGR sequence, which ends with m, have the parameter 8. An 8
// in a colour does not count, as in 38;5;8, 48;2;8;8;8 and 58:5:8.
func concealsText(params string) bool {
	list := strings.Split(params, ";")
	for i := 0; i < len(list); i++ {
		number, _, hasSubparameters := strings.Cut(list[i], ":")
		switch strings.TrimLeft(number, "0") {
		case "8":
			return true
		case "38", "48", "58":
			if hasSubparameters || i+1 == len(list) {
				continue
			}
			switch strings.TrimLeft(list[i+1], "0") {
			case "5": // the number of a colour follows
				i += 2
			case "2": // red, green and blue follow
				i += 4
			}
		}
	}
	return false
}

// terminalStringSequenceEnd returns the end of an escape sequence that BEL or ST terminates.
func terminalStringSequenceEnd(s string, at int) int {
	most := min(len(s), at+maxTerminalEscapeBytes)
	for i := at; i < most; i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2
		case s[i] == '\n' || s[i] == 0x1b: // not terminated
			return i
		}
	}
	return most
}
