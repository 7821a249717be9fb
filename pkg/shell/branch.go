package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// maybe returns what a command writes that may not run.
func maybe(out abstract.Value) abstract.Value {
	if out.Known() && out.Text == "" {
		return out
	}
	v := abstract.Unknown("…", out.Taint).Of(out.Origin | abstract.FromCommand)
	v.Secrets = out.Secrets
	return v
}

// rest returns what is left of an input of which something has been read.
func rest(in abstract.Value) abstract.Value {
	if in.Known() && in.Text == "" {
		return in
	}
	return entry(in, abstract.Unknown("…", in.Taint).Of(abstract.FromInput))
}

// remaining returns what is left of an input for what follows.
func (s *state) remaining(in abstract.Value) abstract.Value {
	switch {
	case !s.consumed:
		return in
	case s.remains != nil:
		return *s.remains
	}
	return rest(in)
}

// mayRead notes that what has read of the input since remains was left of it may not run.
func (s *state) mayRead(remains *abstract.Value) {
	if s.remains != remains {
		s.remains = nil
	}
	for i := range s.fds {
		if s.fds[i].in {
			s.fds[i].in, s.fds[i].val = false, rest(s.fds[i].val)
		}
	}
}

// advance notes what a command that surely ran has left of a descriptor that it read.
func (s *state) advance(list []*syntax.Redirect) {
	if s.remains == nil || s.rounds > 1 {
		return
	}
	for _, r := range list {
		if r.Op != syntax.DplIn || r.N != nil && r.N.Value != "0" {
			continue
		}
		n := r.Word.Lit()
		for i := range s.fds {
			if s.fds[i].n == n && n != "" {
				s.fds[i].in, s.fds[i].val = true, *s.remains
			}
		}
	}
}

// redirectsErrors reports whether a redirection is of standard error.
func redirectsErrors(list []*syntax.Redirect) bool {
	return slices.ContainsFunc(list, func(r *syntax.Redirect) bool {
		return r.N != nil && r.N.Value == "2" || r.Op == syntax.RdrAll || r.Op == syntax.AppAll
	})
}

// redirectsOutput reports whether a redirection is of standard output.
func redirectsOutput(list []*syntax.Redirect) bool {
	return slices.ContainsFunc(list, func(r *syntax.Redirect) bool {
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return false
		}
		return r.N == nil || r.N.Value == "1"
	})
}

// succeeds reports whether a statement is of those that do what they are told,
// so that what follows && is taken as run.
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

// right walks the right side of && and ||. Where the left side does not decide, that of
// && is taken as run, so that `cd x && make` works in x, but what it assigns may
// as well not have happened.
func (s *state) right(c *syntax.BinaryCmd, in abstract.Value, into, first bool) abstract.Value {
	if s.left.sure != stays {
		s.unreached(func() { s.side(c.Y, in, false, into) })
		return abstract.Value{}
	}
	runs := success
	if c.Op == syntax.OrStmt {
		runs = failure
	}
	switch s.decided() {
	case runs:
		return s.side(c.Y, in, false, into)
	case runs.negated():
		s.unreached(func() { s.side(c.Y, in, false, into) })
		return abstract.Value{}
	}
	mark, before, remains, effects := len(s.vars), s.outcomes(), s.remains, len(s.effects)
	y := s.side(c.Y, in, false, into)
	if tests(c.X) {
		s.mayShow(effects)
	}
	s.weakenVariables(mark)
	s.uncertain(before)
	s.mayRead(remains)
	s.exit = s.exit.or(runs.negated())
	if !first || c.Op != syntax.AndStmt || !succeeds(c.X) {
		y = maybe(y)
	}
	return y
}

// tests reports whether a statement does nothing but to test something.
func tests(st *syntax.Stmt) bool {
	switch c := st.Cmd.(type) {
	case *syntax.TestClause:
		return true
	case *syntax.CallExpr:
		return len(c.Args) > 0 && (c.Args[0].Lit() == "[" || c.Args[0].Lit() == "test")
	}
	return false
}

// mayShow says of files that are read from mark on that they may be: what is known of them once
// they are read stays.
func (s *state) mayShow(mark int) {
	for i := mark; i < len(s.effects); i++ {
		if s.effects[i].Kind == effect.ReadFile {
			s.effects[i].Possible = true
		}
	}
}

// A left says where the walk is behind a command that may have ended what is
// around it: what follows it may not have run.
type left struct {
	loop  int // 1 + number of bindings where the turn of a loop may have ended, or 0
	call  int // the same for a function
	shell bool
	line  int  // the same as loop for a line, of which bash leaves out the rest
	only  bool // shell is set for the line alone
	sure  leaving
	loops int // depth of loops, in which break ends something
}

// A leaving is what the walk has surely left: what follows in it does not run.
type leaving uint8

const (
	stays leaving = iota
	continues
	breaks
	returns
	exits
)

func (l left) any() bool { return l.loop > 0 || l.call > 0 || l.shell }

// mayFail notes that some shells end here with an error. Of the text's own shell nothing
// follows then; what takes the output or the status of a part of it goes on.
func (s *state) mayFail() { s.left.shell = s.left.shell || s.captured > 0 || s.inner > 0 }

// failsLine notes an error after which bash goes on with the next line of the text, be it in a
// function, and other shells end.
func (s *state) failsLine() {
	s.left.only = s.left.only || !s.left.shell
	s.left.shell = true
	s.leaving(&s.left.call)
	s.leaving(&s.left.line)
	s.failures++
}

// endLine ends a line of the text.
func (s *state) endLine() {
	if s.left.line == 0 {
		return
	}
	s.weaken(s.left.line - 1)
	if s.left.only && s.captured == 0 && s.inner == 0 {
		s.left.shell = false
	}
	s.left.line, s.left.only = 0, false
}

// leaving notes that break, continue, return or exit may run here.
func (s *state) leaving(at *int) {
	if *at == 0 {
		*at = 1 + len(s.vars)
	}
}

// unsure notes that what was surely left may not have been.
func (s *state) unsure() {
	switch s.left.sure {
	case continues, breaks:
		s.leaving(&s.left.loop)
	case returns:
		s.leaving(&s.left.call)
	case exits:
		s.left.shell = true
	}
	s.left.sure = stays
}

// ends notes that break, continue, return or exit runs here. That is sure to leave something only
// where all shells have that, and agree on the arguments.
func (s *state) ends(argv []abstract.Value) {
	inside, plain := s.left.loops > 0, len(argv) == 1
	switch argv[0].Text {
	case "continue":
		s.left.sure = continues
	case "break":
		s.left.sure = breaks
	case "return":
		s.left.sure = returns
		inside, plain = len(s.frames) > 0, plain || status(argv) != anyExit
	case "exit": // a shell that people type into may stay
		s.left.sure = exits
		inside, plain = s.inner > 0, plain || status(argv) != anyExit
	}
	if !inside && s.left.sure <= breaks && len(s.frames) > 0 { // some shells leave a loop around the call
		s.leaving(&s.left.call)
	}
	if !inside || !plain {
		s.unsure()
	}
}

// endTurn ends a turn of a loop.
func (s *state) endTurn(before left) {
	if s.left.sure <= breaks {
		s.left.sure = stays
	}
	if before.loop == 0 && s.left.loop > 0 {
		s.weaken(s.left.loop - 1)
	}
	s.left.loop = before.loop
}

// endCall ends a function.
func (s *state) endCall(before left) {
	if s.left.sure <= returns {
		s.left.sure = stays
	}
	if before.call == 0 && s.left.call > 0 {
		s.weaken(s.left.call - 1)
	}
	s.left.call, s.left.loop = before.call, before.loop
}

// An outcomes is how much of what conditions decide there was.
type outcomes struct{ funcs, files, fds int }

func (s *state) outcomes() outcomes {
	return outcomes{funcs: len(s.funcs), files: len(s.files), fds: len(s.fds)}
}

// uncertain marks the functions, files and descriptors since then as such that may not be there.
func (s *state) uncertain(since outcomes) {
	s.unsure()
	for i := min(since.fds, len(s.fds)); i < len(s.fds); i++ {
		s.mayOpen(i)
	}
	for i := min(since.funcs, len(s.funcs)); i < len(s.funcs); i++ {
		s.funcs[i].weak = true
	}
	for i := min(since.files, len(s.files)); i < len(s.files); i++ {
		s.files[i].weak = true
	}
}

// branches are parts of the text of which at most one runs.
type branches struct {
	abstract.Builder
	all   bool // one of them runs
	exit  exit
	n     int
	marks map[string]int // names that every branch binds, with the newest binding of the first
}

// branch walks one of several branches. holds says whether it runs, if none before it did.
func (s *state) branch(b *branches, holds exit, list []*syntax.Stmt, in abstract.Value) {
	if holds == failure || s.left.sure != stays {
		s.unreached(func() { s.stmts(list, in) })
		return
	}
	b.all = b.all || holds == success
	s.exit = success // of no statement
	if holds == success && b.n == 0 {
		b.Add(s.stmts(list, in))
		b.exit = s.exit
		return
	}
	mark, before, remains, effects := len(s.vars), s.outcomes(), s.remains, len(s.effects)
	b.Add(maybe(s.stmts(list, in)))
	s.mayShow(effects)
	s.mayRead(remains)
	names := s.settled(mark)
	if b.n++; b.n == 1 {
		b.marks, b.exit = names, s.exit
	}
	b.exit = b.exit.or(s.exit)
	for name := range b.marks {
		if _, ok := names[name]; !ok {
			delete(b.marks, name)
		}
	}
	s.weaken(mark)
	s.uncertain(before)
}

// joined ends branches: what all of them bind is bound.
func (s *state) joined(b *branches) abstract.Value {
	switch {
	case b.all:
		s.exit = b.exit
	case b.n == 0:
		s.exit = success
	default:
		s.exit = b.exit.or(success)
	}
	if b.all {
		for _, i := range b.marks {
			if i < len(s.vars) {
				s.vars[i].weak = false
			}
		}
	}
	return b.Value()
}

// background is apart for a statement that runs beside what follows it. In zsh, the parts of
// && and || before the last are of the shell itself, but for simple commands.
func (s *state) background(st *syntax.Stmt) (end func()) {
	mark, way, apart := len(s.vars), s.left, s.apart()
	list, ok := st.Cmd.(*syntax.BinaryCmd)
	if !ok || isPipe(list.Op) {
		return apart
	}
	return func() {
		if len(s.vars) > mark && s.asZsh() {
			s.weaken(mark)
			s.left = way
			return
		}
		apart()
	}
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
