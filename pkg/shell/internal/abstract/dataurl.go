package abstract

import (
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// DecodeDataURL returns the content of a value that is a data: URL; false for other values. Invalid base64 gives an
// unknown value, because programs decode it differently.
func (v Value) DecodeDataURL() (Value, bool) {
	scheme, rest, ok := strings.Cut(strings.TrimLeft(v.Text, " \t\r\n"), ":")
	if !ok || !strings.EqualFold(scheme, "data") {
		return v, false
	}
	kind, text, _ := strings.Cut(rest, ",")
	if v.IsGlobPattern {
		return v, true
	}
	v.Text = decode.DecodePercentEscapes(text)
	if i := strings.LastIndexByte(kind, ';'); i >= 0 && strings.EqualFold(strings.TrimSpace(kind[i+1:]), "base64") {
		raw, clean := decode.Base64(v.Text)
		v.Text, v.Taint = raw, v.Taint|TaintDecoded
		if !clean {
			from := v.SourceSpan
			v = Unknown("a data: address", v.Taint)
			v.SourceSpan = from
		}
	}
	return v, true
}
