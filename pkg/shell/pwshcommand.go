package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A psArg is an argument of a PowerShell command.
type psArg struct {
	param string // full name in lower case, "" if it has none
	use   byte   // see cmdlet.params
	val   value
	given bool
}

// command walks a command whose name was read: its arguments and what it does.
func (p *pwsh) command(name, in value) value {
	name.from = p.at
	lower := strings.ToLower(strings.TrimSuffix(name.text, ".exe"))
	c := findCmdlet(lower)
	if strings.HasSuffix(strings.ToLower(name.text), ".exe") {
		c = nil
	}
	if b, ok := p.s.lookup("psalias:" + lower); ok && b.val.known() {
		name = b.val
		c = findCmdlet(strings.ToLower(name.text))
	}
	mark := len(p.s.effects)
	args, io := p.commandArguments(c, in)
	rest := append([]effect.Effect(nil), p.s.effects[min(mark, len(p.s.effects)):]...)
	p.s.effects = p.s.effects[:min(mark, len(p.s.effects))]
	defer func() { p.s.effects = append(p.s.effects, rest...) }()
	if !name.known() {
		return p.s.unknownProgram(append([]value{name}, values(args)...), io)
	}
	argv := []value{name}
	for _, a := range args {
		if a.param != "" {
			argv = append(argv, lit("-"+a.param))
		}
		if a.given {
			argv = append(argv, a.val)
		}
	}
	for i := range argv {
		argv[i].from = p.at
	}
	out := value{}
	switch {
	case c != nil:
		class := c.class
		p.s.execute(argv, c.name, class)
		out = p.cmdlet(c, args, io)
	case verbNoun(lower):
		class := effect.Unknown
		if strings.Contains(readers, " "+lower+" ") {
			class = effect.ReadOnly
		}
		p.s.execute(argv, lower, class)
		out = unknown("what "+lower+" writes", in.taint)
		for _, v := range argv[1:] {
			p.s.suspect(v)
			out.taint |= v.taint
		}
	default:
		out = p.s.windowsInvoke(argv, io)
	}
	return p.s.deliver(io, out)
}

func values(args []psArg) []value {
	out := make([]value, 0, len(args))
	for _, a := range args {
		out = append(out, a.val)
	}
	return out
}

func verbNoun(lower string) bool {
	verb, noun, ok := strings.Cut(lower, "-")
	if !ok || len(verb) < 2 || noun == "" || strings.ContainsAny(lower, "./\\:") {
		return false
	}
	switch verb {
	case "get", "set", "new", "remove", "add", "invoke", "start", "stop", "test", "write", "read", "out", "select", "where", "sort", "group", "measure", "compare", "format", "convertto", "convertfrom", "import", "export", "enable", "disable", "install", "uninstall", "register", "unregister", "update", "clear", "copy", "move", "rename", "restart", "resume", "suspend", "wait", "enter", "exit", "connect", "disconnect", "find", "show", "join", "split", "resolve", "save", "send", "receive", "publish", "reset", "restore", "grant", "revoke", "mount", "dismount", "debug", "trace", "limit", "backup", "checkpoint", "complete", "confirm", "expand", "compress", "protect", "unprotect", "push", "pop", "use", "switch", "undo", "unlock", "lock", "tee", "foreach", "repair", "request", "submit", "search", "watch", "hide", "block", "unblock", "approve", "deny", "merge", "initialize", "optimize", "sync", "ping", "build", "deploy", "convert", "edit", "open", "close", "step", "skip", "redo", "assert":
		return true
	}
	return false
}

// commandArguments reads the arguments of a command.
func (p *pwsh) commandArguments(c *cmdlet, in value) ([]psArg, streams) {
	io := streams{in: in}
	var args []psArg
	position := 0
	for p.i < len(p.text) && !p.s.gaveUp && len(args) < maxFields {
		p.skip(" \t")
		if p.i >= len(p.text) {
			break
		}
		ch := p.text[p.i]
		if strings.IndexByte("\r\n;|)}&", ch) >= 0 { // a single & runs the command in the background
			break
		}
		if ch == '>' || (ch == '2' || ch == '1' || ch == '*') && p.i+1 < len(p.text) && p.text[p.i+1] == '>' {
			p.redirect(&io)
			continue
		}
		start := p.i
		if ch == '-' && p.i+1 < len(p.text) && (isWordByte(p.text[p.i+1]) && (p.text[p.i+1] < '0' || p.text[p.i+1] > '9')) && c != nil {
			args = append(args, p.parameter(c))
		} else {
			a := psArg{val: p.argument(), given: true}
			if c != nil {
				_, a.use = c.position(position)
				position++
			}
			args = append(args, a)
		}
		if p.i == start {
			p.i++
		}
	}
	return args, io
}

func (p *pwsh) redirect(io *streams) {
	n := ""
	if p.text[p.i] != '>' {
		n = p.text[p.i : p.i+1]
		p.i++
	}
	add := strings.HasPrefix(p.text[p.i:], ">>")
	p.skip("> \t")
	if p.i < len(p.text) && p.text[p.i] == '&' {
		p.i = min(len(p.text), p.i+2)
		return
	}
	w := p.argument()
	if strings.EqualFold(w.text, "$null") {
		io.out = &target{discard: true}
		return
	}
	p.s.redirectOut(io, strings.Trim(n, "*"), w, add)
}

// parameter reads -Name, -Name:value and -Name value.
func (p *pwsh) parameter(c *cmdlet) psArg {
	p.i++
	start := p.i
	for p.i < len(p.text) && isWordByte(p.text[p.i]) {
		p.i++
	}
	full, use := c.param(strings.ToLower(p.text[start:p.i]))
	a := psArg{param: full, use: use}
	if p.i < len(p.text) && p.text[p.i] == ':' {
		p.i++
		a.val, a.given = p.argument(), use != '!'
		return a
	}
	if use == '!' {
		return a
	}
	mark := p.i
	p.skip(" \t")
	if p.i >= len(p.text) || strings.IndexByte("\r\n;|)}-", p.text[p.i]) >= 0 && !(use != 0 && p.text[p.i] == '-' && p.i+1 < len(p.text) && p.text[p.i+1] >= '0' && p.text[p.i+1] <= '9') {
		p.i = mark
		return a
	}
	a.val, a.given = p.argument(), true
	return a
}

// argument reads one argument: words that touch each other are one.
func (p *pwsh) argument() value {
	var b builder
	start := p.i
	for p.i < len(p.text) && !p.s.gaveUp {
		c := p.text[p.i]
		if strings.IndexByte(" \t\r\n;|)}", c) >= 0 || p.i == start && c == '>' {
			break
		}
		before := p.i
		switch {
		case c == ',':
			b.literal(" ")
			p.i++
			p.skip(" \t\r\n")
		case c == '\'' || c == '"' || c == '(' || c == '$' || c == '@' || c == '{' || c == '[' && p.i == start:
			b.add(p.operand())
		default:
			b.literal(p.bare())
		}
		if p.i == before {
			if c == '&' || c == '<' {
				b.literal(string(c))
			}
			p.i++
		}
	}
	v := b.value()
	v.from = p.at
	return v
}

// cmdlet does what a cmdlet's arguments say.
func (p *pwsh) cmdlet(c *cmdlet, args []psArg, io streams) value {
	s := p.s
	in := io.in
	out := unknown("what "+c.name+" writes", in.taint)
	if c.effect != "" {
		s.once(effect.Effect{Kind: c.effect, Program: c.name, Reason: c.name, From: p.at})
	}
	recursive, posts := false, false
	var program value
	var programArgs []value
	var written []target
	read := value{}
	for _, a := range args {
		recursive = recursive || a.param == "recurse"
		posts = posts || a.use == 't' || a.param == "infile"
	}
	for _, a := range args {
		v := a.val
		v.from = p.at
		if !a.given {
			continue
		}
		switch a.use {
		case 'r':
			read = s.readFile(effect.ReadFile, p.windowsGlob(v))
			if recursive {
				s.path(effect.ReadFile, p.windowsGlob(v), true)
			}
			out.taint |= read.taint
			if read.known() && c.name == "get-content" {
				out = read
			}
			if posts && c.class == effect.Network {
				s.upload(read, c.name, p.at)
			}
		case 'w', 'd', 'm', 'p', 'c', 'l':
			written = append(written, p.touch(c, a.use, v, recursive)...)
			if strings.HasPrefix(strings.ToLower(v.text), "env:") && a.use == 'l' {
				out.taint |= dump
			}
		case 'u':
			s.url(effect.HTTPRequest, v)
			out.taint |= network
			if v.taint&(secret|dump|credential) != 0 {
				s.upload(v, c.name, p.at)
			}
		case 'h':
			s.host(effect.Connect, v)
		case 't':
			s.upload(v, c.name, p.at)
		case 'e':
			return p.evaluate(v)
		case 'x':
			program = v
		case 'a':
			programArgs = splitWords(v)
		case 'n':
			out.taint |= v.taint
		}
	}
	p.after(c, args, in, program, programArgs)
	if c.name == "invoke-expression" {
		return p.evaluate(in)
	}
	for _, t := range written {
		v := in
		switch {
		case c.class == effect.Network:
			v = unknown("a download", network)
		case read.taint != 0 || read.pattern:
			v = read
		case len(args) > 1 && (c.name == "set-content" || c.name == "add-content"):
			v = args[1].val
		}
		s.addFile(file{path: t.path, pattern: t.pattern, val: v})
	}
	if c.name == "write-output" || c.name == "write-host" {
		vals := values(args)
		return joinValues(vals)
	}
	if c.name == "foreach-object" || c.name == "where-object" || strings.HasPrefix(c.name, "out-") {
		return unknown("…", out.taint)
	}
	return out
}

func (p *pwsh) windowsGlob(v value) value {
	if v.known() && strings.ContainsAny(v.text, "*?") {
		v.pattern, v.show, v.text = true, v.text, strings.ReplaceAll(v.text, `\`, "/")
	}
	return v
}

// touch records an effect on a path or a registry key.
func (p *pwsh) touch(c *cmdlet, use byte, v value, recursive bool) []target {
	lower := strings.ToLower(v.text)
	registry := strings.HasPrefix(lower, "hk") && strings.Contains(lower[:min(len(lower), 6)], ":") || strings.HasPrefix(lower, "registry::")
	if registry {
		if use != 'l' {
			p.s.registryWrite(c.name, []value{v}, p.at)
		} else if secretHive(strings.ReplaceAll(lower, ":", "")) {
			p.s.once(effect.Effect{Kind: effect.ReadSecret, Program: c.name, Reason: "reads " + clip(v.text), From: p.at})
		}
		return nil
	}
	for _, drive := range [...]string{"env:", "function:", "variable:", "alias:", "cert:", "wsman:"} {
		if strings.HasPrefix(lower, drive) {
			return nil
		}
	}
	kind := map[byte]effect.Kind{'w': effect.WriteFile, 'd': effect.DeleteFile, 'm': effect.MoveFile, 'p': effect.ChangePermissions, 'c': effect.CreateDirectory, 'l': effect.ListDirectory}[use]
	var out []target
	for _, one := range p.list(v) {
		path, pattern := p.s.path(kind, p.windowsGlob(one), recursive)
		if use == 'w' {
			out = append(out, target{path: path, pattern: pattern})
		}
	}
	return out
}

// list cuts a list of paths, which argument joined with blanks.
func (p *pwsh) list(v value) []value {
	if v.written || !v.known() || !strings.Contains(v.text, " ") {
		return []value{v}
	}
	return splitWords(v)
}

// after does what is special to some cmdlets.
func (p *pwsh) after(c *cmdlet, args []psArg, in, program value, programArgs []value) {
	s := p.s
	switch {
	case program.text != "" && program.known():
		if isURL(program.text) {
			s.url(effect.HTTPRequest, program)
			return
		}
		p.runs = true
		for _, a := range args {
			if a.param == "verb" && strings.EqualFold(a.val.text, "runas") {
				s.once(effect.Effect{Kind: effect.ChangePrivilege, Program: c.name, From: p.at})
			}
		}
		s.windowsInvoke(append([]value{program}, programArgs...), streams{in: in})
	case program.pattern:
		s.unknownProgram(append([]value{program}, programArgs...), streams{in: in})
	}
	switch c.name {
	case "new-object":
		for _, a := range args {
			lower := strings.ToLower(a.val.text)
			if strings.Contains(lower, "tcpclient") || strings.Contains(lower, "sockets.socket") {
				host := value{}
				if _, after, ok := strings.Cut(a.val.text, "("); ok {
					host.text = after
				}
				for _, o := range args[1:] {
					if o.given && o.val.text != a.val.text {
						host = o.val
						break
					}
				}
				p.connect(host)
			}
		}
	case "set-location", "push-location":
		if len(args) > 0 {
			s.cd([]value{lit("cd"), args[0].val}, streams{})
		}
	case "set-alias", "new-alias":
		if vals := values(args); len(vals) > 1 && vals[0].known() {
			s.bind(binding{name: "psalias:" + strings.ToLower(vals[0].text), val: vals[1]})
		}
	case "set-variable":
		if vals := values(args); len(vals) > 1 && vals[0].known() {
			s.bind(binding{name: "ps:" + strings.ToLower(vals[0].text), val: vals[1]})
		}
	case "import-module":
		for _, a := range args {
			if strings.ContainsAny(a.val.text, `/\`) {
				s.runFile(a.val, "powershell", nil, streams{}, p.at)
			}
		}
	case "invoke-wmimethod", "invoke-cimmethod":
		p.runs = true
	}
}
