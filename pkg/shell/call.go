package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// call walks a simple command, once for each value that its variables may have.
func (s *state) call(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) abstract.Value {
	round, rounds := s.round, s.rounds
	s.round, s.rounds = 0, 1
	out := s.callOnce(c, st, in)
	for s.round = 1; s.round < min(s.rounds, maxAlternatives) && !s.gaveUp; s.round++ {
		before := len(s.effects)
		out.Taint |= s.callOnce(c, st, in).Taint
		s.dropRepeated(before)
	}
	s.round, s.rounds = round, max(rounds, 1)
	return out
}

func (s *state) callOnce(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) abstract.Value {
	s.input = in
	opened := len(s.files)
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
	io := s.redirect(st.Redirs, in)
	if len(argv) == 0 {
		for _, a := range c.Assigns {
			s.assignment(a, true)
		}
		return s.deliver(io, abstract.Value{})
	}
	mark := len(s.vars)
	for _, a := range c.Assigns {
		s.assignment(a, false)
	}
	set := len(s.vars)
	s.input = io.In
	out := s.invoke(argv, io)
	if set > mark && len(s.vars) >= set {
		s.vars = slices.Delete(s.vars, mark, set)
	}
	if len(s.files) > opened {
		s.feed(opened, abstract.Concat(io.In, out))
	}
	return s.deliver(io, out)
}

// assignment binds a variable. One that lasts takes all the values that its
// right side may have.
func (s *state) assignment(a *syntax.Assign, lasts bool) {
	if a.Name == nil {
		if a.Value != nil {
			s.word(a.Value)
		}
		return
	}
	name := a.Name.Value
	if a.Array != nil {
		s.bindArray(name, a)
		return
	}
	if a.Index != nil {
		s.bindElement(name, a)
		return
	}
	if a.Naked {
		return
	}
	round, rounds := s.round, s.rounds
	s.round, s.rounds = 0, 1
	for ; s.round < min(s.rounds, maxAlternatives); s.round++ {
		v := s.word(a.Value)
		if a.Append {
			if old, ok := s.lookup(name); ok {
				v = abstract.Concat(old.val, v)
			} else {
				v = abstract.Concat(s.environment(name)[0], v)
			}
		}
		v.From = s.spanOf(a)
		n := len(s.vars)
		s.assign(name, v)
		if s.round > 0 {
			s.weaken(n)
		}
		if s.round == 0 {
			s.environmentCode(name, v, v.From)
		}
		if !lasts {
			break
		}
	}
	s.round, s.rounds = round, max(rounds, 1)
}

func (s *state) bindArray(name string, a *syntax.Assign) {
	b := binding{name: name, array: true}
	if old, ok := s.lookup(name); a.Append && ok {
		b.elems = slices.Clone(old.elems)
		if !old.array {
			b.elems = []element{{"0", old.val}}
		}
	}
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			v := abstract.Value{}
			if e.Value != nil {
				v = s.word(e.Value)
			}
			b.elems = append(b.elems, element{s.index(e.Index).Text, v})
			continue
		}
		if e.Value == nil {
			continue
		}
		for _, v := range s.fields(e.Value) {
			b.elems = append(b.elems, element{itoa(len(b.elems)), v})
		}
		if len(b.elems) > abstract.MaxFields {
			s.giveUp("an array is too long")
			return
		}
	}
	s.bind(b)
}

func (s *state) bindElement(name string, a *syntax.Assign) {
	key := s.index(a.Index)
	v := abstract.Value{}
	if a.Value != nil {
		v = s.word(a.Value)
	}
	b := binding{name: name, array: true}
	if old, ok := s.lookup(name); ok {
		b.elems = slices.Clone(old.elems)
	}
	if len(b.elems) > abstract.MaxFields {
		s.giveUp("an array is too long")
		return
	}
	b.elems = append(b.elems, element{key.Text, v})
	s.bind(b)
}

// invoke runs a command that is given as words.
func (s *state) invoke(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if len(argv) == 0 || !s.step(1+len(argv)/8) || !s.enter(argv[0].From) {
		return abstract.Value{}
	}
	defer s.leave()
	if !argv[0].Known() {
		return s.unknownProgram(argv, io)
	}
	name := argv[0].Text
	if name == "" {
		if len(argv) > 1 {
			return s.invoke(argv[1:], io)
		}
		return abstract.Value{}
	}
	for i := len(s.aliases) - 1; i >= 0; i-- {
		if s.aliases[i].name == name {
			return s.runAlias(i, argv, io)
		}
	}
	for i := len(s.funcs) - 1; i >= 0; i-- {
		if s.funcs[i].name == name && s.funcs[i].body != nil {
			s.recursion(i, argv[0].From)
			return s.callFunction(i, argv[1:], io.In, argv[0])
		}
	}
	if b, ok := builtin(name); ok {
		s.execute(argv, name, effect.ReadOnly)
		return b(s, argv, io)
	}
	return s.program(argv, io)
}

// recursion reports a function that keeps starting itself, as a fork bomb does.
func (s *state) recursion(i int, at effect.Span) {
	if s.inFunc >= 7 {
		s.once(effect.Effect{Kind: effect.StopProcess, Program: s.funcs[i].name, Cause: effect.CauseRecursion, Reason: "a function calls itself endlessly", From: at})
	}
}

// runAlias replaces the command's name by its alias.
func (s *state) runAlias(i int, argv []abstract.Value, io abstract.Streams) abstract.Value {
	text := s.aliases[i].text
	for _, v := range argv[1:] {
		if v.Known() {
			if q, err := syntax.Quote(v.Text, syntax.LangBash); err == nil {
				text += " " + q
				continue
			}
		}
		text += " ${" + unsetName + "}"
	}
	saved := s.aliases
	s.aliases = s.aliases[:i:i] // an alias does not expand itself
	out := s.nestedWith(text, argv[0].From, io)
	s.aliases = saved
	return out
}

// nestedWith is nested with an input.
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
	defer s.leave()
	fixed, base := s.fixed, s.base
	s.fixed = &at
	in := io.In
	if io.Socket {
		in.Taint |= abstract.Socket
	}
	out := s.stmts(f.Stmts, in)
	s.fixed, s.base = fixed, base
	return out
}

// execute records that a program runs and adds a line to the words view.
func (s *state) execute(argv []abstract.Value, program string, class effect.Class) {
	if s.quiet > 0 {
		return
	}
	e := effect.Effect{Kind: effect.Execute, Program: program, Class: class, From: join(argv)}
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

// join returns the span from the first to the last word of a command.
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
	switch {
	case v.Taint&abstract.Socket != 0 || io.Socket:
		s.once(effect.Effect{Kind: effect.RemoteShell, Reason: "runs code from a network connection", From: v.From})
	case v.Taint&abstract.Network != 0:
		s.once(effect.Effect{Kind: effect.RunDownload, Reason: "runs code straight from the network", From: v.From})
	case v.Taint&abstract.Decoded != 0:
		s.once(effect.Effect{Kind: effect.RunDecoded, Reason: "runs decoded text", From: v.From})
	}
	if name := v.Text[strings.LastIndexByte(v.Text, '/')+1:]; !inherited(v) && strings.Contains(name, "*") {
		s.once(effect.Effect{Kind: effect.RunInput, Cause: v.Cause(), Reason: "another part of the command names the program", From: v.From})
	}
	s.dynamic(v.Cause(), "cannot tell which program runs: "+abstract.Clip(v.String()), v.From)
	for _, a := range argv[1:] {
		s.suspect(a)
	}
	s.possibleCarrier(argv[1:], io)
	s.upload(abstract.Concat(append([]abstract.Value{io.In}, argv[1:]...)...), v.String(), v.From)
	return abstract.Output(abstract.Clip(v.String()), io.In.Taint|abstract.Foreign)
}

// suspects records the paths and addresses in text that could not be parsed,
// so that rules about them still see it.
func (s *state) suspects(text string) {
	n := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>()\"'`=,", r) }) {
		if n++; n > 256 {
			return
		}
		s.suspect(abstract.Value{Text: word, From: s.span(0, len(s.text))})
	}
}

// suspect records what a word names if it looks like a path or a URL, because
// the program that gets it is unknown. It returns what the file may contain.
func (s *state) suspect(v abstract.Value) abstract.Taint {
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
	if p != "" && secretPath(p, pattern, true) {
		return abstract.Secret
	}
	return 0
}
