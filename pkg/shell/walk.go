package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A state is one analysis. It belongs to one goroutine.
type state struct {
	text    string
	at      *effect.Place
	effects []effect.Effect
	scripts int // shell scripts that were read and walked
	words   strings.Builder

	vars    []binding
	funcs   []function
	aliases []alias
	files   []file
	links   []link
	loaded  []loaded
	fds     []descriptor
	input   abstract.Value   // standard input of the statement being walked, which its substitutions read
	stdin   *abstract.Value  // what exec has put in place of standard input
	args    []abstract.Value // positional parameters from $1; nil at top level
	inFunc  int              // depth of function calls

	round, rounds int // see lookup

	fixed  *effect.Span // where nested text came from, if the spans of its nodes mean nothing
	base   int          // where text being walked starts in s.text, if fixed is nil
	steps  int
	depth  int
	remote int // depth of commands that run on another machine
	gaveUp bool
	quiet  int // effects are not wanted: the value alone is
}

// A function is a function that the text defines.
type function struct {
	name   string
	body   *syntax.Stmt
	called bool
	fixed  *effect.Span
	base   int
}

// An alias is an alias that the text defines.
type alias struct {
	name, text string
}

// A descriptor is a file descriptor that exec opened.
type descriptor struct {
	n   string
	val abstract.Value // what reading it yields
	out *abstract.Target
}

// nested walks text that some part of the command would run as shell text.
func (s *state) nested(text string, at effect.Span) abstract.Value {
	if !s.enter(at) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	fixed, base := s.fixed, s.base
	s.fixed = &at
	out := s.source(text)
	s.fixed, s.base = fixed, base
	return out
}

// enter counts a level of commands inside commands.
func (s *state) enter(at effect.Span) bool {
	if s.depth >= maxDepth {
		s.giveUp("commands are nested too deeply")
		return false
	}
	s.depth++
	return true
}

func (s *state) leave() { s.depth-- }

// step spends the budget that bounds the time of an analysis.
func (s *state) step(n int) bool {
	s.steps += n
	if s.steps > maxSteps {
		s.giveUp("the command is too complex")
		return false
	}
	return true
}

// giveUp ends the analysis: the rest of the text counts as Dynamic.
func (s *state) giveUp(why string) {
	if !s.gaveUp {
		s.gaveUp = true
		s.effects = append(s.effects, effect.Effect{Kind: effect.Dynamic, Cause: effect.CauseLimit, Reason: why, From: effect.Span{End: len(s.text)}})
	}
	s.steps = maxSteps + 1
}

// span returns the part of the whole text that offsets of the walked text mean.
func (s *state) span(start, end int) effect.Span {
	if s.fixed != nil {
		return *s.fixed
	}
	start, end = min(max(0, start+s.base), len(s.text)), min(max(0, end+s.base), len(s.text))
	return effect.Span{Start: start, End: max(start, end)}
}

func (s *state) spanOf(n syntax.Node) effect.Span {
	if s.fixed != nil {
		return *s.fixed
	}
	return s.span(int(n.Pos().Offset()), int(n.End().Offset()))
}

// stmts walks statements and returns what they write together.
func (s *state) stmts(list []*syntax.Stmt, in abstract.Value) abstract.Value {
	if len(list) == 1 {
		return s.stmt(list[0], in)
	}
	var b abstract.Builder
	stdin := s.stdin
	for _, st := range list {
		if s.gaveUp {
			break
		}
		b.Add(s.stmt(st, in))
		if s.stdin != stdin {
			in = *s.stdin
		}
	}
	return b.Value()
}

// stmt walks one statement.
func (s *state) stmt(st *syntax.Stmt, in abstract.Value) abstract.Value {
	if st == nil || !s.step(1) || !s.enter(effect.Span{}) {
		return abstract.Value{}
	}
	outer := s.input
	defer func() { s.input = outer; s.leave() }()
	s.input = in
	if call, ok := st.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
		return s.call(call, st, in)
	}
	io := s.redirect(st.Redirs, in)
	s.input = io.In
	if st.Cmd == nil {
		return s.deliver(io, s.bareRedirect(io))
	}
	mark := len(s.vars)
	out := s.command(st.Cmd, io)
	if st.Background {
		s.vars = s.vars[:min(mark, len(s.vars))]
	}
	return s.deliver(io, out)
}

// bareRedirect is `< file` without a command: $(< file) reads it.
func (s *state) bareRedirect(io abstract.Streams) abstract.Value {
	if io.Redirected {
		return io.In
	}
	return abstract.Value{}
}

func (s *state) command(c syntax.Command, io abstract.Streams) abstract.Value {
	switch c := c.(type) {
	case *syntax.CallExpr:
		for _, a := range c.Assigns {
			s.assignment(a, true)
		}
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
		if c.Name == nil && len(c.Names) == 0 { // zsh calls it at once
			return s.stmt(c.Body, io.In)
		}
		s.define(c)
	case *syntax.ArithmCmd:
		s.arithm(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			s.arithm(x)
		}
	case *syntax.TestClause:
		s.test(c.X)
	case *syntax.DeclClause:
		return s.declare(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return s.stmt(c.Stmt, io.In)
		}
	case *syntax.CoprocClause:
		out := s.stmt(c.Stmt, io.In)
		name := "COPROC"
		if c.Name != nil {
			name = s.word(c.Name).Text
		}
		s.fds = append(s.fds, descriptor{n: "coproc", val: out})
		s.bind(binding{name: name, array: true, elems: []element{{"0", abstract.Lit("coproc")}, {"1", abstract.Lit("coproc")}}})
	case *syntax.TestDecl:
		return s.stmt(c.Body, io.In)
	}
	return abstract.Value{}
}

// binary walks a && b, a || b and a | b. The tree leans to the left and may be
// as deep as the text is long, so it is unrolled.
func (s *state) binary(c *syntax.BinaryCmd, in abstract.Value) abstract.Value {
	var chain []*syntax.BinaryCmd
	first := (*syntax.Stmt)(nil)
	for {
		chain = append(chain, c)
		first = c.X
		next, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(c.X.Redirs) > 0 {
			break
		}
		c = next
	}
	lead := chain[len(chain)-1].Op
	out := s.side(first, in, lead == syntax.Pipe || lead == syntax.PipeAll)
	for i := len(chain) - 1; i >= 0; i-- {
		c := chain[i]
		if s.gaveUp {
			break
		}
		mark := len(s.vars)
		switch c.Op {
		case syntax.Pipe, syntax.PipeAll:
			out = s.side(c.Y, out, true)
		default:
			// The right side of && is taken as run, so that `cd x && make`
			// works in x, but what it assigns may not have happened.
			y := s.side(c.Y, in, false)
			s.weakenVariables(mark)
			out = abstract.Concat(out, y)
		}
	}
	return out
}

// side walks one side of a pipe or list. What a pipe's side assigns may or may
// not last, as shells differ.
func (s *state) side(st *syntax.Stmt, in abstract.Value, piped bool) abstract.Value {
	mark := len(s.vars)
	out := s.stmt(st, in)
	if piped {
		s.dropWorkdir(mark)
		s.weaken(mark)
	}
	return out
}

// weakenVariables is weaken for all but the working folder: people write
// `test -d x && cd x` and `a && cd b; c` means c to run in b.
func (s *state) weakenVariables(mark int) {
	for i := mark; i < len(s.vars); i++ {
		if s.vars[i].kind != workdir {
			s.vars[i].weak = true
		}
	}
}

func (s *state) dropWorkdir(mark int) {
	kept := s.vars[:min(mark, len(s.vars))]
	for _, b := range s.vars[len(kept):] {
		if b.kind != workdir {
			kept = append(kept, b)
		}
	}
	s.vars = kept
}

// subshell walks statements whose assignments end with them. Functions stay,
// so that those never called are still looked at.
func (s *state) subshell(list []*syntax.Stmt, in abstract.Value) abstract.Value {
	mark, als, fds, stdin := len(s.vars), len(s.aliases), len(s.fds), s.stdin
	out := s.stmts(list, in)
	s.stdin = stdin
	s.vars = s.vars[:min(mark, len(s.vars))]
	s.aliases, s.fds = s.aliases[:min(als, len(s.aliases))], s.fds[:min(fds, len(s.fds))]
	return out
}

func (s *state) ifClause(c *syntax.IfClause, in abstract.Value) abstract.Value {
	var b abstract.Builder
	for ; c != nil && !s.gaveUp; c = c.Else {
		if len(c.Cond) > 0 {
			b.Add(s.stmts(c.Cond, in))
		}
		mark := len(s.vars)
		b.Add(s.stmts(c.Then, in))
		s.weaken(mark)
	}
	return b.Value()
}

func (s *state) caseClause(c *syntax.CaseClause, in abstract.Value) abstract.Value {
	s.word(c.Word)
	var b abstract.Builder
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			s.word(p)
		}
		mark := len(s.vars)
		b.Add(s.stmts(item.Stmts, in))
		s.weaken(mark)
	}
	return b.Value()
}

// while walks a loop twice if it assigns: the second time with the assigned
// variables unknown, since they may hold what an earlier turn left in them.
func (s *state) while(c *syntax.WhileClause, in abstract.Value) abstract.Value {
	mark := len(s.vars)
	var b abstract.Builder
	s.stmts(c.Cond, in)
	b.Add(s.stmts(c.Do, in))
	changed := len(s.vars)
	if changed > mark && !s.gaveUp {
		for _, old := range s.vars[mark:changed] {
			if old.kind == scalar && !old.array {
				s.bind(binding{name: old.name, val: vague("$"+old.name, old.val), weak: true})
			}
		}
		before := len(s.effects)
		s.stmts(c.Cond, in)
		b.Add(s.stmts(c.Do, in))
		s.dropRepeated(before)
	}
	s.weaken(mark)
	return b.Value()
}

func (s *state) forClause(c *syntax.ForClause, in abstract.Value) abstract.Value {
	var b abstract.Builder
	mark := len(s.vars)
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		var items []abstract.Value
		if loop.InPos.IsValid() {
			for _, w := range loop.Items {
				items = append(items, s.fields(w)...)
			}
		} else {
			items = s.positional()
		}
		if len(items) == 0 {
			items = []abstract.Value{abstract.Variable(loop.Name.Value, 0)}
		}
		for _, item := range items {
			if s.gaveUp {
				break
			}
			before := len(s.effects)
			s.assign(loop.Name.Value, item)
			b.Add(s.stmts(c.Do, in))
			if before > 0 {
				s.dropRepeated(before)
			}
		}
	case *syntax.CStyleLoop:
		s.arithm(loop.Init)
		names := arithmNames(loop.Post, nil)
		for _, n := range names {
			s.bind(binding{name: n, val: abstract.Short("$"+n, abstract.FromVariable)})
		}
		b.Add(s.stmts(c.Do, in))
		if len(s.vars) > mark && !s.gaveUp {
			for _, old := range s.vars[mark:len(s.vars):len(s.vars)] {
				if old.kind == scalar && !old.array {
					s.bind(binding{name: old.name, val: vague("$"+old.name, old.val), weak: true})
				}
			}
			before := len(s.effects)
			b.Add(s.stmts(c.Do, in))
			s.dropRepeated(before)
		}
	}
	s.weaken(mark)
	return b.Value()
}

func (s *state) define(c *syntax.FuncDecl) {
	names := c.Names
	if c.Name != nil {
		names = []*syntax.Lit{c.Name}
	}
	for _, n := range names {
		if len(s.funcs) < 256 {
			s.funcs = append(s.funcs, function{name: n.Value, body: c.Body, fixed: s.fixed, base: s.base})
		} else {
			s.giveUp("too many functions")
		}
	}
}

// finish walks the functions that were defined but not called, since text that
// is sourced later may call them.
func (s *state) finish() {
	for i := 0; i < len(s.funcs) && !s.gaveUp; i++ {
		if !s.funcs[i].called && s.funcs[i].body != nil {
			s.callFunction(i, nil, abstract.Value{}, abstract.Value{})
		}
	}
}

// callFunction walks a function's body.
func (s *state) callFunction(i int, args []abstract.Value, in abstract.Value, self abstract.Value) abstract.Value {
	f := &s.funcs[i]
	f.called = true
	if s.inFunc >= 8 {
		return abstract.Unknown("…", abstract.Foreign)
	}
	at := self.From
	if !s.enter(at) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	fixed, base, old := s.fixed, s.base, s.args
	s.fixed, s.base, s.args = f.fixed, f.base, args
	if args == nil {
		s.args = []abstract.Value{}
	}
	s.inFunc++
	out := s.stmt(f.body, in)
	s.inFunc--
	s.fixed, s.base, s.args = fixed, base, old
	return out
}
