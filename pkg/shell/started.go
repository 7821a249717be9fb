package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// startupFilesByShell are the names of the files that a shell reads at startup or logout, by shell. The field
// "always" lists those that each start reads, the field "more" those that only interactive or login shells read.
var startupFilesByShell = map[string]struct{ always, more []string }{
	"zsh":  {always: []string{".zshenv"}, more: []string{".zprofile", ".zshrc", ".zlogin", ".zlogout"}},
	"bash": {more: []string{".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_logout"}},
	"sh":   {more: []string{".profile"}},
	"dash": {more: []string{".profile"}},
	"ash":  {more: []string{".profile"}},
	"ksh":  {more: []string{".profile", ".kshrc"}},
	"mksh": {more: []string{".profile", ".mkshrc"}},
	"fish": {always: []string{"config.fish"}},
}

// walkStartupFiles walks the files that a shell reads at startup: files that the text wrote, and files in a folder
// that the text set as HOME.
func (s *analysisState) walkStartupFiles(program string, argv []abstract.Value) {
	files, ok := startupFilesByShell[program]
	if !ok || s.remoteOrContainerDepth > 0 {
		return
	}
	names := files.always
	if isPossiblyInteractiveOrLoginShell(argv) {
		names = append(slices.Clone(names), files.more...)
	}
	home, set := s.lookup("HOME")
	for _, name := range names {
		for i := len(s.writtenFiles) - 1; i >= 0 && s.spendSteps(1); i-- {
			if f := s.writtenFiles[i]; path.Base(f.path) == name || program == "fish" && path.Ext(f.path) == ".fish" {
				s.walkDeferredCode(func() { s.walkExecutedText("shell", f.content, program, f.content.SourceSpan, nil) })
			}
		}
		if !set || s.initialPathContext.ReadScript == nil || !home.val.IsLiteral() {
			continue
		}
		if p, pattern := s.workingFolderContext().CanonicalPath(home.val.Text+"/"+name, false); !pattern && path.Dir(p) != s.initialPathContext.Home {
			if data, err := s.initialPathContext.ReadScript(p); err == nil {
				s.walkDeferredCode(func() { s.walkExecutedText("shell", abstract.Lit(string(data)), program, home.val.SourceSpan, nil) })
			}
		}
	}
}

// isPossiblyInteractiveOrLoginShell reports whether a shell may be started as an interactive or login shell.
func isPossiblyInteractiveOrLoginShell(argv []abstract.Value) bool {
	for _, v := range argv[1:] {
		switch {
		case !v.IsLiteral() || v.Text == "--login" || v.Text == "--interactive":
			return true
		case strings.HasPrefix(v.Text, "--"):
		case v.Text == "" || v.Text[0] != '-':
			return false
		case strings.ContainsAny(v.Text, "il"):
			return true
		}
	}
	return len(argv) == 1
}

// parseShebang returns the language of the interpreter in the first line of a script (#!), or, if no known
// interpreter is there, the command in that line. A program that is no interpreter gets the script's path as an
// argument: #!/bin/rm.
func parseShebang(text string) (words []string, language string) {
	line, ok := strings.CutPrefix(text, "#!")
	if !ok {
		return nil, ""
	}
	line, _, _ = strings.Cut(line, "\n")
	program, rest, more := strings.Cut(strings.TrimSpace(line), " ")
	for _, word := range strings.Fields(line) {
		if language = command.InterpreterLanguage(path.Base(word)); language != "" {
			return nil, language
		}
	}
	if words = []string{program}; more {
		words = append(words, strings.TrimSpace(rest))
	}
	return words, ""
}

// valuesWithSpan returns words as literal values that all have the same given span.
func valuesWithSpan(words []string, at effect.CommandTextSpan) []abstract.Value {
	out := make([]abstract.Value, len(words))
	for i, w := range words {
		out[i] = abstract.Value{Text: w, SourceSpan: at}
	}
	return out
}

// walkEnvSplitString handles env -S: its words and the arguments after it are read as arguments of env.
func (s *analysisState) walkEnvSplitString(text abstract.Value, argv []abstract.Value, io abstract.Streams) abstract.Value {
	if !text.IsLiteral() {
		return s.walkExecutedText("shell", text, "env", text.SourceSpan, nil)
	}
	last := len(argv) - 1
	for last > 0 && argv[last].SourceSpan != text.SourceSpan {
		last--
	}
	line, _, _ := strings.Cut(text.Text, `\c`)
	line = "env " + envSplitEscapes.Replace(line)
	for _, v := range argv[last+1:] {
		word := "${" + abstract.UnknownPlaceholderVariable + "}"
		if q, err := syntax.Quote(v.Text, syntax.LangBash); err == nil && v.IsLiteral() {
			word = q
		}
		line += " " + word
	}
	return s.walkNestedWithInput(line, text.SourceSpan, io)
}

// envSplitEscapes replaces the escape sequences that env -S reads as spaces.
var envSplitEscapes = strings.NewReplacer(`\_`, " ", `\n`, " ", `\t`, " ", `\v`, " ", `\f`, " ", `\r`, " ")

// normalizeXargsPlaceholder returns the arguments of xargs with {} in place of the placeholder that -I or --replace sets.
func normalizeXargsPlaceholder(program string, argv []abstract.Value) []abstract.Value {
	if program != "xargs" {
		return argv
	}
	for i := 1; i < len(argv)-1 && strings.HasPrefix(argv[i].Text, "-"); i++ {
		sign, option := "", argv[i].Text
		switch {
		case option == "-I" || option == "-J":
			sign = argv[i+1].Text
		case strings.HasPrefix(option, "-I") || strings.HasPrefix(option, "-i"):
			sign = option[2:]
		case strings.HasPrefix(option, "--replace="):
			sign = option[len("--replace="):]
		}
		if sign == "" || sign == "{}" || !argv[i].IsLiteral() {
			continue
		}
		out := slices.Clone(argv)
		for k := i; k < len(out); k++ {
			if k > i || sign != option[2:] {
				out[k].Text = strings.ReplaceAll(out[k].Text, sign, "{}")
			} else {
				out[k].Text = "-I{}"
			}
			out[k].Display = ""
		}
		return out
	}
	return argv
}

// walkExecutedFileText walks the content of an executed file as code of language. If language is
// "", the interpreter in the shebang line determines the language; without a shebang line, the
// content is shell code.
func (s *analysisState) walkExecutedFileText(language string, content, filePath abstract.Value, args []abstract.Value, io abstract.Streams, at effect.CommandTextSpan) abstract.Value {
	if language == "" && content.IsLiteral() {
		words, named := parseShebang(content.Text)
		if len(words) > 0 {
			return s.resolveAndWalkArgv(append(append(valuesWithSpan(words, at), filePath), args...), io)
		}
		language = named
	}
	return s.walkExecutedText(languageOrShell(language), content, "running "+abstract.ClipForMessage(filePath.String()), at, args)
}
