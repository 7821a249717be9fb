package classify

import (
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// unresolved says why a case cannot be allowed by rules alone: part of it was
// not read, so that no rule can have matched there. It returns "" where all was.
// A script that was not read is such a part, whatever the reason is: where shield
// does not look at files, each script is one.
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
			advice = "check that the script is there and can be read, or run its commands directly"
		case effect.CauseLoaded:
			advice = "leave the variable unset"
		}
		return "what this would do cannot be known before it runs: " + clip(e.Reason, 120) + "; " + advice
	}
	return ""
}

func unexaminedReason(c *analysis.Case) string {
	return "unexamined: " + clip(c.Unexamined, 120) + "; propose it in smaller steps"
}

// clip cuts a text to n bytes at a rune's start and makes control characters
// visible.
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
