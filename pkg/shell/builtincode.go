package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkCodeOrHistoryBuiltin walks a special builtin that may run or load code, or may delete the command history.
func (s *analysisState) walkCodeOrHistoryBuiltin(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	switch name {
	case "history":
		if len(argv) > 1 && strings.HasPrefix(argv[1].Text, "-") && strings.ContainsAny(argv[1].Text, "cwad") {
			s.emit(effect.Effect{Kind: effect.DestroyData, Program: "history", Cause: effect.CauseCommandHistoryTampering, Reason: "changes the command history", Span: wordsSpan(argv)})
		}
		return abstract.UnknownOutput(name, abstract.TaintLocalMachineData)
	case "enable":
		// enable -f loads a shared library into the shell.
		for i, v := range argv {
			if strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "f") {
				s.emitUnknownEffect(effect.CauseUnanalysedCode, "loads code into the shell: "+argv[min(i+1, len(argv)-1)].String(), wordsSpan(argv))
			}
		}
	case "fc":
		// fc is the Windows program that compares files, or the shell builtin that runs a command
		// of the history, which is unknown. fc -l only lists the history.
		if isWindowsFCFileComparison(argv[1:]) {
			for _, v := range argv[len(argv)-2:] {
				s.emitPathEffect(effect.ReadFile, v, false)
			}
		} else if !listsHistory(argv[1:]) {
			s.emitUnknownEffect(effect.CauseUnanalysedCode, "runs a line from the history", wordsSpan(argv))
		}
	case "bind":
		// bind -x '"KEY": CMD' makes a key run CMD.
		for i, v := range argv {
			if v.Text == "-x" && i+1 < len(argv) {
				_, code, _ := strings.Cut(argv[i+1].Text, ":")
				s.walkNestedShellText(code, argv[i+1].SourceSpan)
			}
		}
	case "complete", "compgen":
		s.walkCompletion(argv)
	case "emulate": // zsh only
		s.dialect.zshOptionsChanged = true
		if len(argv) > 2 {
			s.recordDialectDifference("emulate", wordsSpan(argv))
		}
	case "jobs":
		// jobs -x CMD runs CMD.
		if len(argv) > 2 && argv[1].Text == "-x" {
			return s.resolveAndWalkArgv(argv[2:], io)
		}
	case "wait":
		for _, v := range argv[1:] {
			s.walkSubscripts(v, false)
		}
	case "disable", "unfunction", "unhash": // zsh only
		for _, v := range argv[1:] {
			if v.IsGlobPattern || strings.ContainsAny(v.Text, "*?[") {
				v = abstract.Unknown("…", 0)
			}
			s.removeFunction(v, false)
		}
	case "hash":
		s.hash(argv)
	}
	return abstract.Value{}
}

// walkCompletion walks the code that programmable completion runs: a command or function that gets completion
// arguments, and the expansions in a word list.
func (s *analysisState) walkCompletion(argv []abstract.Value) {
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if !v.IsLiteral() || len(v.Text) < 2 || v.Text[0] != '-' {
			continue
		}
		at := strings.IndexAny(v.Text, "ACFGPSVWXo")
		if at < 0 {
			continue
		}
		letter, value := v.Text[at], v
		if value.Text = v.Text[at+1:]; value.Text == "" {
			if i++; i == len(argv) {
				return
			}
			value = argv[i]
		}
		words := []abstract.Value{unknownValueWithTaintsOf("$1"), unknownValueWithTaintsOf("$2"), unknownValueWithTaintsOf("$3")}
		switch letter {
		case 'C':
			if value.IsLiteral() {
				value.Text += " ${" + abstract.UnknownPlaceholderVariable + "}"
			}
			s.walkDeferredCode(func() { s.walkExecutedText("shell", value, argv[0].Text, v.SourceSpan, nil) })
		case 'F':
			s.walkDeferredCode(func() { s.resolveAndWalkArgv(append([]abstract.Value{value}, words...), abstract.Streams{}) })
		case 'W':
			if value.IsLiteral() {
				s.walkDeferredCode(func() { s.walkExpansionsInPlainText(value.Text, value.SourceSpan) })
			}
		}
	}
}

// hash maps command names to files: hash -p FILE NAME in bash, hash NAME=FILE in zsh. In zsh, hash -d NAME=FOLDER
// sets the folder that ~NAME expands to.
func (s *analysisState) hash(argv []abstract.Value) {
	file, ok := strings.CutPrefix(argv[min(1, len(argv)-1)].Text, "-p")
	switch rest := argv[min(2, len(argv)):]; {
	case ok && file == "" && len(rest) > 0:
		s.setHashedCommands(rest[1:], rest[0])
	case ok:
		v := argv[1]
		v.Text = file
		s.setHashedCommands(rest, v)
	default:
		folders := slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "d") })
		for _, v := range argv[1:] {
			name, text, set := strings.Cut(v.Text, "=")
			if !set || !syntax.ValidName(name) {
				continue
			}
			if v.Text = text; v.IsGlobPattern {
				v = unknownValueWithTaintsOf("$(hash)", v)
			}
			if folders { // zsh: hash -d NAME=FOLDER sets the folder that ~NAME expands to
				s.recordDialectDifference("hash -d", wordsSpan(argv))
				continue
			}
			s.setHashedCommands([]abstract.Value{{Text: name, SourceSpan: v.SourceSpan}}, v)
		}
	}
}

// setHashedCommands records that command names run a file.
func (s *analysisState) setHashedCommands(names []abstract.Value, file abstract.Value) {
	for _, name := range names {
		s.recordShieldShadowing(name.Text, name.SourceSpan)
		if !file.IsLiteral() {
			s.emitUnknownEffect(file.CauseOfUnknownParts(), "unknown command: "+abstract.ClipForMessage(file.String()), file.SourceSpan)
		} else if len(s.aliases) < 256 {
			s.aliases = append(slices.Clip(s.aliases), alias{name.Text, true})
		}
	}
}

// printsNothing reports whether a builtin prints nothing with these arguments: some builtins, such as umask,
// print the current settings if they get no operand.
func printsNothing(name string, argv []abstract.Value) bool {
	switch name {
	case "dirs", "jobs", "caller", "times", "compgen", "fg", "bg":
		return false
	case "umask", "ulimit", "complete", "enable", "hash", "bind":
		last := argv[len(argv)-1].Text
		return len(argv) > 1 && !strings.HasPrefix(last, "-") && argv[1].Text != "-t" && argv[1].Text != "-p" || name == "hash" && last == "-r"
	case "setopt", "unsetopt":
		return len(argv) > 1
	}
	return true
}

// isWindowsFCFileComparison reports whether the arguments of fc are switches and file names of the Windows program fc, and not
// a command of the history.
func isWindowsFCFileComparison(args []abstract.Value) bool {
	files := 0
	for _, w := range args {
		switch {
		case !w.IsLiteral() || w.Text == "":
			return false
		case w.Text[0] == '/' && files == 0 && hasWindowsSwitch(w.Text):
		case strings.IndexByte("-./~", w.Text[0]) >= 0 || !strings.Contains(w.Text, "."):
			return false
		default:
			files++
		}
	}
	return files == 2
}

// listsHistory reports whether the arguments of fc only list the history.
func listsHistory(words []abstract.Value) bool {
	list := false
	for _, w := range words {
		if !w.IsLiteral() {
			return false
		}
		if strings.HasPrefix(w.Text, "-") && strings.Trim(w.Text[1:], "0123456789") != "" {
			if strings.Trim(w.Text[1:], "lnrdfEiD") != "" {
				return false
			}
			list = list || strings.Contains(w.Text, "l")
		}
	}
	return list
}

// recordEvalDollarQuoteDifference records that eval gets $'x', which shells without this quoting, such as dash, read as $x.
func (s *analysisState) recordEvalDollarQuoteDifference(at effect.CommandTextSpan) {
	if s.dialect.isKnown && !s.dialect.mayBePOSIX || len(s.currentCommandWords) == 0 || s.currentCommandWords[0].Lit() != "eval" {
		return
	}
	for _, w := range s.currentCommandWords[1:] {
		for _, part := range w.Parts {
			single, ok := part.(*syntax.SglQuoted)
			double, also := part.(*syntax.DblQuoted)
			if ok && single.Dollar || also && double.Dollar {
				s.recordDialectDifference("eval $'…'", at)
				return
			}
		}
	}
}

// recordGlobalAliasUse records that a global alias of zsh may replace any word of the text.
func (s *analysisState) recordGlobalAliasUse(at effect.CommandTextSpan) {
	if s.hasGlobalAlias && s.readsAsZsh() {
		s.recordDialectDifference("a global alias (zsh) can replace any word", at)
	}
}
