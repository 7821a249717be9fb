package decode

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of [VisitPossibleDecodings]. Evaluators see payloads of at most 64 KiB.
const (
	maxDecodedBytes          = 1 << 20 // bytes of the decoded texts
	maxDecodedTexts          = 4096
	maxPossibleDecodingDepth = 8 // nested decodings of one text
	minDecodedBytes          = 8 // least bytes of a decoded text
	maxBlindDecodingBytes    = 4 << 10
)

// VisitPossibleDecodings calls visit with each text that is encoded in the given texts, at any
// depth, until visit returns false. isComplete is false if a limit was reached, so that more
// encoded text can exist; it is true if visit ended the search.
//
// Unlike [Layers], it does not require certainty: it decodes every run of characters by each
// encoding that allows them, and passes on printable results. These are only suitable for searching
// for known phrases.
func VisitPossibleDecodings(texts []string, visit func(DecodedLayer) bool) (isComplete bool) {
	d := decoder{decodedBytesLeft: maxDecodedBytes, seen: map[string]bool{}}
	for _, s := range texts {
		d.addText(DecodedLayer{}, "", s)
	}
	for depth := 0; len(d.found) > 0; depth++ {
		level := d.found
		d.found = nil
		for _, l := range level {
			if depth > 0 && !visit(l) {
				return true
			}
		}
		if depth == maxPossibleDecodingDepth {
			return false
		}
		for _, l := range level {
			if d.decodeLayer(l); d.byteOrTextLimitReached {
				// Also visit what was found before the limit was reached.
				for _, l := range d.found {
					if !visit(l) {
						return true
					}
				}
				return false
			}
		}
	}
	return true
}

// A decoder collects the texts of one call of [VisitPossibleDecodings].
type decoder struct {
	found                  []DecodedLayer // found at the current nesting level
	seen                   map[string]bool
	decodedBytesLeft       int // bytes left
	byteOrTextLimitReached bool
}

// addText records a text that was found in another one.
func (d *decoder) addText(outer DecodedLayer, name, text string) {
	if len(text) < minDecodedBytes || d.byteOrTextLimitReached || d.seen[text] {
		return
	}
	if d.decodedBytesLeft -= len(text); d.decodedBytesLeft < 0 || len(d.seen) == maxDecodedTexts {
		d.byteOrTextLimitReached = true
		return
	}
	if outer.Name != "" {
		name = outer.Name + "+" + name
	}
	d.seen[text] = true
	d.found = append(d.found, DecodedLayer{name, text})
}

// addBytes records the texts in decoded bytes, which can be compressed or UTF-16.
func (d *decoder) addBytes(outer DecodedLayer, name string, b []byte) {
	name, b, whole := decompressAndDropUTF16Zeros(name, b, maxLayerBytes)
	d.byteOrTextLimitReached = d.byteOrTextLimitReached || !whole
	d.addText(outer, name, printableRuns(b))
}

// decodeLayer adds to d.found the texts that result when l.Text is decoded in each possible way.
func (d *decoder) decodeLayer(l DecodedLayer) {
	s := l.Text
	all := s
	for _, t := range notations {
		if text := t.decodeText(s); text != s {
			d.addText(l, t.name, changedPartsWithContext(s, text))
		}
		all = t.decodeText(all)
	}
	if all != s {
		d.addText(l, "mixed", changedPartsWithContext(s, all))
	}
	// Decode a short text by rot13 and by reversal even if it contains no known word in rot13 or
	// reversed form: the decoded text can have another encoding. A chain of decodings does this at
	// most once.
	turn, blind := rot13OrReversedEncodingName(s), len(s) <= maxBlindDecodingBytes && !strings.Contains(l.Name, "rot13") && !strings.Contains(l.Name, "reversed")
	if turn == "rot13" || blind {
		d.addText(l, "rot13", strings.Map(rot13, s))
	}
	if turn == "reversed" || blind {
		d.addText(l, "reversed", Reverse(s))
	}
	for _, c := range textEncodings {
		c.decodeOccurrences(s, func(b []byte) { d.addBytes(l, c.name, b) })
	}
}

// An escapeNotation decodes one kind of escapes within a text, such as percent escapes. Text
// without such escapes is returned unchanged.
type escapeNotation struct {
	name          string
	isUnambiguous bool // [Layers] decodes this notation too: text in it is certainly meant to be decoded
	decodeText    func(string) string
}

var notations = [...]escapeNotation{
	{"url", true, newUnescaper(PercentEscapes)},
	{"escape", true, newUnescaper(NumericBackslashEscapes)},
	{"html", true, decodeHTMLReferences},
	{"quoted-printable", false, decodeQuotedPrintable},
	{"symbols", false, replaceEnclosedLetterSymbols},
	{"concatenation", false, joinStringLiterals},
	{"printf", false, expandPrintf},
}

// newUnescaper returns a function that decodes escapes if the result is readable text.
func newUnescaper(kinds EscapeKinds) func(string) string {
	return func(s string) string {
		if text, changed := Unescape(s, kinds, nil); changed && isReadable(text) {
			return text
		}
		return s
	}
}

// decodeHTMLReferences decodes HTML character references; if one has a semicolon, also those without.
func decodeHTMLReferences(s string) string {
	for i := range len(s) {
		if s[i] == '&' && htmlCharacterReferenceLen(s[i:]) > 0 {
			return html.UnescapeString(s)
		}
	}
	return s
}

// contextBytesAroundDecodedPart is how many unchanged bytes [changedPartsWithContext] keeps before and after a change.
const contextBytesAroundDecodedPart = 400

// changedPartsWithContext returns the parts of a text that differ from the original text, with some context, so that a
// long program with a few concatenated strings is not examined twice.
func changedPartsWithContext(original, changed string) string {
	known := map[string]bool{}
	eachLineOrStatement(original, func(chunk string) { known[chunk] = true })
	var b strings.Builder
	at, kept, until := 0, 0, 0 // start of the current chunk; start and end of the part to keep next
	eachLineOrStatement(changed, func(chunk string) {
		if !known[chunk] {
			start := max(kept, at-contextBytesAroundDecodedPart)
			if start > until {
				b.WriteString(changed[kept:until])
				b.WriteByte('\n')
				kept = start
			}
			until = min(len(changed), at+len(chunk)+contextBytesAroundDecodedPart)
		}
		at += len(chunk)
	})
	b.WriteString(changed[kept:until])
	return strings.ToValidUTF8(b.String(), "")
}

// eachLineOrStatement splits a text at ends of lines and statements.
func eachLineOrStatement(s string, f func(chunk string)) {
	for len(s) > 0 {
		n := strings.IndexAny(s, "\n;{}") + 1
		if n == 0 {
			n = len(s)
		}
		f(s[:n])
		s = s[n:]
	}
}

// printableRuns returns the printable runs in bytes, one per line. Bytes decoded with a wrong alphabet
// rarely contain any.
func printableRuns(b []byte) string {
	var out []byte
	for i := 0; i < len(b); {
		start := i
		for i < len(b) {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r' && !Invisible(r) {
				break
			}
			i += n
		}
		if i-start >= minDecodedBytes {
			out = append(append(out, b[start:i]...), '\n')
		}
		if i < len(b) {
			i++
		}
	}
	return string(bytes.TrimSpace(out))
}
