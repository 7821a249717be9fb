package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

func itoa(n int) string { return strconv.Itoa(n) }

// builtin returns what a command of the shell itself does. Those that also exist
// as a program and do not change the shell, such as kill, are left to package
// command.
func builtin(name string) (func(*state, []abstract.Value, abstract.Streams) abstract.Value, bool) {
	switch name {
	case ":", "true", "false", "test", "[", "umask", "hash", "type", "wait", "jobs", "fg", "bg", "disown",
		"dirs", "times", "caller", "getopts", "shopt", "bind", "compgen", "suspend", "logout", "break", "continue",
		"shift", "return", "exit", "ulimit", "history", "fc", "enable", "emulate", "complete", "compopt", "setopt", "unsetopt",
		"unfunction", "unhash", "disable":
		return special(name), true
	case "echo":
		return (*state).echo, true
	case "print":
		return (*state).print, true
	case "printf":
		return (*state).printf, true
	case "pwd":
		return (*state).pwd, true
	case "cd", "pushd", "chdir", "popd":
		return (*state).cd, true
	case "eval":
		return (*state).eval, true
	case ".", "source":
		return (*state).sourceFile, true
	case "exec":
		return (*state).exec, true
	case "command", "builtin", "noglob", "nocorrect":
		return (*state).commandWord, true
	case "trap":
		return (*state).trap, true
	case "alias":
		return (*state).defineAlias, true
	case "unalias":
		return (*state).unalias, true
	case "export", "declare", "typeset", "local", "readonly", "nameref":
		return (*state).export, true
	case "unset":
		return (*state).unset, true
	case "set":
		return (*state).set, true
	case "read", "mapfile", "readarray":
		return (*state).read, true
	case "let":
		return (*state).let, true
	case "ztcp":
		return (*state).ztcp, true
	case "autoload", "functions", "sched", "zargs", "zcalc", "zcp", "zln", "zmodload", "zmv":
		return (*state).zshBuiltin, true
	case "integer", "float", "private":
		return (*state).export, true
	}
	if zshSetters[name] {
		return (*state).zshBuiltin, true
	}
	return nil, false
}

func special(name string) func(*state, []abstract.Value, abstract.Streams) abstract.Value {
	return func(s *state, argv []abstract.Value, io abstract.Streams) abstract.Value {
		switch name {
		case ":", "true":
			s.exit = success
		case "false":
			s.exit = failure
		case "test", "[":
			for i, v := range argv {
				if v.Known() && strings.Contains(v.Text, "[$(") || i > 0 && argv[i-1].Text == "-v" {
					s.arithmText(v.Text)
				}
			}
			s.exit = testExit(argv)
		case "type":
			if len(argv) == 3 && strings.HasPrefix(argv[1].Text, "-") && strings.ContainsAny(argv[1].Text, "pP") {
				return found(argv[2])
			}
			return abstract.Unknown("$(type)", 0).Of(abstract.FromCommand)
		case "shopt":
			if len(argv) < 3 || strings.Contains(argv[1].Text, "p") && strings.HasPrefix(argv[1].Text, "-") {
				return abstract.Unknown("$(shopt)", 0).Of(abstract.FromCommand)
			}
			s.lastpipe = s.lastpipe || slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return !v.Known() || v.Text == "lastpipe" })
		case "shift":
			s.shift(argv)
		case "setopt", "unsetopt":
			for _, v := range argv[1:] {
				s.zshOption(v)
			}
		case "break", "continue":
			s.ends(argv)
		case "return", "exit":
			s.exit = status(argv)
			s.ends(argv)
		case "getopts":
			s.getopts(argv)
		default:
			if out := s.codeBuiltin(name, argv, io); out.Known() && out.Text == "" && !silent(name, argv) {
				return abstract.Unknown("$("+name+")", abstract.Foreign).Of(abstract.FromCommand)
			} else {
				return out
			}
		}
		return abstract.Value{}
	}
}

func (s *state) echo(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	words, escapes, newline := argv[1:], false, true
	for len(words) > 0 && isEchoFlag(words[0].Text) && !words[0].IsPattern {
		escapes = escapes || strings.ContainsRune(words[0].Text, 'e')
		newline = newline && !strings.ContainsRune(words[0].Text, 'n')
		words = words[1:]
	}
	v := abstract.JoinValues(words)
	if v.Known() {
		// dash and zsh resolve escapes without -e.
		ended := false
		if escapes {
			v.Text, ended = plain.Echo(v.Text)
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

func (s *state) pwd([]abstract.Value, abstract.Streams) abstract.Value {
	if cwd := s.place().CWD; cwd != "" {
		return abstract.Lit(cwd + "\n")
	}
	return abstract.Unknown("$(pwd)", 0).Of(abstract.FromCommand)
}

// folderOf returns the folder that cd is given, and whether it may go to another one.
func (s *state) folderOf(argv []abstract.Value) (dir abstract.Value, other bool) {
	dir = abstract.Value{Text: "~"}
	if home, ok := s.lookup("HOME"); ok && home.kind != unset {
		dir = home.val
	}
	n := 0
	for _, v := range argv[1:] {
		text := v.Text
		switch {
		case len(text) > 1 && (text[0] == '-' || text[0] == '+') && strings.Trim(text[1:], "0123456789") == "", text == "-n": // of the stack of folders
			other = true
		case text == "--" || len(text) > 1 && text[0] == '-':
		default:
			if n++; n == 1 {
				dir = v
			}
		}
	}
	relative := n > 0 && dir.Known() && !strings.HasPrefix(dir.Text, "/") && !strings.HasPrefix(dir.Text, ".") && !strings.HasPrefix(dir.Text, "~")
	variable := relative && syntax.ValidName(dir.Text) && s.mentions(dir.Text) && strings.Contains(strings.ToLower(s.text), "cdable")
	other = other || n > 1 || n == 0 && argv[0].Text == "pushd" || variable || relative && (s.mentions("CDPATH") || s.mentions("cdpath"))
	return dir, other
}

// cd moves the working folder of what follows.
func (s *state) cd(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	dir, other := s.folderOf(argv)
	if s.remote > 0 {
		return abstract.Value{}
	}
	next := *s.place()
	next.CWD = ""
	if dir.Known() && dir.Text != "-" && argv[0].Text != "popd" && !other {
		if p, pattern := s.place().Path(dir.Text, false); !pattern && p != "" {
			next = *s.place().In(p)
		}
	}
	for _, name := range [...]string{"PWD", "OLDPWD"} {
		if s.mentions(name) {
			s.bind(binding{name: name, val: abstract.Variable(name, 0)})
		}
	}
	s.bind(binding{name: workdirName, kind: workdir, place: &next})
	return abstract.Value{}
}

func (s *state) eval(argv []abstract.Value, io abstract.Streams) abstract.Value {
	words := argv[1:]
	if len(words) > 0 && words[0].Text == "--" {
		words = words[1:]
	}
	v := abstract.JoinValues(words)
	if v.Known() && v.Text == "" {
		return abstract.Value{}
	}
	at := join(argv)
	s.readsAliases(at)
	s.dollarQuotes(at)
	if v.Known() && v.Plain() {
		return s.nestedWith(v.Text, at, io)
	}
	out := s.runText("shell", v, "eval", at, nil)
	if !v.Known() {
		s.forget()
	}
	return out
}

func (s *state) sourceFile(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if len(argv) < 2 {
		return abstract.Value{}
	}
	s.readsAliases(join(argv))
	f, args := argv[1], argv[2:]
	if f.Text == "--" && len(args) > 0 {
		f, args = args[0], args[1:]
	}
	mark := len(s.vars)
	if len(args) > 0 { // bash takes them, dash does not
		s.setPositional(args)
		s.weaken(mark)
		defer func() { s.drop(mark, map[string]int{positionalName: mark}) }()
	}
	if f.Known() && (f.Text == "/dev/stdin" || f.Text == "/dev/fd/0" || f.Text == "/proc/self/fd/0") {
		return s.runText("shell", io.In, argv[0].Text, join(argv), nil)
	}
	at, vars, loops, failures := len(s.effects), len(s.vars), s.left.loops, s.failures
	s.left.loops = 0
	out := s.runFile(f, "shell", nil, io, join(argv))
	s.unsure() // return ends the file
	s.left.loops = loops
	if s.failures > failures { // the line is left as well
		s.failsLine()
		s.left.line = min(s.left.line, 1+vars)
	}
	s.load(at, vars)
	return out
}

func (s *state) defineAlias(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	defines := !slices.ContainsFunc(argv[1:], func(v abstract.Value) bool {
		name, _, ok := strings.Cut(v.Text, "=")
		return !ok || !v.Known() || !syntax.ValidName(name)
	})
	for _, v := range argv[1:] {
		s.anyWord = s.anyWord || v.Text == "-g" || v.Text == "-s"
		name, text, ok := strings.Cut(v.Text, "=")
		if !ok {
			continue
		}
		if !v.Known() {
			s.dynamic(v.Cause(), "unknown alias: "+abstract.Clip(v.String()), v.From)
			continue
		}
		if len(s.aliases) > 256 {
			s.giveUp("too many aliases")
			return abstract.Value{}
		}
		s.shadow(name, v.From)
		s.aliases = append(s.aliases, alias{name: name, text: text})
		// It may be used in a later command; what it runs shows here.
		before, remains := s.outcomes(), s.remains
		end := s.apart()
		s.nested(text, v.From)
		end()
		s.uncertain(before)
		s.mayRead(remains)
	}
	s.exit = exitOf(true, defines)
	if !defines || len(argv) == 1 {
		return abstract.Unknown("$(alias)", abstract.Foreign).Of(abstract.FromCommand)
	}
	return abstract.Value{}
}

func (s *state) unalias(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	for _, v := range argv[1:] {
		for i := range s.aliases {
			if s.aliases[i].name == v.Text || v.Text == "-a" {
				s.aliases[i].name = ""
			}
		}
	}
	return abstract.Value{}
}

// export handles the words of export, declare and the like when they were not
// parsed as such: behind `command`, or put together from quoted parts.
func (s *state) export(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	ref, attributes := argv[0].Text == "nameref", argv[0].Text == "integer" || argv[0].Text == "float"
	for _, v := range argv[1:] {
		if (strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+")) && !strings.Contains(v.Text, "=") {
			ref = ref || strings.Contains(v.Text, "n") && argv[0].Text != "export"
			attributes = attributes || v.Text[0] == '+' || strings.ContainsAny(v.Text, "aAiluc")
			continue
		}
		name, text, ok := strings.Cut(v.Text, "=")
		switch {
		case !ok && !v.Known() || strings.Contains(name, "*") && v.IsPattern:
			s.forget()
			continue
		case attributes: // which of them, is not followed here
			s.bind(binding{name: name, val: vague("$"+name, v), kind: mixed})
		}
		if !ok {
			continue
		}
		val := v
		val.Text = text
		if _, shown, ok := strings.Cut(v.Show, "="); ok {
			val.Show = shown
		}
		if strings.HasPrefix(text, "*") {
			val.Lead = v.Origin
		}
		if ref {
			s.bind(binding{name: name, val: val, kind: reference})
			continue
		}
		if s.isLocal(name) || len(s.frames) > 0 { // which of the variables of that name it is, is not followed here
			val = vague("$"+name, val)
		}
		if !attributes {
			s.assignTo(abstract.Lit(name), val)
		} else {
			s.environmentCode(name, val, v.From)
		}
		if argv[0].Text == "export" {
			s.bind(binding{name: exportPrefix + name})
		}
	}
	if len(argv) > 1 && argv[1].Text == "-p" || len(argv) == 1 {
		return abstract.Unknown("the environment", abstract.Dump)
	}
	return abstract.Value{}
}

// unsets reports whether unset is sure to succeed.
func unsets(words []abstract.Value) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(v abstract.Value) bool { return !v.Known() || !syntax.ValidName(v.Text) })
}

func (s *state) unset(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	reference := false
	s.exit = exitOf(true, !s.constants && unsets(argv[1:]))
	for _, v := range argv[1:] {
		switch {
		case v.Text == "HISTFILE":
			s.emit(effect.Effect{Kind: effect.Destroy, Program: "unset", Cause: effect.CauseHistory, Reason: "turns the command history off", From: v.From})
		case strings.HasPrefix(v.Text, "-"):
			reference = reference || v.Text == "-n"
			continue
		case !v.Known():
			s.forget()
		case v.Text == "":
			continue
		case strings.HasPrefix(v.Text, guardVariables):
			s.guard("unset", "changes the settings of shield", v.From)
			continue
		case strings.Contains(v.Text, "["):
			s.arithmText(v.Text)
			name, sub, _ := strings.Cut(v.Text, "[")
			if name, ok := s.target(name); ok && v.Known() {
				s.unsetElement(name, sub)
			} else {
				s.forget()
			}
			continue
		}
		name, ok := s.target(v.Text)
		old, _ := s.attribute(v.Text)
		switch {
		case reference && ok && name == v.Text && old.kind <= unset: // no reference: nothing, or an error
			s.exit = anyExit
			s.mayFail()
		case reference || !ok:
			s.forget()
		case s.isLocal(name) || s.given(name): // shows the one of the function around, in some shells
			s.revealed(name)
			s.bind(binding{name: name, val: abstract.Variable(name, 0), kind: mixed})
		default:
			s.bind(binding{name: name, kind: unset})
		}
		if len(argv) > 2 && argv[1].Text == "-v" {
			continue
		}
		s.undefine(v, argv[1].Text == "-f")
	}
	return abstract.Value{}
}

// undefine notes that functions of a name are no more, or that this may be so.
func (s *state) undefine(name abstract.Value, sure bool) {
	var gone []string
	for _, f := range s.funcs {
		if (f.name == name.Text || !name.Known()) && !slices.Contains(gone, f.name) {
			gone = append(gone, f.name)
		}
	}
	for _, one := range gone {
		s.funcs = append(s.funcs, function{name: one, weak: !sure || !name.Known()})
	}
}

func (s *state) set(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	if len(argv) == 1 {
		return abstract.Unknown("the environment", abstract.Dump)
	}
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if v.Text == "--" {
			s.setPositional(argv[i+1:])
			s.exit = success
			return abstract.Value{}
		}
		if v.Known() && (strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+")) {
			if strings.HasSuffix(v.Text, "A") {
				s.setArray(v.Text, argv[i+1:])
				return abstract.Value{}
			}
			s.option(v)
			if (v.Text == "-o" || v.Text == "+o") && i+1 < len(argv) {
				i++
				s.option(argv[i])
				if !usualOptions[argv[i].Text] {
					s.zshOption(argv[i])
				}
			}
			s.strict = s.strict || strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "u") || i < len(argv) && argv[i].Text == "nounset"
			continue
		}
		s.setPositional(argv[i:])
		return abstract.Value{}
	}
	return abstract.Value{}
}

// ztcp is zsh's module for connections: it leaves a descriptor in $REPLY.
func (s *state) ztcp(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	e := effect.Effect{Kind: effect.Connect, Pattern: true, From: join(argv)}
	for _, v := range argv[1:] {
		if v.Known() && !strings.HasPrefix(v.Text, "-") {
			e.Host, e.Pattern = effect.Host(v.Text), false
			break
		}
	}
	s.once(e)
	s.fds = append(s.fds, descriptor{n: "ztcp", val: abstract.Unknown("what a connection sends", abstract.Network|abstract.Socket), out: &abstract.Target{Socket: true}})
	s.assign("REPLY", abstract.Lit("ztcp"))
	return abstract.Value{}
}

func (s *state) let(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	for _, v := range argv[1:] {
		if !v.Known() {
			s.forget()
			continue
		}
		s.arithmText(v.Text)
	}
	return abstract.Value{}
}
