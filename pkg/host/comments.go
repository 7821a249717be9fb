package host

import (
	"bytes"

	"github.com/tailscale/hujson"
)

// maxBrackets bounds how deep the parser of JSON with comments can recurse.
const maxBrackets = 10_000

// mark is what some editors begin a file with.
var mark = []byte("\ufeff")

// plain returns a settings text as strict JSON of the same length: a byte
// order mark, comments, and commas before a closing bracket become spaces.
// Offsets are the same in both, so that people's files are searched in the one
// and changed in the other. commas reports whether there were such commas. What
// is not JSON with comments either is returned as it is.
func plain(doc []byte) (text []byte, commas bool) {
	text = bytes.Clone(doc)
	if bytes.HasPrefix(text, mark) {
		copy(text, "   ")
	}
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBrackets {
		return text, false
	}
	v, err := hujson.Parse(append(bytes.Clone(text), '\n')) // a comment must end
	if err != nil {
		return text, false
	}
	commas = trailing(v)
	v.Standardize()
	return v.Pack()[:len(text)], commas
}

// trailing reports whether a comma is before a closing bracket.
func trailing(v hujson.Value) bool {
	switch v := v.Value.(type) {
	case *hujson.Object:
		for _, m := range v.Members {
			if trailing(m.Value) {
				return true
			}
		}
		return len(v.Members) > 0 && v.Members[len(v.Members)-1].Value.AfterExtra != nil
	case *hujson.Array:
		for _, e := range v.Elements {
			if trailing(e) {
				return true
			}
		}
		return len(v.Elements) > 0 && v.Elements[len(v.Elements)-1].AfterExtra != nil
	}
	return false
}
