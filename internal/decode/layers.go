package decode

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"html"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A Layer is text that was found encoded in other text.
type Layer struct {
	Name string // the encodings, outermost first, such as "base64+gzip"
	Text string
}

const (
	maxLayers     = 8
	maxNesting    = 4
	maxLayerBytes = 64 << 10 // of all layers together, and of the text read
	minEncoded    = 12       // characters of the shortest encoded run
)

// Layers returns the texts that are encoded in s, at most 8 of at most 64 KiB
// together, each encoded up to four times. Only readable text counts as a
// layer, so hashes, identifiers and paths give none.
func Layers(s string) []Layer {
	if len(s) > maxLayerBytes {
		s = s[:maxLayerBytes]
	}
	var layers []Layer
	room := maxLayerBytes
	add := func(outer, name, text string) {
		if outer != "" {
			name = outer + "+" + name
		}
		if text == "" || text == s || len(layers) == maxLayers || len(text) > room {
			return
		}
		for _, l := range layers {
			if l.Text == text {
				return
			}
		}
		room -= len(text)
		layers = append(layers, Layer{Name: name, Text: text})
	}
	level := []Layer{{Text: s}}
	for range maxNesting {
		from := len(layers)
		for _, l := range level {
			decodeOnce(l, add)
		}
		if level = layers[from:]; len(level) == 0 {
			break
		}
	}
	return layers
}

// decodeOnce adds what one text decodes to, by every encoding.
func decodeOnce(l Layer, add func(outer, name, text string)) {
	runs(l.Text, func(name, text string) { add(l.Name, name, text) })
	if strings.IndexByte(l.Text, '%') >= 0 {
		if text := Percent(l.Text); text != l.Text && readable(text) {
			add(l.Name, "url", text)
		}
	}
	if strings.IndexByte(l.Text, '\\') >= 0 {
		if text := unescape(l.Text); text != l.Text && readable(text) {
			add(l.Name, "escape", text)
		}
	}
	if i := strings.IndexByte(l.Text, '&'); i >= 0 && strings.IndexByte(l.Text[i:], ';') >= 0 && hasEntity(l.Text) {
		if text := html.UnescapeString(l.Text); text != l.Text {
			add(l.Name, "html", text)
		}
	}
	if text := tagged(l.Text); text != "" {
		add(l.Name, "tags", text)
	}
	switch turned(l.Text) {
	case "rot13":
		add(l.Name, "rot13", strings.Map(rot13, l.Text))
	case "reversed":
		add(l.Name, "reversed", reverse(l.Text))
	}
}

// runs finds stretches of letters and digits that are base64, base32 or
// hexadecimal, and gives what those of one kind decode to, line by line.
func runs(s string, found func(name, text string)) {
	var base, thirty, hexa []string
	collect := func(run string) {
		run = strings.TrimRight(run, "=")
		if len(run) < minEncoded {
			return
		}
		name, text := decodeRun(run)
		switch name {
		case "":
		case "hex":
			hexa = another(hexa, text)
		case "base32":
			thirty = another(thirty, text)
		case "base64":
			base = another(base, text)
		default:
			found(name, text)
		}
	}
	start := -1
	if joined := unwrapped(s); joined != "" {
		s = joined
	}
	for i := 0; i <= len(s); i++ {
		if i < len(s) && encodedByte(s[i]) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			collect(s[start:i])
			start = -1
		}
	}
	if text := hexBytes(s); text != "" {
		hexa = append(hexa, text)
	}
	for _, kind := range []struct {
		name  string
		texts []string
	}{{"base64", base}, {"base32", thirty}, {"hex", hexa}} {
		if len(kind.texts) > 0 {
			found(kind.name, strings.Join(kind.texts, "\n"))
		}
	}
}

func encodedByte(c byte) bool { return encodedBytes[c] }

var encodedBytes = func() (set [256]bool) {
	for c := range byte(128) {
		set[c] = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '/' || c == '-' || c == '_'
	}
	return set
}()

// unwrapped joins the lines of text that is one encoded run over several lines.
func unwrapped(s string) string {
	t := strings.TrimSpace(s)
	if strings.IndexByte(t, '\n') < 0 {
		return ""
	}
	for i := 0; i < len(t); i++ {
		if !encodedByte(t[i]) && strings.IndexByte("\r\n=", t[i]) < 0 {
			return ""
		}
	}
	return strings.NewReplacer("\n", "", "\r", "", "=", "").Replace(t)
}

// another adds a text that is not the last one again: two lines of base64 are taken
// for one that was wrapped.
func another(texts []string, text string) []string {
	if n := len(texts); n > 0 && texts[n-1] == text {
		return texts
	}
	return append(texts, text)
}

// decodeRun decodes a run without padding. name is "" if it is not encoded text.
func decodeRun(run string) (name, text string) {
	if h := strings.TrimPrefix(run, "0x"); len(h)%2 == 0 {
		if b := hexDecode(h); b != nil {
			if name, text := unpack("hex", b); name != "" {
				return name, text
			}
		}
	}
	if strings.IndexFunc(run, func(r rune) bool { return !('A' <= r && r <= 'Z' || '2' <= r && r <= '7') }) < 0 {
		if b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(run); err == nil {
			if name, text := unpack("base32", b); name != "" {
				return name, text
			}
		}
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(run, "-_") {
		encoding = base64.RawURLEncoding
	}
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	var buf [256]byte
	b := buf[:]
	if n := encoding.DecodedLen(len(run)); n > len(b) {
		b = make([]byte, n)
	}
	n, err := encoding.Decode(b, []byte(run))
	if err != nil {
		return "", ""
	}
	return unpack("base64", b[:n])
}

func hexDecode(s string) []byte {
	b := make([]byte, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		hi, lo := unhex(s[i]), unhex(s[i+1])
		if hi < 0 || lo < 0 {
			return nil
		}
		b = append(b, byte(hi<<4|lo))
	}
	return b
}

// unpack returns the text in decoded bytes: UTF-8, UTF-16 as PowerShell takes
// it, or either of them compressed. name is "" if they do not contain text.
func unpack(encoding string, b []byte) (name, text string) {
	if unzipped, by := decompress(b); by != "" {
		encoding, b = encoding+"+"+by, unzipped
	}
	if readable(string(b)) && sensible(b) {
		return encoding, string(b)
	}
	if wide := utf16Text(b); wide != "" {
		return encoding + "+utf16", wide
	}
	return "", ""
}

// decompress returns the contents of gzip, zlib or bzip2 data, at most 64 KiB.
func decompress(b []byte) (out []byte, by string) {
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(b, []byte("\x1f\x8b")):
		by = "gzip"
		r, err = gzip.NewReader(strings.NewReader(string(b)))
	case len(b) > 2 && b[0] == 0x78 && (int(b[0])<<8|int(b[1]))%31 == 0:
		by = "zlib"
		r, err = zlib.NewReader(strings.NewReader(string(b)))
	case bytes.HasPrefix(b, []byte("BZh")):
		by, r = "bzip2", bzip2.NewReader(strings.NewReader(string(b)))
	default:
		return nil, ""
	}
	if err != nil {
		return nil, ""
	}
	out, err = io.ReadAll(io.LimitReader(r, maxLayerBytes))
	if err != nil && len(out) == 0 {
		return nil, ""
	}
	return out, by
}

func utf16Text(b []byte) string {
	if len(b) < 8 || len(b)%2 != 0 {
		return ""
	}
	zeros := 0
	for i := 1; i < len(b); i += 2 {
		if b[i] == 0 {
			zeros++
		}
	}
	if 4*zeros <= len(b) {
		return ""
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
	}
	if text := string(utf16.Decode(units)); readable(text) {
		return text
	}
	return ""
}

// readable reports whether s is text: valid, and without control characters
// but white space and the escape of terminals.
func readable(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' && r != 0x1b || r == 0x7f || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// sensible reports whether readable bytes are likely to be meant as text. Short
// random bytes can be printable by chance; they rarely consist of letters and
// blanks.
func sensible(b []byte) bool {
	plain := 0
	for _, c := range b {
		if c == ' ' || c == '/' || c == '.' || c == '-' || c == '\n' || isNameByte(c) {
			plain++
		}
	}
	return 4*plain >= 3*len(b) && (len(b) >= 12 || bytes.ContainsAny(b, " /"))
}

// hasEntity reports whether text holds "&name;" or "&#number;".
func hasEntity(s string) bool {
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			return false
		}
		s = s[i+1:]
		end := 0
		for end < len(s) && end < 32 && (isNameByte(s[end]) || s[end] == '#') {
			end++
		}
		if end > 1 && end < len(s) && s[end] == ';' {
			return true
		}
	}
}

// tagged returns the text that tag characters spell, which models read and
// people do not see.
func tagged(s string) string {
	if IsASCII(s) {
		return ""
	}
	var b strings.Builder
	for _, r := range s {
		if 0xe0020 <= r && r <= 0xe007e {
			b.WriteByte(byte(r - 0xe0000))
		}
	}
	return b.String()
}
