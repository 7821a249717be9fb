// Package redact removes credentials from text before it is written. The forms of credentials, the
// names of secrets, and the programs with credentials as arguments are data in package knowledge.
// Configured secrets and those found in the same action ([Redactor.RedactAndCollectSecrets]) are removed wherever they
// occur. Text is also examined with escapes decoded, string literals joined, and base64 and hex
// decoded.
//
// Git hashes, UUIDs and checksums are kept, since logs need them.
package redact

import (
	"slices"
	"strings"
)

// MaxScannedTextBytes is the length of the longest text that is examined, in bytes. A longer text is redacted as a
// whole.
const MaxScannedTextBytes = 128 << 10

// A Redactor removes credentials, and also knows configured secrets. A nil Redactor knows none. It is
// safe for concurrent use.
type Redactor struct {
	callerGivenSecretForms     []string  // the secrets and their encoded forms
	lowercasedPayloadSecrets   []string  // in lower case
	secretsFoundWhileRedacting *[]string // collects the secrets found; nil for none
	cache                      redactionCache
}

// New returns a Redactor that also removes the given secrets, such as API keys. Secrets shorter than 8
// bytes are ignored, since they would damage ordinary text.
func New(secrets ...string) *Redactor {
	r := new(Redactor)
	for _, s := range secrets {
		if len(s) >= 8 {
			r.callerGivenSecretForms = append(r.callerGivenSecretForms, secretURLHexBase64Forms(s)...)
		}
	}
	return r
}

// UnexaminedPrefix begins the text that replaces what was not searched for credentials: because it is too long
// or too deeply nested, or has too many program arguments or too many equal field names.
const UnexaminedPrefix = "[redacted unexamined "

// RedactText returns s with each credential replaced by "[redacted KIND]". It is idempotent.
func (r *Redactor) RedactText(s string) string {
	if len(s) > MaxScannedTextBytes {
		return UnexaminedPrefix + "text]"
	}
	if r.isCacheable(s) {
		return r.cache.getOrRedact(s, func() string { return r.redactUncached(s) })
	}
	return r.redactUncached(s)
}

func (r *Redactor) redactUncached(s string) string {
	spans := r.findSecrets(s, maxNestedEncodings)
	if len(spans) == 0 {
		return s
	}
	return replaceSpans(s, spans)
}

// collectSecret adds a secret to secretsFoundWhileRedacting, if r collects secrets.
func (r *Redactor) collectSecret(secret string) {
	if r != nil && r.secretsFoundWhileRedacting != nil {
		*r.secretsFoundWhileRedacting = append(*r.secretsFoundWhileRedacting, secret)
	}
}

// RedactNamedValue is [Redactor.RedactText] for the value of a named field; the name can show that the value is a
// secret.
func (r *Redactor) RedactNamedValue(name, value string) string {
	if name == "" {
		return r.RedactText(value)
	}
	if kind := secretKind(name, value); kind != "" {
		r.collectSecret(value)
		return redactionMark(kind)
	}
	if len(name)+len(value) > MaxScannedTextBytes {
		return r.RedactText(value)
	}
	prefix := name + ": "
	spans := r.findSecrets(prefix+value, maxNestedEncodings)
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
	return replaceSpans(value, own)
}

// A secretSpan is the position of a secret in a text: from the byte offset start up to, but not
// including, end.
type secretSpan struct {
	start, end int
	kind       string
	secret     string // in decoded form
}

func newSpan(s string, start, end int, kind string) secretSpan {
	return secretSpan{start, end, kind, s[start:end]}
}

// redactionMarkPrefix is the beginning of a redaction mark.
const redactionMarkPrefix = "[redacted "

func redactionMark(kind string) string { return redactionMarkPrefix + kind + "]" }

// replaceSpans replaces spans by redaction marks; spans can overlap.
func replaceSpans(s string, spans []secretSpan) string {
	slices.SortFunc(spans, func(a, b secretSpan) int {
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
		b.WriteString(redactionMark(sp.kind))
		at = sp.end
	}
	b.WriteString(s[at:])
	return b.String()
}

// A CredentialSpan is a text that has the form of one, from Start up to End in bytes.
type CredentialSpan struct {
	Start, End int
	KindName   string // name of the credential's kind in package knowledge
}

// FindCredentialSpans returns the texts in the form of a credential, in no particular order. It does not
// decode text or examine names. The text is processed in parts, in linear time and memory.
func FindCredentialSpans(s string) []CredentialSpan {
	const part, overlap = 64 << 10, 8 << 10
	var found []CredentialSpan
	known := map[CredentialSpan]bool{}
	for from := 0; ; from += part {
		to := min(from+part+overlap, len(s))
		for _, sp := range findCredentials(s[from:to], nil) {
			c := CredentialSpan{from + sp.start, from + sp.end, sp.kind}
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
