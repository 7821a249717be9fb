package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// cmdexe walks text for cmd.exe. Its grammar is a few operators; what stands
// between them is cut at blanks as the programs' own start-up code does.
func (s *state) cmdexe(text string) abstract.Value {
	if len(text) > parse.MaxText {
		s.dynamic(effect.CauseLimit, "the command is longer than 64 KiB", s.span(0, len(s.text)))
		return abstract.Unknown("…", abstract.Foreign)
	}
	out := abstract.Value{}
	piped := false
	for _, part := range cmdParts(text) {
		if s.gaveUp || !s.step(1) {
			break
		}
		in := abstract.Value{}
		if piped {
			in = out
		}
		piped = part.pipe
		at := s.span(part.start, part.end)
		words := s.cmdWords(part.text, at)
		io := abstract.Streams{In: in}
		words = s.cmdRedirects(words, &io)
		if len(words) == 0 {
			continue
		}
		out = s.deliver(io, s.cmdCommand(words, io))
	}
	return out
}

type cmdPart struct {
	text       string
	start, end int
	pipe       bool
}

// cmdParts cuts a line at &, &&, ||, | and line ends outside quotes.
func cmdParts(text string) []cmdPart {
	var out []cmdPart
	start, quoted := 0, false
	emit := func(end int, pipe bool) {
		if strings.TrimSpace(text[start:end]) != "" {
			out = append(out, cmdPart{text[start:end], start, end, pipe})
		} else if len(out) > 0 && pipe {
			out[len(out)-1].pipe = false // ||
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '^' && !quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted && c != '\n':
		case c == '&' && i > 0 && text[i-1] == '>':
		case c == '&', c == '\n', c == '|', c == '(', c == ')':
			emit(i, c == '|' && !(i+1 < len(text) && text[i+1] == '|'))
			start, quoted = i+1, false
			if i+1 < len(text) && text[i+1] == c && c == '|' {
				i++
				start = i + 1
			}
		}
	}
	emit(len(text), false)
	return out
}

// cmdWords cuts a command into words: quotes group, ^ escapes, %NAME% is
// replaced where the text set it.
func (s *state) cmdWords(text string, at effect.Span) []abstract.Value {
	var out []abstract.Value
	var b abstract.Builder
	started, quoted := false, false
	end := func() {
		if started {
			v := b.Value()
			v.From = at
			out = append(out, v)
		}
		b, started = abstract.Builder{}, false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '^' && !quoted && i+1 < len(text):
			i++
			if text[i] != '\n' && text[i] != '\r' {
				b.Literal(text[i : i+1])
			}
			started = true
		case c == '"':
			quoted = !quoted
			started = true
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == ','):
			end()
		case !quoted && (c == '>' || c == '<'):
			n := 1
			if i+1 < len(text) && text[i+1] == '>' {
				n = 2
			}
			digits := b.Lit.String()
			if started && len(digits) == 1 && digits[0] >= '0' && digits[0] <= '9' {
				b = abstract.Builder{}
				started = false
				out = append(out, abstract.Value{Text: digits + text[i:i+n], From: at, Written: true})
			} else {
				end()
				out = append(out, abstract.Value{Text: text[i : i+n], From: at, Written: true})
			}
			i += n - 1
		case c == '%':
			j := strings.IndexByte(text[i+1:], '%')
			if j <= 0 || strings.ContainsAny(text[i+1:i+1+j], " \\/") {
				b.Literal("%")
				started = true
				break
			}
			b.Add(s.cmdVariable(text[i+1 : i+1+j]))
			started = true
			i += j + 1
		default:
			b.Literal(text[i : i+1])
			started = true
		}
		if len(out) > abstract.MaxFields {
			s.giveUp("the command has too many words")
			return out
		}
	}
	end()
	return out
}

// cmdVariable is %NAME% and %NAME:~from,count%.
func (s *state) cmdVariable(name string) abstract.Value {
	base, _, sliced := strings.Cut(name, ":")
	lower := strings.ToLower(base)
	if b, ok := s.lookup(lower); ok && !sliced {
		return b.val
	}
	switch lower {
	case "comspec":
		if !sliced {
			return abstract.Lit(`cmd.exe`)
		}
	case "systemroot", "windir":
		return abstract.Lit(`C:\Windows`)
	case "userprofile", "appdata", "localappdata", "temp", "tmp", "programfiles", "programdata", "homepath", "systemdrive", "public", "allusersprofile", "cd":
		if !sliced {
			return abstract.Lit("%" + strings.ToUpper(base) + "%")
		}
	}
	v := abstract.Unknown("%"+name+"%", 0).Of(abstract.FromVariable)
	if abstract.SecretVariable(base) {
		v.Taint, v.Secrets = abstract.Credential, "%"+base+"%"
	}
	return v
}

func (s *state) cmdRedirects(words []abstract.Value, io *abstract.Streams) []abstract.Value {
	var rest []abstract.Value
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !w.Written {
			rest = append(rest, w)
			continue
		}
		if i+1 >= len(words) || strings.HasPrefix(words[i+1].Text, "&") {
			i++
			continue
		}
		i++
		n := strings.TrimRight(w.Text, "<>")
		if strings.Contains(w.Text, "<") {
			s.redirectIn(io, n, words[i], false)
		} else {
			s.redirectOut(io, n, words[i], strings.HasSuffix(w.Text, ">>"))
		}
	}
	return rest
}

// cmdCommand runs one command of cmd.exe.
func (s *state) cmdCommand(words []abstract.Value, io abstract.Streams) abstract.Value {
	for len(words) > 0 && words[0].Known() {
		name := strings.ToLower(strings.TrimLeft(words[0].Text, "@("))
		words[0].Text = strings.TrimLeft(words[0].Text, "@(")
		switch name {
		case "", "do", "else", "call", "in":
			words = words[1:]
			continue
		case "if":
			words = afterCondition(words[1:])
			continue
		case "for":
			words = words[1:]
			for len(words) > 0 && !strings.EqualFold(words[0].Text, "do") && words[0].Text != "in" {
				words = words[1:]
			}
			continue
		case "set":
			return s.cmdSet(words)
		case "rem", "::", "exit", "goto", "setlocal", "endlocal", "cls", "pause", "title", "color", "ver", "shift":
			s.execute(words, name, effect.ReadOnly)
			return abstract.Value{}
		case "echo":
			s.execute(words, name, effect.ReadOnly)
			v := abstract.JoinValues(words[1:])
			if v.Known() {
				v.Text += "\n"
			}
			return v
		case "cd", "chdir", "pushd", "popd":
			words[0].Text = "cd"
			if len(words) > 1 && strings.EqualFold(words[1].Text, "/d") {
				words = append(words[:1:1], words[2:]...)
			}
			s.execute(words, "cd", effect.ReadOnly)
			return s.cd(words, io)
		case "start":
			s.execute(words, name, effect.Unknown)
			rest := words[1:]
			for len(rest) > 0 && (rest[0].Text == "" || strings.HasPrefix(rest[0].Text, "/")) {
				rest = rest[1:]
			}
			words = rest
			continue
		}
		break
	}
	if len(words) == 0 {
		return abstract.Value{}
	}
	return s.windowsInvoke(words, io)
}

// afterCondition drops the condition of cmd's if.
func afterCondition(words []abstract.Value) []abstract.Value {
	drop := 1
	for len(words) > 0 {
		switch t := strings.ToLower(words[0].Text); {
		case t == "not" || t == "/i":
			words = words[1:]
			continue
		case t == "exist" || t == "defined" || t == "errorlevel":
			drop = 2
		case strings.Contains(t, "=="):
		default:
			drop = 3 // a EQU b
		}
		break
	}
	return words[min(drop, len(words)):]
}

func (s *state) cmdSet(words []abstract.Value) abstract.Value {
	s.execute(words, "set", effect.ReadOnly)
	if len(words) == 1 {
		return abstract.Unknown("the environment", abstract.Dump)
	}
	v := abstract.JoinValues(words[1:])
	name, text, ok := strings.Cut(v.Text, "=")
	if !ok || !v.Known() {
		return abstract.Value{}
	}
	if i := strings.LastIndexByte(name, ' '); i >= 0 { // set /a, set /p
		name = name[i+1:]
	}
	s.bind(binding{name: strings.ToLower(name), val: abstract.Lit(text)})
	return abstract.Value{}
}

// windowsInvoke runs a program on Windows: names fold case.
func (s *state) windowsInvoke(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if !argv[0].Known() {
		return s.unknownProgram(argv, io)
	}
	name := strings.ReplaceAll(argv[0].Text, "\\", "/")
	base := strings.ToLower(programName(name))
	for _, ext := range [...]string{".cmd", ".bat", ".com"} {
		if b := strings.TrimSuffix(base, ext); b != base && (b == "npm" || b == "npx" || b == "yarn" || b == "code") {
			base = b
		}
	}
	if base == "powershell" || base == "pwsh" || base == "cmd" {
		s.execute(argv, base, effect.Unknown)
		return s.shellProgram(base, argv, io)
	}
	if windowsProgram(base) || cmdBuiltin(base) {
		return s.windowsTool(base, argv, io)
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 && !systemFolder(name[:i+1]) || strings.HasSuffix(base, ".bat") || strings.HasSuffix(base, ".cmd") || strings.HasSuffix(base, ".ps1") || strings.HasSuffix(base, ".vbs") {
		return s.localProgram(argv, io)
	}
	// cmd.exe and PowerShell look in the working folder too.
	if p, pattern := s.place().Path(argv[0].Text, false); len(s.fileValues(p, pattern)) > 0 {
		return s.localProgram(argv, io)
	}
	argv[0].Text = base
	return s.program(argv, io)
}

func cmdBuiltin(base string) bool {
	switch base {
	case "dir", "del", "erase", "rd", "rmdir", "copy", "move", "ren", "rename", "md", "mkdir", "type", "find", "sort", "more", "net", "at", "expand", "assoc", "ftype", "format", "date", "time", "fc", "comp", "label", "subst":
		return true
	}
	return false
}
