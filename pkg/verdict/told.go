package verdict

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/brief"
)

// Explanation holds the parts of the text about a verdict for the agent and its user. An ALLOW has no text. Hosts
// truncate long texts, so the parts that identify the action come first.
type Explanation struct {
	ActionText             string // the judged words: a command, or a verb and a path
	EffectAndHarm          string // what the action does, and the harm; without a full stop
	AlternativeToAction    string // an alternative, or ""
	EscalatingRule         string // the rule that asked, if it is not the verdict's rule
	ShieldOwnProblemText   string // only for the user: a problem of shield or its settings, or ""
	UserAllowCommand       string // a command with which the user lets the agent continue, or ""
	HintToAllowMoreActions string // what the user can do in addition to avoid the question in future, or ""
}

// Limits of a text for an agent, in characters: hosts show no more. maxAgentVerdictTextRunes includes the text after the
// reason.
const (
	maxAgentVerdictTextRunes    = 240
	maxExplanationSummaryRunes  = 160
	maxActionTextRunes          = 60
	minShortenedActionTextRunes = 36 // the action is shortened to this length before the reason is shortened
	minShortenedAdviceRunes     = 70
)

// Summary returns ActionText, EffectAndHarm and AlternativeToAction, in at most 160 characters. If they are
// too long, first the action is shortened, then the harm, then the advice.
func (t *Explanation) Summary() string {
	why, instead := endWithPunctuation(collapseWhitespace(t.EffectAndHarm)), toSentence(t.AlternativeToAction)
	rest := utf8.RuneCountInString(why) + utf8.RuneCountInString(instead) + len(":  ")
	what := clipAtWord(collapseWhitespace(t.ActionText), maxActionTextRunes)
	if what = brief.TruncateWithEllipsis(what, max(minShortenedActionTextRunes, maxExplanationSummaryRunes-rest)); what != "" {
		what += ": "
	}
	room := maxExplanationSummaryRunes - utf8.RuneCountInString(what)
	if instead != "" {
		brief := utf8.RuneCountInString(trimHarmFromReason(why))
		instead = " " + shortenReason(instead, max(minShortenedAdviceRunes, room-brief-1))
	}
	why = shortenReason(why, room-utf8.RuneCountInString(instead))
	if what == "" {
		why = capitalize(why)
	}
	return strings.TrimSpace(what + why + instead)
}

// TextForAgent returns the text about a verdict for the agent, in at most 240 characters.
func (v *Verdict) TextForAgent() string {
	tail := " Do not retry."
	if v.RefusalRef != "" || v.Explanation.UserAllowCommand != "" {
		tail = " Do not retry unless the user allows it."
	}
	ref, rule := "", cmp.Or(v.Rule, v.Explanation.EscalatingRule)
	if v.RefusalRef != "" {
		ref = ", ref " + v.RefusalRef
	}
	text := v.Explanation.Summary() + tail
	if named := text + " [shield: " + rule + ref + "]"; rule != "" && utf8.RuneCountInString(named) <= maxAgentVerdictTextRunes {
		return named
	}
	return text + " [shield" + ref + "]"
}

// TextForUser returns the text for the user in addition to that for the agent: the full reason, and how to let
// the agent continue.
func (v *Verdict) TextForUser() string {
	t := &v.Explanation
	text := toSentence(t.EffectAndHarm)
	if t.ActionText != "" {
		text = clipAtWord(collapseWhitespace(t.ActionText), maxExplanationSummaryRunes) + ": " + endWithPunctuation(collapseWhitespace(t.EffectAndHarm))
	}
	if rule := cmp.Or(v.Rule, t.EscalatingRule); rule != "" {
		text += " [" + rule + "]"
	}
	if t.ShieldOwnProblemText != "" {
		text += " " + toSentence(t.ShieldOwnProblemText)
	}
	if t.UserAllowCommand != "" {
		text += " To allow it: " + t.UserAllowCommand
		if t.HintToAllowMoreActions != "" {
			text += "; " + t.HintToAllowMoreActions
		}
	}
	return text
}

// trimHarmFromReason returns a reason of the form "what it does: harm" without the harm.
func trimHarmFromReason(why string) string {
	does, _, found := strings.Cut(why, ": ")
	if !found || strings.HasPrefix(does, "unknown ") { // in "unknown effect: X" and the like, X is the object or the reason, not the harm
		return why
	}
	return endWithPunctuation(does)
}

// shortenReason shortens a reason to at most n characters. In turn, it removes text in parentheses, the harm
// (the text after the first ": "), and the part after the last ";" or ","; or else it cuts between words.
func shortenReason(s string, n int) string {
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
	if s = trimHarmFromReason(s); fits(s) {
		return s
	}
	for _, mark := range []string{"; ", ", or ", ", and ", ", "} {
		if i := strings.LastIndex(s, mark); i >= 24 && utf8.RuneCountInString(s[:i]) < n {
			return s[:i] + "…"
		}
	}
	return clipAtWord(s, n)
}

// collapseWhitespace returns a text with all white space replaced by single spaces.
func collapseWhitespace(s string) string { return strings.Join(strings.Fields(s), " ") }

// toSentence returns a text with a capital letter and a full stop.
func toSentence(s string) string { return endWithPunctuation(capitalize(collapseWhitespace(s))) }

func capitalize(s string) string {
	if s == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// endWithPunctuation returns a text with a punctuation mark at its end.
func endWithPunctuation(s string) string {
	s = strings.TrimRight(s, " ;,:")
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

// clipAtWord returns a text of at most n characters, cut between words.
func clipAtWord(s string, n int) string {
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
