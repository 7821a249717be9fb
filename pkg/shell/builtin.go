package shell

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

func itoa(n int) string { return strconv.Itoa(n) }

// builtin returns what a command of the shell itself does. Those that have a
// program of the same name and no say over the shell, such as kill, are left
// to package command.
func builtin(name string) (func(*state, []value, streams) value, bool) {
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

func special(name string) func(*state, []value, streams) value {
	return func(s *state, argv []value, io streams) value {
		switch name {
		case "test", "[":
			for i, v := range argv {
				if v.known() && strings.Contains(v.text, "[$(") || i > 0 && argv[i-1].text == "-v" {
					s.arithmText(v.text)
				}
			}
		case "shift":
			if len(s.args) > 0 {
				s.args = s.args[1:]
			}
		case "history":
			if len(argv) > 1 && (argv[1].text == "-c" || argv[1].text == "-w" || argv[1].text == "-a" || argv[1].text == "-d") {
				s.emit(effect.Effect{Kind: effect.Destroy, Program: "history", Reason: "changes the command history", From: join(argv)})
			}
		case "enable":
			// enable -f loads a shared object into the shell.
			for i, v := range argv {
				if v.text == "-f" && i+1 < len(argv) {
					s.dynamic("loads code into the shell: "+argv[i+1].String(), join(argv))
				}
			}
		case "fc":
			// What fc runs is in the history; fc -l only shows it.
			if !listsHistory(argv[1:]) {
				s.dynamic("runs a line of the history", join(argv))
			}
		case "bind":
			// bind -x '"KEY": CMD' makes a key run CMD.
			for i, v := range argv {
				if v.text == "-x" && i+1 < len(argv) {
					_, code, _ := strings.Cut(argv[i+1].text, ":")
					s.nested(code, argv[i+1].from)
				}
			}
		case "complete", "compgen":
			for i, v := range argv {
				if (v.text == "-C" || v.text == "-W") && i+1 < len(argv) && argv[i+1].known() {
					s.nested(argv[i+1].text, argv[i+1].from)
				}
			}
		case "hash":
			// hash -p FILE NAME makes NAME run FILE.
			if len(argv) > 3 && argv[1].text == "-p" && argv[2].known() {
				s.aliases = append(s.aliases, alias{argv[3].text, argv[2].text})
			}
		}
		return value{}
	}
}

// listsHistory reports whether words after fc make it list and nothing else.
func listsHistory(words []value) bool {
	list := false
	for _, w := range words {
		if !w.known() {
			return false
		}
		if strings.HasPrefix(w.text, "-") && strings.Trim(w.text[1:], "0123456789") != "" {
			if strings.Trim(w.text[1:], "lnrdfEiD") != "" {
				return false
			}
			list = list || strings.Contains(w.text, "l")
		}
	}
	return list
}

func (s *state) echo(argv []value, _ streams) value {
	words, escapes, newline := argv[1:], false, true
	for len(words) > 0 && isEchoFlag(words[0].text) && !words[0].pattern {
		escapes = escapes || strings.ContainsRune(words[0].text, 'e')
		newline = newline && !strings.ContainsRune(words[0].text, 'n')
		words = words[1:]
	}
	v := joinValues(words)
	if v.known() {
		// dash and zsh resolve escapes without -e.
		if escapes {
			v.text = ansiC(v.text)
		}
		if newline {
			v.text += "\n"
		}
	}
	return v
}

func isEchoFlag(s string) bool {
	return len(s) > 1 && s[0] == '-' && strings.Trim(s[1:], "neE") == ""
}

func (s *state) pwd([]value, streams) value {
	if cwd := s.place().CWD; cwd != "" {
		return lit(cwd + "\n")
	}
	return unknown("$(pwd)", 0)
}

// cd moves the working folder of what follows.
func (s *state) cd(argv []value, _ streams) value {
	dir := value{text: "~"}
	for _, v := range argv[1:] {
		if v.text != "--" && (len(v.text) < 2 || v.text[0] != '-') {
			dir = v
			break
		}
	}
	if s.remote > 0 {
		return value{}
	}
	next := *s.place()
	next.CWD = ""
	if dir.known() && dir.text != "-" && argv[0].text != "popd" {
		if p, pattern := s.place().Path(dir.text, false); !pattern && p != "" {
			next = *s.place().In(p)
		}
	}
	s.bind(binding{name: workdirName, kind: workdir, place: &next})
	return value{}
}

func (s *state) eval(argv []value, io streams) value {
	words := argv[1:]
	if len(words) > 0 && words[0].text == "--" {
		words = words[1:]
	}
	v := joinValues(words)
	if v.known() && v.text == "" {
		return value{}
	}
	at := join(argv)
	if v.known() && v.taint == 0 {
		return s.nestedWith(v.text, at, io)
	}
	return s.runText("shell", v, "eval", at, s.args)
}

func (s *state) sourceFile(argv []value, io streams) value {
	if len(argv) < 2 {
		return value{}
	}
	f := argv[1]
	if f.text == "--" && len(argv) > 2 {
		f = argv[2]
	}
	if f.known() && (f.text == "/dev/stdin" || f.text == "/dev/fd/0" || f.text == "/proc/self/fd/0") {
		return s.runText("shell", io.in, argv[0].text, join(argv), nil)
	}
	return s.runFile(f, "shell", nil, io, join(argv))
}

func (s *state) exec(argv []value, io streams) value {
	rest := argv[1:]
	for len(rest) > 0 && rest[0].known() && strings.HasPrefix(rest[0].text, "-") {
		if rest[0].text == "-a" && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		if io.redirected {
			s.stdin = &io.in
		}
		return value{}
	}
	return s.invoke(rest, io)
}

func (s *state) commandWord(argv []value, io streams) value {
	rest := argv[1:]
	for len(rest) > 0 && rest[0].known() && strings.HasPrefix(rest[0].text, "-") {
		if strings.ContainsAny(rest[0].text, "vV") {
			if len(rest) == 2 {
				return rest[1] // its path, or the name itself
			}
			return unknown("$("+"command -v)", 0)
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return value{}
	}
	return s.invoke(rest, io)
}

func (s *state) trap(argv []value, io streams) value {
	if len(argv) < 3 || argv[1].text == "-" || argv[1].text == "-p" || argv[1].text == "-l" {
		return value{}
	}
	code := argv[1]
	if code.text == "--" {
		code = argv[2]
	}
	if code.known() {
		return s.nestedWith(code.text, code.from, io)
	}
	return s.runText("shell", code, "trap", code.from, nil)
}

func (s *state) defineAlias(argv []value, _ streams) value {
	for _, v := range argv[1:] {
		name, text, ok := strings.Cut(v.text, "=")
		if !ok {
			continue
		}
		if !v.known() {
			s.dynamic("an alias is not known: "+clip(v.String()), v.from)
			continue
		}
		if len(s.aliases) > 256 {
			s.giveUp("too many aliases")
			return value{}
		}
		s.aliases = append(s.aliases, alias{name, text})
		// It may be used in a later command; what it runs shows here.
		s.nested(text, v.from)
	}
	return value{}
}

func (s *state) unalias(argv []value, _ streams) value {
	for _, v := range argv[1:] {
		for i := range s.aliases {
			if s.aliases[i].name == v.text || v.text == "-a" {
				s.aliases[i].name = ""
			}
		}
	}
	return value{}
}

// export handles the words of export, declare and their kin when they were not
// parsed as such: behind `command`, or put together from quoted parts.
func (s *state) export(argv []value, _ streams) value {
	ref := argv[0].text == "nameref"
	for _, v := range argv[1:] {
		if strings.HasPrefix(v.text, "-") && !strings.Contains(v.text, "=") {
			ref = ref || strings.Contains(v.text, "n") && argv[0].text != "export"
			continue
		}
		name, text, ok := strings.Cut(v.text, "=")
		if !ok {
			continue
		}
		val := v
		val.text = text
		if _, shown, ok := strings.Cut(v.show, "="); ok {
			val.show = shown
		}
		if ref {
			s.bind(binding{name: name, val: val, kind: reference})
			continue
		}
		s.assign(name, val)
		s.environmentCode(name, val, v.from)
	}
	if len(argv) > 1 && argv[1].text == "-p" || len(argv) == 1 {
		return unknown("the environment", dump)
	}
	return value{}
}

func (s *state) unset(argv []value, _ streams) value {
	for _, v := range argv[1:] {
		switch {
		case v.text == "HISTFILE":
			s.emit(effect.Effect{Kind: effect.Destroy, Program: "unset", Reason: "stops the command history", From: v.from})
		case strings.HasPrefix(v.text, "-"):
			continue
		case strings.Contains(v.text, "["):
			s.arithmText(v.text)
		}
		s.bind(binding{name: v.text, kind: unset})
		for i := range s.funcs {
			if s.funcs[i].name == v.text && argv[1].text == "-f" {
				s.funcs[i].name = ""
			}
		}
	}
	return value{}
}

func (s *state) set(argv []value, _ streams) value {
	if len(argv) == 1 {
		return unknown("the environment", dump)
	}
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if v.text == "--" {
			s.args = argv[i+1:]
			return value{}
		}
		if v.known() && (strings.HasPrefix(v.text, "-") || strings.HasPrefix(v.text, "+")) {
			if v.text == "-o" || v.text == "+o" {
				i++
			}
			continue
		}
		s.args = argv[i:]
		return value{}
	}
	return value{}
}

// read binds variables from the input.
func (s *state) read(argv []value, io streams) value {
	in := io.in
	if d, ok := s.readFrom(argv); ok {
		in = d
	}
	var names []string
	array := argv[0].text != "read"
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if strings.HasPrefix(v.text, "-") && v.known() {
			switch v.text[len(v.text)-1] {
			case 'a', 'A':
				array = true
			case 'd', 'n', 'N', 'p', 't', 'u', 'i', 'O', 's', 'C', 'c':
				if v.text != "-s" && len(v.text) >= 2 && v.text != "-rs" {
					i++
				}
			}
			continue
		}
		names = append(names, v.text)
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
		if array {
			names[0] = "MAPFILE"
		}
	}
	line := in
	if in.known() && !array {
		line.text, _, _ = strings.Cut(strings.TrimLeft(in.text, "\n"), "\n")
	}
	if !in.known() || in.text == "" && in.taint == 0 {
		for _, n := range names {
			s.assign(n, unknown("$"+n, in.taint|foreign))
		}
		return value{}
	}
	parts := strings.Fields(line.text)
	if array {
		b := binding{name: names[0], array: true}
		for i, p := range parts[:min(len(parts), maxFields)] {
			b.elems = append(b.elems, element{itoa(i), value{text: p, taint: in.taint}})
		}
		s.bind(b)
		return value{}
	}
	for i, n := range names {
		v := value{taint: in.taint}
		switch {
		case i < len(names)-1 && len(parts) > 0:
			v.text, parts = parts[0], parts[1:]
		case i == len(names)-1:
			v.text = strings.Join(parts, " ")
		}
		s.assign(n, v)
	}
	return value{}
}

func (s *state) readFrom(argv []value) (value, bool) {
	for i, v := range argv {
		n, ok := strings.CutPrefix(v.text, "-u")
		if !ok || !v.known() {
			continue
		}
		if n == "" && i+1 < len(argv) {
			n = argv[i+1].text
		}
		d, ok := s.fd(n)
		return d.val, ok
	}
	return value{}, false
}

// ztcp is zsh's module for connections: it leaves a descriptor in $REPLY.
func (s *state) ztcp(argv []value, _ streams) value {
	e := effect.Effect{Kind: effect.Connect, Pattern: true, From: join(argv)}
	for _, v := range argv[1:] {
		if v.known() && !strings.HasPrefix(v.text, "-") {
			e.Host, e.Pattern = effect.Host(v.text), false
			break
		}
	}
	s.once(e)
	s.fds = append(s.fds, descriptor{n: "ztcp", val: unknown("what a connection sends", network|socket), out: &target{socket: true}})
	s.assign("REPLY", lit("ztcp"))
	return value{}
}

func (s *state) let(argv []value, _ streams) value {
	for _, v := range argv[1:] {
		name, text, ok := strings.Cut(v.text, "=")
		if ok && v.known() {
			s.assign(name, s.arithmText(text))
		}
	}
	return value{}
}
