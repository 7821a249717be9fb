package shell

import (
	"strings"
	"unicode/utf16"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
	"github.com/shieldcli/shield/pkg/shell/internal/pwsh"
)

// looksPowerShell reports whether a command line is PowerShell text: it starts
// with a cmdlet, a .NET type, or a variable as only PowerShell writes it.
func looksPowerShell(text string) bool {
	text = strings.TrimSpace(text)
	for strings.HasPrefix(text, "#") {
		_, rest, _ := strings.Cut(text, "\n")
		text = strings.TrimSpace(rest)
	}
	if len(text) < 3 {
		return false
	}
	switch text[0] {
	case '[':
		return text[1]|0x20 >= 'a' && text[1]|0x20 <= 'z' // the command [ needs a blank
	case '$':
		name, rest, ok := strings.Cut(text[1:], "=")
		if strings.HasPrefix(strings.ToLower(text), "$env:") || strings.HasPrefix(text, "$(") && strings.Contains(text, "-Object") {
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
	if strings.Contains(rest, `:\`) && pwsh.IsCmdlet(strings.ToLower(first)) && !windowsSwitch(rest) && !strings.ContainsAny(rest, "%&") &&
		(!cmdBuiltin(strings.ToLower(first)) || strings.Contains(rest, " -") || strings.Contains(rest, "$") || !strings.ContainsAny(rest, "|\"")) && !strings.EqualFold(first, "echo") {
		return true
	}
	switch strings.ToLower(first) {
	case "iex", "iwr", "irm", "gci", "sajb", "spps", "gwmi", "icm", "saps", "ipmo":
		return rest != ""
	case "param", "function":
		return strings.Contains(text, "$") && strings.Contains(text, "-") && !strings.Contains(text, "()") && strings.HasPrefix(strings.ToLower(first), "param")
	}
	return false
}

// isCmdlet reports whether text starts with a Verb-Noun name that PowerShell
// knows, or that is written as PowerShell writes them.
func isCmdlet(text string) bool {
	end := 0
	for end < len(text) && (plain.WordByte(text[end]) || text[end] == '-') {
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

// looksCmd reports whether a command line is written for cmd.exe.
func looksCmd(text string) bool {
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
	switch name := strings.ToLower(programName(strings.ReplaceAll(first, "\\", "/"))); name {
	case "powershell", "cmd", "cmd.exe", "powershell_ise":
		return true
	case "dir", "del", "erase", "rd", "rmdir", "copy", "move", "ren", "md", "type", "start", "set", "echo", "for", "if", "net", "sc", "find", "sort", "more", "attrib", "call", "cd", "mkdir", "assoc", "cls", "ver", "at", "expand":
		return windowsSwitch(rest) || strings.Contains(rest, `:\`) || strings.Contains(rest, "%") && strings.Count(rest, "%") > 1 && !strings.ContainsAny(rest, "$'") ||
			name == "net" && netVerb(rest)
	default:
		return windowsProgram(name)
	}
}

// windowsSwitch reports whether text starts with an option such as /s.
func windowsSwitch(text string) bool {
	for f := range strings.FieldsSeq(text) {
		if len(f) >= 2 && f[0] == '/' && !strings.Contains(f[1:], "/") && (len(f) == 2 || f[2] == ':') && strings.ContainsAny(f[1:2], "sSqQfFaAbBcCdDyYrRiIlLpPvVkK?eE") {
			return true
		}
	}
	return false
}

func netVerb(rest string) bool {
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return false
	}
	switch strings.ToLower(fields[0]) {
	case "user", "localgroup", "group", "use", "share", "start", "stop", "view", "accounts", "session", "config", "time":
		return true
	}
	return false
}

// powershell walks PowerShell text.
func (s *state) powershell(text string) abstract.Value {
	if !s.enter(effect.Span{}) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	return pwsh.Read(world{s}, text, s.span(0, len(text)))
}

// nestedPowershell walks PowerShell text that a part of the command runs.
func (s *state) nestedPowershell(text string, at effect.Span) abstract.Value {
	return s.foreignText(text, at, (*state).powershell)
}

func (s *state) nestedCmd(text string, at effect.Span) abstract.Value {
	return s.foreignText(text, at, (*state).cmdexe)
}

func (s *state) foreignText(text string, at effect.Span, walk func(*state, string) abstract.Value) abstract.Value {
	if !s.enter(at) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	fixed := s.fixed
	s.fixed = &at
	out := walk(s, text)
	s.fixed = fixed
	return out
}

// encodedCommand decodes the operand of -EncodedCommand: UTF-16 in base64.
func encodedCommand(text string) (string, bool) {
	raw, ok := plain.Decode64(text)
	if !ok || len(raw) < 2 {
		return "", false
	}
	units := make([]uint16, 0, len(raw)/2)
	for i := 0; i+1 < len(raw); i += 2 {
		units = append(units, uint16(raw[i])|uint16(raw[i+1])<<8)
	}
	return string(utf16.Decode(units)), true
}

// shellProgram runs powershell.exe or cmd.exe with its arguments.
func (s *state) shellProgram(base string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	at := join(argv)
	if base == "cmd" {
		for i := 1; i < len(argv); i++ {
			if opt := strings.ToLower(argv[i].Text); strings.HasPrefix(opt, "/c") || strings.HasPrefix(opt, "/k") || strings.HasPrefix(opt, "/r") {
				rest := abstract.JoinValues(argv[i+1:])
				if len(opt) > 2 {
					rest = abstract.Concat(abstract.Lit(argv[i].Text[2:]+" "), rest)
				}
				return s.runText("cmd", rest, "cmd", at, nil)
			}
		}
		return s.runText("cmd", io.In, "cmd", at, nil)
	}
	for i := 1; i < len(argv); i++ {
		text := argv[i].Text
		if text == "" || text[0] != '-' && text[0] != '/' && text[0] != 0xe2 {
			return s.runText("powershell", abstract.JoinValues(argv[i:]), base, at, nil)
		}
		opt := strings.ToLower(strings.TrimLeft(text, "-/–—―"))
		switch {
		case opt == "":
		case opt == "ec" || strings.HasPrefix("encodedcommand", opt) && opt != "ex":
			return s.encoded(base, argv, i, at)
		case strings.HasPrefix("command", opt) || opt == "cwa" || opt == "commandwithargs":
			rest := abstract.JoinValues(argv[i+1:])
			if rest.Text == "-" {
				rest = io.In
			}
			return s.runText("powershell", rest, base, at, nil)
		case strings.HasPrefix("file", opt):
			if i+1 < len(argv) {
				return s.runFile(argv[i+1], "powershell", argv[i+2:], io, at)
			}
		case strings.HasPrefix("executionpolicy", opt) || opt == "ep" || strings.HasPrefix("windowstyle", opt) || strings.HasPrefix("version", opt) || strings.HasPrefix("inputformat", opt) || opt == "if" || opt == "of" || strings.HasPrefix("outputformat", opt) || strings.HasPrefix("configurationname", opt) || strings.HasPrefix("workingdirectory", opt) || opt == "wd" || strings.HasPrefix("settingsfile", opt):
			i++
		}
	}
	if io.In.Text != "" || io.In.Taint != 0 {
		return s.runText("powershell", io.In, base, at, nil)
	}
	return abstract.Value{}
}

func (s *state) encoded(base string, argv []abstract.Value, i int, at effect.Span) abstract.Value {
	if i+1 < len(argv) && argv[i+1].Known() {
		if text, ok := encodedCommand(argv[i+1].Text); ok {
			return s.runText("powershell", abstract.Value{Text: text, Taint: abstract.Decoded}, base, at, nil)
		}
	}
	s.dynamic(effect.CauseCode, base+" runs an encoded command that cannot be decoded", at)
	return abstract.Unknown("…", abstract.Foreign)
}
