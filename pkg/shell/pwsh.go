package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// walkAsPowerShellThenPOSIX walks text that looks like PowerShell but that a POSIX shell would also run, up to a
// syntax error. The effects of both shells are recorded. It returns the index of the first effect of the POSIX
// shell; those of PowerShell come before it.
func (s *analysisState) walkAsPowerShellThenPOSIX(text string) int {
	s.walkSubshell(func() {
		s.otherLanguageDepth++
		s.interpretPowerShellText(text)
	})
	mark := len(s.effects)
	s.parseAndWalkShellText(text)
	return mark
}

// dropPowerShellMisreadEffects removes unknown and run_input effects, from index firstEffect on,
// that were recorded only because a POSIX shell reads PowerShell expressions as program names or
// cannot parse the text. All other effects stay.
func (s *analysisState) dropPowerShellMisreadEffects(firstEffect int) {
	firstEffect = min(firstEffect, len(s.effects))
	kept := s.effects[:firstEffect]
	for _, e := range s.effects[firstEffect:] {
		if e.Certainty == effect.Unknown && e.Cause == effect.CauseUnparseableText ||
			(e.Certainty == effect.Unknown || e.KindForPolicies() == effect.RunCommandOutput) && isPowerShellExpression(statementAt(s.analyzedText, e.Span.Start), e.Cause) {
			continue
		}
		kept = append(kept, e)
	}
	s.effects = kept
}

// statementAt returns the text from the start of the statement at byte offset at to the end of the
// text.
func statementAt(text string, at int) string {
	at = min(at, len(text))
	return strings.TrimLeft(text[strings.LastIndexAny(text[:at], "\n;{}|&(`")+1:], " \t\r")
}

// isPowerShellExpression reports whether a statement begins with a PowerShell value, parameter block or trap and
// not with a program name. The effect with the given cause is then wrong: it treats the start of the statement
// as an unknown program.
func isPowerShellExpression(text string, cause effect.EffectCause) bool {
	if len(text) < 2 {
		return false
	}
	if cause == effect.CauseCodeIsVariableValue {
		cause = effect.CauseVariableNotSetByCommand
	}
	switch text[0] {
	case '[':
		return (cause == effect.CauseOtherUnresolvedCommandText || cause == effect.CauseVariableNotSetByCommand) && isLetter(text[1])
	case '$':
		rest := strings.TrimLeft(trimLeadingVariable(text), " \t")
		return cause == effect.CauseVariableNotSetByCommand && rest != "" && (rest[0] == '=' || strings.HasPrefix(rest, "+="))
	case '"', '\'':
		return (cause == effect.CauseCommandOutput || cause == effect.CauseVariableNotSetByCommand || cause == effect.CauseOtherUnresolvedCommandText || cause == effect.CauseUnreadScript) && isQuotedValue(text)
	}
	word, rest := splitLeadingWord(text)
	rest = strings.TrimLeft(rest, " \t")
	switch strings.ToLower(word) {
	case "param":
		return strings.HasPrefix(rest, "(") && (cause == effect.CauseOtherUnresolvedCommandText || cause == effect.CauseVariableNotSetByCommand)
	case "trap":
		return strings.HasPrefix(rest, "[") && cause == effect.CauseOtherUnresolvedCommandText
	}
	return false
}

// trimLeadingVariable cuts a variable and its members from the start of text; it returns "" if a POSIX shell reads no
// variable name there.
func trimLeadingVariable(text string) string {
	i := 1
	for i < len(text) && (plain.IsWordByte(text[i]) || i > 1 && text[i] == '.') {
		i++
	}
	if i == 1 {
		return ""
	}
	return text[i:]
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isQuotedValue reports whether a quoted text at the start of a statement cannot be a program's
// name. It contains no path, and either a PowerShell operator follows it, or it contains a space
// and nothing follows it on the line.
func isQuotedValue(text string) bool {
	body, rest, ok := strings.Cut(text[1:], text[:1])
	if !ok || strings.ContainsAny(body, "\n/\\") || strings.Contains(body, "$(") && strings.Count(body, "$(") != strings.Count(body, ")") {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	if line == "" {
		return strings.Contains(stripExpansions(body), " ")
	}
	op, _, _ := strings.Cut(line, " ")
	return powerShellStringOperators[strings.ToLower(op)] && !strings.ContainsAny(line, ";|&`$")
}

// stripExpansions removes expansions and command substitutions from a quoted text.
func stripExpansions(body string) string {
	var b strings.Builder
	for body != "" {
		i := strings.IndexAny(body, "`$")
		if i < 0 {
			b.WriteString(body)
			break
		}
		b.WriteString(body[:i])
		closing := "`"
		if body[i] == '$' {
			closing = ")"
		}
		if closing == ")" && !strings.HasPrefix(body[i:], "$(") {
			_, body = splitLeadingWord(body[i+1:])
			continue
		}
		_, body, _ = strings.Cut(body[i+1:], closing)
	}
	return b.String()
}

// powerShellStringOperators are the PowerShell operators that compare or change strings.
var powerShellStringOperators = map[string]bool{
	"-match": true, "-notmatch": true, "-cmatch": true, "-imatch": true, "-like": true, "-notlike": true, "-replace": true, "-creplace": true,
	"-split": true, "-csplit": true, "-contains": true, "-notcontains": true, "-eq": true, "-ne": true, "-ceq": true, "-ieq": true, "-f": true, "-is": true, "-isnot": true,
}

// mayBePowerShell reports whether text that a POSIX shell can partly parse begins like PowerShell: with a
// declaration, an output value, or plain commands before a PowerShell statement.
func mayBePowerShell(text string) bool {
	text = trimLeadingComments(text)
	if len(text) < 3 {
		return false
	}
	switch text[0] {
	case '"', '\'':
		return isQuotedValue(text)
	case '$':
		rest := trimLeadingVariable(text)
		return strings.HasPrefix(rest, "(") && strings.Contains(text[:len(text)-len(rest)], ".")
	}
	return isPowerShellDeclaration(text) || hasPowerShellAfterPlainCommands(text)
}

// isPowerShellDeclaration reports whether text begins with a PowerShell declaration.
func isPowerShellDeclaration(text string) bool {
	word, rest := splitLeadingWord(text)
	rest = strings.TrimLeft(rest, " \t\r\n")
	switch strings.ToLower(word) {
	case "try":
		return strings.HasPrefix(rest, "{")
	case "trap":
		return strings.HasPrefix(rest, "{") || len(rest) > 1 && rest[0] == '[' && isLetter(rest[1])
	case "class", "enum":
		name, body := splitLeadingWord(rest)
		body = strings.TrimLeft(body, " \t\r\n")
		return name != "" && body != "" && (body[0] == '{' || body[0] == ':')
	case "function", "filter":
		if isCmdlet(rest) {
			return true
		}
		name, body, ok := strings.Cut(rest, "{")
		name = strings.TrimSpace(name)
		return ok && name != "" && !strings.ContainsAny(name, " \t\r\n()") && beginsFunctionBody(strings.TrimLeft(body, " \t\r\n"))
	}
	return false
}

// beginsFunctionBody reports whether text begins like the body of a PowerShell function: with an attribute or
// type, a block comment, parameters, a named block or an assignment.
func beginsFunctionBody(text string) bool {
	if len(text) < 2 {
		return false
	}
	switch text[0] {
	case '[':
		return isLetter(text[1])
	case '$':
		return strings.HasPrefix(strings.TrimLeft(trimLeadingVariable(text), " \t"), "=")
	case '<':
		return text[1] == '#'
	}
	word, rest := splitLeadingWord(text)
	rest = strings.TrimLeft(rest, " \t\r\n")
	switch strings.ToLower(word) {
	case "param":
		return strings.HasPrefix(rest, "(")
	case "begin", "process", "end":
		return strings.HasPrefix(rest, "{")
	}
	return false
}

// maxPlainCommandsBeforePowerShell is the maximum number of plain commands before the first PowerShell statement.
const maxPlainCommandsBeforePowerShell = 8

// hasPowerShellAfterPlainCommands reports whether text is lines of plain words, which every shell reads alike, before a PowerShell
// statement.
func hasPowerShellAfterPlainCommands(text string) bool {
	for range maxPlainCommandsBeforePowerShell {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok || strings.Trim(strings.TrimSpace(line), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/\\- ") != "" {
			return false
		}
		text = strings.TrimLeft(rest, " \t\r\n")
		if text == "" {
			return false
		}
		if (text[0] == '$' || text[0] == '[' || isCmdlet(text)) && looksPowerShell(text) {
			return true
		}
	}
	return false
}

// splitLeadingWord splits letters, digits and underscores from the start of text.
func splitLeadingWord(text string) (word, rest string) {
	i := 0
	for i < len(text) && plain.IsWordByte(text[i]) {
		i++
	}
	return text[:i], text[i:]
}
