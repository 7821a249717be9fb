package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// walkCall walks a simple command, once for each combination of values that its variables may have.
func (s *analysisState) walkCall(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) abstract.Value {
	var outs []abstract.Value
	s.walkEachVariableValue(st, func() { outs = append(outs, s.walkCallInNestedScope(c, st, in)) })
	return outputIfAllEqual(outs)
}

// expandArguments returns the words of a command after expansion.
func (s *analysisState) expandArguments(c *syntax.CallExpr) []abstract.Value {
	argv := make([]abstract.Value, 0, len(c.Args)+1)
	for _, w := range c.Args {
		if text, ok := literalWord(w); ok && s.spendSteps(1) {
			argv = append(argv, abstract.Value{Text: text, SourceSpan: s.spanOf(w)})
			continue
		}
		argv = append(argv, s.expandFields(w)...)
		if len(argv) > maxAnalysisSteps {
			s.abortAnalysis("the command has too many words")
			break
		}
	}
	return s.interpretZshSpecialWords(c.Args, argv)
}

func (s *analysisState) walkCallInNestedScope(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) (out abstract.Value) {
	s.walkInNestedTextScope(func() { out = s.walkCallInCurrentScope(c, st, in) })
	return out
}

func (s *analysisState) walkCallInCurrentScope(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) (out abstract.Value) {
	s.statementStdin = in
	before, opened := s.fds, len(s.writtenFiles)
	if len(c.Assigns) > 0 {
		s.prefixAssignmentsNotYetVisible = c.Assigns
	}
	argv := s.expandArguments(c)
	s.prefixAssignmentsNotYetVisible, s.currentCommandWords = nil, c.Args
	fails := s.possibleExits.mayHaveExitedShell
	expanded := s.Fork()
	io := s.walkRedirects(st.Redirs, in)
	fds := s.fds
	s.joinVars(&expanded) // some shells expand here-documents in a subshell
	if len(argv) == 0 {
		for _, a := range c.Assigns {
			s.walkAssignment(a)
		}
		if !s.inputsExist(st.Redirs) { // an input file may be missing: the command may not have run
			s.joinSkippedCommandState(expanded, opened)
		}
		if len(c.Args) == 0 && len(st.Redirs) > 0 && len(c.Assigns) == 0 {
			return s.deliverOutput(io, s.walkBareRedirect(io))
		}
		s.closeRedirectionDescriptors(before, fds)
		return s.deliverOutput(io, abstract.Value{})
	}
	prefix := s.bindAssignmentPrefixes(c)
	s.statementStdin = io.Stdin
	if io.InputRedirected {
		s.sharedInput = &stdinSharedByCommands{val: io.Stdin}
	}
	from, effects, written := s.Fork(), len(s.effects), len(s.writtenFiles)
	fed := s.inputsExist(st.Redirs)
	out = s.rewalkIfInputChanged(io, written, s.resolveAndWalkArgv(argv, io), func(io abstract.Streams) abstract.Value { return s.resolveAndWalkArgv(argv, io) })
	if io.Out != nil && io.Out.Append && slices.ContainsFunc(s.effects[min(effects, len(s.effects)):], func(e effect.Effect) bool {
		return e.Kind == effect.ReadFile && e.Path == io.Out.Path
	}) {
		out = outputOfPossiblySkippedCommand(out) // the program may refuse to read its own output file
	}
	if exec := argv[0].Text == "exec"; !exec && (!fed || s.possibleExits.mayHaveExitedShell && !fails) { // the command may not have run
		s.joinSkippedCommandState(from, written)
	}
	s.restoreAssignmentPrefixes(prefix, argv[0])
	if argv[0].Text != "exec" && (len(argv) < 2 || argv[1].Text != "exec") {
		s.closeRedirectionDescriptors(before, fds)
	}
	if len(s.writtenFiles) > opened {
		s.feedInputToOpenedSubstitutions(opened, abstract.Concat(io.Stdin, out))
	}
	if s.possibleExits.mayHaveExitedShell && !fails {
		out = outputOfPossiblySkippedCommand(out)
	}
	out = s.deliverOutput(io, out)
	s.recordShownCredentials(out, argv[0].String(), wordsSpan(argv))
	return out
}

// An assignmentPrefix is a variable that is assigned before a command.
type assignmentPrefix struct {
	name        string
	oldVariable variable
}

// bindAssignmentPrefixes binds the variables assigned before a command (NAME=VALUE CMD); the command sees them as exported.
func (s *analysisState) bindAssignmentPrefixes(c *syntax.CallExpr) (out []assignmentPrefix) {
	for _, a := range c.Assigns {
		if a.Name == nil {
			continue
		}
		out = append(out, assignmentPrefix{a.Name.Value, s.vars.get(a.Name.Value)})
		s.walkAssignment(a)
		if v, ok := s.vars.byName[a.Name.Value]; ok {
			v.isExported = true
			s.Shell.setVariable(a.Name.Value, v)
			s.checkExportedVariableForAutostart(a.Name.Value, s.spanOf(a))
		}
	}
	return out
}

// builtinsDiscardingPrefixAssignments lists builtins for which an assignment before the command (NAME=VALUE CMD) ends with the command.
var builtinsDiscardingPrefixAssignments = map[string]bool{
	"echo": true, "printf": true, "print": true, "test": true, "[": true, "cd": true, "pwd": true, "read": true, "mapfile": true,
	"readarray": true, "let": true, "type": true, "umask": true, "true": true, "false": true, "getopts": true, "jobs": true,
}

// restoreAssignmentPrefixes restores the variables of assignment prefixes (NAME=VALUE COMMAND)
// after the command. If the command is a function, an alias, or a builtin that is not in
// builtinsDiscardingPrefixAssignments, the assignments may persist, because some shells keep them, and with
// them the command's own assignments to these variables.
func (s *analysisState) restoreAssignmentPrefixes(list []assignmentPrefix, command abstract.Value) {
	_, own := builtinWalker(command.Text)
	_, function := s.possibleFunctionsByName[command.Text]
	aliased := slices.ContainsFunc(s.aliases, func(a alias) bool { return a.name == command.Text })
	lasts := function || aliased || own && !builtinsDiscardingPrefixAssignments[command.Text]
	for _, p := range slices.Backward(list) {
		if lasts {
			p.oldVariable = p.oldVariable.merge(s.vars.get(p.name))
		}
		p.oldVariable.isExported = p.oldVariable.isExported && !lasts
		s.Shell.setVariable(p.name, p.oldVariable)
	}
}

// resolveAndWalkArgv analyses a command given as its argument vector, whose name can be an alias, a
// function, a builtin or a program.
func (s *analysisState) resolveAndWalkArgv(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return s.walkArgv(argv, io, s.walkAliasFunctionOrProgram)
}

// walkArgv analyses a command given as its argument vector. It calls walkNamedCommand if the
// command name is known.
func (s *analysisState) walkArgv(argv []abstract.Value, io abstract.Streams, walkNamedCommand func(string, []abstract.Value, abstract.Streams) abstract.Value) abstract.Value {
	if len(argv) == 0 || !s.spendSteps(1+len(argv)/8) || !s.enterNesting(argv[0].SourceSpan) {
		return abstract.Value{}
	}
	defer s.leaveNesting()
	if !argv[0].IsLiteral() {
		return s.walkUnknownProgram(argv, io)
	}
	name := argv[0].Text
	if name == "" || name == "--" { // time -- CMD
		if len(argv) > 1 {
			return s.walkArgv(argv[1:], io, walkNamedCommand)
		}
		return abstract.Value{}
	}
	return walkNamedCommand(name, argv, io)
}

// walkAliasFunctionOrProgram analyses everything that a command name can resolve to: an alias,
// which a shell may or may not expand, a function, which may not be defined, a builtin, or a
// program.
func (s *analysisState) walkAliasFunctionOrProgram(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	var outs []abstract.Value
	var walks []func()
	if slices.ContainsFunc(s.aliases, func(a alias) bool { return a.name == name }) {
		walks = append(walks, func() { outs = append(outs, s.recordUnexpandedAliasCall(argv)) })
	}
	d, ok := s.possibleFunctionsByName[name]
	if len(d.functions) > maxPossibleVariableValues {
		s.abortAnalysis("too many functions of one name")
		return abstract.Value{}
	}
	for _, f := range d.functions {
		walks = append(walks, func() {
			s.checkRecursion(f, argv[0].SourceSpan)
			outs = append(outs, s.callFunction(f, argv[1:], io.Stdin, argv[0]))
		})
	}
	if !ok || d.mayAlsoBeNonFunction {
		walks = append(walks, func() { outs = append(outs, s.runBuiltinOrProgram(name, argv, io)) })
	}
	if len(walks) == 1 {
		walks[0]()
		return outs[0]
	}
	s.walkAlternativeBranches(false, walks...)
	return outputOfPossiblySkippedCommand(abstract.Concat(outs...))
}

func (s *analysisState) runBuiltinOrProgram(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	if b, ok := builtinWalker(name); ok {
		s.recordExecuteEffect(argv, name, effect.ReadOnly)
		if name != "echo" && name != "print" && name != "eval" && name != "trap" && name != "alias" {
			for _, v := range argv[1:] {
				s.walkSubscripts(v, false)
			}
		}
		return b(s, argv, io)
	}
	if io.Stdin.Text != "" && s.sharedInput != nil {
		s.sharedInput.isPartlyRead = true
	}
	if number, _, ok := strings.Cut(name, "="); ok && number != "" && strings.Trim(number, "0123456789") == "" && s.readsAsZsh() {
		s.setUnknownPositional(argv...) // zsh: N=VALUE assigns a positional parameter
	}
	if plain, ok := strings.CutPrefix(name, "zf_"); ok { // zsh's module zsh/files: zf_rm is rm
		argv = slices.Clone(argv)
		argv[0].Text = plain
	}
	return s.walkNonBuiltinCommand(argv, io)
}

// recordUnexpandedAliasCall handles a command whose name is an alias that is not expanded: the command is unknown.
func (s *analysisState) recordUnexpandedAliasCall(argv []abstract.Value) abstract.Value {
	s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "an alias replaces this command: "+abstract.ClipForMessage(argv[0].Text)+"; instead: write the command without the alias", argv[0].SourceSpan)
	s.forgetVariables()
	return abstract.Unknown("$("+abstract.ClipForMessage(argv[0].Text)+")", abstract.TaintUnknownText).WithOrigin(abstract.OriginCommandOutput)
}

// hasExpansion reports whether a word contains a parameter or arithmetic expansion, or a command or process
// substitution.
func hasExpansion(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// walkNestedWithInput walks text that a part of the command runs as shell code, with the standard
// input of io. It ignores the output of io.
func (s *analysisState) walkNestedWithInput(text string, at effect.CommandTextSpan, io abstract.Streams) abstract.Value {
	if why := parse.ExceededLimitReason(text); why != "" {
		s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, why, at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	f, err := parse.Shell(text)
	if err != nil {
		s.emitUnknownEffect(effect.CauseUnparseableText, "the shell text cannot be parsed: "+parse.ShortError(err), at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	if !s.enterNesting(at) {
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	var out abstract.Value
	s.walkInNestedTextScope(func() {
		s.spanOfNestedText = &at
		in := io.Stdin
		if io.HasSocket {
			in.Taint |= abstract.TaintSocket
		}
		out = s.walkStmts(f.Stmts, in)
	})
	s.leaveNesting()
	return out
}

// recordExecuteEffect records that a program runs and adds a line to the list of commands.
func (s *analysisState) recordExecuteEffect(argv []abstract.Value, program string, class effect.ProgramClass, harms ...effect.Harm) {
	if s.effectSuppressionDepth > 0 {
		return
	}
	e := effect.Effect{Kind: effect.Execute, Program: program, Class: class, Harms: harms, Span: wordsSpan(argv)}
	if len(argv) > 1 {
		e.Args = make([]string, len(argv)-1)
		for i, v := range argv[1:] {
			e.Args[i] = v.String()
		}
	}
	s.emit(e)
	if s.resolvedCommandLines.Len() > parse.MaxCommandBytes {
		return
	}
	s.resolvedCommandLines.WriteString(program)
	for _, a := range e.Args {
		s.resolvedCommandLines.WriteByte(' ')
		s.resolvedCommandLines.WriteString(a)
	}
	s.resolvedCommandLines.WriteByte('\n')
}

// wordsSpan returns the span from the first word of a command to its last.
//
//go:noinline
func wordsSpan(argv []abstract.Value) effect.CommandTextSpan {
	at := argv[0].SourceSpan
	for _, v := range argv[1:] {
		at.End = max(at.End, v.SourceSpan.End)
	}
	return at
}

// walkUnknownProgram handles a command whose name could not be resolved.
func (s *analysisState) walkUnknownProgram(argv []abstract.Value, io abstract.Streams) abstract.Value {
	v := argv[0]
	if base, ok := s.programNameInUnknownFolder(argv); ok && !io.HasSocket {
		return s.runProgramInUnknownFolder(base, argv, io)
	}
	if s.remoteOrContainerDepth > 0 && !io.HasSocket && v.HasOnlyTaintsHarmlessToRun() && v.CauseOfUnknownParts() == effect.CauseOtherUnresolvedCommandText && command.FileLanguage(v.Text) != "" {
		return s.runProgramGivenByPath(argv, io) // "docker run shellcheck *.sh": the program in the container reads these scripts
	}
	switch {
	case v.Taint&abstract.TaintSocket != 0 || io.HasSocket:
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Reason: "runs code from a network connection", Span: v.SourceSpan})
	case v.Taint&abstract.TaintNetwork != 0:
		s.recordCodeRun(effect.LabelFromNetwork, "runs code straight from the network", v.SourceSpan)
	case v.Taint&abstract.TaintDecoded != 0:
		s.recordCodeRun(effect.LabelDecoderOutput, "runs decoded text", v.SourceSpan)
	}
	if name := v.Text[strings.LastIndexByte(v.Text, '/')+1:]; !hasOnlyEnvironmentUnknowns(v) && strings.Contains(name, "*") {
		s.emitOnce(effect.Effect{Kind: effect.RunCode, DataLabels: []effect.TaintLabel{effect.LabelCommandOutput}, Cause: v.CauseOfUnknownParts(), Reason: "the name of the program is the output of another command", Span: v.SourceSpan})
	}
	s.recordShieldRunByPath(argv)
	cause := s.unknownProgramNameCause(v)
	if v.HasUnknownPartWithinFileName() {
		cause = effect.CauseOtherUnresolvedCommandText
	}
	s.emitUnknownEffect(cause, "cannot tell which program runs: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
	for _, a := range argv[1:] {
		s.recordPathOrURL(a)
	}
	s.walkCommandOfUnknownWrapper(argv[1:], io)
	s.recordPossibleUpload(abstract.Concat(append([]abstract.Value{io.Stdin}, argv[1:]...)...), v.String(), v.SourceSpan)
	return abstract.UnknownOutput(abstract.ClipForMessage(v.String()), io.Stdin.Taint|abstract.TaintUnknownText)
}

// recordPathsAndURLsInText records the paths and addresses in text that could not be parsed, so that rules can match
// them.
func (s *analysisState) recordPathsAndURLsInText(unparsedText string) {
	n := 0
	for word := range strings.FieldsFuncSeq(unparsedText, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>()\"'`=,", r) }) {
		if n++; n > 256 {
			return
		}
		s.recordPathOrURL(abstract.Value{Text: word, SourceSpan: s.span(0, len(s.analyzedText))})
	}
}

// recordPathOrURL records a word of an unknown program if it looks like a path or a URL. It returns the taint of
// the file that it names.
func (s *analysisState) recordPathOrURL(v abstract.Value) abstract.Taint {
	text := v.Text
	if v.FullyUnknown || len(text) < 2 || len(text) > 4096 {
		return 0
	}
	if i := strings.Index(text, "://"); i > 0 && i < 12 {
		s.emitURLEffect(effect.HTTPRequest, v)
		return 0
	}
	if strings.HasPrefix(text, "-") {
		_, after, ok := strings.Cut(text, "=")
		if !ok || after == "" {
			return 0
		}
		v.Text = after
		text = after
	}
	if text[0] != '/' && text[0] != '~' && (text[0] != '.' || len(text) < 3 || strings.Contains(text, " ")) {
		return 0
	}
	p, pattern := s.emitPathEffect(effect.ReadFile, v, false)
	if p != "" && effect.IsSecretPath(p, pattern) {
		return abstract.TaintReadCredentials
	}
	return 0
}
