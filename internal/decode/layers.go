package decode

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"unicode/utf8"
)

// A DecodedLayer is text that was found encoded in another text.
type DecodedLayer struct {
	Name string // the encodings, outermost first, such as "base64+gzip"
	Text string
}

const (
	maxLayers               = 8
	maxCertainDecodingDepth = 4
	maxLayerBytes           = 64 << 10 // bytes of all layers together, and of the text read
	minEncodedRunChars      = 12       // characters of the shortest encoded run
)

// Layers returns the texts that are encoded in s, including texts with up to four nested encodings.
// It returns at most 8 texts, which together have at most 64 KiB. It returns only readable text, so
// hashes, identifiers and paths give no result.
func Layers(s string) []DecodedLayer {
	if len(s) > maxLayerBytes {
		s = s[:maxLayerBytes]
	}
	var layers []DecodedLayer
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
		layers = append(layers, DecodedLayer{Name: name, Text: text})
	}
	level := []DecodedLayer{{Text: s}}
	for range maxCertainDecodingDepth {
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

// decodeOnce adds the results of decoding a text by every encoding.
func decodeOnce(l DecodedLayer, add func(outer, name, text string)) {
	decodeAlphanumericRuns(l.Text, func(name, text string) { add(l.Name, name, text) })
	for _, t := range notations {
		if !t.isUnambiguous {
			continue
		}
		if text := t.decodeText(l.Text); text != l.Text {
			add(l.Name, t.name, text)
		}
	}
	if text := decodeTagCharacters(l.Text); text != "" {
		add(l.Name, "tags", text)
	}
	switch rot13OrReversedEncodingName(l.Text) {
	case "rot13":
		add(l.Name, "rot13", strings.Map(rot13, l.Text))
	case "reversed":
		add(l.Name, "reversed", Reverse(l.Text))
	}
}

// decodeAlphanumericRuns finds runs of letters and digits that are base64, base32 or hexadecimal, and passes on their
// decoded texts by kind.
func decodeAlphanumericRuns(s string, found func(name, text string)) {
	texts := map[string][]string{}
	collect := func(run string) bool {
		name, text := decodeHexBase32OrBase64Run(run)
		switch name {
		case "":
		case "hex", "base32", "base64":
			// Do not add the same text twice in a row.
			if all := texts[name]; len(all) == 0 || all[len(all)-1] != text {
				texts[name] = append(all, text)
			}
		default:
			found(name, text)
			return false // the run may include lines after the encoded text, so the caller also decodes each line alone
		}
		return name != ""
	}
	if joined := joinLineWrappedEncodedRun(s); joined != "" {
		s = joined
	}
	for start, end := range Base64RunStartsAndEnds(s, minEncodedRunChars) {
		if run := s[start:end]; !collect(run) && strings.IndexByte(run, '\n') >= 0 {
			for line := range strings.FieldsSeq(run) {
				if len(line) >= minEncodedRunChars {
					collect(line)
				}
			}
		}
	}
	if text := decodeHexByteList(s); text != "" {
		texts["hex"] = append(texts["hex"], text)
	}
	for _, name := range [...]string{"base64", "base32", "hex"} {
		if len(texts[name]) > 0 {
			found(name, strings.Join(texts[name], "\n"))
		}
	}
}

// joinLineWrappedEncodedRun joins the lines of a text that is one encoded run.
func joinLineWrappedEncodedRun(s string) string {
	t := strings.TrimSpace(s)
	if strings.IndexByte(t, '\n') < 0 {
		return ""
	}
	for i := 0; i < len(t); i++ {
		if !isBase64OrHexByte[t[i]] && strings.IndexByte("\r\n=", t[i]) < 0 {
			return ""
		}
	}
	return strings.NewReplacer("\n", "", "\r", "", "=", "").Replace(t)
}

// decodeHexBase32OrBase64Run decodes a run without padding. name is "" if it contains no encoded text.
func decodeHexBase32OrBase64Run(run string) (name, text string) {
	var few [256]byte
	if b, ok := appendDecodedHex(few[:0], run); ok {
		if name, text := decompressToReadableText("hex", b); name != "" {
			return name, text
		}
	}
	if b, ok := appendDecodedBase32(few[:0], run); ok {
		if name, text := decompressToReadableText("base32", b); name != "" {
			return name, text
		}
	}
	return decompressToReadableText("base64", appendDecodedBase64(few[:0], run))
}

// decompressToReadableText returns the text in the bytes b: UTF-8, or UTF-16LE as PowerShell writes it,
// optionally compressed. encodingName is encoding with the other formats appended, such as "hex+gzip"; "" if b
// is not text.
func decompressToReadableText(encoding string, b []byte) (encodingName, text string) {
	if unzipped, by, _ := decompress(b, maxLayerBytes); by != "" {
		encoding, b = encoding+"+"+by, unzipped
	}
	if isReadable(string(b)) && isProbablyText(b) {
		return encoding, string(b)
	}
	if wide := decodeReadableUTF16(b); wide != "" {
		return encoding + "+utf16", wide
	}
	return "", ""
}

// compressionFormat returns the name of a compression format; "" if the bytes are not compressed.
func compressionFormat(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\x1f\x8b")):
		return "gzip"
	case len(b) > 2 && b[0] == 0x78 && (int(b[0])<<8|int(b[1]))%31 == 0:
		return "zlib"
	case bytes.HasPrefix(b, []byte("BZh")):
		return "bzip2"
	}
	return ""
}

// decompress returns the decompressed data, cut at a maximum number of bytes (most), and the name
// of the compression format; "" if b is not compressed. If the data is damaged, decompress also
// returns the data before the damage.
func decompress(b []byte, most int) (out []byte, by string, err error) {
	by = compressionFormat(b)
	if by == "" {
		return nil, "", nil
	}
	var r io.Reader
	switch data := strings.NewReader(string(b)); by {
	case "gzip":
		r, err = gzip.NewReader(data)
	case "zlib":
		r, err = zlib.NewReader(data)
	case "bzip2":
		r = bzip2.NewReader(data)
	}
	if err == nil {
		out, err = io.ReadAll(io.LimitReader(r, int64(most)))
	}
	if err != nil && len(out) == 0 {
		return nil, "", nil
	}
	return out, by, err
}

func decodeReadableUTF16(b []byte) string {
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
	if text := DecodeUTF16LE(string(b)); isReadable(text) {
		return text
	}
	return ""
}

// isReadable reports whether s is valid text without control characters except white space and the
// escape character.
func isReadable(s string) bool {
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

// isProbablyText reports whether readable bytes are probably text. Short random bytes can be printable,
// but rarely consist of letters and blanks.
func isProbablyText(b []byte) bool {
	plain := 0
	for _, c := range b {
		if c == ' ' || c == '/' || c == '.' || c == '-' || c == '\n' || isIdentifierByte(c) {
			plain++
		}
	}
	return 4*plain >= 3*len(b) && (len(b) >= 12 || bytes.ContainsAny(b, " /"))
}

// decodeTagCharacters returns the text that tag characters encode, which is invisible to people but readable for
// models.
func decodeTagCharacters(s string) string {
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
