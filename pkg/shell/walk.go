package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A state is one analysis. It belongs to one goroutine.
type state struct {
	text    string
	at      *effect.Place
	effects []effect.Effect
	scripts int  // shell scripts that were read and walked
	filled  bool // placeholders stand in the text that is walked
	unread  int  // texts that are run and of which nothing is known
	blind   int  // texts in the language of one program, such as SQL, that were not read
	words   strings.Builder

	vars    []binding
	funcs   []function
	aliases []alias
	files   []file
	writes  []effect.Text
	backups []string // paths of copies that were kept of edited files
	links   []link
	moves   []move
	remotes []command.GitRemote // names that the text gives to addresses of git
	loaded  []loaded
	fds     []descriptor
	input   abstract.Value  // standard input of the statement being walked, which its substitutions read
	stdin   *abstract.Value // what exec has put in place of standard input
	inFunc  int             // depth of function calls
	frames  []frame         // of the functions being walked

	round, rounds int  // see lookup
	shared        bool // the rounds are of a command around the substitution being walked
	choices       []choice
	constants     bool // some name is readonly
	ownFuncs      int  // functions before this one are of the shell that started this one
	left          left
	exit          exit            // of the command that was walked last
	consumed      bool            // something has read of the input that it shares with what follows
	remains       *abstract.Value // what it left of it, where that is known
	traps         []trap
	typed         int // bindings before the words of the command being walked were expanded
	typedWords    []*syntax.Word
	ahead         []*syntax.Assign // before the command whose words are expanded: what they assign is not in them yet
	lists         int              // depth of lists of statements in the text that is walked
	failures      int              // errors that end a line
	jobs          []*job
	reads         []string       // by the jobs being walked
	watched       int            // depth of these
	contested     []string       // files that may be written at any time by what runs beside
	waited        bool           // the statement that is walked next is waited for at once
	writing       []string       // what the commands around this one write to
	joinsErrors   bool           // a command around this one sends errors where output goes
	zsh           bool           // the text is read as zsh means it
	shellNamed    bool           // by a command that says which shell it is of
	lastpipe      bool           // the last part of a pipe may be of the shell itself
	differs       bool           // zsh, if no shell is named, reads some of it in another way
	posix         bool           // the text is of a shell that may be a small one
	strict        bool           // set -u: a parameter that is not set ends the shell
	wild          bool           // a trap may assign at any time
	anyWord       bool           // an alias of zsh stands for words that are no command
	fish          bool           // the shell at hand is fish
	subscripts    bool           // a variable has held what arithmetic may run
	extGlobs      bool           // ^, ~ and # may be of patterns, as in zsh
	autoloads     []string       // functions that zsh reads when they are called, from where nothing says yet
	produced      abstract.Value // by the statement that was walked last, wherever it sends that

	fixed    *effect.Span // where nested text came from, if the spans of its nodes mean nothing
	base     int          // where text being walked starts in s.text, if fixed is nil
	steps    int
	depth    int
	onDisk   int // depth of scripts and recipes that lie there
	remote   int // depth of commands that run on another machine
	machine  int // how many of these are machines, and no containers
	standing int // how many of these are containers that were there before
	gaveUp   bool
	quiet    int // effects are not wanted: the value alone is

	running  []string // recipes that are being walked, with their goals
	captured int      // depth of text whose output another part of the text takes
	inner    int      // depth of shells that the text starts, which may end before it does
	foreign  int      // depth of code of other languages, which may show what it takes
}

// A function is a function that the text defines, or one that it removes.
type function struct {
	name   string
	body   *syntax.Stmt
	called bool
	weak   bool // may not have been defined
	fixed  *effect.Span
	base   int

	deepest []deepest // the walks that stand for all others
}

// An alias is an alias that the text defines.
type alias struct {
	name, text string
	hashed     bool // it is no alias, but what the shell runs when it looks for a program of that name
}

// A descriptor is a file descriptor that exec opened.
type descriptor struct {
	n    string
	val  abstract.Value // what reading it yields
	in   bool           // val is what is left of it, to the letter
	out  *abstract.Target
	weak bool // may not have been opened
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
	s.lists++
	defer func() { s.lists-- }()
	if len(list) == 1 {
		return s.stmt(list[0], in)
	}
	var b abstract.Builder
	outer, stdin, consumed, remains := s.stdin, s.stdin, s.consumed, s.remains
	s.consumed, s.remains = false, nil
	for i, st := range list {
		if s.gaveUp {
			break
		}
		gone, was, before, mark := s.left.any(), s.remains, s.outcomes(), len(s.vars)
		s.waited = i+1 < len(list) && waits(list[i+1])
		out := s.stmt(st, in)
		if gone {
			out, s.exit = maybe(out), anyExit
			s.mayRead(was)
			s.uncertain(before)
		}
		if b.Add(out); i+1 < len(list) {
			s.strays(mark)
			if s.left.line > 0 && s.lists == 1 && list[i+1].Pos().Line() > st.End().Line() {
				s.endLine()
			}
		}
		if s.stdin != stdin {
			in, stdin = *s.stdin, s.stdin
			s.consumed, s.remains = false, nil
		}
		in = s.remaining(in)
	}
	if !s.consumed && s.stdin == outer {
		s.remains = remains
	}
	s.consumed = s.consumed || consumed
	return b.Value()
}

// stmt walks one statement.
func (s *state) stmt(st *syntax.Stmt, in abstract.Value) (out abstract.Value) {
	if st != nil && s.left.sure != stays {
		s.unreached(func() { s.stmt(st, in) })
		return abstract.Value{}
	}
	if st == nil || !s.step(1) || !s.enter(effect.Span{}) {
		return abstract.Value{}
	}
	outer, round, fds, consumed, remains := s.input, s.round, len(s.fds), s.consumed, s.remains
	if s.exit = anyExit; !s.shared {
		s.round = -1
	}
	defer func() {
		s.input, s.round = outer, round
		s.leave()
		switch {
		case st.Background:
			s.exit = success
			s.mayRead(remains)
		case st.Negated:
			s.exit = s.exit.negated()
		}
	}()
	s.input = in
	if len(st.Redirs) > 1 {
		s.otherInputs(st, in, false)
	}
	if coproc, ok := st.Cmd.(*syntax.CoprocClause); st.Background || ok && coproc != nil {
		defer s.beside(st, in)()
	}
	if st.Background {
		defer s.background(st)()
	}
	s.waited = false
	call, isCall := st.Cmd.(*syntax.CallExpr)
	if isCall && len(call.Args) > 0 {
		return s.call(call, st, in)
	}
	io := s.redirect(st.Redirs, in)
	opened := len(s.fds)
	s.input = io.In
	if st.Cmd == nil {
		return s.deliver(io, s.bareRedirect(io))
	}
	if io.Redirected {
		s.consumed, s.remains = false, nil
	}
	joins, written := s.joinsErrors, len(s.files)
	s.joinsErrors = joins || redirectsErrors(st.Redirs)
	writing := s.writing
	if io.Out != nil && io.Out.Path != "" {
		s.writing = append(writing[:len(writing):len(writing)], io.Out.Path)
	}
	mark, before, fed := len(s.vars), s.outcomes(), s.feeds(st.Redirs)
	out = s.asChanged(io, written, s.command(st.Cmd, io), func(io abstract.Streams) abstract.Value { return s.command(st.Cmd, io) })
	s.joinsErrors, s.writing = joins, writing
	if !fed {
		s.weakenVariables(mark)
		s.uncertain(before)
	}
	if !opens(st.Redirs) {
		s.exit = anyExit
		if c, ok := st.Cmd.(*syntax.DeclClause); ok && endsShell[c.Variant.Value] {
			s.mayFail()
		}
	}
	if io.Redirected {
		s.consumed, s.remains = consumed, remains
	}
	if coproc, ok := st.Cmd.(*syntax.CoprocClause); !ok || coproc == nil {
		s.fds = slices.Delete(s.fds, min(fds, len(s.fds)), min(opened, len(s.fds)))
	}
	overwritten := io.Out != nil && slices.ContainsFunc(s.files[min(written, len(s.files)):], func(f file) bool { return f.path == io.Out.Path })
	if io.Moved || overwritten {
		out = maybe(abstract.Concat(out, abstract.Unknown("…", 0)))
	}
	return s.deliver(io, out)
}

// bareRedirect is `< file` without a command: $(< file) reads it.
func (s *state) bareRedirect(io abstract.Streams) abstract.Value {
	for _, name := range [...]string{"NULLCMD", "READNULLCMD"} { // what zsh runs then
		if b, ok := s.attribute(name); ok && b.kind != unset && s.asZsh() {
			s.mayRun(func() { s.invoke([]abstract.Value{s.first(b, "$"+name)}, io) })
			io.In = maybe(io.In)
		}
	}
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
		s.exit = s.assigned(c.Assigns)
	case *syntax.BinaryCmd:
		return s.binary(c, io.In)
	case *syntax.Block:
		return s.stmts(c.Stmts, io.In)
	case *syntax.Subshell:
		return s.subshell(c.Stmts, io.In)
	case *syntax.IfClause:
		return s.ifClause(c, io.In)
	case *syntax.WhileClause, *syntax.ForClause:
		return s.loops(c, io.In)
	case *syntax.CaseClause:
		return s.caseClause(c, io.In)
	case *syntax.FuncDecl:
		if c.Name == nil && len(c.Names) == 0 { // zsh calls it at once
			return s.stmt(c.Body, io.In)
		}
		s.define(c)
		s.exit = success
	case *syntax.ArithmCmd:
		s.exit = notZero(s.arithmCommand(c.X))
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			s.exit = notZero(s.arithmCommand(x))
		}
	case *syntax.TestClause:
		s.test(c.X)
		s.exit = anyExit
		if simpleWord(c) {
			s.exit = s.tested(c.X)
		}
	case *syntax.DeclClause:
		return s.declare(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return s.stmt(c.Stmt, io.In)
		}
	case *syntax.CoprocClause:
		end := s.apart()
		out := s.stmt(c.Stmt, abstract.Unknown("what its descriptors bring", abstract.Foreign).Of(abstract.FromInput))
		end()
		name := "COPROC"
		if c.Name != nil {
			name = cmp.Or(s.word(c.Name).Text, name)
		}
		d := descriptor{n: coproc + itoa(len(s.fds)), val: out}
		if out.Taint&abstract.Network != 0 {
			d.out = &abstract.Target{Socket: true}
		}
		s.fds = append(s.fds, d)
		number := abstract.Value{Text: d.n, Show: "${" + name + "…}", IsPattern: true}
		if _, had := s.attribute(name); !had || c.Name != nil || !s.asZsh() { // as soon as it has ended
			s.bind(binding{name: name, kind: unset})
		}
		s.bind(binding{name: name, array: true, weak: true, elems: []element{{"0", number}, {"1", number}}})
		s.exit = anyExit
	case *syntax.TestDecl:
		return s.stmt(c.Body, io.In)
	}
	return abstract.Value{}
}

func (s *state) ifClause(c *syntax.IfClause, in abstract.Value) abstract.Value {
	var b branches
	for ; c != nil && !s.gaveUp; c = c.Else {
		if b.all {
			s.unreached(func() { s.stmts(c.Cond, in); s.stmts(c.Then, in) })
			continue
		}
		holds := success
		if len(c.Cond) > 0 {
			mark, before := len(s.vars), s.outcomes()
			out := s.stmts(c.Cond, in)
			if holds = s.decided(); b.n > 0 {
				out = maybe(out)
				s.weaken(mark)
				s.uncertain(before)
			}
			b.Add(out)
		}
		s.branch(&b, holds, c.Then, in)
	}
	return s.joined(&b)
}

func (s *state) caseClause(c *syntax.CaseClause, in abstract.Value) abstract.Value {
	v := s.word(c.Word)
	var b branches
	plain := !slices.ContainsFunc(c.Items, func(i *syntax.CaseItem) bool { return i.Op != syntax.Break && i.Op != syntax.Fallthrough })
	falls := false // into the next item, surely
	for _, item := range c.Items {
		if falls {
			b.Add(s.stmts(item.Stmts, in))
			b.exit, falls = s.exit, item.Op == syntax.Fallthrough
			continue
		}
		holds := s.caseHolds(v, item, plain)
		switch {
		case !plain:
			b.all = b.all || holds == success
			holds = anyExit
		case b.all:
			holds = failure
		}
		if item.Op == syntax.Fallthrough && holds != failure {
			falls = holds == success && b.n == 0
			plain = plain && falls
		}
		s.branch(&b, holds, item.Stmts, in)
	}
	return s.joined(&b)
}

// caseHolds returns whether an item of case is the one that runs, if none before it is.
func (s *state) caseHolds(v abstract.Value, item *syntax.CaseItem, plain bool) exit {
	mark, holds := len(s.vars), failure
	for _, p := range item.Patterns {
		s.word(p)
		switch m := anyExit; {
		case p.Lit() == "*":
			holds = success
		case holds != success:
			if plain && simpleWord(p) {
				m = s.matches(v, p)
			}
			holds = holds.either(m)
		}
	}
	s.weaken(mark)
	return holds
}

func (s *state) define(c *syntax.FuncDecl) {
	s.shadow(c.Name.Value, s.span(0, 0))
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

// finish walks the traps, and the functions that were defined but not called, since text that
// is sourced later may call them.
func (s *state) finish() {
	defer s.installs()
	s.runTraps(0)
	for i := 0; i < len(s.funcs) && !s.gaveUp; i++ {
		switch f := &s.funcs[i]; {
		case f.body == nil:
		case calledByShell(f.name):
			mark := len(s.vars)
			s.forget() // it may have run at any time
			s.callFunction(i, []abstract.Value{vague("$@")}, abstract.Value{}, abstract.Value{})
			s.vars = s.vars[:min(mark, len(s.vars))]
		case !f.called:
			s.callFunction(i, nil, abstract.Value{}, abstract.Value{})
		}
	}
}

// calledByShell reports whether a shell calls a function of a name by itself, with words of
// its own.
func calledByShell(name string) bool {
	switch name {
	case "command_not_found_handle", "command_not_found_handler", "precmd", "preexec", "chpwd", "periodic", "zshaddhistory":
		return true
	}
	return strings.HasPrefix(name, "TRAP") && name != "TRAPEXIT"
}
