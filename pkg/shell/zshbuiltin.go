package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// zshSetters are commands of zsh that give variables values which are not worked out: any
// word of theirs may name one.
var zshSetters = map[string]bool{
	"getln": true, "strftime": true, "sysopen": true, "sysread": true, "sysseek": true, "syserror": true, "vared": true, "zcurses": true,
	"zformat": true, "zparseopts": true, "zpty": true, "zregexparse": true, "zselect": true, "zsocket": true, "zstat": true, "zstyle": true,
	"zsystem": true, "ztie": true,
}

// zshBuiltin is a command of zsh alone.
func (s *state) zshBuiltin(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	switch argv[0].Text {
	case "autoload":
		s.autoload(argv[1:])
	case "zmodload":
		for _, v := range argv[1:] {
			named := strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "zsh/") || strings.Contains(v.Text, ":")
			if !v.Known() || strings.Contains(v.Text, "..") || !named || s.mentions("module_path") || s.mentions("MODULE_PATH") {
				s.dynamic(effect.CauseCode, "loads code into the shell: "+v.String(), join(argv))
			}
		}
	case "sysopen":
		if last := argv[len(argv)-1]; len(argv) > 1 {
			s.path(effect.ReadFile, last, false)
			if slices.ContainsFunc(argv, func(v abstract.Value) bool {
				return v.Text == "-o" || strings.HasPrefix(v.Text, "-") && strings.ContainsAny(v.Text, "wa")
			}) {
				s.path(effect.WriteFile, last, false)
			}
		}
	case "functions":
		switch letters := argv[min(1, len(argv)-1)].Text; {
		case strings.HasPrefix(letters, "-") && strings.Contains(letters, "u"):
			s.autoload(argv[1:])
		case letters == "-c" && len(argv) > 3 && len(s.aliases) < 256: // a copy of one under another name
			s.aliases = append(s.aliases, alias{name: argv[3].Text, text: argv[2].Text})
		}
	case "zstyle": // -e: the value is what code leaves
		if len(argv) > 4 && argv[1].Text == "-e" {
			s.later(argv[4:])
		}
	case "zpty": // runs a command, or writes to one
		words := argv[1:]
		for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
			words = words[1:]
		}
		if len(words) > 1 {
			s.later(words[1:])
		}
	case "sched":
		words := argv[1:]
		for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
			words = words[1:]
		}
		if len(words) > 1 {
			s.later(words[1:])
		}
	case "zargs": // as xargs does
		if at := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.Text == "--" }); at > 0 && at+1 < len(argv) {
			s.mayRun(func() { s.invoke(append(slices.Clone(argv[at+1:]), vague("$@", argv[1:at]...)), abstract.Streams{}) })
		}
	case "zmv", "zcp", "zln":
		s.zmv(argv)
	case "zcalc":
		for _, v := range argv[1:] {
			s.subscriptIn(v, true)
		}
	}
	if argv[0].Text == "zparseopts" { // which may drop parameters
		s.bind(binding{name: positionalName, array: true, unsure: true, weak: true})
	}
	if zshSetters[argv[0].Text] {
		for _, v := range argv[1:] {
			name := strings.TrimLeft(v.Text, "-")
			if _, bound := s.attribute(name); v.Known() && bound && syntax.ValidName(name) {
				s.bind(binding{name: name, val: abstract.Variable(name, abstract.Foreign), array: true, unsure: true, weak: true})
			}
		}
	}
	return abstract.Unknown("$("+argv[0].Text+")", abstract.Foreign).Of(abstract.FromCommand)
}

// mayRun walks what may run at any time from now on, any number of times.
func (s *state) mayRun(walk func()) {
	before, remains, mark := s.outcomes(), s.remains, len(s.vars)
	end := s.apart()
	walk()
	assigns := len(s.vars) > mark
	end()
	s.uncertain(before)
	if s.mayRead(remains); assigns {
		s.forget()
	}
}

// later walks words that are run as one text, as eval runs them, at any time from now on.
func (s *state) later(words []abstract.Value) {
	s.mayRun(func() { s.eval(append([]abstract.Value{abstract.Lit("eval")}, words...), abstract.Streams{}) })
}

// zmv walks what renames many files: by a program of its own, and by a pattern and a new name that
// are expanded for each.
func (s *state) zmv(argv []abstract.Value) {
	words := argv[1:]
	var with []abstract.Value
	for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
		letter := words[0].Text[len(words[0].Text)-1]
		if words = words[1:]; strings.IndexByte("pPo", letter) >= 0 && len(words) > 0 {
			if letter != 'o' {
				with = words[:1:1]
			}
			words = words[1:]
		}
	}
	if with == nil {
		with = []abstract.Value{abstract.Lit(map[string]string{"zmv": "mv", "zcp": "cp", "zln": "ln"}[argv[0].Text])}
	}
	s.mayRun(func() {
		for _, v := range words {
			if v.Known() {
				s.expandsText(v.Text, v.From)
			}
			if _, in, ok := strings.Cut(v.Text, "("); ok && qualifierRuns(in) {
				s.dynamic(effect.CauseCode, "a glob may run code: "+abstract.Clip(in), v.From)
			}
		}
		with[0].From = argv[0].From
		s.invoke(append(with, vague("$@", words...)), abstract.Streams{})
	})
}

// maxAutoloads bounds the functions of which the file is looked for when they are called.
const maxAutoloads = 64

// autoload defines functions of which zsh reads the text from files when they are called.
func (s *state) autoload(words []abstract.Value) {
	for _, v := range words {
		switch {
		case strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+"):
			continue
		case !v.Known():
			s.dynamic(v.Cause(), "unknown function: "+abstract.Clip(v.String()), v.From)
			continue
		}
		name := path.Base(v.Text)
		for i := len(s.files) - 1; i >= 0 && s.step(1); i-- {
			if f := s.files[i]; path.Base(f.path) == name {
				s.autoloaded(name, f.val, v.From)
			}
		}
		held := s.functionFiles(v.Text)
		for _, p := range held {
			s.autoloaded(name, p, v.From)
		}
		late := slices.Index(s.autoloads, name)
		switch {
		case len(held) > 0 && late >= 0:
			s.autoloads = slices.Delete(slices.Clone(s.autoloads), late, late+1)
		case len(held) == 0 && late < 0 && name == v.Text && len(s.autoloads) < maxAutoloads:
			s.autoloads = append(s.autoloads[:len(s.autoloads):len(s.autoloads)], name)
		}
	}
}

// autoloaded defines a function that a file holds.
func (s *state) autoloaded(name string, text abstract.Value, at effect.Span) {
	if !text.Known() {
		s.runText("shell", text, "autoload", at, nil)
		return
	}
	before := s.outcomes()
	s.nested("function "+name+" {\n"+text.Text+"\n}", at)
	s.uncertain(before)
}

// functionFiles returns what the files hold in which zsh finds a function: that on disk, as far as the
// text says where to look, and what was put into folders.
func (s *state) functionFiles(name string) []abstract.Value {
	var places []abstract.Value
	if path.IsAbs(name) {
		places = []abstract.Value{abstract.Lit(path.Dir(name))}
		name = path.Base(name)
	}
	if b, ok := s.attribute("fpath"); ok {
		places = append(append(places, members(b)...), b.val)
	}
	if b, ok := s.attribute("FPATH"); ok && b.val.Known() {
		for dir := range strings.SplitSeq(b.val.Text, ":") {
			places = append(places, abstract.Lit(dir))
		}
	}
	var out []abstract.Value
	for _, dir := range places {
		if !dir.Known() || dir.Text == "" || !s.step(1) {
			continue
		}
		p, pattern := s.place().Path(dir.Text+"/"+name, false)
		if vals := s.fileValues(p, pattern); len(vals) > 0 {
			out = append(out, vals...)
		} else if s.at.Script != nil && !pattern && s.remote == 0 {
			if data, err := s.at.Script(p); err == nil && !binary(data) {
				out = append(out, abstract.Lit(string(data)))
			}
		}
	}
	return out
}

// setArray is set -A of zsh and ksh.
func (s *state) setArray(option string, argv []abstract.Value) {
	if len(argv) == 0 || !syntax.ValidName(argv[0].Text) {
		s.forget()
		return
	}
	b := binding{name: argv[0].Text, array: true, unsure: option[0] == '+' || strings.Contains(option, "s")}
	for i, v := range argv[1:] {
		b.unsure = b.unsure || v.IsPattern && !v.Written
		b.elems = append(b.elems, element{itoa(i), v})
	}
	mark := len(s.vars)
	s.setsCommands(&b)
	s.bind(b)
	if !s.zsh { // bash knows no such option
		s.weaken(mark)
	}
}
