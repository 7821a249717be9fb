package evaluate

import (
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
)

// payloadText returns all text of an action as one: its type, then keys and values, each on its own line.
func payloadText(c *analysis.ActionCase) string {
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
func payloadStrings(c *analysis.ActionCase) []string {
	var list []string
	eachText(c.Action.Payload, func(s string) bool {
		list = append(list, s)
		return true
	})
	return list
}

// joinTextEnds joins texts without separators. Only the two ends of a long text are included: text in its middle
// cannot cross a boundary between two texts.
func joinTextEnds(texts []string) string {
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

// eachText calls f with each string in a payload value, each key before its value, sorted by key, until f
// returns false. It reports whether f never returned false.
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
		for _, k := range sorted.Keys(v) {
			if !f(k) || !eachText(v[k], f) {
				return false
			}
		}
	}
	return true
}
