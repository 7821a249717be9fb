package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// eitherShell walks text that is PowerShell's by its looks, but that a POSIX
// shell would run, too, up to where it cannot parse it. What each of the two does
// counts. It returns how many effects are those of PowerShell.
func (s *state) eitherShell(text string) int {
	s.apart(func() {
		s.foreign++
		s.powershell(text)
	})
	mark := len(s.effects)
	s.parsed(text)
	return mark
}

// dropExpressions removes from mark on what a POSIX shell cannot know of
// PowerShell's expressions, which it treats as programs, and that it cannot parse
// the text. All that it can tell stays.
func (s *state) dropExpressions(mark int) {
	mark = min(mark, len(s.effects))
	kept := s.effects[:mark]
	for _, e := range s.effects[mark:] {
		if e.Sure == effect.Unknown && e.Cause == effect.CauseSyntax ||
			(e.Sure == effect.Unknown || e.Word() == effect.RunInput) && expression(statementAt(s.text, e.From.Start), e.Cause) {
			continue
		}
		kept = append(kept, e)
	}
	s.effects = kept
}

// statementAt returns text from the start of the statement that a place is in.
func statementAt(text string, at int) string {
	at = min(at, len(text))
	return strings.TrimLeft(text[strings.LastIndexAny(text[:at], "\n;{}|&(`")+1:], " \t\r")
}

// expression reports whether a statement begins with a value as PowerShell
// writes it, so that what is unknown of it for the given cause names no program.
func expression(text string, cause effect.Cause) bool {
	if len(text) < 2 {
		return false
	}
	if cause == effect.CauseHeld {
		cause = effect.CauseVariable
	}
	switch text[0] {
	case '[':
		return (cause == effect.CauseUnresolved || cause == effect.CauseVariable) && letter(text[1])
	case '$':
		rest := strings.TrimLeft(trimVariable(text), " \t")
		return cause == effect.CauseVariable && rest != "" && (rest[0] == '=' || strings.HasPrefix(rest, "+="))
	case '"', '\'':
		return (cause == effect.CauseOutput || cause == effect.CauseVariable || cause == effect.CauseUnresolved || cause == effect.CauseScript) && quotedValue(text)
	}
	word, rest := cutWord(text)
	rest = strings.TrimLeft(rest, " \t")
	switch strings.ToLower(word) {
	case "param":
		return strings.HasPrefix(rest, "(") && (cause == effect.CauseUnresolved || cause == effect.CauseVariable)
	case "trap":
		return strings.HasPrefix(rest, "[") && cause == effect.CauseUnresolved
	}
	return false
}

// trimVariable cuts a variable and its members from the start of text; it returns
// nothing if a POSIX shell would end the name elsewhere.
func trimVariable(text string) string {
	i := 1
	for i < len(text) && (plain.WordByte(text[i]) || i > 1 && text[i] == '.') {
		i++
	}
	if i == 1 {
		return ""
	}
	return text[i:]
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// quotedValue reports whether a quoted text that begins a statement can be no
// program's name, because a blank is in it and no folder, or is on the left of an
// operator of PowerShell.
func quotedValue(text string) bool {
	body, rest, ok := strings.Cut(text[1:], text[:1])
	if !ok || strings.ContainsAny(body, "\n/\\") || strings.Contains(body, "$(") && strings.Count(body, "$(") != strings.Count(body, ")") {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	if line == "" {
		return strings.Contains(literalOf(body), " ")
	}
	op, _, _ := strings.Cut(line, " ")
	return valueOperators[strings.ToLower(op)] && !strings.ContainsAny(line, ";|&`$")
}

// literalOf removes what a shell would put in from a quoted text.
func literalOf(body string) string {
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
			_, body = cutWord(body[i+1:])
			continue
		}
		_, body, _ = strings.Cut(body[i+1:], closing)
	}
	return b.String()
}

// valueOperators are those of PowerShell that compare or change a text.
var valueOperators = map[string]bool{
	"-match": true, "-notmatch": true, "-cmatch": true, "-imatch": true, "-like": true, "-notlike": true, "-replace": true, "-creplace": true,
	"-split": true, "-csplit": true, "-contains": true, "-notcontains": true, "-eq": true, "-ne": true, "-ceq": true, "-ieq": true, "-f": true, "-is": true, "-isnot": true,
}

// mayBePowerShell reports whether text that a POSIX shell reads in part begins
// as only PowerShell is written: a declaration, a value that is printed, or plain
// commands and then a statement of PowerShell.
func mayBePowerShell(text string) bool {
	text = uncommented(text)
	if len(text) < 3 {
		return false
	}
	switch text[0] {
	case '"', '\'':
		return quotedValue(text)
	case '$':
		rest := trimVariable(text)
		return strings.HasPrefix(rest, "(") && strings.Contains(text[:len(text)-len(rest)], ".")
	}
	return isDeclaration(text) || afterCommands(text)
}

// isDeclaration reports whether text begins with a declaration of PowerShell.
func isDeclaration(text string) bool {
	word, rest := cutWord(text)
	rest = strings.TrimLeft(rest, " \t\r\n")
	switch strings.ToLower(word) {
	case "try":
		return strings.HasPrefix(rest, "{")
	case "trap":
		return strings.HasPrefix(rest, "{") || len(rest) > 1 && rest[0] == '[' && letter(rest[1])
	case "class", "enum":
		name, body := cutWord(rest)
		body = strings.TrimLeft(body, " \t\r\n")
		return name != "" && body != "" && (body[0] == '{' || body[0] == ':')
	case "function", "filter":
		if isCmdlet(rest) {
			return true
		}
		name, body, ok := strings.Cut(rest, "{")
		name = strings.TrimSpace(name)
		return ok && name != "" && !strings.ContainsAny(name, " \t\r\n()") && beginsBody(strings.TrimLeft(body, " \t\r\n"))
	}
	return false
}

// beginsBody reports whether text begins as the body of a function of PowerShell
// does: with an attribute, parameters, a named block or an assignment.
func beginsBody(text string) bool {
	if len(text) < 2 {
		return false
	}
	switch text[0] {
	case '[':
		return letter(text[1])
	case '$':
		return strings.HasPrefix(strings.TrimLeft(trimVariable(text), " \t"), "=")
	case '<':
		return text[1] == '#'
	}
	word, rest := cutWord(text)
	rest = strings.TrimLeft(rest, " \t\r\n")
	switch strings.ToLower(word) {
	case "param":
		return strings.HasPrefix(rest, "(")
	case "begin", "process", "end":
		return strings.HasPrefix(rest, "{")
	}
	return false
}

// maxCommands is how many plain commands may be before PowerShell's first
// statement.
const maxCommands = 8

// afterCommands reports whether lines of plain words, which every shell reads
// alike, come before a statement of PowerShell.
func afterCommands(text string) bool {
	for range maxCommands {
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

// cutWord cuts letters, digits and underscores from the start of text.
func cutWord(text string) (word, rest string) {
	i := 0
	for i < len(text) && plain.WordByte(text[i]) {
		i++
	}
	return text[:i], text[i:]
}
