package redact

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// Limits of the secrets that [Redactor.RedactAndCollectSecrets] finds in a payload and that are also redacted in
// later texts.
const (
	minPayloadSecretBytes           = 4 // bytes; shorter secrets would damage ordinary text
	minSecretBytesForSubstringMatch = 8 // bytes; shorter secrets match only as a whole word
	maxPayloadSecrets               = 256
)

// RedactAndCollectSecrets redacts a decoded JSON value, such as the payload of an action, as
// [Redactor.RedactJSONValue] does. It returns the redacted copy and a Redactor that also redacts
// the secrets found in the value when later texts about the action contain them, even in lower case
// or truncated.
func (r *Redactor) RedactAndCollectSecrets(v any, maxStringBytes int) (any, *Redactor) {
	var found []string
	reader, out := &Redactor{secretsFoundWhileRedacting: &found}, new(Redactor)
	if r != nil {
		reader.callerGivenSecretForms, out.callerGivenSecretForms = r.callerGivenSecretForms, r.callerGivenSecretForms
	}
	clean := reader.RedactJSONValue(v, maxStringBytes)
	if len(found) == 0 {
		return clean, r
	}
	for _, secret := range slices.Clone(found) {
		// A copy of the text with decoded escape sequences contains a different form of the secret
		// if the secret contains an escape sequence. The same happens after an account name that
		// ends in "%": the "%" and the first characters of the secret are decoded as one escape
		// sequence.
		for _, s := range [...]string{secret, "%" + secret} {
			if text, changed := decode.Unescape(s, decodedEscapes, nil); changed {
				found = append(found, text)
			}
		}
	}
	seen := map[string]bool{}
	for _, secret := range found {
		secret = strings.Trim(secret, " \t\r\n\"'")
		plain := isShortLowerCaseWord(secret)
		secret = lowerASCII(secret)
		if len(secret) >= minPayloadSecretBytes && !plain && !seen[secret] && len(out.lowercasedPayloadSecrets) < maxPayloadSecrets {
			seen[secret] = true
			out.lowercasedPayloadSecrets = append(out.lowercasedPayloadSecrets, secret)
		}
	}
	return out.RedactJSONValue(v, maxStringBytes), out
}

// isShortLowerCaseWord reports whether a secret can be an ordinary word, such as "wordpress": short, and only
// lower-case letters.
func isShortLowerCaseWord(s string) bool {
	return len(s) < 16 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == ""
}

// learnedSecretSpans returns the positions of learned secrets in s.
func (r *Redactor) learnedSecretSpans(s string, spans []secretSpan) []secretSpan {
	if r == nil || len(r.lowercasedPayloadSecrets) == 0 {
		return spans
	}
	text := lowerASCII(s)
	for _, secret := range r.lowercasedPayloadSecrets {
		for at := 0; ; {
			i := strings.Index(text[at:], secret)
			if i < 0 {
				break
			}
			i += at
			at = i + len(secret)
			if len(secret) >= minSecretBytesForSubstringMatch || (i == 0 || !isWordByte(text[i-1])) && (at == len(text) || !isWordByte(text[at])) {
				spans = append(spans, secretSpan{i, at, "secret", s[i:at]})
			}
		}
		for _, end := range possibleTruncationOffsets(text) {
			for n := min(len(secret)-1, end); n >= min(minSecretBytesForSubstringMatch, len(secret)/2+1); n-- {
				if text[end-n:end] == secret[:n] {
					spans = append(spans, secretSpan{end - n, end, "secret", s[end-n : end]})
					break
				}
			}
		}
	}
	return spans
}

// possibleTruncationOffsets returns where a text is truncated: at its end and before an ellipsis.
func possibleTruncationOffsets(s string) []int {
	ends := []int{len(s)}
	for _, dots := range [...]string{"…", "..."} {
		for at := 0; len(ends) < 8; {
			i := strings.Index(s[at:], dots)
			if i < 0 {
				break
			}
			ends = append(ends, at+i)
			at += i + len(dots)
		}
	}
	return ends
}

func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				b[j] = lower(b[j])
			}
			return string(b)
		}
	}
	return s
}
