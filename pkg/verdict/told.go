package verdict

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/brief"
)

// Told holds the parts of the text about a verdict for the agent and its user. An ALLOW has no text. Hosts
// truncate long texts, so the parts that identify the action come first.
type Told struct {
	What    string // the judged words: a command, or a verb and a path
	Why     string // what the action does, and the harm; without a full stop
	Instead string // an alternative, or ""
	Rule    string // the rule that asked, if it is not the verdict's rule
	Cause   string // only for the user: a problem of shield or its settings, or ""
	Remedy  string // a command with which the user lets the agent continue, or ""
	More    string // what the user can do in addition to avoid the question in future, or ""
}

// Limits of a text for an agent, in characters: hosts show no more. maxTold includes the text after the
// reason.
const (
	maxTold    = 240
	maxReason  = 160
	maxWhat    = 60
	minWhat    = 36 // the action is shortened to this length before the reason is shortened
	maxInstead = 70
)

// Reason returns What, Why and Instead, in at most 160 characters. If they are too long, first the action is
// shortened, then the harm, then the advice.
func (t *Told) Reason() string {
	why, instead := ended(oneLine(t.Why)), sentence(t.Instead)
	rest := utf8.RuneCountInString(why) + utf8.RuneCountInString(instead) + len(":  ")
	what := clipped(oneLine(t.What), maxWhat)
	if what = brief.Text(what, max(minWhat, maxReason-rest)); what != "" {
		what += ": "
	}
	room := maxReason - utf8.RuneCountInString(what)
	if instead != "" {
		brief := utf8.RuneCountInString(withoutHarm(why))
		instead = " " + shortened(instead, max(maxInstead, room-brief-1))
	}
	why = shortened(why, room-utf8.RuneCountInString(instead))
	if what == "" {
		why = capital(why)
	}
	return strings.TrimSpace(what + why + instead)
}

// ForAgent returns the text about a verdict for the agent, in at most 240 characters.
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

// ForUser returns the text for the user in addition to that for the agent: the full reason, and how to let
// the agent continue.
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

// withoutHarm returns a reason of the form "what it does: harm" without the harm.
func withoutHarm(why string) string {
	does, _, found := strings.Cut(why, ": ")
	if !found || strings.HasPrefix(does, "unknown ") { // the text after the colon names the object, not the harm
		return why
	}
	return ended(does)
}

// shortened returns a text of at most n characters: it removes parentheses, the harm, or the last part, or
// else cuts between words.
func shortened(s string, n int) string {
	fits := func(s string) bool { return utf8.RuneCountInString(s) <= n }
	if fits(s) {
		return s
	}
	if before, rest, found := strings.Cut(s, " ("); found {
		if _, after, closed := strings.Cut(rest, ")"); closed {
			s = before + after
		}
	}
	if fits(s) {
		return s
	}
	if s = withoutHarm(s); fits(s) {
		return s
	}
	for _, mark := range []string{"; ", ", or ", ", and ", ", "} {
		if i := strings.LastIndex(s, mark); i >= 24 && utf8.RuneCountInString(s[:i]) < n {
			return s[:i] + "…"
		}
	}
	return clipped(s, n)
}

// oneLine returns a text with all white space replaced by single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// sentence returns a text with a capital letter and a full stop.
func sentence(s string) string { return ended(capital(oneLine(s))) }

func capital(s string) string {
	if s == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// ended returns a text with a punctuation mark at its end.
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
