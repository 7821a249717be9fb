package verdict

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Told are the parts of what an agent and its user are told about a verdict other than ALLOW.
// Hosts cut long texts, so the parts that identify the action come first.
type Told struct {
	What    string // the judged words: a command, or a verb and a path
	Why     string // what they do, and the harm; no full stop at the end
	Instead string // what to do instead, or ""
	Rule    string // that asked, where that is not the verdict's
	Cause   string // for the user alone: what is wrong with shield or its settings, or ""
	Remedy  string // a command of the user's that lets the agent go on, or ""
	More    string // what the user can do beside that so as not to be asked again, or ""
}

// Bounds of a text for an agent, in characters: hosts show no more. maxTold includes what
// follows the reason.
const (
	maxTold    = 240
	maxReason  = 160
	maxWhat    = 60
	maxInstead = 70
)

// Reason returns what, why and what to do instead, in at most 160 characters. What does not
// fit is cut between words, and the advice last of all.
func (t *Told) Reason() string {
	what := clipped(oneLine(t.What), maxWhat)
	if what != "" {
		what += ": "
	}
	why := ended(oneLine(t.Why))
	room := maxReason - utf8.RuneCountInString(what)
	instead := clipped(sentence(t.Instead), max(maxInstead, room-utf8.RuneCountInString(why)-1))
	if instead != "" {
		instead = " " + instead
	}
	why = clipped(why, room-utf8.RuneCountInString(instead))
	if what == "" {
		why = capital(why)
	}
	return strings.TrimSpace(what + why + instead)
}

// ForAgent returns what an agent is told about a verdict, in at most 240 characters.
func (v *Verdict) ForAgent() string {
	tail := " Do not retry."
	if v.Ref != "" || v.Told.Remedy != "" {
		tail = " Do not retry unless the user allows it."
	}
	ref, rule := "", cmp.Or(v.Rule, v.Told.Rule)
	if v.Ref != "" {
		ref = ", ref " + v.Ref
	}
	text := v.Told.Reason() + tail
	if named := text + " [shield: " + rule + ref + "]"; rule != "" && utf8.RuneCountInString(named) <= maxTold {
		return named
	}
	return text + " [shield" + ref + "]"
}

// ForUser returns what the user is told about a verdict beside what the agent is told: the
// whole reason, and how to let the agent go on.
func (v *Verdict) ForUser() string {
	t := &v.Told
	text := sentence(t.Why)
	if t.What != "" {
		text = clipped(oneLine(t.What), maxReason) + ": " + ended(oneLine(t.Why))
	}
	if rule := cmp.Or(v.Rule, t.Rule); rule != "" {
		text += " [" + rule + "]"
	}
	if t.Cause != "" {
		text += " " + sentence(t.Cause)
	}
	if t.Remedy != "" {
		text += " To allow it: " + t.Remedy
		if t.More != "" {
			text += "; " + t.More
		}
	}
	return text
}

// oneLine returns a text with single spaces between its words.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// sentence returns a text as a sentence.
func sentence(s string) string { return ended(capital(oneLine(s))) }

func capital(s string) string {
	if s == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// ended returns a text with a mark at its end.
func ended(s string) string {
	s = strings.TrimRight(s, " ;,:")
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

// clipped returns a text of at most n characters, cut between words.
func clipped(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 2 {
		return ""
	}
	cut := string([]rune(s)[:n-1])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ;,:.") + "…"
}
