package host

import (
	"bytes"

	"github.com/tailscale/hujson"
)

// maxBracketDepth bounds how deep the parser of JSON with comments can recurse.
const maxBracketDepth = 10_000

// byteOrderMark is the byte order mark, which some editors write at the start of a file.
var byteOrderMark = []byte("\ufeff")

// toStrictJSON returns a settings text as strict JSON of the same length: a byte order mark, comments, and
// trailing commas become spaces. Offsets are the same in both texts, so that edits found in the result apply to
// the original. hadTrailingCommas reports whether the text had trailing commas. A text that is not JSON with
// comments, or has more than maxBracketDepth opening brackets, is returned unchanged, except for a byte order
// mark.
func toStrictJSON(doc []byte) (text []byte, hadTrailingCommas bool) {
	text = bytes.Clone(doc)
	if bytes.HasPrefix(text, byteOrderMark) {
		copy(text, "   ")
	}
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBracketDepth {
		return text, false
	}
	v, err := hujson.Parse(append(bytes.Clone(text), '\n')) // the parser requires a line end after a comment
	if err != nil {
		return text, false
	}
	hadTrailingCommas = hasTrailingComma(v)
	v.Standardize()
	return v.Pack()[:len(text)], hadTrailingCommas
}

// hasTrailingComma reports whether a value contains a trailing comma.
func hasTrailingComma(v hujson.Value) bool {
	switch v := v.Value.(type) {
	case *hujson.Object:
		for _, m := range v.Members {
			if hasTrailingComma(m.Value) {
				return true
			}
		}
		return len(v.Members) > 0 && v.Members[len(v.Members)-1].Value.AfterExtra != nil
	case *hujson.Array:
		for _, e := range v.Elements {
			if hasTrailingComma(e) {
				return true
			}
		}
		return len(v.Elements) > 0 && v.Elements[len(v.Elements)-1].AfterExtra != nil
	}
	return false
}
