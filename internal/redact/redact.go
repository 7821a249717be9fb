// Package redact takes credentials out of text before it is written anywhere.
// What a credential looks like is data, rules.yaml; beside that, values with a
// name such as "password" or "api_key" are taken out if they look random, and
// secrets that the program itself holds wherever they occur. Text is also
// looked at with escapes decoded, string pieces joined, and base64 and hex
// unwrapped, since a secret is as leaked in that form as in any other.
//
// Git hashes, UUIDs and checksums stay: a log without them is useless.
package redact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:generate go run ./gen

// MaxText is the longest text that is examined, in bytes. A longer one is
// replaced as a whole.
const MaxText = 128 << 10

// maxDepth is how deep a payload may nest; what is deeper is replaced.
const maxDepth = 64

// A Redactor also knows secrets of the program's own. A nil Redactor knows
// none. Goroutines may share it.
type Redactor struct {
	known []string // the secrets and the forms in which they may be wrapped
	memo  memo
}

// New returns a Redactor that also removes the given secrets, such as API keys.
// Those of less than 8 bytes are left out: they would tear up ordinary text.
func New(secrets ...string) *Redactor {
	r := new(Redactor)
	for _, s := range secrets {
		if len(s) >= 8 {
			r.known = append(r.known, wrappings(s)...)
		}
	}
	return r
}

// String returns s with each credential replaced by "[redacted KIND]". Applied
// twice it changes nothing more.
func (r *Redactor) String(s string) string {
	if len(s) > MaxText {
		return "[redacted unexamined text]"
	}
	spans := r.find(s, maxLayers)
	if len(spans) == 0 {
		return s
	}
	return replace(s, spans)
}

// Named is [Redactor.String] for the value of a field: its name may give the
// value away.
func (r *Redactor) Named(name, value string) string {
	if kind := sensitive(name, value); kind != "" {
		return mark(kind)
	}
	return r.String(value)
}

// Value returns a copy of a decoded JSON value with every string in it
// redacted, names of fields included, and cut as by [Redactor.Brief] if keep is
// not 0. In a list of arguments, what follows an option such as "--password" is
// its value.
func (r *Redactor) Value(v any, keep int) any { return r.value("", v, keep, 0) }

func (r *Redactor) value(name string, v any, keep, depth int) any {
	if depth > maxDepth {
		return "[redacted unexamined value]"
	}
	switch v := v.(type) {
	case string:
		if keep > 0 {
			return r.brief(name, v, keep)
		}
		return r.Named(name, v)
	case []any:
		out := make([]any, len(v))
		option := ""
		for i, e := range v {
			as := name
			if option != "" {
				as = option
			}
			out[i] = r.value(as, e, keep, depth+1)
			s, _ := e.(string)
			option = ""
			if strings.HasPrefix(s, "-") && !strings.Contains(s, "=") {
				option = s
			}
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			key := r.Brief(k, 1024)
			for n := 2; ; n++ { // two redacted names must not hide one another's values
				if _, taken := out[key]; !taken {
					break
				}
				key = fmt.Sprintf("%s (%d)", r.Brief(k, 1024), n)
				if n > maxSameNames {
					return "[redacted unexamined value]"
				}
			}
			out[key] = r.value(k, v[k], keep, depth+1)
		}
		return out
	}
	return v // numbers and constants
}

// maxSameNames is how many names of one object may be the same once redacted.
const maxSameNames = 100

// A span is a secret in a text, from start up to end.
type span struct {
	start, end int
	kind       string
}

func mark(kind string) string { return "[redacted " + kind + "]" }

// replace puts marks in place of the spans, which may overlap.
func replace(s string, spans []span) string {
	slices.SortFunc(spans, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	var b strings.Builder
	at := 0
	for i := 0; i < len(spans); {
		sp := spans[i]
		for i++; i < len(spans) && spans[i].start < sp.end; i++ {
			sp.end = max(sp.end, spans[i].end)
		}
		b.WriteString(s[at:sp.start])
		b.WriteString(mark(sp.kind))
		at = sp.end
	}
	b.WriteString(s[at:])
	return b.String()
}
