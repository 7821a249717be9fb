package gateway

import (
	"bytes"
	"fmt"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/sorted"
)

// maxCompared is how many bytes of schema values are compared with a call's arguments.
const maxCompared = 8 << 20

// misfit returns why arguments violate a tool's input schema, "" if they can be valid: a value outside
// an enum, a missing required argument, or an unknown argument where the schema allows no additional
// ones. Other keywords are left to the server.
func misfit(schema, arguments object) string {
	m := matcher{left: maxCompared}
	return m.value("arguments", schema, arguments)
}

type matcher struct{ left int }

func (m *matcher) value(at string, schema object, v any) string {
	if listed, ok := schema["enum"].([]any); ok {
		if why := m.among(at, listed, v); why != "" {
			return why
		}
	}
	if only, ok := schema["const"]; ok {
		if why := m.among(at, []any{only}, v); why != "" {
			return why
		}
	}
	switch v := v.(type) {
	case object:
		return m.object(at, schema, v)
	case []any:
		items, ok := schema["items"].(object)
		if !ok {
			return ""
		}
		for i, item := range v {
			if why := m.value(fmt.Sprintf("%s[%d]", at, i), items, item); why != "" {
				return why
			}
		}
	}
	return ""
}

func (m *matcher) object(at string, schema, v object) string {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		text, ok := name.(string)
		if _, given := v[text]; ok && !given {
			return fmt.Sprintf("%s: the required argument %q is missing; add it", at, canonjson.Quote(text))
		}
		if m.left -= len(text); m.left < 0 {
			return m.tooLarge(at)
		}
	}
	properties, _ := schema["properties"].(object)
	others, closed := schema["additionalProperties"].(object)
	_, patterns := schema["patternProperties"]
	for _, name := range sorted.Keys(v) {
		inside, known := properties[name]
		of, ok := inside.(object)
		switch {
		case !known && schema["additionalProperties"] == false && !patterns:
			return fmt.Sprintf("%s: %q is not an argument of the tool; leave it out", at, canonjson.Quote(name))
		case known && !ok, !known && !closed:
			continue
		case !known:
			of = others
		}
		if why := m.value(at+"."+canonjson.Quote(name), of, v[name]); why != "" {
			return why
		}
	}
	return ""
}

// among returns an error text if a value is not in a list; "" if it is.
func (m *matcher) among(at string, list []any, v any) string {
	got := canonjson.AppendValue(nil, v)
	for _, one := range list {
		want := canonjson.AppendValue(nil, one)
		if m.left -= len(want) + 1; m.left < 0 {
			return m.tooLarge(at)
		}
		if bytes.Equal(got, want) {
			return ""
		}
	}
	return at + ": the tool's schema does not allow this value; correct it"
}

func (m *matcher) tooLarge(at string) string {
	return at + ": the arguments are too large to check against the tool's input schema; shorten them"
}
