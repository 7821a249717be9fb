package decode

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of [Guess]. A payload that an evaluator is shown has 64 KiB at most.
const (
	maxDecoded      = 1 << 20 // bytes of the texts that are looked into
	maxDecodedTexts = 4096
	maxDecodings    = 8 // of one text, one within the other
	minSpelled      = 8 // bytes of the shortest text that a decoding is worth
	smallText       = 4 << 10
)

// Guess calls visit with each text that is encoded in some texts, however
// deep and in whatever spelling it knows, until visit returns false. It reports
// whether all of them were looked into: false if a bound was met first, so that
// more may be encoded than was visited.
//
// Where [Layers] wants to be sure that a text is one, Guess guesses: it reads
// every run of letters as each encoding that has them, and forwards what comes
// out printable. That is fit to be searched for known sentences, and for
// nothing else.
func Guess(texts []string, visit func(Layer) bool) (whole bool) {
	d := decoder{left: maxDecoded, seen: map[string]bool{}}
	for _, s := range texts {
		d.add(Layer{}, "", s)
	}
	for depth := 0; len(d.found) > 0; depth++ {
		level := d.found
		d.found = nil
		for _, l := range level {
			if depth > 0 && !visit(l) {
				return true
			}
		}
		if depth == maxDecodings {
			return false
		}
		for _, l := range level {
			if d.decode(l); d.over {
				// What was found before the bound was met is looked at all the same.
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

// A decoder collects the texts of one call of [Guess].
type decoder struct {
	found []Layer // of the level that is being decoded
	seen  map[string]bool
	left  int // bytes
	over  bool
}

// add notes a text that was found in another.
func (d *decoder) add(outer Layer, name, text string) {
	if len(text) < minSpelled || d.over || d.seen[text] {
		return
	}
	if d.left -= len(text); d.left < 0 || len(d.seen) == maxDecodedTexts {
		d.over = true
		return
	}
	if outer.Name != "" {
		name = outer.Name + "+" + name
	}
	d.seen[text] = true
	d.found = append(d.found, Layer{name, text})
}

// bytes notes the texts in decoded bytes, which may be compressed or of two
// bytes a character.
func (d *decoder) bytes(outer Layer, name string, b []byte) {
	name, b, whole := unpacked(name, b, maxLayerBytes)
	d.over = d.over || !whole
	d.add(outer, name, printableRuns(b))
}

// decode adds what one text decodes to.
func (d *decoder) decode(l Layer) {
	s := l.Text
	all := s
	for _, t := range spellings {
		if text := t.read(s); text != s {
			d.add(l, t.name, changed(s, text))
		}
		all = t.read(all)
	}
	if all != s {
		d.add(l, "mixed", changed(s, all))
	}
	// A short text is turned even if it has no words, once: the result may
	// be encoded.
	turn, blind := turned(s), len(s) <= smallText && !strings.Contains(l.Name, "rot13") && !strings.Contains(l.Name, "reversed")
	if turn == "rot13" || blind {
		d.add(l, "rot13", strings.Map(rot13, s))
	}
	if turn == "reversed" || blind {
		d.add(l, "reversed", Reverse(s))
	}
	for _, c := range codes {
		c.read(s, func(b []byte) { d.bytes(l, c.name, b) })
	}
}

// A spelling replaces in a text what stands for other characters. Text without
// any is returned as it is.
type spelling struct {
	name string
	sure bool // text that holds it is meant so, for [Layers]
	read func(string) string
}

var spellings = [...]spelling{
	{"url", true, unescape(Percents)},
	{"escape", true, unescape(Backslashes)},
	{"html", true, references},
	{"quoted-printable", false, quotedPrintable},
	{"symbols", false, symbols},
	{"concatenation", false, concatenated},
	{"printf", false, printed},
}

// unescape returns what decodes escapes where that yields readable text.
func unescape(kinds Escapes) func(string) string {
	return func(s string) string {
		if text, changed := Unescape(s, kinds, nil); changed && readable(text) {
			return text
		}
		return s
	}
}

// references decodes the character references of HTML, also those without a semicolon if there is one with it.
func references(s string) string {
	for i := range len(s) {
		if s[i] == '&' && referenceLength(s[i:]) > 0 {
			return html.UnescapeString(s)
		}
	}
	return s
}

// context is how many bytes around a change [changed] keeps, at least.
const context = 400

// changed returns the stretches of a text that are not in the text it was made
// from, with some of what is around them. A long program in which a few strings
// are put together is not worth reading twice.
func changed(from, to string) string {
	known := map[string]bool{}
	eachChunk(from, func(chunk string) { known[chunk] = true })
	var b strings.Builder
	at, kept, until := 0, 0, 0 // where the chunk starts, what was kept up to, and what is to be kept
	eachChunk(to, func(chunk string) {
		if !known[chunk] {
			start := max(kept, at-context)
			if start > until {
				b.WriteString(to[kept:until])
				b.WriteByte('\n')
				kept = start
			}
			until = min(len(to), at+len(chunk)+context)
		}
		at += len(chunk)
	})
	b.WriteString(to[kept:until])
	return strings.ToValidUTF8(b.String(), "")
}

// eachChunk cuts a text where lines and statements end.
func eachChunk(s string, f func(chunk string)) {
	for len(s) > 0 {
		n := strings.IndexAny(s, "\n;{}") + 1
		if n == 0 {
			n = len(s)
		}
		f(s[:n])
		s = s[n:]
	}
}

// printableRuns returns the stretches of printable text in bytes, a line each.
// What decoding by the wrong alphabet yields has none but by rare chance.
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
		if i-start >= minSpelled {
			out = append(append(out, b[start:i]...), '\n')
		}
		if i < len(b) {
			i++
		}
	}
	return string(bytes.TrimSpace(out))
}
