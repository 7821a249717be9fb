// Package canonjson parses JSON strictly and writes it in the canonical form of RFC 8785, in which
// equal values have equal bytes. Hashes and seals are computed over that form.
//
// It differs from RFC 8785 in one point: a number that a double cannot represent exactly keeps its
// literal text, so that different numbers never have the same hash, such as 9007199254740993 and
// 9007199254740992. A number counts as exact if the shortest decimal for its double is numerically
// equal to the literal: 0.1, 1.0 and 1e3 are exact; 1e400 and 0.1000000000000000055511151231257827 are
// not.
package canonjson

import (
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendObject appends the canonical form of an object with the given members. It sorts members in
// place; their names must be distinct.
func AppendObject(dst []byte, members []Member) []byte {
	slices.SortFunc(members, func(a, b Member) int { return compareUTF16(a.Name, b.Name) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, m.Name), ':')
		dst = AppendValue(dst, m.Value)
	}
	return append(dst, '}')
}

// A Canonical is a value in its canonical form.
type Canonical []byte

// AppendValue appends the canonical JSON of v to dst. v consists of [Canonical] and the types that
// [ParseValue] returns.
func AppendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return AppendString(dst, v)
	case jsontext.Value:
		return appendNumber(dst, v)
	case Canonical:
		return append(dst, v...)
	case bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendValue(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		return appendMap(dst, v)
	default:
		return append(dst, "null"...)
	}
}

func appendMap(dst []byte, m map[string]any) []byte {
	var few [8]string
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, compareUTF16)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, name), ':')
		dst = AppendValue(dst, m[name])
	}
	return append(dst, '}')
}

// AppendString appends s as a JSON string with the fewest escapes; invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			dst, _ = jsontext.AppendQuote(dst, s) // AppendQuote returns an error only for invalid UTF-8, which it replaces by U+FFFD
			return dst
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// compareUTF16 compares names by UTF-16 code units, as RFC 8785 requires. This differs from byte order
// only between characters above U+FFFF and those in U+E000–U+FFFF.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return len(a) - len(b)
	}
	x, y := a[i], b[i]
	// First bytes 0xEE and 0xEF are U+E000–U+FFFF; 0xF0 and above are surrogates in UTF-16, which are
	// smaller.
	if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
		return int(y) - int(x)
	}
	return int(x) - int(y)
}
