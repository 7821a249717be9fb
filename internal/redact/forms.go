package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// maxNestedEncodings is how many nested encodings are decoded.
const maxNestedEncodings = 3

// findSecrets returns the secrets in s, also in encoded form; layers is how many more encodings are decoded.
func (r *Redactor) findSecrets(s string, layers int) []secretSpan {
	spans := r.findUnencodedSecrets(s, nil)
	spans = r.findEscapedSecrets(s, decodedEscapes, layers, spans)
	// Before unescaping: a secret with "%3B" in it, in JSON, is complete only in the original text.
	if strings.IndexByte(s, '%') >= 0 {
		spans = r.findEscapedSecrets(s, decodedEscapes&^decode.PercentEscapes, layers, spans)
	}
	if layers > 0 {
		spans = r.findEncodedSecrets(s, layers, spans)
	}
	if r != nil && r.secretsFoundWhileRedacting != nil {
		for _, sp := range spans {
			r.collectSecret(sp.secret)
		}
	}
	return spans
}

// decodedEscapes are the kinds of escapes that are decoded to find secrets.
const decodedEscapes = decode.PercentEscapes | decode.NumericBackslashEscapes | decode.HTMLReferenceEscapes | decode.BackslashQuoteEscapes | decode.StringConcatenationEscapes | decode.ZeroWidthEscapes

// findEscapedSecrets returns the secrets in s after decoding some escapes.
func (r *Redactor) findEscapedSecrets(s string, kinds decode.EscapeKinds, layers int, spans []secretSpan) []secretSpan {
	text, changed := decode.Unescape(s, kinds, nil)
	if !changed {
		return spans
	}
	inner := r.findUnencodedSecrets(text, nil)
	if layers > 0 {
		inner = r.findEncodedSecrets(text, layers, inner)
	}
	if len(inner) == 0 {
		return spans
	}
	at := make([]int, 0, len(s)+1)
	decode.Unescape(s, kinds, &at)
	for _, sp := range inner {
		spans = append(spans, secretSpan{at[sp.start], at[sp.end], sp.kind, sp.secret})
	}
	return spans
}

// findUnencodedSecrets returns the secrets that occur in s without encoding.
func (r *Redactor) findUnencodedSecrets(s string, spans []secretSpan) []secretSpan {
	if r != nil {
		for _, k := range r.callerGivenSecretForms {
			for at := 0; ; {
				i := strings.Index(s[at:], k)
				if i < 0 {
					break
				}
				spans = append(spans, newSpan(s, at+i, at+i+len(k), "secret"))
				at += i + len(k)
			}
		}
	}
	spans = r.learnedSecretSpans(s, spans)
	return findLoginCommandSecrets(s, findAssignedSecrets(s, findCredentials(s, spans)))
}

// secretURLHexBase64Forms returns a secret and its encoded forms, alone or inside other encoded text.
func secretURLHexBase64Forms(secret string) []string {
	forms := []string{secret}
	add := func(f string) {
		if f != secret && len(f) >= 8 {
			forms = append(forms, f)
		}
	}
	add(url.QueryEscape(secret))
	add(hex.EncodeToString([]byte(secret)))
	add(strings.ToUpper(hex.EncodeToString([]byte(secret))))
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 { // the length of the preceding text shifts the base64 groups
			b := enc.EncodeToString(append(make([]byte, shift), secret...))
			from := (shift*8 + 5) / 6
			to := (shift + len(secret)) * 8 / 6
			add(b[from:to])
		}
	}
	return forms
}

// minEncodedRunBytes is less than the length of the shortest credential in base64.
const minEncodedRunBytes = 20

// findEncodedSecrets returns the runs of base64, base32 and hexadecimal in s that contain a secret.
func (r *Redactor) findEncodedSecrets(s string, layers int, spans []secretSpan) []secretSpan {
	for start, end := range decode.Base64RunStartsAndEnds(s, minEncodedRunBytes) {
		decode.TryDecodingsOfBase64Run(s[start:end], func(_, text string) bool {
			found := r.findSecrets(text, layers-1)
			if len(found) > 0 {
				spans = append(spans, newSpan(s, start, end, found[0].kind))
			}
			return len(found) > 0
		})
	}
	return spans
}
