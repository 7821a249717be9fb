package evaluate

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/sorted"
)

// A promptJSONWriter writes JSON that stays inert inside a prompt. Any JSON parser reads it as the same data. In
// addition it
//
//   - contains no control, format, bidirectional, private or unassigned
//     characters inside strings, so that a line break or a hidden character in the payload is
//     visible as an escape;
//   - contains no "<" inside strings, nor "[" before a capital letter or a
//     slash: chat templates interpret <|im_start|>, </s> or [INST] as the start
//     or end of a message.
type promptJSONWriter struct {
	buf      []byte
	maxBytes int // bytes; writing stops soon after
}

// overLimit reports whether more than maxBytes bytes were written.
func (q *promptJSONWriter) overLimit() bool { return len(q.buf) > q.maxBytes }

func (q *promptJSONWriter) appendRaw(s string) { q.buf = append(q.buf, s...) }

// appendValue appends one JSON value, indented by two spaces a level, keys sorted.
func (q *promptJSONWriter) appendValue(v any, depth int) {
	if q.overLimit() {
		return
	}
	switch v := v.(type) {
	case nil:
		q.appendRaw("null")
	case bool:
		q.appendRaw(map[bool]string{false: "false", true: "true"}[v])
	case string:
		q.appendString(v)
	case jsontext.Value:
		// Only numbers are raw JSON text; anything else might not be a single value.
		if v.Kind() == '0' && v.IsValid() {
			q.buf = append(q.buf, v...)
		} else {
			q.appendString(string(v))
		}
	case []any:
		q.appendList(len(v), '[', ']', depth, func(i int) { q.appendValue(v[i], depth+1) })
	case map[string]any:
		keys := sorted.Keys(v)
		q.appendList(len(keys), '{', '}', depth, func(i int) {
			q.appendString(keys[i])
			q.appendRaw(": ")
			q.appendValue(v[keys[i]], depth+1)
		})
	default:
		q.appendString(fmt.Sprint(v))
	}
}

// appendList appends n elements between two brackets, each on its own line.
func (q *promptJSONWriter) appendList(n int, open, end byte, depth int, element func(i int)) {
	q.buf = append(q.buf, open)
	for i := 0; i < n && !q.overLimit(); i++ {
		if i > 0 {
			q.buf = append(q.buf, ',')
		}
		q.indent(depth + 1)
		element(i)
	}
	if n > 0 {
		q.indent(depth)
	}
	q.buf = append(q.buf, end)
}

func (q *promptJSONWriter) indent(depth int) {
	q.buf = append(q.buf, '\n')
	for range depth {
		q.appendRaw("  ")
	}
}

// appendString appends a string as JSON, in double quotes and with escapes as [promptJSONWriter] describes. A
// string that is longer than maxBytes is not written; overLimit then reports true.
func (q *promptJSONWriter) appendString(s string) {
	if len(s) > q.maxBytes {
		q.buf = append(q.buf, make([]byte, q.maxBytes+1)...)
		return
	}
	q.buf = append(q.buf, '"')
	for i := 0; i < len(s) && !q.overLimit(); {
		if c := s[i]; c < utf8.RuneSelf {
			q.appendEscapedASCII(c, s[i+1:])
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			q.escape(utf8.RuneError)
		case unicode.IsPrint(r):
			q.buf = append(q.buf, s[i:i+n]...)
		default:
			q.escape(r)
		}
		i += n
	}
	q.buf = append(q.buf, '"')
}

// appendEscapedASCII appends one ASCII character, escaped if necessary; textAfter is the text after
// it.
func (q *promptJSONWriter) appendEscapedASCII(c byte, textAfter string) {
	switch {
	case c == '"' || c == '\\':
		q.buf = append(q.buf, '\\', c)
	case c == '\n':
		q.appendRaw(`\n`)
	case c == '\t':
		q.appendRaw(`\t`)
	case c == '\r':
		q.appendRaw(`\r`)
	case c < ' ' || c == 0x7f || c == '<':
		q.escape(rune(c))
	case c == '[' && textAfter != "" && (textAfter[0] == '/' || textAfter[0] >= 'A' && textAfter[0] <= 'Z'):
		q.escape(rune(c))
	default:
		q.buf = append(q.buf, c)
	}
}

// escape appends the \u form of a character, as a surrogate pair if needed.
func (q *promptJSONWriter) escape(r rune) {
	const hex = "0123456789abcdef"
	unit := func(u rune) {
		q.buf = append(q.buf, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	if r >= 0x10000 {
		r -= 0x10000
		unit(0xd800 + r>>10)
		unit(0xdc00 + r&0x3ff)
		return
	}
	unit(r)
}
