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

// call walks a simple command, once for each value that its variables may have.
func (s *state) call(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) abstract.Value {
	var out abstract.Value
	mark, before, consumed, remains, exit := len(s.vars), s.outcomes(), s.consumed, s.remains, anyExit
	fds, stdin, first, shared := len(s.fds), s.stdin, true, s.shared
	s.inRounds(func() {
		if first {
			first = false
			out = s.callOnce(c, st, in)
			exit = s.exit
		} else {
			repeated := len(s.effects)
			s.consumed = consumed
			o := s.callOnce(c, st, in)
			s.dropRepeated(repeated)
			if o.Text != out.Text || o.IsPattern != out.IsPattern {
				out = maybe(abstract.Concat(out, o))
			}
			out.Taint |= o.Taint
			exit = exit.or(s.exit)
		}
		if s.rounds > 1 && !shared { // another round may be the one that runs
			s.produced = maybe(abstract.Concat(out, s.produced))
			s.weakenVariables(mark)
			s.uncertain(before)
			s.mayRead(remains)
			s.anyOf(fds, stdin)
		}
	})
	s.exit = exit
	return out
}

// anyOf notes that what exec has opened since then holds what one of several rounds gave it.
func (s *state) anyOf(fds int, stdin *abstract.Value) {
	for i := min(fds, len(s.fds)); i < len(s.fds); i++ {
		s.fds[i].val, s.fds[i].in = vague("…", s.fds[i].val), false
	}
	if s.stdin != stdin {
		v := vague("…", *s.stdin)
		s.stdin = &v
	}
}

// argv returns the words of a command.
func (s *state) argv(c *syntax.CallExpr) []abstract.Value {
	argv := make([]abstract.Value, 0, len(c.Args)+1)
	if ahead := s.ahead; len(c.Assigns) > 0 {
		s.ahead = c.Assigns
		defer func() { s.ahead = ahead }()
	}
	for _, w := range c.Args {
		if text, ok := plainWord(w); ok && !s.extGlobs && s.step(1) {
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

func (s *state) callOnce(c *syntax.CallExpr, st *syntax.Stmt, in abstract.Value) abstract.Value {
	s.input = in
	opened, mark, way := len(s.files), len(s.vars), s.left
	argv := s.argv(c)
	fds, expanding, typed, words := len(s.fds), len(s.vars), s.typed, s.typedWords
	s.typed, s.typedWords = mark, c.Args
	defer func() { s.typed, s.typedWords = typed, words }()
	io := s.redirect(st.Redirs, in)
	s.weakenVariables(expanding) // some shells expand here-documents in another process
	fdsOpened := len(s.fds)
	if len(argv) == 0 {
		for _, a := range c.Assigns {
			s.assignment(a, true)
		}
		s.exit = anyExit
		return s.deliver(io, abstract.Value{})
	}
	if len(argv) > 2 && c.Args[0].Lit() == "repeat" && s.asZsh() {
		return s.deliver(io, s.repeat(c.Args[2:], argv[0].From, io))
	}
	fails := s.left.shell && !way.shell // an expansion may have failed: then nothing runs
	expanded, names := len(s.vars), s.assigns(c)
	for _, a := range c.Assigns {
		s.assignment(a, false)
	}
	set := len(s.vars)
	s.stands(names, expanded)
	s.input = io.In
	consumed, remains := s.consumed, s.remains
	if io.Redirected {
		s.consumed, s.remains = false, nil
	}
	s.exit = anyExit
	effects, before, fed := len(s.effects), s.outcomes(), s.feeds(st.Redirs) || argv[0].Text == "exec"
	written := before.files
	out := s.asChanged(io, written, s.invoke(argv, io), func(io abstract.Streams) abstract.Value { return s.invoke(argv, io) })
	if io.Out != nil && io.Out.Append && slices.ContainsFunc(s.effects[min(effects, len(s.effects)):], func(e effect.Effect) bool {
		return e.Kind == effect.ReadFile && e.Path == io.Out.Path
	}) {
		out = maybe(out) // it may refuse to read what it writes
	}
	if io.Redirected {
		s.advance(st.Redirs)
		s.consumed, s.remains = consumed, remains
	}
	if fails || !opens(st.Redirs) {
		s.unsure()
		if s.exit = anyExit; endsShell[argv[0].Text] {
			s.mayFail()
		}
		if fails || !io.Redirected {
			s.mayRead(remains)
		}
	}
	s.endAssigns(names, expanded, set, argv[0])
	if !fed {
		s.weakenVariables(expanding)
		s.uncertain(before)
	}
	if argv[0].Text != "exec" && (len(argv) < 2 || argv[1].Text != "exec") && len(s.fds) >= fdsOpened {
		s.fds = slices.Delete(s.fds, fds, fdsOpened)
	}
	if len(s.files) > opened {
		s.feed(opened, abstract.Concat(io.In, out))
	}
	if fails {
		s.weakenVariables(mark)
		out = maybe(out)
	}
	out = s.deliver(io, out)
	s.show(out, argv[0].String(), join(argv))
	return out
}

// invoke runs a command that is given as words.
func (s *state) invoke(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return s.run(argv, io, s.named)
}

// run runs a command that is given as words, of which named says what the first stands for.
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

// named runs what a name stands for: aliases, which a shell may or may not expand,
// functions, of which some may not have been defined, the shell's own commands, programs.
func (s *state) named(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	if slices.Contains(s.autoloads, name) {
		s.autoload([]abstract.Value{{Text: name, From: argv[0].From}})
	}
	var outs []abstract.Value
	mark, before, remains := len(s.vars), s.outcomes(), s.remains
	for i, n := len(s.aliases)-1, 0; i >= 0 && n < 4; i-- {
		if s.aliases[i].name == name {
			n++
			outs = append(outs, s.runAlias(i, argv, io))
			s.weakenVariables(mark)
			s.uncertain(before)
		}
	}
	sure, removed := false, false
	var walked []*syntax.Stmt
	for i := len(s.funcs) - 1; i >= 0 && !sure; i-- {
		if s.funcs[i].name != name {
			continue
		}
		if len(walked) == 8 {
			s.giveUp("too many functions of one name")
			break
		}
		sure = !s.funcs[i].weak && i >= s.ownFuncs
		if s.funcs[i].body == nil {
			if sure {
				sure = false
				break
			}
			removed = true
			continue
		}
		if slices.Contains(walked, s.funcs[i].body) {
			continue
		}
		walked = append(walked, s.funcs[i].body)
		s.recursion(i, argv[0].From)
		outs = append(outs, s.callFunction(i, argv[1:], io.In, argv[0]))
		if len(outs) > 1 || !sure || removed {
			s.weakenVariables(mark)
			s.uncertain(before)
		}
	}
	if !sure || removed {
		outs = append(outs, s.ownOrProgram(name, argv, io))
		if len(outs) > 1 {
			s.weakenVariables(mark)
			s.uncertain(before)
		}
	}
	if len(outs) == 1 {
		return outs[0]
	}
	s.exit = anyExit
	s.mayRead(remains)
	return maybe(abstract.Concat(outs...))
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
	if io.In.Text != "" && !io.Redirected {
		s.consumed = true
	}
	if number, _, ok := strings.Cut(name, "="); ok && number != "" && strings.Trim(number, "0123456789") == "" && s.asZsh() {
		s.bind(binding{name: positionalName, array: true, unsure: true, weak: true}) // zsh assigns $1
	}
	if plain, ok := strings.CutPrefix(name, "zf_"); ok { // the same of a module of zsh
		argv = slices.Clone(argv)
		argv[0].Text = plain
	}
	out := s.program(argv, io)
	s.remains = nil // a program reads as much as it likes
	return out
}

// runAlias replaces the command's name by its alias.
func (s *state) runAlias(i int, argv []abstract.Value, io abstract.Streams) abstract.Value {
	text, rest := s.aliases[i].text, argv[1:]
	if strings.TrimRight(text, " \t") != text && len(rest) > 0 { // the next word may be an alias, too
		if next := slices.IndexFunc(s.aliases, func(a alias) bool { return a.name == rest[0].Text && a.name != "" }); next >= 0 && next != i {
			words := append([]abstract.Value{argv[0]}, rest[1:]...)
			saved := s.aliases
			s.aliases = append(slices.Clone(saved), alias{name: argv[0].Text, text: strings.TrimRight(text, " \t") + " " + s.aliasText(next)})
			s.runAlias(len(saved), words, io)
			s.aliases = saved
		}
	}
	// Words that are expanded behind another command of it are not known.
	late := strings.ContainsAny(text, "=;&|\n(){}`") && slices.ContainsFunc(s.typedWords, expands)
	if late && s.typedWords[0].Lit() == s.aliases[i].name {
		text += s.asTyped(s.typedWords[1:])
		rest = nil
	}
	for _, v := range rest {
		if v.Known() && !late {
			if q, err := syntax.Quote(v.Text, syntax.LangBash); err == nil {
				text += " " + q
				continue
			}
		}
		text += " ${" + abstract.UnsetName + "}"
	}
	s.weakenVariables(s.typed) // its own words are expanded first
	saved, name := s.aliases, s.aliases[i].name
	s.aliases = slices.DeleteFunc(slices.Clone(saved), func(a alias) bool { return a.name == name }) // it does not expand itself
	out := s.nestedWith(text, argv[0].From, io)
	s.aliases = saved
	return out
}

// aliasText returns what an alias stands for, with the aliases that it begins with.
func (s *state) aliasText(i int) string {
	text, used := s.aliases[i].text, []string{s.aliases[i].name}
	for {
		first, _, _ := strings.Cut(text, " ")
		next := slices.IndexFunc(s.aliases, func(a alias) bool { return a.name == first && a.name != "" })
		if next < 0 || slices.Contains(used, first) || len(text) > parse.MaxText {
			return text
		}
		text, used = s.aliases[next].text+text[len(first):], append(used, first)
	}
}

// asTyped returns words as text.
func (s *state) asTyped(words []*syntax.Word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteByte(' ')
		if err := syntax.NewPrinter().Print(&b, w); err != nil {
			s.giveUp("a word cannot be written")
		}
	}
	return b.String()
}

// expands reports whether a word is not the same wherever it stands.
func expands(w *syntax.Word) bool {
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
	if s.remote > 0 && !io.Socket && v.Plain() && v.Cause() == effect.CauseUnresolved && command.FileLanguage(v.Text) != "" {
		return s.localProgram(argv, io) // names of scripts, for what the image starts: "docker run shellcheck *.sh"
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
	s.runsGuard(argv)
	cause := s.nameCause(v)
	if v.Hidden() {
		cause = effect.CauseUnresolved
	}
	s.dynamic(cause, "cannot tell which program runs: "+abstract.Clip(v.String()), v.From)
	for _, a := range argv[1:] {
		s.suspect(a)
	}
	s.possibleCarrier(argv[1:], io)
	s.mayUpload(abstract.Concat(append([]abstract.Value{io.In}, argv[1:]...)...), v.String(), v.From)
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
	if p != "" && effect.SecretPath(p, pattern) {
		return abstract.Secret
	}
	return 0
}
