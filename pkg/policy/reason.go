package policy

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// explainRule says which rule decided, why, and which effect matched it. It does not show the rule's patterns,
// because they would show how to evade them.
func explainRule(list string, r *rulefile.Rule, by *effect.Effect) string {
	var b strings.Builder
	b.Grow(160)
	b.WriteString("policy ")
	b.WriteString(list)
	b.WriteString(" [")
	b.WriteString(r.Name)
	b.WriteByte(']')
	if r.Reason != "" {
		b.WriteString(": ")
		b.WriteString(r.Reason)
	}
	if by != nil && by.KindForPolicies() != "" {
		b.WriteString(" (")
		b.WriteString(string(by.KindForPolicies()))
		for _, s := range [...]string{by.Path, by.Host, by.Program} {
			if s != "" {
				b.WriteByte(' ')
				b.WriteString(shortenAndEscapeForMessage(s))
				break
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

// agentAdviceOnPossibleMatch returns advice for an effect that only possibly matches a rule.
func agentAdviceOnPossibleMatch(matchedEffect *effect.Effect) string {
	if matchedEffect != nil && matchedEffect.Cause == effect.CauseSecretReadEarlierInSession {
		return "; leave out the data that contains part of a credential read in this session"
	}
	if matchedEffect != nil && !matchedEffect.PathIsPattern && (matchedEffect.Kind == effect.ReadFile || matchedEffect.Kind == effect.ListDirectory) {
		return "; the folder can contain such files, so name the files or folders that are needed"
	}
	if matchedEffect != nil && !matchedEffect.PathIsPattern {
		return "; the command can change it, so list the files that are written"
	}
	return "; part of the path is unknown, so write it in full"
}

// shortenAndEscapeForMessage returns text of the action for a message: one line, shortened, with control characters escaped.
func shortenAndEscapeForMessage(s string) string {
	s = brief.TruncateWithEllipsis(s, 120)
	plain := strings.IndexFunc(s, func(r rune) bool { return !strconv.IsGraphic(r) }) < 0
	if plain {
		return s
	}
	return strconv.QuoteToGraphic(s)
}
