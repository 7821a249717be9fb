package action

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
)

// texts are the fields that hold what is written, sent or edited, where a NUL is a byte
// like others, beside those whose canonical name is one of contents.
var (
	contents = []string{"content", "body", "code", "patch", "subject"}
	texts    = []string{"text", "data", "message", "html", "value", "oldstring", "newstring", "oldstr", "newstr", "oldtext", "newtext", "oldcontent", "newcontent", "newsource", "replacement", "inserttext", "codeedit"}
)

// checkNUL refuses a NUL in a text that names something or is a command. A program in C
// reads the name up to it, another one the whole: what was judged would not be what is
// opened.
func (a *Action) checkNUL() error {
	if !bytes.Contains(a.Raw, []byte(`\u0000`)) { // JSON has no other way to write it
		return nil
	}
	return a.noNUL("", a.Payload)
}

// noNUL looks at the value of a field, whose nesting is bounded.
func (a *Action) noNUL(field string, v any) error {
	switch v := v.(type) {
	case string:
		var few [maxName]byte
		if strings.IndexByte(v, 0) >= 0 && !slices.Contains(contents, CanonicalField(a.Type, field)) && !slices.Contains(texts, string(normal(few[:0], field))) {
			return invalid("payload."+canonjson.Quote(field), "the value contains a NUL byte; remove it")
		}
	case []any:
		for _, e := range v {
			if err := a.noNUL(field, e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if strings.IndexByte(name, 0) >= 0 {
				return invalid("payload", "the name of a field contains a NUL byte; remove it")
			}
			if err := a.noNUL(name, v[name]); err != nil {
				return err
			}
		}
	}
	return nil
}
