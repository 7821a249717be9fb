package gateway

import (
	"bytes"
	"fmt"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/sorted"
)

// maxSchemaBytesComparedToArgs is how many bytes of schema values are compared with a call's arguments.
const maxSchemaBytesComparedToArgs = 8 << 20

// schemaViolation returns why arguments violate a tool's input schema, "" if they can be valid: a value outside
// an enum or other than a const, a missing required argument, or an unknown argument where the schema allows no
// additional ones. Arguments that are too large to compare are a violation, too. Other keywords are left to the
// server.
func schemaViolation(schema, arguments object) string {
	m := schemaMatcher{schemaBytesLeftToCompare: maxSchemaBytesComparedToArgs}
	return m.checkValue("arguments", schema, arguments)
}

type schemaMatcher struct{ schemaBytesLeftToCompare int }

func (m *schemaMatcher) checkValue(at string, schema object, v any) string {
	if listed, ok := schema["enum"].([]any); ok {
		if why := m.checkEnum(at, listed, v); why != "" {
			return why
		}
	}
	if only, ok := schema["const"]; ok {
		if why := m.checkEnum(at, []any{only}, v); why != "" {
			return why
		}
	}
	switch v := v.(type) {
	case object:
		return m.checkObject(at, schema, v)
	case []any:
		items, ok := schema["items"].(object)
		if !ok {
			return ""
		}
		for i, item := range v {
			if why := m.checkValue(fmt.Sprintf("%s[%d]", at, i), items, item); why != "" {
				return why
			}
		}
	}
	return ""
}

func (m *schemaMatcher) checkObject(at string, schema, v object) string {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		text, ok := name.(string)
		if _, given := v[text]; ok && !given {
			return fmt.Sprintf("%s: the required argument %q is missing; add it", at, canonjson.Quote(text))
		}
		if m.schemaBytesLeftToCompare -= len(text); m.schemaBytesLeftToCompare < 0 {
			return m.tooLargeReason(at)
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
		if why := m.checkValue(at+"."+canonjson.Quote(name), of, v[name]); why != "" {
			return why
		}
	}
	return ""
}

// checkEnum returns an error text if a value is not in a list; "" if it is.
func (m *schemaMatcher) checkEnum(at string, list []any, v any) string {
	got := canonjson.AppendValue(nil, v)
	for _, one := range list {
		want := canonjson.AppendValue(nil, one)
		if m.schemaBytesLeftToCompare -= len(want) + 1; m.schemaBytesLeftToCompare < 0 {
			return m.tooLargeReason(at)
		}
		if bytes.Equal(got, want) {
			return ""
		}
	}
	return at + ": the tool's schema does not allow this value; correct it"
}

func (m *schemaMatcher) tooLargeReason(at string) string {
	return at + ": the arguments are too large to check against the tool's input schema; shorten them"
}
