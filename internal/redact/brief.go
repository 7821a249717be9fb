package redact

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/brief"
)

// look is how much of a long text is examined for the sake of a short part of
// it, in bytes, and margin how much of that is not kept: what was cut there may
// be the first part of a secret, which looks like none.
const (
	maxLookBytes = 64 << 10
	contextBytes = 8 << 10
)

// Brief returns the redacted beginning of s, about keep bytes at most (16 KiB
// at most) with a note of how long s was. Secrets are taken out before anything
// is cut, so that no part of one is left.
func (r *Redactor) Brief(s string, keep int) string {
	if len(s) > keep || !r.isCacheable(s) {
		return r.brief("", s, keep)
	}
	return r.memo.get(s, func() string { return r.brief("", s, keep) })
}

// isCacheable says whether what s becomes is kept: it depends on no one action.
func (r *Redactor) isCacheable(s string) bool {
	return r != nil && r.found == nil && len(r.learned) == 0 && len(s) <= maxMemo
}

// The bounds of a memo.
const (
	maxMemo  = 256 // bytes of a text
	maxMemos = 256
)

// A memo keeps what short texts became: names of rules, reasons and
// fingerprints are in one verdict and one entry of a log after the other.
type memo struct {
	mu    sync.Mutex
	known map[string]string
}

func (m *memo) get(s string, redact func() string) string {
	m.mu.Lock()
	out, ok := m.known[s]
	m.mu.Unlock()
	if ok {
		return out
	}
	out = redact()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMemos {
		m.known = make(map[string]string, maxMemos)
	}
	m.known[strings.Clone(s)] = out
	return out
}

func (r *Redactor) brief(name, s string, keep int) string {
	whole := len(s)
	if whole <= maxLookBytes {
		s = r.Named(name, s)
		if len(s) <= keep {
			return s
		}
		return fmt.Sprintf("%s… (%d bytes)", Cut(s, keep), whole)
	}
	if sensitive(name, Cut(s, maxLookBytes)) != "" {
		return r.Named(name, Cut(s, maxLookBytes))
	}
	s = r.String(Cut(s, maxLookBytes))
	return fmt.Sprintf("%s… (%d bytes)", Cut(s, min(keep, max(len(s)-contextBytes, 0))), whole)
}

// Cut returns the first n bytes of s, less those of a character that this
// would break.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Clip cuts a text to n characters and replaces control characters and invalid UTF-8
// by U+FFFD.
func Clip(s string, n int) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\ufffd'
		}
		return r
	}, brief.Text(strings.ToValidUTF8(s, "\ufffd"), n))
}
