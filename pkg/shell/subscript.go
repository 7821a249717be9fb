package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkSubscripts walks command substitutions in a value's array subscripts, which run if the value
// is evaluated as a number: a[$(id)]. If isEvaluatedAsNumber is true, the whole value is evaluated.
func (s *analysisState) walkSubscripts(v abstract.Value, isEvaluatedAsNumber bool) {
	if v.IsGlobPattern && v.Origin == 0 { // these glob characters stand in the command's own text; evaluation as a number takes them literally
		v.Text, v.IsGlobPattern = strings.ReplaceAll(v.Text, `\`, ""), false
	}
	if !v.IsLiteral() || !hasCommandSubstitution(v.Text) || !s.spendSteps(1+len(v.Text)/16) {
		return
	}
	at := v.SourceSpan
	if at.End == 0 {
		at = s.span(0, len(s.analyzedText))
	}
	for _, sub := range subscriptsWithCommands(v.Text, isEvaluatedAsNumber) {
		s.walkDeferredCode(func() { s.walkExpansionsInPlainText(sub, at) })
	}
}

// recordArrayMemberCodeEffects checks the value of an array member: it runs if it is evaluated as a number, or as a prompt.
func (s *analysisState) recordArrayMemberCodeEffects(name string, v abstract.Value) {
	if s.walkSubscripts(v, false); name == "PROMPT_COMMAND" || name == "PS4" {
		s.recordVariableAssignmentEffects(name, v, v.SourceSpan)
	}
}

// hasCommandSubstitution reports whether a text contains a command substitution.
func hasCommandSubstitution(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`")
}

// subscriptsWithCommands returns the array subscripts in a text that contain a command
// substitution; if isEvaluatedAsNumber is true, the whole text.
func subscriptsWithCommands(text string, isEvaluatedAsNumber bool) []string {
	if isEvaluatedAsNumber {
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
		if sub := text[i+1 : min(end, len(text))]; hasCommandSubstitution(sub) {
			out = append(out, sub)
		}
		i = end
	}
	return out
}

// walkExpansionsInPlainText walks the expansions in a text that is otherwise not code, such as a prompt.
func (s *analysisState) walkExpansionsInPlainText(text string, at effect.CommandTextSpan) {
	s.walkNestedShellText("echo \""+strings.ReplaceAll(text, `"`, `\"`)+"\"", at)
}
