package sanitize

import (
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// Limits of decoding.
const (
	minBase64OrHexChars     = 16        // characters of the shortest run of base64 or hexadecimal
	minEscapesPerEncodedRun = 6         // minimum number of escapes in a stretch of percent encoding, character references or \u escapes
	maxDecodedBytes         = 256 << 10 // limit for the decoded text of one string, in bytes; nested decoded text has its own limit of this size
	maxEncodedRunBytes      = 32 << 10  // bytes of one encoded stretch that are decoded
	maxBytesBetweenEscapes  = 24        // bytes between two escapes of one stretch
)

// examineEncodedInjections finds encoded text that decodes to a prompt injection, and removes it, since people do not
// read it.
func (t *examinedText) examineEncodedInjections() {
	room := maxDecodedBytes
	t.decodeBase64AndHexRuns(&room)
	t.decodeEscapedRuns(&room)
	t.partlyUnexamined = t.partlyUnexamined || room < 0
}

// decodeBase64AndHexRuns decodes base64, base32 and hexadecimal, also where it is broken into lines.
func (t *examinedText) decodeBase64AndHexRuns(remainingDecodeBytes *int) {
	for start, end := range decode.Base64RunStartsAndEnds(t.content, minBase64OrHexChars) {
		run := t.content[start:min(end, start+maxEncodedRunBytes)]
		if isPathOrWords(run) {
			continue
		}
		for n := 0; n < 2 && end < len(t.content) && t.content[end] == '='; n++ { // the padding
			end++
		}
		decode.TryDecodingsOfBase64Run(run, func(name, text string) bool {
			*remainingDecodeBytes -= len(text)
			return t.reportDecodedInjection(start, end, name, text, *remainingDecodeBytes)
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

// reportDecodedInjection reports a finding if an encoded stretch decodes to a prompt injection, also through
// nested encodings. It returns true if the stretch does so, or if the limit of decoded bytes was already
// exceeded.
func (t *examinedText) reportDecodedInjection(start, end int, encodingName, decodedText string, remainingDecodeBytes int) bool {
	if remainingDecodeBytes < 0 || t.decodedByteCount > maxDecodedBytes {
		t.partlyUnexamined = true
		return true
	}
	rule, whole := firstRuleMatchingHiddenText(decodedText)
	t.partlyUnexamined = t.partlyUnexamined || !whole
	if rule == nil {
		for _, l := range decode.Layers(decodedText) {
			if t.decodedByteCount += len(l.Text); t.decodedByteCount > maxDecodedBytes {
				t.partlyUnexamined = true
				break
			}
			rule, whole = firstRuleMatchingHiddenText(l.Text)
			t.partlyUnexamined = t.partlyUnexamined || !whole
			if rule != nil {
				encodingName, decodedText = encodingName+"+"+l.Name, l.Text
				break
			}
		}
	}
	if rule != nil {
		t.addFinding(FindingEncodedInjection, rule.ID, SeverityHigh, start, end, encodingName+": "+excerpt(decodedText))
		t.markSpanForRemoval(start, end)
	}
	return rule != nil
}

// escapesByFirstByte are the kinds of escapes, by their first character.
var escapesByFirstByte = map[byte]decode.EscapeKinds{'%': decode.PercentEscapes, '&': decode.HTMLReferenceEscapes, '\\': decode.NumericBackslashEscapes}

// decodeEscapedRuns decodes stretches of percent encoding, character references and backslash escapes.
func (t *examinedText) decodeEscapedRuns(remainingDecodeBytes *int) {
	s := t.content
	var start, last, count int
	var kind byte
	flush := func() {
		if count >= minEscapesPerEncodedRun {
			start, last = t.extendEncodedRun(start, last)
			stretch := s[start:min(last, start+maxEncodedRunBytes)]
			text, _ := decode.Unescape(stretch, escapesByFirstByte[kind], nil)
			name := "escapes"
			switch kind {
			case '%':
				name, text = "percent", strings.ReplaceAll(text, "+", " ")
			case '&':
				name = "character references"
			}
			*remainingDecodeBytes -= len(text)
			t.reportDecodedInjection(start, last, name, text, *remainingDecodeBytes)
		}
		count = 0
	}
	for i := 0; i < len(s); {
		n := 0
		if c := s[i]; c == '%' || c == '&' && strings.HasPrefix(s[i+1:], "#") || c == '\\' {
			n = decode.EscapeLength(s[i:], escapesByFirstByte[c])
			if n > 0 && count > 0 && (c != kind || i-last > maxBytesBetweenEscapes) {
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

// maxEncodedRunMarginBytes is the maximum number of plain bytes before, and after, an encoded
// run that are treated as a part of the run.
const maxEncodedRunMarginBytes = 64

// extendEncodedRun returns the bounds of an encoded run, extended on each side up to the next space,
// control character, quote, bracket or separator, but by at most maxEncodedRunMarginBytes bytes.
func (t *examinedText) extendEncodedRun(start, end int) (int, int) {
	ends := func(c byte) bool { return c <= ' ' || strings.IndexByte("\"'=?<>()[]{}`,;", c) >= 0 }
	for n := 0; n < maxEncodedRunMarginBytes && start > 0 && !ends(t.content[start-1]); n++ {
		start--
	}
	for n := 0; n < maxEncodedRunMarginBytes && end < len(t.content) && !ends(t.content[end]); n++ {
		end++
	}
	return start, end
}
