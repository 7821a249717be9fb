// Package redact takes credentials out of text before it is written anywhere.
// What a credential looks like, which names tell of one and which programs are
// given one as an argument is data, in package knowledge. Secrets that the
// program itself holds, or has met in the same action ([Redactor.Learn]), are
// taken out wherever they occur. Text is also looked at with escapes decoded,
// string pieces joined, and base64 and hex unwrapped, since a secret is as leaked
// in that form as in any other.
//
// Git hashes, UUIDs and checksums stay: a log without them is useless.
package redact

import (
	"slices"
	"strings"
)

// MaxText is the longest text that is examined, in bytes. A longer one is
// replaced as a whole.
const MaxText = 128 << 10

// A Redactor also knows secrets of the program's own. A nil Redactor knows
// none. Goroutines may share it.
type Redactor struct {
	known   []string  // the secrets and the forms in which they may be wrapped
	learned []string  // in lower case
	found   *[]string // collects secrets that are met; nil for none
	memo    memo
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
	if r.isCacheable(s) {
		return r.memo.get(s, func() string { return r.whole(s) })
	}
	return r.whole(s)
}

func (r *Redactor) whole(s string) string {
	spans := r.find(s, maxLayers)
	if len(spans) == 0 {
		return s
	}
	return replace(s, spans)
}

// note keeps a secret that was met, if they are collected.
func (r *Redactor) note(secret string) {
	if r != nil && r.found != nil {
		*r.found = append(*r.found, secret)
	}
}

// Named is [Redactor.String] for the value of a field: its name may give the
// value away.
func (r *Redactor) Named(name, value string) string {
	if name == "" {
		return r.String(value)
	}
	if kind := sensitive(name, value); kind != "" {
		r.note(value)
		return mark(kind)
	}
	if len(name)+len(value) > MaxText {
		return r.String(value)
	}
	prefix := name + ": "
	spans := r.find(prefix+value, maxLayers)
	own := spans[:0]
	for _, sp := range spans {
		if sp.end > len(prefix) {
			sp.start, sp.end = max(sp.start, len(prefix))-len(prefix), sp.end-len(prefix)
			own = append(own, sp)
		}
	}
	if len(own) == 0 {
		return value
	}
	return replace(value, own)
}

// A span is a secret in a text, from start up to end.
type span struct {
	start, end int
	kind       string
	secret     string // as it reads once what wraps it is undone
}

func newSpan(s string, start, end int, kind string) span {
	return span{start, end, kind, s[start:end]}
}

// openMark is how a mark begins.
const openMark = "[redacted "

func mark(kind string) string { return openMark + kind + "]" }

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

// A Credential is a text that has the form of one, from Start up to End in bytes.
type Credential struct {
	Start, End int
	Form       string // by its name in package knowledge
}

// Credentials returns what has the form of a credential in a text as it stands, in
// no particular order. It looks neither into encodings nor at what names say. The
// text is read in parts, so that it takes memory and time in proportion to its
// length.
func Credentials(s string) []Credential {
	const part, overlap = 64 << 10, 8 << 10
	var found []Credential
	known := map[Credential]bool{}
	for from := 0; ; from += part {
		to := min(from+part+overlap, len(s))
		for _, sp := range credentials(s[from:to], nil) {
			c := Credential{from + sp.start, from + sp.end, sp.kind}
			if !known[c] {
				known[c] = true
				found = append(found, c)
			}
		}
		if to == len(s) {
			return found
		}
	}
}
