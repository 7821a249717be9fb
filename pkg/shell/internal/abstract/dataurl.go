package abstract

import (
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// DataURL returns what the data: URL holds that a value is; false if it is none. What is no clean
// base64 is not known: some programs take what they can of it.
func (v Value) DataURL() (Value, bool) {
	scheme, rest, ok := strings.Cut(strings.TrimLeft(v.Text, " \t\r\n"), ":")
	if !ok || !strings.EqualFold(scheme, "data") {
		return v, false
	}
	kind, text, _ := strings.Cut(rest, ",")
	if v.IsPattern {
		return v, true
	}
	v.Text = decode.Percent(text)
	if i := strings.LastIndexByte(kind, ';'); i >= 0 && strings.EqualFold(strings.TrimSpace(kind[i+1:]), "base64") {
		raw, clean := decode.Base64(v.Text)
		v.Text, v.Taint = raw, v.Taint|Decoded
		if !clean {
			from := v.From
			v = Unknown("a data: address", v.Taint)
			v.From = from
		}
	}
	return v, true
}
