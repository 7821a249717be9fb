package host

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"

	"github.com/shieldcli/shield/internal/canonjson"
)

// maxHookInputDepth is the maximum nesting of a hook's input: 64 levels of an action plus the envelope.
const maxHookInputDepth = 80

// decodeEvent parses a hook's input as [decodeStrictJSON] does, but accepts two defects that real hosts produce:
// a byte order mark, and the escape of an unpaired surrogate (from truncated text), which becomes
// U+FFFD.
func decodeEvent(in []byte) (any, error) {
	in = bytes.TrimPrefix(in, byteOrderMark)
	if !utf8.Valid(in) {
		return nil, errNotJSON
	}
	return decodeStrictJSON(in, jsontext.AllowInvalidUTF8(true))
}

// errNotJSON replaces the JSON library's error, which quotes the input.
var errNotJSON = errors.New("the input is not one valid JSON object; check that the host calls the hook")

// decodeStrictJSON reads one JSON text strictly: no duplicate keys, no invalid UTF-8.
func decodeStrictJSON(in []byte, opts ...json.Options) (any, error) {
	if len(in) > MaxHookInputBytes {
		return nil, fmt.Errorf("the JSON text is larger than %d MiB; make the tool call or the settings file smaller", MaxHookInputBytes>>20)
	}
	if err := checkDepth(in); err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(in, &v, opts...); err != nil {
		return nil, errNotJSON
	}
	return v, nil
}

// rejectKeysDifferingInCase rejects an input with keys that differ only in case: a tool written in Go uses the last
// one, which can differ from the judged one.
func rejectKeysDifferingInCase(input map[string]any) error {
	raw, err := encodeCompactJSON(input)
	if err != nil {
		return err
	}
	if _, err := canonjson.ParseValue(raw, maxHookInputDepth); err != nil {
		return fmt.Errorf("the tool's input is not valid JSON: %w; update the host", err)
	}
	return nil
}

// checkDepth limits the nesting before the decoder recurses.
func checkDepth(in []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case inString:
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > maxHookInputDepth {
				return fmt.Errorf("the JSON text is nested deeper than %d levels; simplify the tool call or the settings file", maxHookInputDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// encodeCompactJSON writes a value as compact JSON.
func encodeCompactJSON(v any) (jsontext.Value, error) {
	return gojq.Marshal(v)
}
