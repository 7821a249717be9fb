package redact

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/brief"
)

// maxScannedTextBytesForExcerpt is how many bytes of a long text are examined for a short excerpt; the last
// truncatedSecretMarginBytes of them are not used, since a secret truncated there would not be recognised.
const (
	maxScannedTextBytesForExcerpt = 64 << 10
	truncatedSecretMarginBytes    = 8 << 10
)

// RedactAndTruncate returns s redacted. If the result is longer than maxBytes bytes, it returns its
// beginning, with a note of the length of s; of a text over 64 KiB, at most the first 56 KiB are
// used. Secrets are redacted before truncating, so that no part of one is left.
func (r *Redactor) RedactAndTruncate(s string, maxBytes int) string {
	return r.redactNamedValueAndTruncate("", s, maxBytes)
}

// isCacheable reports whether the redacted form of s can be cached: s is short, and r holds no
// secrets of one particular action.
func (r *Redactor) isCacheable(s string) bool {
	return r != nil && r.secretsFoundWhileRedacting == nil && len(r.lowercasedPayloadSecrets) == 0 && len(s) <= maxCachedTextBytes
}

// Limits of a [redactionCache].
const (
	maxCachedTextBytes = 256 // bytes of a text
	maxCachedTexts     = 256
)

// A redactionCache caches the redacted form of short texts, such as rule names, reasons and fingerprints, which
// occur in many log entries.
type redactionCache struct {
	mu            sync.Mutex
	redactedTexts map[string]string
}

func (m *redactionCache) getOrRedact(s string, redact func() string) string {
	m.mu.Lock()
	out, ok := m.redactedTexts[s]
	m.mu.Unlock()
	if ok {
		return out
	}
	out = redact()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.redactedTexts == nil || len(m.redactedTexts) >= maxCachedTexts {
		m.redactedTexts = make(map[string]string, maxCachedTexts)
	}
	m.redactedTexts[strings.Clone(s)] = out
	return out
}

func (r *Redactor) redactNamedValueAndTruncate(valueName, s string, maxBytes int) string {
	whole := len(s)
	if whole <= maxScannedTextBytesForExcerpt {
		s = r.RedactNamedValue(valueName, s)
		if len(s) <= maxBytes {
			return s
		}
		return fmt.Sprintf("%s… (%d bytes)", TruncateBytes(s, maxBytes), whole)
	}
	if secretKind(valueName, TruncateBytes(s, maxScannedTextBytesForExcerpt)) != "" {
		return r.RedactNamedValue(valueName, TruncateBytes(s, maxScannedTextBytesForExcerpt))
	}
	s = r.RedactText(TruncateBytes(s, maxScannedTextBytesForExcerpt))
	return fmt.Sprintf("%s… (%d bytes)", TruncateBytes(s, min(maxBytes, max(len(s)-truncatedSecretMarginBytes, 0))), whole)
}

// TruncateBytes returns at most the first maxBytes bytes of s, without splitting a character.
func TruncateBytes(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	for maxBytes > 0 && !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}

// TruncateAndReplaceControlChars truncates a text to maxChars characters and replaces control characters and
// invalid UTF-8 by U+FFFD.
func TruncateAndReplaceControlChars(s string, maxChars int) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\ufffd'
		}
		return r
	}, brief.TruncateWithEllipsis(strings.ToValidUTF8(s, "\ufffd"), maxChars))
}
