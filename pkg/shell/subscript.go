package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// subscriptIn walks what a value runs if something reads it as a number: a[$(id)]. If it must be
// one, any expansion in it counts.
func (s *state) subscriptIn(v abstract.Value, number bool) {
	if v.IsPattern && v.Origin == 0 { // letters of the text that are no pattern in a value
		v.Text, v.IsPattern = strings.ReplaceAll(v.Text, `\`, ""), false
	}
	if !v.Known() || !hasCommand(v.Text) || !s.step(1+len(v.Text)/16) {
		return
	}
	at := v.From
	if at.End == 0 {
		at = s.span(0, len(s.text))
	}
	for _, sub := range subscripts(v.Text, number) {
		s.atAnyTime(func() { s.expandsText(sub, at) })
	}
}

// keeps looks at what a member of an array gets: it may run if it is read as a number, or as a
// prompt.
func (s *state) keeps(name string, v abstract.Value) {
	if s.subscriptIn(v, false); name == "PROMPT_COMMAND" || name == "PS4" {
		s.environmentCode(name, v, v.From)
	}
}

// hasCommand reports whether a text has what a command writes in it.
func hasCommand(text string) bool { return strings.Contains(text, "$(") || strings.Contains(text, "`") }

// subscripts returns the members of arrays that a text names by what a command writes.
func subscripts(text string, number bool) []string {
	if number {
		return []string{text}
	}
	var out []string
	for i := 1; i < len(text); i++ {
		if c := text[i-1]; text[i] != '[' || c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			continue
		}
		end, depth := i, 0
		for ; end < len(text); end++ {
			if text[end] == '[' {
				depth++
			} else if text[end] == ']' {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if sub := text[i+1 : min(end, len(text))]; hasCommand(sub) {
			out = append(out, sub)
		}
		i = end
	}
	return out
}

// expandsText walks the expansions in a text that is no code otherwise, such as a prompt.
func (s *state) expandsText(text string, at effect.Span) {
	s.nested("echo \""+strings.ReplaceAll(text, `"`, `\"`)+"\"", at)
}
