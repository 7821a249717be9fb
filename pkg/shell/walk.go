package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkStmts walks statements and returns their combined output.
func (s *analysisState) walkStmts(list []*syntax.Stmt, in abstract.Value) abstract.Value {
	if len(list) == 1 {
		return s.walkStmt(list[0], in)
	}
	var b abstract.Builder
	stdin, outer := s.stdin, s.sharedInput
	own := &stdinSharedByCommands{val: in}
	s.walkInNestedTextScope(func() {
		s.statementListDepth++
		s.sharedInput = own
		if s.statementListDepth == 1 {
			s.currentLineExitStates = s.newEarlyExits(blockKindTopLevelLine)
		}
		for i, st := range list {
			if s.isAnalysisAborted {
				break
			}
			ended, place := s.possibleExits.isExitPossible(), s.Shell.workingFolder
			out := s.walkStmt(st, s.sharedInput.remaining())
			if ended {
				out = outputOfPossiblySkippedCommand(out)
			}
			if b.Add(out); i+1 < len(list) {
				s.isWorkingFolderUncertain = s.isWorkingFolderUncertain || s.Shell.workingFolder != place
				if s.statementListDepth == 1 && list[i+1].Pos().Line() > st.End().Line() {
					s.joinEarlyExits(s.currentLineExitStates)
				}
			}
			if s.stdin != stdin {
				stdin = s.stdin
				s.sharedInput = &stdinSharedByCommands{val: *stdin}
			}
		}
		if s.statementListDepth == 1 {
			s.joinEarlyExits(s.currentLineExitStates)
		}
	})
	if outer != nil && own.isPartlyRead {
		outer.isPartlyRead = true
	}
	return b.Value()
}

// walkStmt walks one statement.
func (s *analysisState) walkStmt(st *syntax.Stmt, in abstract.Value) (out abstract.Value) {
	if st == nil || !s.spendSteps(1) || !s.enterNesting(effect.CommandTextSpan{}) {
		return abstract.Value{}
	}
	s.walkInNestedTextScope(func() {
		s.statementStdin = in
		s.walkZshMultipleInputs(st, in, false)
		coproc, ok := st.Cmd.(*syntax.CoprocClause)
		if !st.Background && (!ok || coproc == nil) {
			out = s.walkForeground(st, in)
			return
		}
		s.walkConcurrent(func() {
			if st.Background {
				s.walkSubshell(func() { out = s.walkForeground(st, in) })
				if list, ok := st.Cmd.(*syntax.BinaryCmd); ok && !isPipe(list.Op) && s.mayBeZsh() { // in zsh, only the last part of a list runs in the background
					s.walkCodeThatMayRun(func() { out = s.walkForeground(st, in) })
				}
				return
			}
			out = s.walkForeground(st, in)
		})
	})
	s.leaveNesting()
	return out
}

// walkConcurrent walks a part of the text that runs concurrently with the rest: its writes may not have happened
// yet, and files that it reads may be changed later.
func (s *analysisState) walkConcurrent(walk func()) {
	read, mark, first := len(s.filesReadAfterWrite), len(s.writtenFiles), len(s.effects)
	walk()
	s.addDataLosses(first, effect.FileLossAtUnknownTime)
	s.markFilesUncertain(mark)
	s.pathsReadByConcurrentJobs = append(s.pathsReadByConcurrentJobs, s.filesReadAfterWrite[read:]...)
	s.recordConcurrentWrites(mark)
}

// recordConcurrentWrites records that the files written from index firstNewFile on may be written
// at any time.
func (s *analysisState) recordConcurrentWrites(firstNewFile int) {
	for _, f := range s.writtenFiles[min(firstNewFile, len(s.writtenFiles)):] {
		if f.consumingProcessSubstitution == nil {
			s.pathsWrittenByConcurrentJobs = append(s.pathsWrittenByConcurrentJobs, f.path)
		}
	}
}

// recordReadAfterWrite records that the text reads a file that it wrote.
func (s *analysisState) recordReadAfterWrite(path string) {
	if len(s.filesReadAfterWrite) < maxTrackedWrittenFiles {
		s.filesReadAfterWrite = append(s.filesReadAfterWrite, path)
	}
}

// walkForeground walks a statement as if it ran in the foreground.
func (s *analysisState) walkForeground(st *syntax.Stmt, in abstract.Value) abstract.Value {
	call, isCall := st.Cmd.(*syntax.CallExpr)
	if isCall {
		return s.walkCall(call, st, in)
	}
	from := s.Fork()
	io := s.walkRedirects(st.Redirs, in)
	opened := s.fds
	s.statementStdin = io.Stdin
	if st.Cmd == nil {
		return s.deliverOutput(io, s.walkBareRedirect(io))
	}
	fed, written := s.inputsExist(st.Redirs), len(s.writtenFiles)
	out := abstract.Value{}
	s.walkInNestedTextScope(func() {
		if io.InputRedirected {
			s.sharedInput = &stdinSharedByCommands{val: io.Stdin}
		}
		s.isStderrMergedByEnclosingCommand = s.isStderrMergedByEnclosingCommand || redirectsErrors(st.Redirs)
		if io.Out != nil && io.Out.Path != "" {
			s.enclosingCommandOutputPaths = append(slices.Clip(s.enclosingCommandOutputPaths), io.Out.Path)
		}
		out = s.rewalkIfInputChanged(io, written, s.walkCommand(st.Cmd, io), func(io abstract.Streams) abstract.Value { return s.walkCommand(st.Cmd, io) })
	})
	if !fed { // an input file may be missing: the command may not have run
		s.joinSkippedCommandState(from, written)
	}
	if coproc, ok := st.Cmd.(*syntax.CoprocClause); !ok || coproc == nil {
		s.closeRedirectionDescriptors(from.fds, opened)
	}
	overwritten := io.Out != nil && slices.ContainsFunc(s.writtenFiles[min(written, len(s.writtenFiles)):], func(f writtenFile) bool { return f.path == io.Out.Path })
	if io.HasDuplicatedOutputDescriptor || overwritten {
		out = outputOfPossiblySkippedCommand(abstract.Concat(out, abstract.Unknown("…", 0)))
	}
	return s.deliverOutput(io, out)
}

// closeRedirectionDescriptors removes the descriptors that redirections opened.
func (s *analysisState) closeRedirectionDescriptors(fdsBeforeRedirections, fdsAfterRedirections []descriptor) {
	if len(fdsAfterRedirections) == len(fdsBeforeRedirections) {
		return
	}
	s.fds = slices.DeleteFunc(slices.Clone(s.fds), func(d descriptor) bool {
		return slices.Contains(fdsAfterRedirections, d) && !slices.Contains(fdsBeforeRedirections, d)
	})
}

// walkBareRedirect handles `< file` without a command, as in $(< file).
func (s *analysisState) walkBareRedirect(io abstract.Streams) abstract.Value {
	for _, name := range [...]string{"NULLCMD", "READNULLCMD"} { // zsh runs the program in this variable
		if s.mayCommandTextAssign(name) && s.mayBeZsh() {
			s.recordDialectDifference("in zsh, a redirection without a command runs $"+name, io.Stdin.SourceSpan)
		}
	}
	if io.InputRedirected {
		return io.Stdin
	}
	return abstract.Value{}
}

func (s *analysisState) walkCommand(c syntax.Command, io abstract.Streams) (out abstract.Value) {
	switch c := c.(type) {
	case *syntax.BinaryCmd:
		return s.walkBinaryCommand(c, io.Stdin)
	case *syntax.Block:
		return s.walkStmts(c.Stmts, io.Stdin)
	case *syntax.Subshell:
		return s.walkSubshellStmts(c.Stmts, io.Stdin)
	case *syntax.IfClause:
		return s.walkIf(c, io.Stdin)
	case *syntax.WhileClause:
		return s.walkWhile(c, io.Stdin)
	case *syntax.ForClause:
		return s.walkFor(c, io.Stdin)
	case *syntax.CaseClause:
		return s.walkCase(c, io.Stdin)
	case *syntax.FuncDecl:
		if c.Name == nil && len(c.Names) == 0 { // an anonymous function of zsh, which runs at once
			return s.walkStmt(c.Body, io.Stdin)
		}
		s.defineFunction(c)
	case *syntax.ArithmCmd:
		s.walkArithmetic(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			s.walkArithmetic(x)
		}
	case *syntax.TestClause:
		s.walkTest(c.X)
	case *syntax.DeclClause:
		if c.Variant.Value == "local" && len(s.frames) == 0 { // local outside a function is an error, except in zsh
			s.walkCodeThatMayRun(func() { out = s.walkDeclaration(c) })
			return out
		}
		s.walkEachVariableValue(c, func() { out = s.walkDeclaration(c) })
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return s.walkStmt(c.Stmt, io.Stdin)
		}
	case *syntax.CoprocClause:
		s.walkSubshell(func() {
			out = s.walkStmt(c.Stmt, abstract.Unknown("the input from its descriptors", abstract.TaintUnknownText).WithOrigin(abstract.OriginStdin))
		})
		name := "COPROC"
		if c.Name != nil {
			name = cmp.Or(s.expandWord(c.Name).Text, name)
		}
		d := descriptor{coprocDescriptorPrefix + itoa(len(s.fds)), &openFile{readableContent: out}}
		if out.Taint&abstract.TaintNetwork != 0 {
			d.out = &abstract.OutputTarget{IsSocket: true}
		}
		s.fds = append(slices.Clip(s.fds), d)
		number := abstract.Value{Text: d.id, Display: "${" + name + "…}", IsGlobPattern: true}
		s.setVariableContent(name, variableContent{members: []abstract.Value{number, number}, isArray: true})
		return abstract.Value{}
	case *syntax.TestDecl:
		return s.walkStmt(c.Body, io.Stdin)
	}
	return out
}

// walkSubshellStmts walks statements in a subshell.
func (s *analysisState) walkSubshellStmts(list []*syntax.Stmt, in abstract.Value) (out abstract.Value) {
	s.walkSubshell(func() {
		s.childShellDepth++
		out = s.walkStmts(list, in)
		if s.possibleExits.mayHaveExitedShell {
			out = outputOfPossiblySkippedCommand(out)
		}
	})
	return out
}

// walkBinaryCommand walks a && b, a || b and a | b. The syntax tree can be as deep as the text is long, so it is walked
// without recursion.
func (s *analysisState) walkBinaryCommand(c *syntax.BinaryCmd, in abstract.Value) abstract.Value {
	var chain []*syntax.BinaryCmd
	first := (*syntax.Stmt)(nil)
	for {
		chain = append(chain, c)
		first = c.X
		next, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(c.X.Redirs) > 0 || isPipe(next.Op) != isPipe(c.Op) {
			break
		}
		c = next
	}
	slices.Reverse(chain)
	if isPipe(chain[0].Op) {
		return s.walkPipe(first, chain, in)
	}
	out := s.walkStmt(first, in)
	sure := alwaysSucceeds(first)
	for i, c := range chain {
		if s.isAnalysisAborted {
			break
		}
		var y abstract.Value
		walk := func() { y = s.walkStmt(c.Y, s.inputLeftForNextCommand(in)) }
		if effects := len(s.effects); sure && c.Op == syntax.AndStmt {
			walk()
		} else if s.walkCodeThatMayRun(walk); isTestBuiltinOrClause(c.X) {
			s.markReadFileEffectsPossible(effects)
		}
		if i > 0 || c.Op != syntax.AndStmt || !normallySucceeds(c.X) {
			y = outputOfPossiblySkippedCommand(y)
		}
		out = abstract.Concat(out, y)
		sure = sure && c.Op == syntax.AndStmt && alwaysSucceeds(c.Y)
	}
	return out
}

// inputLeftForNextCommand returns the input that is left for the next command of a list.
func (s *analysisState) inputLeftForNextCommand(in abstract.Value) abstract.Value {
	if s.sharedInput != nil && s.sharedInput.isPartlyRead {
		return inputAfterPartialRead(in)
	}
	return in
}

func isPipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

// walkPipe walks the commands of a pipe, each in its own subshell. The last one may run in the current shell, as in
// zsh or with bash's lastpipe.
func (s *analysisState) walkPipe(first *syntax.Stmt, chain []*syntax.BinaryCmd, in abstract.Value) abstract.Value {
	mark, racing, contested, out := len(s.writtenFiles), len(s.pathsReadByConcurrentJobs), len(s.pathsWrittenByConcurrentJobs), in
	outer := s.sharedInput
	for i := range len(chain) + 1 {
		st, last := first, i == len(chain)
		if i > 0 {
			st = chain[i-1].Y
		}
		if s.isAnalysisAborted {
			break
		}
		side := func() {
			if i > 0 {
				s.sharedInput = &stdinSharedByCommands{val: out}
				s.walkZshMultipleInputs(st, out, true)
			}
			if !last {
				s.capturedOutputDepth++
			}
			given := out
			out = s.walkStmt(st, given)
			if !last && redirectsOutput(st.Redirs) && s.mayBeZsh() { // in zsh, the output also goes into the pipe
				out = outputOfPossiblySkippedCommand(abstract.Concat(out, s.lastRedirectedOutput))
			}
		}
		read, given := len(s.filesReadAfterWrite), out
		s.walkSubshell(side)
		if last && (strings.Contains(s.analyzedText, "lastpipe") || canChangeShellState(st) && s.mayBeZsh()) {
			written := out
			out = given
			s.walkInNestedTextScope(func() { s.walkCodeThatMayRun(side) })
			out = written
		}
		if s.pathsReadByConcurrentJobs = append(s.pathsReadByConcurrentJobs, s.filesReadAfterWrite[read:]...); !last {
			s.markFilesUncertain(mark)
			s.recordConcurrentWrites(mark)
		}
	}
	s.pathsReadByConcurrentJobs, s.pathsWrittenByConcurrentJobs = s.pathsReadByConcurrentJobs[:racing], s.pathsWrittenByConcurrentJobs[:contested]
	if outer != nil && s.readsInput(first) {
		outer.isPartlyRead = true
	}
	return out
}

// readsInput reports whether the first command of a pipeline may read the pipeline's standard
// input.
func (s *analysisState) readsInput(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true
	}
	switch call.Args[0].Lit() {
	case "echo", "printf", "true", ":", "pwd":
		return false
	}
	return true
}

// canChangeShellState reports whether a statement may change the state of the shell that runs it.
func canChangeShellState(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true
	}
	_, own := builtinWalker(call.Args[0].Lit())
	return own || call.Args[0].Lit() == ""
}

// alwaysSucceeds reports whether a statement cannot fail.
func alwaysSucceeds(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(st.Redirs) > 0 || st.Negated || st.Background {
		return false
	}
	if len(call.Args) == 0 {
		return !slices.ContainsFunc(call.Assigns, func(a *syntax.Assign) bool {
			return a.Index != nil || a.Array != nil || a.Value != nil && !isExpansionInfallibleAndCommandFree(a.Value)
		})
	}
	name := call.Args[0].Lit()
	return name == "true" || name == ":"
}

// isExpansionInfallibleAndCommandFree reports whether the expansion of a word runs no command and cannot fail.
func isExpansionInfallibleAndCommandFree(w syntax.Node) bool {
	simple := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			simple = false
		case *syntax.ParamExp:
			simple = simple && n.Slice == nil && n.Index == nil && !n.Excl && n.Flags == nil &&
				(n.Exp == nil || n.Exp.Op != syntax.ErrorUnset && n.Exp.Op != syntax.ErrorUnsetOrNull && n.Exp.Op != syntax.OtherParamOps)
		}
		return simple
	})
	return simple
}

// normallySucceeds reports whether a statement normally succeeds, so that the command after && counts as run.
func normallySucceeds(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(st.Redirs) > 0 || st.Negated {
		return false
	}
	if len(call.Args) == 0 {
		return true
	}
	switch call.Args[0].Lit() {
	case "true", ":", "cd", "echo", "printf", "export", "set", "pushd":
		return true
	}
	return false
}

// isTestBuiltinOrClause reports whether a statement is only a test.
func isTestBuiltinOrClause(st *syntax.Stmt) bool {
	switch c := st.Cmd.(type) {
	case *syntax.TestClause:
		return true
	case *syntax.CallExpr:
		return len(c.Args) > 0 && (c.Args[0].Lit() == "[" || c.Args[0].Lit() == "test")
	}
	return false
}

// markReadFileEffectsPossible downgrades reads of files from index firstEffect on to possible; their
// content stays known.
func (s *analysisState) markReadFileEffectsPossible(firstEffectIndex int) {
	for i := firstEffectIndex; i < len(s.effects); i++ {
		if s.effects[i].Kind == effect.ReadFile {
			s.effects[i].Certainty = effect.Possible
		}
	}
}

// outputOfPossiblySkippedCommand returns the output of a command that may not run.
func outputOfPossiblySkippedCommand(out abstract.Value) abstract.Value {
	if out.IsLiteral() && out.Text == "" {
		return out
	}
	v := abstract.Unknown("…", out.Taint).WithOrigin(out.Origin | abstract.OriginCommandOutput)
	v.SecretDescription = out.SecretDescription
	return v
}

// outputIfAllEqual returns the output of one of several commands: known only if all outputs are equal.
func outputIfAllEqual(outs []abstract.Value) abstract.Value {
	if len(outs) == 0 {
		return abstract.Value{}
	}
	out := outs[0]
	for _, o := range outs[1:] {
		if o.Text != out.Text || o.IsGlobPattern != out.IsGlobPattern {
			return outputOfPossiblySkippedCommand(abstract.Concat(outs...))
		}
		out.Taint |= o.Taint
	}
	return out
}

// inputAfterPartialRead returns the rest of an input that was partly read.
func inputAfterPartialRead(in abstract.Value) abstract.Value {
	if in.IsLiteral() && in.Text == "" {
		return in
	}
	return anyListedPathOrFallback(in, abstract.Unknown("…", in.Taint).WithOrigin(abstract.OriginStdin))
}

// redirectsErrors reports whether a redirection redirects standard error.
func redirectsErrors(list []*syntax.Redirect) bool {
	return slices.ContainsFunc(list, func(r *syntax.Redirect) bool {
		return r.N != nil && r.N.Value == "2" || r.Op == syntax.RdrAll || r.Op == syntax.AppAll
	})
}

// redirectsOutput reports whether a redirection redirects standard output.
func redirectsOutput(list []*syntax.Redirect) bool {
	return slices.ContainsFunc(list, func(r *syntax.Redirect) bool {
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return false
		}
		return r.N == nil || r.N.Value == "1"
	})
}

func (s *analysisState) walkIf(c *syntax.IfClause, in abstract.Value) abstract.Value {
	if len(c.Cond) == 0 { // the else branch
		return s.walkStmts(c.Then, in)
	}
	cond := s.walkStmts(c.Cond, in)
	if isAlwaysTrue(c.Cond) {
		return abstract.Concat(cond, s.walkStmts(c.Then, s.inputLeftForNextCommand(in)))
	}
	var then, other abstract.Value
	effects := len(s.effects)
	walks := []func(){func() { then = s.walkStmts(c.Then, s.inputLeftForNextCommand(in)) }}
	if c.Else != nil {
		walks = append(walks, func() { other = s.walkIf(c.Else, s.inputLeftForNextCommand(in)) })
	}
	s.walkAlternativeBranches(c.Else == nil, walks...)
	s.markReadFileEffectsPossible(effects)
	return abstract.Concat(cond, outputOfPossiblySkippedCommand(abstract.Concat(then, other)))
}

func (s *analysisState) walkCase(c *syntax.CaseClause, in abstract.Value) abstract.Value {
	s.expandWord(c.Word)
	var b abstract.Builder
	var walks []func()
	none, through := true, false
	for _, item := range c.Items {
		s.walkCodeThatMayRun(func() {
			for _, p := range item.Patterns {
				s.expandWord(p)
			}
		})
		none = none && !slices.ContainsFunc(item.Patterns, func(p *syntax.Word) bool { return p.Lit() == "*" })
		through = through || item.Op != syntax.Break
		walks = append(walks, func() { b.Add(s.walkStmts(item.Stmts, s.inputLeftForNextCommand(in))) })
	}
	effects := len(s.effects)
	if through { // ;& continues with the next branch
		for _, walk := range walks {
			s.walkCodeThatMayRun(walk)
		}
	} else if len(walks) > 0 {
		s.walkAlternativeBranches(none, walks...)
	}
	s.markReadFileEffectsPossible(effects)
	return outputOfPossiblySkippedCommand(b.Value())
}

// walkIteration walks one iteration of a loop, which break or continue can end early.
func (s *analysisState) walkIteration(walk func()) {
	s.walkInNestedTextScope(func() {
		end := s.newEarlyExits(blockKindLoopIteration)
		s.loopExits = append(slices.Clip(s.loopExits), end)
		walk()
		s.joinEarlyExits(end)
	})
}

func (s *analysisState) walkWhile(c *syntax.WhileClause, in abstract.Value) abstract.Value {
	var b abstract.Builder
	first := len(s.effects)
	defer func() { s.addDataLosses(first, effect.FileLossAtUnknownTime) }()
	s.walkLoop(func() {
		s.walkIteration(func() {
			b.Add(s.walkStmts(c.Cond, s.inputLeftForNextCommand(in)))
			s.walkCodeThatMayRun(func() { b.Add(s.walkStmts(c.Do, s.inputLeftForNextCommand(in))) })
		})
	})
	return outputOfPossiblySkippedCommand(b.Value())
}

func (s *analysisState) walkFor(c *syntax.ForClause, in abstract.Value) (out abstract.Value) {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		var outs []abstract.Value
		s.walkEachVariableValue(&syntax.ForClause{Loop: loop}, func() { outs = append(outs, s.walkForWords(c, loop, in)) })
		return outputIfAllEqual(outs)
	case *syntax.CStyleLoop:
		s.walkArithmetic(loop.Init)
		first := len(s.effects)
		defer func() { s.addDataLosses(first, effect.FileLossAtUnknownTime) }()
		s.walkLoop(func() {
			s.walkIteration(func() {
				s.walkArithmetic(loop.Cond)
				out = s.walkStmts(c.Do, s.inputLeftForNextCommand(in))
			})
			s.walkArithmetic(loop.Post)
		})
	}
	return outputOfPossiblySkippedCommand(out)
}

// walkForWords walks "for" over a list of words: once for each word if they are known.
func (s *analysisState) walkForWords(c *syntax.ForClause, loop *syntax.WordIter, in abstract.Value) abstract.Value {
	var items []abstract.Value
	if loop.InPos.IsValid() {
		for _, w := range loop.Items {
			items = append(items, s.expandFields(w)...)
		}
	} else {
		items = s.positionalValues()
	}
	name := loop.Name.Value
	var b abstract.Builder
	turns := func() {
		for _, item := range items {
			mark := len(s.effects)
			s.walkIteration(func() {
				s.assign(name, item)
				out := s.walkStmts(c.Do, s.inputLeftForNextCommand(in))
				if s.possibleExits.isExitPossible() {
					out = outputOfPossiblySkippedCommand(out)
				}
				b.Add(out)
			})
			if s.dropRepeatedEffects(mark); s.isAnalysisAborted {
				break
			}
		}
	}
	if !c.Select && !slices.ContainsFunc(items, func(v abstract.Value) bool { return !v.IsLiteral() }) {
		if len(items) == 0 {
			s.walkSubshell(func() {
				s.assign(name, abstract.UnsetVariableValue(name, 0))
				s.walkUnreachableCode(func() { s.walkStmts(c.Do, in) })
			})
			return abstract.Value{}
		}
		s.walkIteration(turns)
		return b.Value()
	}
	if len(items) == 0 {
		items = []abstract.Value{abstract.UnsetVariableValue(name, 0)}
	}
	s.walkLoop(turns)
	return outputOfPossiblySkippedCommand(b.Value())
}

// defineFunction binds the names of a function definition.
func (s *analysisState) defineFunction(c *syntax.FuncDecl) {
	names := c.Names
	if c.Name != nil {
		names = []*syntax.Lit{c.Name}
	}
	for _, n := range names {
		s.recordShieldShadowing(n.Value, s.span(0, 0))
		if len(s.definedFunctions) == 256 {
			s.abortAnalysis("too many functions")
			return
		}
		f := &function{name: n.Value, body: c.Body, spanOfTextAroundDefinition: s.spanOfNestedText, offsetInAnalyzedText: s.offsetInAnalyzedText}
		s.definedFunctions = append(s.definedFunctions, f)
		s.setFunction(n.Value, possibleFunctions{functions: []*function{f}})
	}
}

// walkTrapsAndUncalledFunctions walks the traps, and the functions that the text defines but does not call: text that is sourced later
// may call them.
func (s *analysisState) walkTrapsAndUncalledFunctions() {
	defer s.markWellKnownInstallerDownloads()
	defer s.markProcessesStoppedByName()
	s.runTraps()
	for i := 0; i < len(s.definedFunctions) && !s.isAnalysisAborted; i++ {
		switch f := s.definedFunctions[i]; {
		case isShellHookFunction(f.name):
			s.walkSubshell(func() {
				s.forgetVariables() // the shell may call this function at any time, so the values of variables are unknown
				s.callFunction(f, []abstract.Value{unknownValueWithTaintsOf("$@")}, abstract.Value{}, abstract.Value{})
			})
		case !f.hasBeenCalled:
			s.callFunction(f, nil, abstract.Value{}, abstract.Value{})
		}
	}
}

// isShellHookFunction reports whether a shell calls functions of this name itself, as hooks with its own arguments.
func isShellHookFunction(name string) bool {
	switch name {
	case "command_not_found_handle", "command_not_found_handler", "precmd", "preexec", "chpwd", "periodic", "zshaddhistory":
		return true
	}
	return strings.HasPrefix(name, "TRAP") && name != "TRAPEXIT"
}

// recordPossibleExit records an error at which some shells exit. It has no consequence in the main shell, where no command
// would follow; only in command substitutions and child shells.
func (s *analysisState) recordPossibleExit() {
	s.possibleExits.mayHaveExitedShell = s.possibleExits.mayHaveExitedShell || s.capturedOutputDepth > 0 || s.childShellDepth > 0
}

// recordErrorAbortingLineOrShell records an error after which bash continues with the next line and other shells exit.
func (s *analysisState) recordErrorAbortingLineOrShell() {
	s.recordPossibleExit()
	s.addEarlyExit(s.currentLineExitStates)
}

// walkUnreachableCode walks code that does not run, so that rules see its known effects; unknown effects are dropped.
func (s *analysisState) walkUnreachableCode(walk func()) {
	mark := len(s.effects)
	walk()
	s.effects = append(s.effects[:min(mark, len(s.effects))], slices.DeleteFunc(s.effects[min(mark, len(s.effects)):], func(e effect.Effect) bool {
		return !s.isAnalysisAborted && (e.Certainty == effect.Unknown || e.KindForPolicies() == effect.RunCommandOutput)
	})...)
}
