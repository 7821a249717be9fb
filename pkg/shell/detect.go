package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
	"github.com/shieldcli/shield/pkg/shell/internal/pwsh"
)

// trimLeadingComments returns text without surrounding white space and leading comment lines.
func trimLeadingComments(text string) string {
	text = strings.TrimSpace(text)
	for strings.HasPrefix(text, "#") {
		_, rest, _ := strings.Cut(text, "\n")
		text = strings.TrimSpace(rest)
	}
	return text
}

// looksPowerShell reports whether a command line is PowerShell text: it starts with a cmdlet, a .NET type, a
// variable as only PowerShell writes it, or with other syntax or a word that only PowerShell has.
func looksPowerShell(text string) bool {
	text = trimLeadingComments(text)
	if len(text) < 3 {
		return false
	}
	switch text[:2] {
	case "<#", "@{", "@(", "@'", `@"`: // a comment, a hash table, an array, here-strings
		return true
	}
	switch text[0] {
	case '[':
		return text[1]|0x20 >= 'a' && text[1]|0x20 <= 'z' // [ before a letter starts a .NET type; the shell command [ needs a blank after it
	case '$':
		name, rest, ok := strings.Cut(text[1:], "=")
		if strings.HasPrefix(strings.ToLower(text), "$env:") || strings.HasPrefix(text, "$(") && strings.Contains(text, "-Object") {
			return true
		}
		if startsWithPowerShellVariable(text) {
			return true
		}
		return ok && strings.HasSuffix(name, " ") && !strings.ContainsAny(strings.TrimSpace(name), " {}()$") || strings.Contains(text, ".Down") && strings.Contains(text, "(") && len(rest) > 0
	case '(', '&', '.':
		inner := strings.TrimLeft(text, "(&. {'\"")
		return text[0] != '.' && (isCmdlet(inner) || strings.HasPrefix(inner, "[")) || strings.HasPrefix(text, "& ") && !strings.HasPrefix(text, "&&")
	}
	if isCmdlet(text) {
		return true
	}
	first, rest, _ := strings.Cut(text, " ")
	if hasDrivePathButNoHeredoc(rest) && pwsh.IsCmdlet(strings.ToLower(first)) && !hasWindowsSwitch(rest) && !strings.ContainsAny(rest, "%&") &&
		(!differsInCmdExeFromPOSIX(first) || strings.Contains(rest, " -") || strings.Contains(rest, "$") || !strings.ContainsAny(rest, "|\"")) && !strings.EqualFold(first, "echo") {
		return true
	}
	if command.PowerShellWords[strings.ToLower(first)] {
		return rest != ""
	}
	return strings.EqualFold(first, "param") && strings.Contains(text, "$") && strings.Contains(text, "-") && !strings.Contains(text, "()")
}

// hasDrivePathButNoHeredoc reports whether text names a path on a drive such as C:\, and contains no here-document (<<), which
// PowerShell does not have.
func hasDrivePathButNoHeredoc(text string) bool {
	for i := strings.Index(text, `:\`); i >= 0 && !strings.Contains(text, "<<"); {
		if i > 0 && plain.IsWordByte(text[i-1]) && (i < 2 || !plain.IsWordByte(text[i-2])) {
			return true
		}
		next := strings.Index(text[i+1:], `:\`)
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return false
}

// startsWithPowerShellVariable reports whether text that starts with $ is a PowerShell assignment, or pipes a variable to a cmdlet.
func startsWithPowerShellVariable(text string) bool {
	i := 1
	for i < len(text) && (plain.IsWordByte(text[i]) || strings.IndexByte(":.", text[i]) >= 0) {
		i++
	}
	rest := strings.TrimLeft(text[i:], " \t")
	if i == 1 || rest == "" || strings.Contains(strings.ReplaceAll(text, "`\n", ""), "`") { // a POSIX shell runs the text between backticks
		return false
	}
	switch after := strings.TrimLeft(rest[1:], " \t\r\n"); rest[0] {
	case '=':
		return after != "" && (strings.IndexByte("@$(", after[0]) >= 0 || isCmdlet(after))
	case '|':
		return isCmdlet(after)
	}
	return false
}

// differsInCmdExeFromPOSIX reports whether a program's name means a different program in cmd.exe than in a POSIX shell.
func differsInCmdExeFromPOSIX(program string) bool {
	listed, _ := command.WindowsProgramTableName(program)
	return strings.HasPrefix(listed, "cmd:")
}

// isCmdlet reports whether text starts with the name of a known PowerShell cmdlet, or with a
// Verb-Noun name that is capitalized like one.
func isCmdlet(text string) bool {
	end := 0
	for end < len(text) && (plain.IsWordByte(text[end]) || text[end] == '-') {
		end++
	}
	verb, noun, ok := strings.Cut(text[:end], "-")
	if !ok || verb == "" || noun == "" || strings.Contains(noun, "-") || end < len(text) && text[end] == '.' {
		return false
	}
	if pwsh.IsCmdlet(strings.ToLower(text[:end])) {
		return true
	}
	return verb[0] >= 'A' && verb[0] <= 'Z' && noun[0] >= 'A' && noun[0] <= 'Z' && len(verb) > 2 && len(noun) > 2
}

// looksLikeCmdExe reports whether a command line is written for cmd.exe.
func looksLikeCmdExe(text string) bool {
	text = strings.TrimLeft(text, " \t@(")
	end := strings.IndexAny(text, " \t\n&|<>")
	if end < 0 {
		end = len(text)
	}
	first := text[:end]
	if strings.HasPrefix(text, `"`) {
		if end = strings.IndexByte(text[1:], '"'); end > 0 {
			first = text[1 : end+1]
		}
	}
	if first == "" {
		return false
	}
	if len(first) > 2 && first[1] == ':' && first[2] == '\\' || first[0] == '%' && strings.Count(first, "%") > 1 {
		return true
	}
	if lower := strings.ToLower(first); strings.HasPrefix(first, `.\`) || strings.HasPrefix(first, `..\`) {
		if strings.HasSuffix(lower, ".exe") || strings.HasSuffix(lower, ".bat") || strings.HasSuffix(lower, ".cmd") {
			return true
		}
	}
	rest := text[min(len(first), len(text)):]
	first = strings.ReplaceAll(first, "^", "")
	name := strings.ToLower(programName(strings.ReplaceAll(first, "\\", "/")))
	switch {
	case name == "pwsh": // pwsh also exists on other systems
		return false
	case name == "cmd" && strings.Count(rest, "'") == 2 && strings.HasSuffix(strings.TrimSpace(rest), "'"):
		return false // only a POSIX shell removes single quotes
	case command.CmdWords[name]:
		return hasWindowsSwitch(rest) || strings.Contains(rest, `:\`) || strings.Count(rest, "%") > 1 && !strings.ContainsAny(rest, "$'") ||
			name == "net" && startsWithNetExeSubcommand(rest)
	}
	_, windows := command.WindowsProgramTableName(name)
	return windows && !differsInCmdExeFromPOSIX(name)
}

// isPowerShellCommandContainingSingleQuote reports whether text starts PowerShell and holds a single quote. cmd.exe passes the quotes to
// PowerShell, which sees a string; a POSIX shell removes them, so PowerShell sees code.
func isPowerShellCommandContainingSingleQuote(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	return strings.Contains(rest, "'") && command.InterpreterLanguage(programName(strings.ReplaceAll(strings.Trim(first, `"`), "\\", "/"))) == "powershell"
}

// hasWindowsSwitch reports whether text starts with an option such as /s.
func hasWindowsSwitch(text string) bool {
	for f := range strings.FieldsSeq(text) {
		if len(f) >= 2 && f[0] == '/' && !strings.Contains(f[1:], "/") && (len(f) == 2 || f[2] == ':') && strings.ContainsAny(f[1:2], "sSqQfFaAbBcCdDyYrRiIlLpPvVkK?eE") {
			return true
		}
	}
	return false
}

// startsWithNetExeSubcommand reports whether text starts with a subcommand of the Windows program net.
func startsWithNetExeSubcommand(text string) bool {
	fields := strings.Fields(text)
	return len(fields) > 0 && command.NetVerbs[strings.ToLower(fields[0])]
}
