package shell

import (
	"strconv"
	"strings"

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
		"shift", "return", "exit", "ulimit", "history", "fc", "enable", "complete", "compopt", "setopt", "unsetopt":
		return special(name), true
	case "echo", "print":
		return (*state).echo, true
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
	}
	return nil, false
}

func special(name string) func(*state, []abstract.Value, abstract.Streams) abstract.Value {
	return func(s *state, argv []abstract.Value, io abstract.Streams) abstract.Value {
		switch name {
		case "test", "[":
			for i, v := range argv {
				if v.Known() && strings.Contains(v.Text, "[$(") || i > 0 && argv[i-1].Text == "-v" {
					s.arithmText(v.Text)
				}
			}
		case "shift":
			if len(s.args) > 0 {
				s.args = s.args[1:]
			}
		case "history":
			if len(argv) > 1 && (argv[1].Text == "-c" || argv[1].Text == "-w" || argv[1].Text == "-a" || argv[1].Text == "-d") {
				s.emit(effect.Effect{Kind: effect.Destroy, Program: "history", Cause: effect.CauseHistory, Reason: "changes the command history", From: join(argv)})
			}
		case "enable":
			// enable -f loads a shared object into the shell.
			for i, v := range argv {
				if v.Text == "-f" && i+1 < len(argv) {
					s.dynamic(effect.CauseCode, "loads code into the shell: "+argv[i+1].String(), join(argv))
				}
			}
		case "fc":
			// What fc runs is in the history; fc -l only shows it.
			if !listsHistory(argv[1:]) {
				s.dynamic(effect.CauseCode, "runs a line from the history", join(argv))
			}
		case "bind":
			// bind -x '"KEY": CMD' makes a key run CMD.
			for i, v := range argv {
				if v.Text == "-x" && i+1 < len(argv) {
					_, code, _ := strings.Cut(argv[i+1].Text, ":")
					s.nested(code, argv[i+1].From)
				}
			}
		case "complete", "compgen":
			for i, v := range argv {
				if (v.Text == "-C" || v.Text == "-W") && i+1 < len(argv) && argv[i+1].Known() {
					s.nested(argv[i+1].Text, argv[i+1].From)
				}
			}
		case "jobs":
			// jobs -x CMD runs CMD.
			if len(argv) > 2 && argv[1].Text == "-x" {
				return s.invoke(argv[2:], io)
			}
		case "wait", "getopts":
			for _, v := range argv[1:] {
				s.subscript(v.Text)
			}
		case "hash":
			// hash -p FILE NAME makes NAME run FILE.
			if len(argv) > 3 && argv[1].Text == "-p" && argv[2].Known() {
				s.aliases = append(s.aliases, alias{argv[3].Text, argv[2].Text})
			}
		}
		return abstract.Value{}
	}
}

// listsHistory reports whether words after fc make it list and nothing else.
func listsHistory(words []abstract.Value) bool {
	list := false
	for _, w := range words {
		if !w.Known() {
			return false
		}
		if strings.HasPrefix(w.Text, "-") && strings.Trim(w.Text[1:], "0123456789") != "" {
			if strings.Trim(w.Text[1:], "lnrdfEiD") != "" {
				return false
			}
			list = list || strings.Contains(w.Text, "l")
		}
	}
	return list
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

// cd moves the working folder of what follows.
func (s *state) cd(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	dir := abstract.Value{Text: "~"}
	for _, v := range argv[1:] {
		if v.Text != "--" && (len(v.Text) < 2 || v.Text[0] != '-') {
			dir = v
			break
		}
	}
	if s.remote > 0 {
		return abstract.Value{}
	}
	next := *s.place()
	next.CWD = ""
	if dir.Known() && dir.Text != "-" && argv[0].Text != "popd" {
		if p, pattern := s.place().Path(dir.Text, false); !pattern && p != "" {
			next = *s.place().In(p)
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
	if v.Known() && v.Taint == 0 {
		return s.nestedWith(v.Text, at, io)
	}
	return s.runText("shell", v, "eval", at, s.args)
}

func (s *state) sourceFile(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if len(argv) < 2 {
		return abstract.Value{}
	}
	f := argv[1]
	if f.Text == "--" && len(argv) > 2 {
		f = argv[2]
	}
	if f.Known() && (f.Text == "/dev/stdin" || f.Text == "/dev/fd/0" || f.Text == "/proc/self/fd/0") {
		return s.runText("shell", io.In, argv[0].Text, join(argv), nil)
	}
	return s.runFile(f, "shell", nil, io, join(argv))
}

func (s *state) exec(argv []abstract.Value, io abstract.Streams) abstract.Value {
	rest := argv[1:]
	for len(rest) > 0 && rest[0].Known() && strings.HasPrefix(rest[0].Text, "-") {
		if rest[0].Text == "-a" && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		if io.Redirected {
			s.stdin = &io.In
		}
		return abstract.Value{}
	}
	return s.invoke(rest, io)
}

func (s *state) commandWord(argv []abstract.Value, io abstract.Streams) abstract.Value {
	rest := argv[1:]
	for len(rest) > 0 && rest[0].Known() && strings.HasPrefix(rest[0].Text, "-") {
		if strings.ContainsAny(rest[0].Text, "vV") {
			if len(rest) == 2 {
				return rest[1] // its path, or the name itself
			}
			return abstract.Unknown("$(command -v)", 0).Of(abstract.FromCommand)
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return abstract.Value{}
	}
	return s.invoke(rest, io)
}

func (s *state) trap(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if len(argv) < 3 || argv[1].Text == "-" || argv[1].Text == "-p" || argv[1].Text == "-l" {
		return abstract.Value{}
	}
	code := argv[1]
	if code.Text == "--" {
		code = argv[2]
	}
	if code.Known() {
		return s.nestedWith(code.Text, code.From, io)
	}
	return s.runText("shell", code, "trap", code.From, nil)
}

func (s *state) defineAlias(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	for _, v := range argv[1:] {
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
		s.aliases = append(s.aliases, alias{name, text})
		// It may be used in a later command, but what it runs is visible here.
		s.nested(text, v.From)
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
	ref := argv[0].Text == "nameref"
	for _, v := range argv[1:] {
		if strings.HasPrefix(v.Text, "-") && !strings.Contains(v.Text, "=") {
			ref = ref || strings.Contains(v.Text, "n") && argv[0].Text != "export"
			continue
		}
		name, text, ok := strings.Cut(v.Text, "=")
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
		s.assign(name, val)
		s.environmentCode(name, val, v.From)
	}
	if len(argv) > 1 && argv[1].Text == "-p" || len(argv) == 1 {
		return abstract.Unknown("the environment", abstract.Dump)
	}
	return abstract.Value{}
}

func (s *state) unset(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	for _, v := range argv[1:] {
		switch {
		case v.Text == "HISTFILE":
			s.emit(effect.Effect{Kind: effect.Destroy, Program: "unset", Cause: effect.CauseHistory, Reason: "turns the command history off", From: v.From})
		case strings.HasPrefix(v.Text, "-"):
			continue
		}
		s.subscript(v.Text)
		s.bind(binding{name: v.Text, kind: unset})
		for i := range s.funcs {
			if s.funcs[i].name == v.Text && argv[1].Text == "-f" {
				s.funcs[i].name = ""
			}
		}
	}
	return abstract.Value{}
}

func (s *state) set(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	if len(argv) == 1 {
		return abstract.Unknown("the environment", abstract.Dump)
	}
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if v.Text == "--" {
			s.args = argv[i+1:]
			return abstract.Value{}
		}
		if v.Known() && (strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+")) {
			if v.Text == "-o" || v.Text == "+o" {
				i++
			}
			continue
		}
		s.args = argv[i:]
		return abstract.Value{}
	}
	return abstract.Value{}
}

// read binds variables from the input.
func (s *state) read(argv []abstract.Value, io abstract.Streams) abstract.Value {
	in := io.In
	if d, ok := s.readFrom(argv); ok {
		in = d
	}
	var names []string
	array := argv[0].Text != "read"
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if strings.HasPrefix(v.Text, "-") && v.Known() {
			switch v.Text[len(v.Text)-1] {
			case 'a', 'A':
				array = true
			case 'C':
				// The callback runs for every few lines.
				if array && i+1 < len(argv) {
					s.nested(argv[i+1].Text, argv[i+1].From)
				}
				i++
			case 'd', 'n', 'N', 'p', 't', 'u', 'i', 'O', 's', 'c':
				if v.Text != "-s" && len(v.Text) >= 2 && v.Text != "-rs" {
					i++
				}
			}
			continue
		}
		names = append(names, v.Text)
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
		if array {
			names[0] = "MAPFILE"
		}
	}
	line := in
	if in.Known() && !array {
		line.Text, _, _ = strings.Cut(strings.TrimLeft(in.Text, "\n"), "\n")
	}
	if !in.Known() || in.Text == "" && in.Taint == 0 {
		for _, n := range names {
			s.assign(n, abstract.Unknown("$"+n, in.Taint|abstract.Foreign).Of(abstract.FromInput))
		}
		return abstract.Value{}
	}
	parts := strings.Fields(line.Text)
	if array {
		b := binding{name: names[0], array: true}
		for i, p := range parts[:min(len(parts), abstract.MaxFields)] {
			b.elems = append(b.elems, element{itoa(i), abstract.Value{Text: p, Taint: in.Taint}})
		}
		s.bind(b)
		return abstract.Value{}
	}
	for i, n := range names {
		v := abstract.Value{Taint: in.Taint}
		switch {
		case i < len(names)-1 && len(parts) > 0:
			v.Text, parts = parts[0], parts[1:]
		case i == len(names)-1:
			v.Text = strings.Join(parts, " ")
		}
		s.assign(n, v)
	}
	return abstract.Value{}
}

func (s *state) readFrom(argv []abstract.Value) (abstract.Value, bool) {
	for i, v := range argv {
		n, ok := strings.CutPrefix(v.Text, "-u")
		if !ok || !v.Known() {
			continue
		}
		if n == "" && i+1 < len(argv) {
			n = argv[i+1].Text
		}
		d, ok := s.fd(n)
		return d.val, ok
	}
	return abstract.Value{}, false
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
		if name, text, ok := strings.Cut(v.Text, "="); ok && v.Known() {
			s.assign(name, s.arithmText(text))
		} else {
			s.subscript(v.Text)
		}
	}
	return abstract.Value{}
}
