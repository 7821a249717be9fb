package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

func itoa(n int) string { return strconv.Itoa(n) }

// builtinWalker returns the function that walks a shell builtin. Some builtins that also exist as a program and
// do not change the shell, such as kill, are left to package command.
func builtinWalker(name string) (func(*analysisState, []abstract.Value, abstract.Streams) abstract.Value, bool) {
	switch name {
	case ":", "true", "false", "test", "[", "umask", "hash", "type", "wait", "jobs", "fg", "bg", "disown",
		"dirs", "times", "caller", "getopts", "shopt", "bind", "compgen", "suspend", "logout", "break", "continue",
		"shift", "return", "exit", "ulimit", "history", "fc", "enable", "emulate", "complete", "compopt", "setopt", "unsetopt",
		"repeat", "disable", "unfunction", "unhash":
		return miscBuiltinWalker(name), true
	case "echo":
		return (*analysisState).echo, true
	case "print":
		return (*analysisState).print, true
	case "printf":
		return (*analysisState).printf, true
	case "pwd":
		return (*analysisState).pwd, true
	case "cd", "pushd", "chdir", "popd":
		return (*analysisState).cd, true
	case "eval":
		return (*analysisState).eval, true
	case ".", "source":
		return (*analysisState).sourceFile, true
	case "exec":
		return (*analysisState).walkExecBuiltin, true
	case "command", "builtin", "noglob", "nocorrect":
		return (*analysisState).walkCommandAfterPrefixBuiltin, true
	case "trap":
		return (*analysisState).trap, true
	case "alias":
		return (*analysisState).defineAlias, true
	case "unalias":
		return (*analysisState).unalias, true
	case "export", "declare", "typeset", "local", "readonly", "nameref":
		return (*analysisState).export, true
	case "unset":
		return (*analysisState).unset, true
	case "set":
		return (*analysisState).set, true
	case "read", "mapfile", "readarray":
		return (*analysisState).walkReadBuiltin, true
	case "let":
		return (*analysisState).let, true
	case "integer", "float", "private":
		return (*analysisState).export, true
	}
	if _, ok := zshOnlyCommands[name]; ok {
		return (*analysisState).walkZshCommand, true
	}
	return nil, false
}

func miscBuiltinWalker(name string) func(*analysisState, []abstract.Value, abstract.Streams) abstract.Value {
	return func(s *analysisState, argv []abstract.Value, io abstract.Streams) abstract.Value {
		switch name {
		case ":", "true", "false":
		case "test", "[":
			for i, v := range argv {
				if v.IsLiteral() && strings.Contains(v.Text, "[$(") || i > 0 && argv[i-1].Text == "-v" {
					s.walkArithmeticText(v)
				}
			}
		case "type":
			if len(argv) == 3 && strings.HasPrefix(argv[1].Text, "-") && strings.ContainsAny(argv[1].Text, "pP") {
				return computeWhichOutput(argv[2])
			}
			return abstract.Unknown("$(type)", 0).WithOrigin(abstract.OriginCommandOutput)
		case "shopt":
			if len(argv) < 3 || strings.Contains(argv[1].Text, "p") && strings.HasPrefix(argv[1].Text, "-") {
				return abstract.Unknown("$(shopt)", 0).WithOrigin(abstract.OriginCommandOutput)
			}
		case "shift":
			s.shift(argv)
		case "setopt", "unsetopt":
			for _, v := range argv[1:] {
				s.recordZshOption(v)
			}
		case "break", "continue", "return", "exit", "logout":
			s.recordEarlyExit(name)
		case "repeat": // zsh only
			return abstract.Value{}
		case "getopts":
			s.getopts(argv)
		default:
			if out := s.walkCodeOrHistoryBuiltin(name, argv, io); out.IsLiteral() && out.Text == "" && !printsNothing(name, argv) {
				return abstract.Unknown("$("+name+")", abstract.TaintUnknownText).WithOrigin(abstract.OriginCommandOutput)
			} else {
				return out
			}
		}
		return abstract.Value{}
	}
}

func (s *analysisState) echo(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	words, escapes, newline := argv[1:], false, true
	for len(words) > 0 && isEchoFlag(words[0].Text) && !words[0].IsGlobPattern {
		escapes = escapes || strings.ContainsRune(words[0].Text, 'e')
		newline = newline && !strings.ContainsRune(words[0].Text, 'n')
		words = words[1:]
	}
	v := abstract.JoinWithSpaces(words)
	if v.IsLiteral() {
		// In bash, echo resolves escapes only with -e; in dash and zsh, always. ended means that \c
		// ended the output.
		ended := false
		if escapes {
			v.Text, ended = plain.UnescapeEcho(v.Text)
		}
		if newline && !ended {
			v.Text += "\n"
		}
	}
	return v
}

func isEchoFlag(s string) bool {
	return len(s) > 1 && s[0] == '-' && strings.Trim(s[1:], "neE") == ""
}

func (s *analysisState) pwd([]abstract.Value, abstract.Streams) abstract.Value {
	if cwd := s.workingFolderContext().CWD; cwd != "" {
		return abstract.Lit(cwd + "\n")
	}
	return abstract.Unknown("$(pwd)", 0).WithOrigin(abstract.OriginCommandOutput)
}

// parseCdTarget returns the operand of cd, and whether cd may change to a different folder.
func (s *analysisState) parseCdTarget(argv []abstract.Value) (dir abstract.Value, mayChangeToOtherFolder bool) {
	dir = abstract.Value{Text: "~"}
	if home, ok := s.lookup("HOME"); ok && !home.isUnset {
		dir = home.val
	}
	n := 0
	for _, v := range argv[1:] {
		text := v.Text
		switch {
		case len(text) > 1 && (text[0] == '-' || text[0] == '+') && strings.Trim(text[1:], "0123456789") == "", text == "-n": // an entry of the directory stack
			mayChangeToOtherFolder = true
		case text == "--" || len(text) > 1 && text[0] == '-':
		default:
			if n++; n == 1 {
				dir = v
			}
		}
	}
	relative := n > 0 && dir.IsLiteral() && !strings.HasPrefix(dir.Text, "/") && !strings.HasPrefix(dir.Text, ".") && !strings.HasPrefix(dir.Text, "~")
	variable := relative && syntax.ValidName(dir.Text) && s.mayCommandTextAssign(dir.Text) && strings.Contains(strings.ToLower(s.analyzedText), "cdable")
	mayChangeToOtherFolder = mayChangeToOtherFolder || n > 1 || n == 0 && argv[0].Text == "pushd" || variable || relative && (s.mayCommandTextAssign("CDPATH") || s.mayCommandTextAssign("cdpath"))
	return dir, mayChangeToOtherFolder
}

// cd changes the working folder for the commands after it.
func (s *analysisState) cd(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	dir, other := s.parseCdTarget(argv)
	if s.remoteOrContainerDepth > 0 {
		return abstract.Value{}
	}
	next := *s.workingFolderContext()
	next.CWD = ""
	if dir.IsLiteral() && dir.Text != "-" && argv[0].Text != "popd" && !other {
		if p, pattern := s.workingFolderContext().CanonicalPath(dir.Text, false); !pattern && p != "" {
			next = *s.workingFolderContext().WithCWD(p)
		}
	}
	for _, name := range [...]string{"PWD", "OLDPWD"} {
		if s.mayCommandTextAssign(name) {
			s.setVariableContent(name, variableContent{val: abstract.UnsetVariableValue(name, 0)})
		}
	}
	s.changeFolder(&next)
	return abstract.Value{}
}

func (s *analysisState) eval(argv []abstract.Value, io abstract.Streams) abstract.Value {
	words := argv[1:]
	if len(words) > 0 && words[0].Text == "--" {
		words = words[1:]
	}
	v := abstract.JoinWithSpaces(words)
	if v.IsLiteral() && v.Text == "" {
		return abstract.Value{}
	}
	at := wordsSpan(argv)
	s.recordGlobalAliasUse(at)
	s.recordEvalDollarQuoteDifference(at)
	if v.IsLiteral() && v.HasOnlyTaintsHarmlessToRun() {
		return s.walkNestedWithInput(v.Text, at, io)
	}
	out := s.walkExecutedText("shell", v, "eval", at, nil)
	if !v.IsLiteral() {
		s.forgetVariables()
	}
	return out
}

func (s *analysisState) sourceFile(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if len(argv) < 2 {
		return abstract.Value{}
	}
	s.recordGlobalAliasUse(wordsSpan(argv))
	f, args := argv[1], argv[2:]
	if f.Text == "--" && len(args) > 0 {
		f, args = args[0], args[1:]
	}
	positional := s.vars.get(positionalParametersName)
	if len(args) > 0 { // bash passes arguments to a sourced file, dash does not
		s.walkCodeThatMayRun(func() { s.setPositional(args) })
	}
	if isStdinPath(f) {
		return s.walkExecutedText("shell", io.Stdin, argv[0].Text, wordsSpan(argv), nil)
	}
	at, before := len(s.effects), s.Fork()
	var out abstract.Value
	s.walkInNestedTextScope(func() {
		end := s.newEarlyExits(blockKindFunctionCall) // return ends the sourced file
		s.functionExits, s.loopExits = end, nil
		out = s.runFile(f, "shell", nil, io, wordsSpan(argv))
		s.joinEarlyExits(end)
	})
	if len(args) > 0 {
		s.Shell.setVariable(positionalParametersName, positional.merge(s.vars.get(positionalParametersName)))
	}
	s.recordSourcedDotenvVariables(at, &before)
	return out
}

func (s *analysisState) defineAlias(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	defines := len(argv) > 1
	for _, v := range argv[1:] {
		s.hasGlobalAlias = s.hasGlobalAlias || v.Text == "-g" || v.Text == "-s"
		name, text, ok := strings.Cut(v.Text, "=")
		if !ok {
			defines = false
			continue
		}
		if !v.IsLiteral() {
			s.emitUnknownEffect(v.CauseOfUnknownParts(), "unknown alias: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
			continue
		}
		if len(s.aliases) > 256 {
			s.abortAnalysis("too many aliases")
			return abstract.Value{}
		}
		s.recordShieldShadowing(name, v.SourceSpan)
		s.aliases = append(slices.Clip(s.aliases), alias{name: name})
		// A later command may use the alias; its commands are walked here so that rules see them.
		s.walkSubshell(func() { s.walkNestedShellText(text, v.SourceSpan) })
	}
	if !defines {
		return abstract.Unknown("$(alias)", abstract.TaintUnknownText).WithOrigin(abstract.OriginCommandOutput)
	}
	return abstract.Value{}
}

func (s *analysisState) unalias(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	for _, v := range argv[1:] {
		s.aliases = slices.DeleteFunc(slices.Clone(s.aliases), func(a alias) bool { return v.IsLiteral() && (a.name == v.Text || v.Text == "-a") })
	}
	return abstract.Value{}
}

// export handles the arguments of export, declare and the like if the parser did not parse them as assignments:
// after `command`, or built from quoted parts.
func (s *analysisState) export(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	d := declarationOfKeyword(argv[0].Text)
	for _, v := range argv[1:] {
		s.declareWord(v, &d)
	}
	if len(argv) > 1 && argv[1].Text == "-p" || len(argv) == 1 {
		return abstract.Unknown("the environment", abstract.TaintEnvironmentDump)
	}
	return abstract.Value{}
}

func (s *analysisState) unset(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	// unset -n removes a nameref and leaves its target variable unchanged
	perhapsReference := slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "n") })
	for _, v := range argv[1:] {
		name, _, member := strings.Cut(v.Text, "[")
		old, _ := s.lookup(name)
		switch {
		case v.Text == "HISTFILE":
			s.emit(effect.Effect{Kind: effect.DestroyData, Program: "unset", Cause: effect.CauseCommandHistoryTampering, Reason: "disables the command history", Span: v.SourceSpan})
		case strings.HasPrefix(v.Text, "-"), v.Text == "":
			continue
		case !v.IsLiteral():
			s.forgetVariables()
		case strings.HasPrefix(v.Text, shieldVariablePrefix):
			s.recordShieldTampering("unset", "changes shield's settings", v.SourceSpan)
			continue
		case member:
			s.walkSubscripts(v, false)
			if syntax.ValidName(name) {
				s.setVariableContent(name, variableContent{val: unknownValueWithTaintsOf("$"+name, append(old.members, old.val)...), isArray: true})
			}
			continue
		}
		w := s.vars.get(name)
		switch {
		case !v.IsLiteral():
		case w.isNameref || w.canAttributesChangeValue:
			s.forgetVariables()
		case s.isLocalVariable(name) || s.frames != nil && w.isExported || w.mayBeReadonly || perhapsReference: // the variable may keep a value: in some shells that of an outer scope, or its own
			s.setVariableContent(name, variableContent{val: unknownValueWithTaintsOf("$"+name, old.val), mayBeUnset: true})
			s.markVariablePossiblyNotLocal(name)
		default:
			s.Shell.setVariable(name, variable{possibleContents: []variableContent{{isUnset: true}}})
		}
		if len(argv) > 2 && argv[1].Text == "-v" {
			continue
		}
		s.removeFunction(v, argv[1].Text == "-f")
	}
	return abstract.Value{}
}

// removeFunction records that the functions of a name are removed; sure is false if they may still exist.
func (s *analysisState) removeFunction(name abstract.Value, sure bool) {
	for one, d := range s.possibleFunctionsByName {
		switch {
		case !name.IsLiteral(), one == name.Text && !sure:
			s.setFunction(one, possibleFunctions{functions: d.functions, mayAlsoBeNonFunction: true})
		case one == name.Text:
			s.setFunction(one, possibleFunctions{mayAlsoBeNonFunction: true})
		}
	}
}

func (s *analysisState) set(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	if len(argv) == 1 {
		return abstract.Unknown("the environment", abstract.TaintEnvironmentDump)
	}
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if v.Text == "--" {
			s.setPositional(argv[i+1:])
			return abstract.Value{}
		}
		if v.IsLiteral() && (strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+")) {
			if strings.HasSuffix(v.Text, "A") && i+1 < len(argv) { // set -A NAME VALUE… of zsh and ksh
				s.assignByNameWord(abstract.Lit(argv[i+1].Text+"["), unknownValueWithTaintsOf("$"+argv[i+1].Text, argv[i+2:]...))
				return abstract.Value{}
			}
			s.recordSetOptionChangingParsing(v)
			if (v.Text == "-o" || v.Text == "+o") && i+1 < len(argv) {
				i++
				s.recordSetOptionChangingParsing(argv[i])
				if !optionsSharedByAllShells[argv[i].Text] {
					s.recordZshOption(argv[i])
				}
			}
			s.nounset = s.nounset || strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "u") || i < len(argv) && argv[i].Text == "nounset"
			continue
		}
		s.setPositional(argv[i:])
		return abstract.Value{}
	}
	return abstract.Value{}
}

func (s *analysisState) let(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	for _, v := range argv[1:] {
		s.walkArithmeticText(v)
		s.forgetVariables()
	}
	return abstract.Value{}
}

// shift drops the first positional parameters. If there are too few, shells differ in the result.
func (s *analysisState) shift(argv []abstract.Value) {
	c, ok := s.positionalContent()
	n := int64(1)
	if len(argv) > 1 {
		var err error
		n, err = parseDecimal(argv[1].Text)
		ok = ok && argv[1].IsLiteral() && err == nil
	}
	if !ok || n < 0 || int(n) > len(c.members) {
		s.recordPossibleExit()
		s.setUnknownPositional(append(slices.Clip(c.members), c.val)...)
		return
	}
	s.setPositional(c.members[n:])
}

// getopts sets a variable to the next option, which may be any option.
func (s *analysisState) getopts(argv []abstract.Value) {
	for _, name := range [...]string{"OPTARG", "OPTIND"} {
		s.assign(name, abstract.UnsetVariableValue(name, 0))
	}
	if len(argv) > 2 {
		s.assignByNameWord(argv[2], abstract.UnsetVariableValue("option", 0))
	}
}

// print walks zsh's print: echo with options of its own.
func (s *analysisState) print(argv []abstract.Value, io abstract.Streams) abstract.Value {
	words, flags := argv[1:], ""
	for len(words) > 0 && words[0].IsLiteral() && len(words[0].Text) > 1 && words[0].Text[0] == '-' {
		flags += words[0].Text[1:]
		words = words[1:]
	}
	out := abstract.JoinWithSpaces(words)
	switch {
	case strings.ContainsAny(flags, "Pvzfs"):
		s.recordDialectDifference("print -"+flags, wordsSpan(argv))
		s.forgetVariables()
		fallthrough
	case strings.Trim(flags, "nr-") != "" || strings.Contains(out.Text, `\\`):
		return outputOfPossiblySkippedCommand(abstract.Concat(out, abstract.Unknown("…", out.Taint)))
	}
	return s.echo(append([]abstract.Value{argv[0]}, words...), io)
}

// trap sets code that runs on a signal or event. The code is walked as if it may run at any time from now on, and
// again where the shell ends. Until then, each variable in it keeps all values that it had.
func (s *analysisState) trap(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if len(argv) > 2 && (argv[1].Text == "-" || argv[1].Text == "") && slices.ContainsFunc(argv[2:], func(v abstract.Value) bool { return v.Text == "DEBUG" }) {
		s.recordShieldTampering("trap", "removes the shell hook by which shield checks commands", argv[1].SourceSpan)
	}
	if len(argv) < 3 || argv[1].Text == "-" || argv[1].Text == "-p" || argv[1].Text == "-l" {
		return abstract.Value{}
	}
	code := argv[1]
	if code.Text == "--" {
		code = argv[2]
	}
	if !code.IsLiteral() {
		return s.walkExecutedText("shell", code, "trap", code.SourceSpan, nil)
	}
	if len(s.traps) > 64 {
		s.abortAnalysis("too many traps")
		return abstract.Value{}
	}
	s.recordTrapCodeVariableNames(code.Text)
	for _, f := range s.definedFunctions {
		syntax.Walk(f.body, s.collectTrapVariableName)
	}
	var out abstract.Value
	s.walkDeferredCode(func() { out = s.walkNestedWithInput(code.Text, code.SourceSpan, io) })
	s.traps = append(slices.Clip(s.traps), code)
	return outputOfPossiblySkippedCommand(out)
}

// recordTrapCodeVariableNames makes the variables in a trap's code keep all values that they have from now on.
func (s *analysisState) recordTrapCodeVariableNames(code string) {
	if f, err := parse.Shell(code); err == nil && parse.ExceededLimitReason(code) == "" {
		syntax.Walk(f, s.collectTrapVariableName)
	}
}

func (s *analysisState) collectTrapVariableName(n syntax.Node) bool {
	name := ""
	switch n := n.(type) {
	case *syntax.ParamExp:
		if n.Param != nil {
			name = n.Param.Value
		}
	case *syntax.Assign:
		if n.Name != nil {
			name = n.Name.Value
		}
	}
	if syntax.ValidName(name) && !slices.Contains(s.trapCodeVariableNames, name) && len(s.trapCodeVariableNames) < 64 {
		s.trapCodeVariableNames = append(slices.Clip(s.trapCodeVariableNames), name)
	}
	return true
}

// runTraps walks the traps of a shell that exits.
func (s *analysisState) runTraps() {
	list := s.traps
	s.traps = nil
	for _, code := range list {
		mark := len(s.effects)
		s.walkCodeThatMayRun(func() { s.walkNestedShellText(code.Text, code.SourceSpan) })
		if len(s.frames) > 0 { // some shells have returned from the function before the trap runs
			s.walkCodeThatMayRun(func() {
				s.setUnknownPositional()
				s.walkNestedShellText(code.Text, code.SourceSpan)
			})
		}
		s.dropRepeatedEffects(mark)
	}
}
