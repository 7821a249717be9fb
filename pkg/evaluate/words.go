package evaluate

import (
	"maps"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
)

// payloadText returns all text of an action in one: its type, then keys and
// values, each on a line of its own.
func payloadText(c *analysis.Case) string {
	var b strings.Builder
	b.WriteString(c.Action.Type)
	eachText(c.Action.Payload, func(s string) bool {
		b.WriteByte('\n')
		b.WriteString(s)
		return true
	})
	return b.String()
}

// payloadStrings returns the strings of a payload, keys and values, in the
// order of [payloadText].
func payloadStrings(c *analysis.Case) []string {
	var list []string
	eachText(c.Action.Payload, func(s string) bool {
		list = append(list, s)
		return true
	})
	return list
}

// joinEdges returns texts with nothing between them. Of a long one only its two
// ends are there: what stands inside it crosses no seam.
func joinEdges(texts []string) string {
	const end = 400
	var b strings.Builder
	for _, s := range texts {
		if len(s) <= 2*end {
			b.WriteString(s)
			continue
		}
		b.WriteString(strings.ToValidUTF8(s[:end], ""))
		b.WriteByte('\n')
		b.WriteString(strings.ToValidUTF8(s[len(s)-end:], ""))
	}
	return b.String()
}

// eachText calls f with each string in a payload value, keys in order and
// before their values, until f returns false. It reports whether f never did.
func eachText(v any, f func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for _, e := range v {
			if !eachText(e, f) {
				return false
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if !f(k) || !eachText(v[k], f) {
				return false
			}
		}
	}
	return true
}
