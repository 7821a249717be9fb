package classify

import (
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// unresolved says why a case cannot be allowed by rules alone: part of it was
// not read, so that no rule can have matched there. It returns "" where that
// is no reason. A script that is not there to be read is one: running the
// project's own scripts and build tools is what agents do all day, and it says
// no more than running a program that is not known. In folders where anybody
// may leave a file it does count.
func unresolved(c *analysis.Case) string {
	if c.Unexamined != "" {
		return unexaminedReason(c)
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.Dynamic && !ownScript(e.Reason) {
			return "what this would do cannot be known before it runs: " + clip(e.Reason, 120) + "; write it out in full"
		}
	}
	return ""
}

// ownScript reports whether an effect is dynamic only because a script was not
// found, in a folder that is not open to everybody.
func ownScript(reason string) bool {
	path, ok := strings.CutPrefix(reason, "the script ")
	if !ok {
		return false
	}
	path, ok = strings.CutSuffix(path, " is not known")
	path = strings.ReplaceAll(path, "\\", "/")
	if !ok || strings.ContainsAny(path, "$`*?~:") || strings.HasPrefix(path, "//") {
		return false
	}
	for _, dir := range [...]string{"/tmp/", "/var/tmp/", "/dev/", "/run/", "/private/tmp/", "/proc/"} {
		if strings.HasPrefix(path, dir) {
			return false
		}
	}
	return !strings.Contains("/"+strings.TrimPrefix(path, "./"), "/.")
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
