package classify

import (
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// unresolved says why a case cannot be allowed by rules alone: part of it was
// not read, and rules cannot match there. It returns "" if everything was read.
// A script that was not read is such a part, whatever the reason; without access
// to files every script is one.
func unresolved(c *analysis.Case) string {
	if c.Unexamined != "" {
		return unexaminedReason(c)
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.Dynamic {
			continue
		}
		advice := "write it out in full"
		switch e.Cause {
		case effect.CauseScript:
			advice = "check that the script exists and is readable, or run its commands directly"
		case effect.CauseLoaded:
			advice = "leave the variable unset"
		}
		return "cannot tell what this does before it runs: " + clip(e.Reason, 120) + "; " + advice
	}
	return ""
}

func unexaminedReason(c *analysis.Case) string {
	return "unexamined: " + clip(c.Unexamined, 120) + "; split it into smaller steps"
}

// clip cuts a text to n bytes and replaces control characters and invalid UTF-8
// by U+FFFD.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\ufffd'
		}
		return r
	}, s)
}

// firstSentence returns a description up to its first full stop.
func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i]
	}
	return strings.TrimSuffix(s, ".")
}
