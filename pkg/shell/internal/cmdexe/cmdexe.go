// Package cmdexe analyses text for cmd.exe. Conditions and loops are ignored: every command in the text counts as
// run.
package cmdexe

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// An analyzer analyses one text for cmd.exe.
type analyzer struct {
	analysisContext abstract.AnalysisContext
	text            string
	spanInCommand   func(start, end int) effect.CommandTextSpan
}

// Interpret reports the effects of a command line for cmd.exe, and returns its output. The command
// line is split at operators, and each command at spaces as Windows programs do. spanInCommand
// converts byte offsets in text to a span in the whole command.
func Interpret(w abstract.AnalysisContext, text string, spanInCommand func(start, end int) effect.CommandTextSpan) abstract.Value {
	if len(text) > parse.MaxCommandBytes {
		w.RecordUnknownEffect(effect.CauseAnalysisLimitExceeded, "the command is longer than 64 KiB", spanInCommand(0, len(text)))
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	r := &analyzer{analysisContext: w, text: text, spanInCommand: spanInCommand}
	out := abstract.Value{}
	piped := false
	list := false
	for _, p := range splitCommands(text) {
		if w.IsAnalysisAborted() || !w.SpendSteps(1) {
			break
		}
		if list {
			list = false
			command, ok := commandProducingForList(p.text)
			if !ok {
				continue
			}
			p.text = command
		}
		list = isForLoopHeadBeforeList(p.text)
		io := abstract.Streams{}
		if piped {
			io.Stdin = out
		}
		piped = p.pipesToNext
		words := r.applyAndCutRedirections(r.words(p.text, spanInCommand(p.start, p.end)), &io)
		if len(words) == 0 {
			continue
		}
		out = w.DeliverOutput(io, r.walkCommand(words, io))
	}
	return out
}

// isForLoopHeadBeforeList reports whether a text is the head of a for loop up to the word "in",
// after which the list of the loop follows.
func isForLoopHeadBeforeList(text string) bool {
	fields := strings.Fields(text)
	return len(fields) > 2 && strings.EqualFold(strings.TrimLeft(fields[0], "@("), "for") && strings.EqualFold(fields[len(fields)-1], "in")
}

// commandProducingForList returns the command whose output is the list of a for loop; ok is false for a list of words.
func commandProducingForList(text string) (command string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '\'' && text[0] != '`' {
		return "", false
	}
	return strings.Trim(text, "'`"), true
}

// A singleCommand is one command of a line.
type singleCommand struct {
	text        string
	start, end  int
	pipesToNext bool
}

// splitCommands splits text at &, &&, ||, | and parentheses outside quotes, and at line ends.
func splitCommands(text string) []singleCommand {
	var out []singleCommand
	start, quoted := 0, false
	emit := func(end int, pipe bool) {
		if strings.TrimSpace(text[start:end]) != "" {
			out = append(out, singleCommand{text[start:end], start, end, pipe})
		} else if len(out) > 0 && pipe {
			out[len(out)-1].pipesToNext = false // ||
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

// words splits a command into words at spaces and commas: quotes group, ^ escapes, and %NAME% is
// replaced by the variable's value, which may be unknown. A redirection operator becomes a word
// with IsSingleWord set.
func (r *analyzer) words(text string, at effect.CommandTextSpan) []abstract.Value {
	var out []abstract.Value
	var b abstract.Builder
	started, quoted := false, false
	end := func() {
		if started {
			v := b.Value()
			v.SourceSpan = at
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
				b.AddLiteral(text[i : i+1])
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
			digits := b.Text.String()
			if started && len(digits) == 1 && digits[0] >= '0' && digits[0] <= '9' {
				b = abstract.Builder{}
				started = false
				out = append(out, abstract.Value{Text: digits + text[i:i+n], SourceSpan: at, IsSingleWord: true})
			} else {
				end()
				out = append(out, abstract.Value{Text: text[i : i+n], SourceSpan: at, IsSingleWord: true})
			}
			i += n - 1
		case c == '%':
			j := strings.IndexByte(text[i+1:], '%')
			if j <= 0 || strings.ContainsAny(text[i+1:i+1+j], " \\/") {
				b.AddLiteral("%")
				started = true
				break
			}
			b.Add(r.variableValue(text[i+1 : i+1+j]))
			started = true
			i += j + 1
		default:
			b.AddLiteral(text[i : i+1])
			started = true
		}
		if len(out) > abstract.MaxExpandedWords {
			r.analysisContext.AbortAnalysis("the command has too many words")
			return out
		}
	}
	end()
	return out
}

// variableValue returns the value of %NAME% and %NAME:~from,count%.
func (r *analyzer) variableValue(name string) abstract.Value {
	base, _, sliced := strings.Cut(name, ":")
	lower := strings.ToLower(base)
	if v, ok := r.analysisContext.LookupVariable(lower); ok && !sliced {
		return v
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
	v := abstract.Unknown("%"+name+"%", 0).WithOrigin(abstract.OriginUnsetVariable)
	if knowledge.IsSecretVariableName(base) {
		v.Taint, v.SecretDescription = abstract.TaintCredentialVariable, "%"+base+"%"
	}
	return v
}

// applyAndCutRedirections opens the targets after < and >, and returns the other words.
func (r *analyzer) applyAndCutRedirections(words []abstract.Value, io *abstract.Streams) []abstract.Value {
	var rest []abstract.Value
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !w.IsSingleWord {
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
			io.Stdin, io.InputRedirected = r.analysisContext.RecordFileRead(words[i]), true
		} else {
			r.analysisContext.RedirectOutput(io, n, words[i], strings.HasSuffix(w.Text, ">>"))
		}
	}
	return rest
}

// walkCommand walks one command of cmd.exe.
func (r *analyzer) walkCommand(words []abstract.Value, io abstract.Streams) abstract.Value {
	for len(words) > 0 && words[0].IsLiteral() {
		name := strings.ToLower(strings.TrimLeft(words[0].Text, "@("))
		words[0].Text = strings.TrimLeft(words[0].Text, "@(")
		switch name {
		case "", "do", "else", "call", "in":
			words = words[1:]
			continue
		case "if":
			words = dropIfCondition(words[1:])
			continue
		case "for":
			words = words[1:]
			for len(words) > 0 && !strings.EqualFold(words[0].Text, "do") && words[0].Text != "in" {
				words = words[1:]
			}
			continue
		case "set":
			return r.walkSetCommand(words)
		case "rem", "::", "exit", "goto", "setlocal", "endlocal", "cls", "pause", "title", "color", "ver", "shift":
			r.analysisContext.RecordExecuteEffect(words, name, effect.ReadOnly)
			return abstract.Value{}
		case "echo":
			r.analysisContext.RecordExecuteEffect(words, name, effect.ReadOnly)
			v := abstract.JoinWithSpaces(words[1:])
			if v.IsLiteral() {
				v.Text += "\n"
			}
			return v
		case "cd", "chdir", "pushd", "popd":
			words[0].Text = "cd"
			if len(words) > 1 && strings.EqualFold(words[1].Text, "/d") {
				words = append(words[:1:1], words[2:]...)
			}
			r.analysisContext.RecordExecuteEffect(words, "cd", effect.ReadOnly)
			folder := abstract.Lit("~")
			if len(words) > 1 {
				folder = words[1]
			}
			r.analysisContext.ChangeFolder(folder)
			return abstract.Value{}
		case "start":
			r.analysisContext.RecordExecuteEffect(words, name, effect.UnknownClass)
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
	return r.analysisContext.WalkWindowsCommand(words, io)
}

// dropIfCondition drops the condition of an if command.
func dropIfCondition(words []abstract.Value) []abstract.Value {
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
			drop = 3 // a comparison of three words: a EQU b
		}
		break
	}
	return words[min(drop, len(words)):]
}

// walkSetCommand handles set NAME=VALUE.
func (r *analyzer) walkSetCommand(words []abstract.Value) abstract.Value {
	r.analysisContext.RecordExecuteEffect(words, "set", effect.ReadOnly)
	if len(words) == 1 {
		return abstract.Unknown("the environment", abstract.TaintEnvironmentDump)
	}
	v := abstract.JoinWithSpaces(words[1:])
	name, text, ok := strings.Cut(v.Text, "=")
	if !ok || !v.IsLiteral() {
		return abstract.Value{}
	}
	if i := strings.LastIndexByte(name, ' '); i >= 0 { // an option such as set /a or set /p
		name = name[i+1:]
	}
	r.analysisContext.SetEnvironment(strings.ToUpper(name), abstract.Lit(text), words[0].SourceSpan)
	r.analysisContext.SetVariable(strings.ToLower(name), abstract.Lit(text))
	return abstract.Value{}
}
