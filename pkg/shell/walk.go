package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// stmts walks statements and returns their combined output.
func (s *state) stmts(list []*syntax.Stmt, in abstract.Value) abstract.Value {
	if len(list) == 1 {
		return s.stmt(list[0], in)
	}
	var b abstract.Builder
	stdin, outer := s.stdin, s.source
	own := &source{val: in}
	s.within(func() {
		s.lists++
		s.source = own
		if s.lists == 1 {
			s.row = s.begins(ofLine)
		}
		for i, st := range list {
			if s.gaveUp {
				break
			}
			ended, place := s.ended.any(), s.Shell.place
			out := s.stmt(st, s.source.left())
			if ended {
				out = possibleOutput(out)
			}
			if b.Add(out); i+1 < len(list) {
				s.astray = s.astray || s.Shell.place != place
				if s.lists == 1 && list[i+1].Pos().Line() > st.End().Line() {
					s.comesTo(s.row)
				}
			}
			if s.stdin != stdin {
				stdin = s.stdin
				s.source = &source{val: *stdin}
			}
		}
		if s.lists == 1 {
			s.comesTo(s.row)
		}
	})
	if outer != nil && own.read {
		outer.read = true
	}
	return b.Value()
}

// stmt walks one statement.
func (s *state) stmt(st *syntax.Stmt, in abstract.Value) (out abstract.Value) {
	if st == nil || !s.step(1) || !s.enter(effect.Span{}) {
		return abstract.Value{}
	}
	s.within(func() {
		s.input = in
		s.otherInputs(st, in, false)
		coproc, ok := st.Cmd.(*syntax.CoprocClause)
		if !st.Background && (!ok || coproc == nil) {
			out = s.foreground(st, in)
			return
		}
		s.walkConcurrent(func() {
			if st.Background {
				s.apart(func() { out = s.foreground(st, in) })
				if list, ok := st.Cmd.(*syntax.BinaryCmd); ok && !isPipe(list.Op) && s.mayBeZsh() { // in zsh, only the last part of a list runs in the background
					s.may(func() { out = s.foreground(st, in) })
				}
				return
			}
			out = s.foreground(st, in)
		})
	})
	s.leave()
	return out
}

// walkConcurrent walks a part of the text that runs concurrently with the rest: its writes may not have happened
// yet, and files that it reads may be changed later.
func (s *state) walkConcurrent(walk func()) {
	read, mark, first := len(s.seen), len(s.files), len(s.effects)
	walk()
	s.mark(first, effect.LosesLater)
	s.doubt(mark)
	s.racing = append(s.racing, s.seen[read:]...)
	s.noteRacingWrites(mark)
}

// noteRacingWrites records that the files written since mark may be written at any time.
func (s *state) noteRacingWrites(mark int) {
	for _, f := range s.files[min(mark, len(s.files)):] {
		if f.consumer == nil {
			s.contested = append(s.contested, f.path)
		}
	}
}

// reads records that the text reads a file that it wrote.
func (s *state) reads(path string) {
	if len(s.seen) < maxFiles {
		s.seen = append(s.seen, path)
	}
}

// foreground walks a statement as if it ran in the foreground.
func (s *state) foreground(st *syntax.Stmt, in abstract.Value) abstract.Value {
	call, isCall := st.Cmd.(*syntax.CallExpr)
	if isCall {
		return s.call(call, st, in)
	}
	from := s.Fork()
	io := s.redirect(st.Redirs, in)
	opened := s.fds
	s.input = io.In
	if st.Cmd == nil {
		return s.deliver(io, s.bareRedirect(io))
	}
	fed, written := s.inputsExist(st.Redirs), len(s.files)
	out := abstract.Value{}
	s.within(func() {
		if io.Redirected {
			s.source = &source{val: io.In}
		}
		s.joinsErrors = s.joinsErrors || redirectsErrors(st.Redirs)
		if io.Out != nil && io.Out.Path != "" {
			s.writing = append(slices.Clip(s.writing), io.Out.Path)
		}
		out = s.asChanged(io, written, s.command(st.Cmd, io), func(io abstract.Streams) abstract.Value { return s.command(st.Cmd, io) })
	})
	if !fed { // an input file may be missing: the command may not have run
		s.orElse(from, written)
	}
	if coproc, ok := st.Cmd.(*syntax.CoprocClause); !ok || coproc == nil {
		s.close(from.fds, opened)
	}
	overwritten := io.Out != nil && slices.ContainsFunc(s.files[min(written, len(s.files)):], func(f file) bool { return f.path == io.Out.Path })
	if io.Moved || overwritten {
		out = possibleOutput(abstract.Concat(out, abstract.Unknown("…", 0)))
	}
	return s.deliver(io, out)
}

// close removes the descriptors that redirections opened.
func (s *state) close(before, opened []descriptor) {
	if len(opened) == len(before) {
		return
	}
	s.fds = slices.DeleteFunc(slices.Clone(s.fds), func(d descriptor) bool { return slices.Contains(opened, d) && !slices.Contains(before, d) })
}

// bareRedirect handles `< file` without a command, as in $(< file).
func (s *state) bareRedirect(io abstract.Streams) abstract.Value {
	for _, name := range [...]string{"NULLCMD", "READNULLCMD"} { // zsh runs the program in this variable
		if s.bound(name) && s.mayBeZsh() {
			s.differsHere("in zsh, a redirection without a command runs $"+name, io.In.From)
		}
	}
	if io.Redirected {
		return io.In
	}
	return abstract.Value{}
}

func (s *state) command(c syntax.Command, io abstract.Streams) (out abstract.Value) {
	switch c := c.(type) {
	case *syntax.BinaryCmd:
		return s.binary(c, io.In)
	case *syntax.Block:
		return s.stmts(c.Stmts, io.In)
	case *syntax.Subshell:
		return s.subshell(c.Stmts, io.In)
	case *syntax.IfClause:
		return s.ifClause(c, io.In)
	case *syntax.WhileClause:
		return s.while(c, io.In)
	case *syntax.ForClause:
		return s.forClause(c, io.In)
	case *syntax.CaseClause:
		return s.caseClause(c, io.In)
	case *syntax.FuncDecl:
		if c.Name == nil && len(c.Names) == 0 { // an anonymous function of zsh, which runs at once
			return s.stmt(c.Body, io.In)
		}
		s.defines(c)
	case *syntax.ArithmCmd:
		s.arithm(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			s.arithm(x)
		}
	case *syntax.TestClause:
		s.test(c.X)
	case *syntax.DeclClause:
		if c.Variant.Value == "local" && len(s.frames) == 0 { // local outside a function is an error, except in zsh
			s.may(func() { out = s.declare(c) })
			return out
		}
		s.each(c, func() { out = s.declare(c) })
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return s.stmt(c.Stmt, io.In)
		}
	case *syntax.CoprocClause:
		s.apart(func() {
			out = s.stmt(c.Stmt, abstract.Unknown("the input from its descriptors", abstract.Foreign).Of(abstract.FromInput))
		})
		name := "COPROC"
		if c.Name != nil {
			name = cmp.Or(s.word(c.Name).Text, name)
		}
		d := descriptor{coproc + itoa(len(s.fds)), &stream{val: out}}
		if out.Taint&abstract.Network != 0 {
			d.out = &abstract.Target{Socket: true}
		}
		s.fds = append(slices.Clip(s.fds), d)
		number := abstract.Value{Text: d.n, Show: "${" + name + "…}", IsPattern: true}
		s.hold(name, content{list: []abstract.Value{number, number}, array: true})
		return abstract.Value{}
	case *syntax.TestDecl:
		return s.stmt(c.Body, io.In)
	}
	return out
}

// subshell walks statements in a subshell.
func (s *state) subshell(list []*syntax.Stmt, in abstract.Value) (out abstract.Value) {
	s.apart(func() {
		s.inner++
		out = s.stmts(list, in)
		if s.ended.shell {
			out = possibleOutput(out)
		}
	})
	return out
}

// binary walks a && b, a || b and a | b. The syntax tree can be as deep as the text is long, so it is walked
// without recursion.
func (s *state) binary(c *syntax.BinaryCmd, in abstract.Value) abstract.Value {
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
		return s.pipe(first, chain, in)
	}
	out := s.stmt(first, in)
	sure := alwaysSucceeds(first)
	for i, c := range chain {
		if s.gaveUp {
			break
		}
		var y abstract.Value
		walk := func() { y = s.stmt(c.Y, s.rest(in)) }
		if effects := len(s.effects); sure && c.Op == syntax.AndStmt {
			walk()
		} else if s.may(walk); tests(c.X) {
			s.mayShow(effects)
		}
		if i > 0 || c.Op != syntax.AndStmt || !succeeds(c.X) {
			y = possibleOutput(y)
		}
		out = abstract.Concat(out, y)
		sure = sure && c.Op == syntax.AndStmt && alwaysSucceeds(c.Y)
	}
	return out
}

// rest returns the input that is left for the next command of a list.
func (s *state) rest(in abstract.Value) abstract.Value {
	if s.source != nil && s.source.read {
		return rest(in)
	}
	return in
}

func isPipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

// pipe walks the commands of a pipe, each in its own subshell. The last one may run in the current shell, as in
// zsh or with bash's lastpipe.
func (s *state) pipe(first *syntax.Stmt, chain []*syntax.BinaryCmd, in abstract.Value) abstract.Value {
	mark, racing, contested, out := len(s.files), len(s.racing), len(s.contested), in
	outer := s.source
	for i := range len(chain) + 1 {
		st, last := first, i == len(chain)
		if i > 0 {
			st = chain[i-1].Y
		}
		if s.gaveUp {
			break
		}
		side := func() {
			if i > 0 {
				s.source = &source{val: out}
				s.otherInputs(st, out, true)
			}
			if !last {
				s.captured++
			}
			given := out
			out = s.stmt(st, given)
			if !last && redirectsOutput(st.Redirs) && s.mayBeZsh() { // in zsh, the output also goes into the pipe
				out = possibleOutput(abstract.Concat(out, s.sent))
			}
		}
		read, given := len(s.seen), out
		s.apart(side)
		if last && (strings.Contains(s.text, "lastpipe") || changesShell(st) && s.mayBeZsh()) {
			written := out
			out = given
			s.within(func() { s.may(side) })
			out = written
		}
		if s.racing = append(s.racing, s.seen[read:]...); !last {
			s.doubt(mark)
			s.noteRacingWrites(mark)
		}
	}
	s.racing, s.contested = s.racing[:racing], s.contested[:contested]
	if outer != nil && s.readsInput(first) {
		outer.read = true
	}
	return out
}

// readsInput reports whether the first command of a pipe may read the standard input around the pipe.
func (s *state) readsInput(st *syntax.Stmt) bool {
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

// changesShell reports whether a statement may change the state of the shell that runs it.
func changesShell(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true
	}
	_, own := builtin(call.Args[0].Lit())
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
			return a.Index != nil || a.Array != nil || a.Value != nil && !simpleWord(a.Value)
		})
	}
	name := call.Args[0].Lit()
	return name == "true" || name == ":"
}

// simpleWord reports whether the expansion of a word runs no command and cannot fail.
func simpleWord(w syntax.Node) bool {
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

// succeeds reports whether a statement normally succeeds, so that the command after && counts as run.
func succeeds(st *syntax.Stmt) bool {
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

// tests reports whether a statement is only a test.
func tests(st *syntax.Stmt) bool {
	switch c := st.Cmd.(type) {
	case *syntax.TestClause:
		return true
	case *syntax.CallExpr:
		return len(c.Args) > 0 && (c.Args[0].Lit() == "[" || c.Args[0].Lit() == "test")
	}
	return false
}

// mayShow downgrades reads of files from effect mark on to possible; their content stays known.
func (s *state) mayShow(mark int) {
	for i := mark; i < len(s.effects); i++ {
		if s.effects[i].Kind == effect.ReadFile {
			s.effects[i].Sure = effect.May
		}
	}
}

// possibleOutput returns the output of a command that may not run.
func possibleOutput(out abstract.Value) abstract.Value {
	if out.Known() && out.Text == "" {
		return out
	}
	v := abstract.Unknown("…", out.Taint).Of(out.Origin | abstract.FromCommand)
	v.Secrets = out.Secrets
	return v
}

// oneOf returns the output of one of several commands: known only if all outputs are equal.
func oneOf(outs []abstract.Value) abstract.Value {
	if len(outs) == 0 {
		return abstract.Value{}
	}
	out := outs[0]
	for _, o := range outs[1:] {
		if o.Text != out.Text || o.IsPattern != out.IsPattern {
			return possibleOutput(abstract.Concat(outs...))
		}
		out.Taint |= o.Taint
	}
	return out
}

// rest returns the rest of an input that was partly read.
func rest(in abstract.Value) abstract.Value {
	if in.Known() && in.Text == "" {
		return in
	}
	return entry(in, abstract.Unknown("…", in.Taint).Of(abstract.FromInput))
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

func (s *state) ifClause(c *syntax.IfClause, in abstract.Value) abstract.Value {
	if len(c.Cond) == 0 { // the else branch
		return s.stmts(c.Then, in)
	}
	cond := s.stmts(c.Cond, in)
	if always(c.Cond) {
		return abstract.Concat(cond, s.stmts(c.Then, s.rest(in)))
	}
	var then, other abstract.Value
	effects := len(s.effects)
	walks := []func(){func() { then = s.stmts(c.Then, s.rest(in)) }}
	if c.Else != nil {
		walks = append(walks, func() { other = s.ifClause(c.Else, s.rest(in)) })
	}
	s.either(c.Else == nil, walks...)
	s.mayShow(effects)
	return abstract.Concat(cond, possibleOutput(abstract.Concat(then, other)))
}

func (s *state) caseClause(c *syntax.CaseClause, in abstract.Value) abstract.Value {
	s.word(c.Word)
	var b abstract.Builder
	var walks []func()
	none, through := true, false
	for _, item := range c.Items {
		s.may(func() {
			for _, p := range item.Patterns {
				s.word(p)
			}
		})
		none = none && !slices.ContainsFunc(item.Patterns, func(p *syntax.Word) bool { return p.Lit() == "*" })
		through = through || item.Op != syntax.Break
		walks = append(walks, func() { b.Add(s.stmts(item.Stmts, s.rest(in))) })
	}
	effects := len(s.effects)
	if through { // ;& continues with the next branch
		for _, walk := range walks {
			s.may(walk)
		}
	} else if len(walks) > 0 {
		s.either(none, walks...)
	}
	s.mayShow(effects)
	return possibleOutput(b.Value())
}

// turn walks a turn of a loop, which break and continue can leave.
func (s *state) turn(walk func()) {
	s.within(func() {
		end := s.begins(ofTurn)
		s.around = append(slices.Clip(s.around), end)
		walk()
		s.comesTo(end)
	})
}

func (s *state) while(c *syntax.WhileClause, in abstract.Value) abstract.Value {
	var b abstract.Builder
	first := len(s.effects)
	defer func() { s.mark(first, effect.LosesLater) }()
	s.loop(func() {
		s.turn(func() {
			b.Add(s.stmts(c.Cond, s.rest(in)))
			s.may(func() { b.Add(s.stmts(c.Do, s.rest(in))) })
		})
	})
	return possibleOutput(b.Value())
}

func (s *state) forClause(c *syntax.ForClause, in abstract.Value) (out abstract.Value) {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		var outs []abstract.Value
		s.each(&syntax.ForClause{Loop: loop}, func() { outs = append(outs, s.forWords(c, loop, in)) })
		return oneOf(outs)
	case *syntax.CStyleLoop:
		s.arithm(loop.Init)
		first := len(s.effects)
		defer func() { s.mark(first, effect.LosesLater) }()
		s.loop(func() {
			s.turn(func() {
				s.arithm(loop.Cond)
				out = s.stmts(c.Do, s.rest(in))
			})
			s.arithm(loop.Post)
		})
	}
	return possibleOutput(out)
}

// forWords walks "for" over a list of words: once for each word if they are known.
func (s *state) forWords(c *syntax.ForClause, loop *syntax.WordIter, in abstract.Value) abstract.Value {
	var items []abstract.Value
	if loop.InPos.IsValid() {
		for _, w := range loop.Items {
			items = append(items, s.fields(w)...)
		}
	} else {
		items = s.positional()
	}
	name := loop.Name.Value
	var b abstract.Builder
	turns := func() {
		for _, item := range items {
			mark := len(s.effects)
			s.turn(func() {
				s.assign(name, item)
				out := s.stmts(c.Do, s.rest(in))
				if s.ended.any() {
					out = possibleOutput(out)
				}
				b.Add(out)
			})
			if s.dropRepeated(mark); s.gaveUp {
				break
			}
		}
	}
	if !c.Select && !slices.ContainsFunc(items, func(v abstract.Value) bool { return !v.Known() }) {
		if len(items) == 0 {
			s.apart(func() {
				s.assign(name, abstract.Variable(name, 0))
				s.forShow(func() { s.stmts(c.Do, in) })
			})
			return abstract.Value{}
		}
		s.turn(turns)
		return b.Value()
	}
	if len(items) == 0 {
		items = []abstract.Value{abstract.Variable(name, 0)}
	}
	s.loop(turns)
	return possibleOutput(b.Value())
}

// defines binds the names of a function definition.
func (s *state) defines(c *syntax.FuncDecl) {
	names := c.Names
	if c.Name != nil {
		names = []*syntax.Lit{c.Name}
	}
	for _, n := range names {
		s.checkShadowing(n.Value, s.span(0, 0))
		if len(s.defined) == 256 {
			s.giveUp("too many functions")
			return
		}
		f := &function{name: n.Value, body: c.Body, fixed: s.fixed, base: s.base}
		s.defined = append(s.defined, f)
		s.define(n.Value, defined{may: []*function{f}})
	}
}

// finish walks the traps, and the functions that the text defines but does not call: text that is sourced later
// may call them.
func (s *state) finish() {
	defer s.installs()
	defer s.stopsNamed()
	s.runTraps()
	for i := 0; i < len(s.defined) && !s.gaveUp; i++ {
		switch f := s.defined[i]; {
		case calledByShell(f.name):
			s.apart(func() {
				s.forget() // it may have run at any time
				s.callFunction(f, []abstract.Value{uncomputed("$@")}, abstract.Value{}, abstract.Value{})
			})
		case !f.called:
			s.callFunction(f, nil, abstract.Value{}, abstract.Value{})
		}
	}
}

// calledByShell reports whether a shell calls functions of this name itself, as hooks with its own arguments.
func calledByShell(name string) bool {
	switch name {
	case "command_not_found_handle", "command_not_found_handler", "precmd", "preexec", "chpwd", "periodic", "zshaddhistory":
		return true
	}
	return strings.HasPrefix(name, "TRAP") && name != "TRAPEXIT"
}

// mayFail records an error at which some shells exit. It has no consequence in the main shell, where no command
// would follow; only in command substitutions and child shells.
func (s *state) mayFail() { s.ended.shell = s.ended.shell || s.captured > 0 || s.inner > 0 }

// mayFailLine records an error after which bash continues with the next line and other shells exit.
func (s *state) mayFailLine() {
	s.mayFail()
	s.mayLeave(s.row)
}

// forShow walks code that does not run, so that rules see its known effects; unknown effects are dropped.
func (s *state) forShow(walk func()) {
	mark := len(s.effects)
	walk()
	s.effects = append(s.effects[:min(mark, len(s.effects))], slices.DeleteFunc(s.effects[min(mark, len(s.effects)):], func(e effect.Effect) bool {
		return !s.gaveUp && (e.Sure == effect.Unknown || e.Word() == effect.RunInput)
	})...)
}
