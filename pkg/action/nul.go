package action

import (
	"bytes"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/sorted"
)

// The fields with text to write, send or edit, in which a NUL is an ordinary byte. The first list
// contains canonical field names, the second names in lower case without separators.
var (
	canonicalTextFieldNames  = []string{"content", "body", "code", "patch", "subject"}
	normalizedTextFieldNames = []string{"text", "data", "message", "html", "value", "oldstring", "newstring", "oldstr", "newstr", "oldtext", "newtext", "oldcontent", "newcontent", "newsource", "replacement", "inserttext", "codeedit"}
)

// checkNUL returns an error for a NUL in the name of a field, or in a value that is not text to write, send or
// edit. A C program reads the text only up to the NUL, other programs all of it: shield could judge another file
// than the one that is opened.
func (a *Action) checkNUL() error {
	if !bytes.Contains(a.Raw, []byte(`\u0000`)) { // JSON can only write a NUL as this escape
		return nil
	}
	return a.checkValueNUL("", a.Payload)
}

// checkValueNUL checks the value of a field, whose nesting is bounded.
func (a *Action) checkValueNUL(field string, v any) error {
	switch v := v.(type) {
	case string:
		var few [maxAliasBytes]byte
		if strings.IndexByte(v, 0) >= 0 && !slices.Contains(canonicalTextFieldNames, CanonicalField(a.Type, field)) && !slices.Contains(normalizedTextFieldNames, string(normalizeName(few[:0], field))) {
			return invalidValueError("payload."+canonjson.Quote(field), "the value contains a NUL byte; remove it")
		}
	case []any:
		for _, e := range v {
			if err := a.checkValueNUL(field, e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range sorted.Keys(v) {
			if strings.IndexByte(name, 0) >= 0 {
				return invalidValueError("payload", "the name of a field contains a NUL byte; remove it")
			}
			if err := a.checkValueNUL(name, v[name]); err != nil {
				return err
			}
		}
	}
	return nil
}
