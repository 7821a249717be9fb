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

// call walks a simple command, once for each combination of values that its variables may have.
func (s *state) call(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) abstract.Value {
	var outs []abstract.Value
	s.each(st, func() { outs = append(outs, s.callOnce(c, st, in)) })
	return oneOf(outs)
}

// argv returns the words of a command after expansion.
func (s *state) argv(c *syntax.CallExpr) []abstract.Value {
	argv := make([]abstract.Value, 0, len(c.Args)+1)
	for _, w := range c.Args {
		if text, ok := plainWord(w); ok && s.step(1) {
			argv = append(argv, abstract.Value{Text: text, From: s.spanOf(w)})
			continue
		}
		argv = append(argv, s.fields(w)...)
		if len(argv) > maxSteps {
			s.giveUp("the command has too many words")
			break
		}
	}
	return s.zshWords(c.Args, argv)
}

func (s *state) callOnce(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) (out abstract.Value) {
	s.within(func() { out = s.callHere(c, st, in) })
	return out
}

func (s *state) callHere(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) (out abstract.Value) {
	s.input = in
	before, opened := s.fds, len(s.files)
	if len(c.Assigns) > 0 {
		s.ahead = c.Assigns
	}
	argv := s.argv(c)
	s.ahead, s.typed = nil, c.Args
	fails := s.ended.shell
	expanded := s.Fork()
	io := s.redirect(st.Redirs, in)
	fds := s.fds
	s.joinVars(&expanded) // some shells expand here-documents in a subshell
	if len(argv) == 0 {
		for _, a := range c.Assigns {
			s.assignment(a)
		}
		if !s.inputsExist(st.Redirs) { // an input file may be missing: the command may not have run
			s.orElse(expanded, opened)
		}
		if len(c.Args) == 0 && len(st.Redirs) > 0 && len(c.Assigns) == 0 {
			return s.deliver(io, s.bareRedirect(io))
		}
		s.close(before, fds)
		return s.deliver(io, abstract.Value{})
	}
	prefix := s.prefixes(c)
	s.input = io.In
	if io.Redirected {
		s.source = &source{val: io.In}
	}
	from, effects, written := s.Fork(), len(s.effects), len(s.files)
	fed := s.inputsExist(st.Redirs)
	out = s.asChanged(io, written, s.invoke(argv, io), func(io abstract.Streams) abstract.Value { return s.invoke(argv, io) })
	if io.Out != nil && io.Out.Append && slices.ContainsFunc(s.effects[min(effects, len(s.effects)):], func(e effect.Effect) bool {
		return e.Kind == effect.ReadFile && e.Path == io.Out.Path
	}) {
		out = possibleOutput(out) // the program may refuse to read its own output file
	}
	if exec := argv[0].Text == "exec"; !exec && (!fed || s.ended.shell && !fails) { // the command may not have run
		s.orElse(from, written)
	}
	s.endPrefixes(prefix, argv[0])
	if argv[0].Text != "exec" && (len(argv) < 2 || argv[1].Text != "exec") {
		s.close(before, fds)
	}
	if len(s.files) > opened {
		s.feed(opened, abstract.Concat(io.In, out))
	}
	if s.ended.shell && !fails {
		out = possibleOutput(out)
	}
	out = s.deliver(io, out)
	s.show(out, argv[0].String(), join(argv))
	return out
}

// An assignmentPrefix is a variable that is assigned before a command.
type assignmentPrefix struct {
	name string
	was  variable
}

// prefixes binds the variables assigned before a command (NAME=VALUE CMD); the command sees them as exported.
func (s *state) prefixes(c *syntax.CallExpr) (out []assignmentPrefix) {
	for _, a := range c.Assigns {
		if a.Name == nil {
			continue
		}
		out = append(out, assignmentPrefix{a.Name.Value, s.vars.get(a.Name.Value)})
		s.assignment(a)
		if v, ok := s.vars.names[a.Name.Value]; ok {
			v.exported = true
			s.Shell.bind(a.Name.Value, v)
			s.checkExported(a.Name.Value, s.spanOf(a))
		}
	}
	return out
}

// ordinary lists builtins for which an assignment before the command (NAME=VALUE CMD) ends with the command.
var ordinary = map[string]bool{
	"echo": true, "printf": true, "print": true, "test": true, "[": true, "cd": true, "pwd": true, "read": true, "mapfile": true,
	"readarray": true, "let": true, "type": true, "umask": true, "true": true, "false": true, "getopts": true, "jobs": true,
}

// endPrefixes restores the variables that were assigned before a command. If the command is a function, an alias or
// a builtin that is not in ordinary, the assignments persist in some shells, and so do its own assignments to these
// names.
func (s *state) endPrefixes(list []assignmentPrefix, command abstract.Value) {
	_, own := builtin(command.Text)
	_, function := s.funcs[command.Text]
	aliased := slices.ContainsFunc(s.aliases, func(a alias) bool { return a.name == command.Text })
	lasts := function || aliased || own && !ordinary[command.Text]
	for _, p := range slices.Backward(list) {
		if lasts {
			p.was = p.was.or(s.vars.get(p.name))
		}
		p.was.exported = p.was.exported && !lasts
		s.Shell.bind(p.name, p.was)
	}
}

// invoke runs a command given as its argument vector.
func (s *state) invoke(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return s.run(argv, io, s.runNamed)
}

// run runs a command given as its argument vector; named runs the resolved command name.
func (s *state) run(argv []abstract.Value, io abstract.Streams, named func(string, []abstract.Value, abstract.Streams) abstract.Value) abstract.Value {
	if len(argv) == 0 || !s.step(1+len(argv)/8) || !s.enter(argv[0].From) {
		return abstract.Value{}
	}
	defer s.leave()
	if !argv[0].Known() {
		return s.unknownProgram(argv, io)
	}
	name := argv[0].Text
	if name == "" || name == "--" { // time -- CMD
		if len(argv) > 1 {
			return s.run(argv[1:], io, named)
		}
		return abstract.Value{}
	}
	return named(name, argv, io)
}

// runNamed runs what a command name resolves to: an alias, which a shell may or may not expand, a function, which
// may not be defined, a builtin, or a program.
func (s *state) runNamed(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	var outs []abstract.Value
	var walks []func()
	if slices.ContainsFunc(s.aliases, func(a alias) bool { return a.name == name }) {
		walks = append(walks, func() { outs = append(outs, s.aliased(argv)) })
	}
	d, ok := s.funcs[name]
	if len(d.may) > maxAlternatives {
		s.giveUp("too many functions of one name")
		return abstract.Value{}
	}
	for _, f := range d.may {
		walks = append(walks, func() {
			s.recursion(f, argv[0].From)
			outs = append(outs, s.callFunction(f, argv[1:], io.In, argv[0]))
		})
	}
	if !ok || d.none {
		walks = append(walks, func() { outs = append(outs, s.ownOrProgram(name, argv, io)) })
	}
	if len(walks) == 1 {
		walks[0]()
		return outs[0]
	}
	s.either(false, walks...)
	return possibleOutput(abstract.Concat(outs...))
}

func (s *state) ownOrProgram(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	if b, ok := builtin(name); ok {
		s.execute(argv, name, effect.ReadOnly)
		if name != "echo" && name != "print" && name != "eval" && name != "trap" && name != "alias" {
			for _, v := range argv[1:] {
				s.subscriptIn(v, false)
			}
		}
		return b(s, argv, io)
	}
	if io.In.Text != "" && s.source != nil {
		s.source.read = true
	}
	if number, _, ok := strings.Cut(name, "="); ok && number != "" && strings.Trim(number, "0123456789") == "" && s.asZsh() {
		s.setAnyPositional(argv...) // zsh: N=VALUE assigns a positional parameter
	}
	if plain, ok := strings.CutPrefix(name, "zf_"); ok { // zsh's module zsh/files: zf_rm is rm
		argv = slices.Clone(argv)
		argv[0].Text = plain
	}
	return s.program(argv, io)
}

// aliased handles a command whose name is an alias that is not expanded: the command is unknown.
func (s *state) aliased(argv []abstract.Value) abstract.Value {
	s.dynamic(effect.CauseUnresolved, "an alias replaces this command: "+abstract.Clip(argv[0].Text), argv[0].From)
	s.forget()
	return abstract.Unknown("$("+abstract.Clip(argv[0].Text)+")", abstract.Foreign).Of(abstract.FromCommand)
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

// nestedWith is nested with standard input. It does not use the output of io.
func (s *state) nestedWith(text string, at effect.Span, io abstract.Streams) abstract.Value {
	if why := parse.TooDeep(text); why != "" {
		s.dynamic(effect.CauseLimit, why, at)
		return abstract.Unknown("…", abstract.Foreign)
	}
	f, err := parse.Shell(text)
	if err != nil {
		s.dynamic(effect.CauseSyntax, "the shell text cannot be parsed: "+parse.Error(err), at)
		return abstract.Unknown("…", abstract.Foreign)
	}
	if !s.enter(at) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	var out abstract.Value
	s.within(func() {
		s.fixed = &at
		in := io.In
		if io.Socket {
			in.Taint |= abstract.Socket
		}
		out = s.stmts(f.Stmts, in)
	})
	s.leave()
	return out
}

// execute records that a program runs and adds a line to the list of commands.
func (s *state) execute(argv []abstract.Value, program string, class effect.Class, harms ...effect.Harm) {
	if s.quiet > 0 {
		return
	}
	e := effect.Effect{Kind: effect.Execute, Program: program, Class: class, Harms: harms, From: join(argv)}
	if len(argv) > 1 {
		e.Args = make([]string, len(argv)-1)
		for i, v := range argv[1:] {
			e.Args[i] = v.String()
		}
	}
	s.emit(e)
	if s.words.Len() > parse.MaxText {
		return
	}
	s.words.WriteString(program)
	for _, a := range e.Args {
		s.words.WriteByte(' ')
		s.words.WriteString(a)
	}
	s.words.WriteByte('\n')
}

// join returns the span from the first word of a command to its last.
//
//go:noinline
func join(argv []abstract.Value) effect.Span {
	at := argv[0].From
	for _, v := range argv[1:] {
		at.End = max(at.End, v.From.End)
	}
	return at
}

// unknownProgram handles a command whose name could not be resolved.
func (s *state) unknownProgram(argv []abstract.Value, io abstract.Streams) abstract.Value {
	v := argv[0]
	if base, ok := s.namedProgram(argv); ok && !io.Socket {
		return s.programIn(base, argv, io)
	}
	if s.remote > 0 && !io.Socket && v.Plain() && v.Cause() == effect.CauseUnresolved && command.FileLanguage(v.Text) != "" {
		return s.localProgram(argv, io) // arguments are scripts for the program in the container: "docker run shellcheck *.sh"
	}
	switch {
	case v.Taint&abstract.Socket != 0 || io.Socket:
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Reason: "runs code from a network connection", From: v.From})
	case v.Taint&abstract.Network != 0:
		s.runs(effect.LabelNetwork, "runs code straight from the network", v.From)
	case v.Taint&abstract.Decoded != 0:
		s.runs(effect.LabelDecoded, "runs decoded text", v.From)
	}
	if name := v.Text[strings.LastIndexByte(v.Text, '/')+1:]; !isEnvironmentOnly(v) && strings.Contains(name, "*") {
		s.emitOnce(effect.Effect{Kind: effect.RunCode, Labels: []effect.Label{effect.LabelInput}, Cause: v.Cause(), Reason: "the name of the program is the output of another command", From: v.From})
	}
	s.runsGuard(argv)
	cause := s.nameCause(v)
	if v.Hidden() {
		cause = effect.CauseUnresolved
	}
	s.dynamic(cause, "cannot tell which program runs: "+abstract.Clip(v.String()), v.From)
	for _, a := range argv[1:] {
		s.recordSuspectWord(a)
	}
	s.possibleCarrier(argv[1:], io)
	s.mayUpload(abstract.Concat(append([]abstract.Value{io.In}, argv[1:]...)...), v.String(), v.From)
	return abstract.Output(abstract.Clip(v.String()), io.In.Taint|abstract.Foreign)
}

// recordSuspectWords records the paths and addresses in text that could not be parsed, so that rules can match
// them.
func (s *state) recordSuspectWords(text string) {
	n := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>()\"'`=,", r) }) {
		if n++; n > 256 {
			return
		}
		s.recordSuspectWord(abstract.Value{Text: word, From: s.span(0, len(s.text))})
	}
}

// recordSuspectWord records a word of an unknown program if it looks like a path or a URL. It returns the taint of
// the file that it names.
func (s *state) recordSuspectWord(v abstract.Value) abstract.Taint {
	text := v.Text
	if v.Bare || len(text) < 2 || len(text) > 4096 {
		return 0
	}
	if i := strings.Index(text, "://"); i > 0 && i < 12 {
		s.url(effect.HTTPRequest, v)
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
	p, pattern := s.path(effect.ReadFile, v, false)
	if p != "" && effect.SecretPath(p, pattern) {
		return abstract.Secret
	}
	return 0
}
