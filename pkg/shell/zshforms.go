package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// zshParam walks an expansion that only zsh has.
func (s *state) zshParam(p *syntax.ParamExp, show string) []abstract.Value {
	var vals []abstract.Value
	switch {
	case p.NestedParam != nil:
		vals = []abstract.Value{s.part(p.NestedParam)}
	case p.Param != nil:
		vals, _ = s.parameter(p, show)
	}
	if p.Exp != nil {
		vals = append(vals, s.word(p.Exp.Word))
		if op := p.Exp.Op; op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull {
			s.forget()
		}
	}
	if p.Repl != nil {
		vals = append(vals, s.word(p.Repl.Orig), s.word(p.Repl.With))
	}
	if p.Slice != nil {
		s.number(p.Slice.Offset)
		if p.Slice.Length != nil {
			s.number(p.Slice.Length)
		}
	}
	if p.Flags != nil {
		s.expandedTwice(p, vals)
	}
	if len(vals) == 1 && len(p.Modifiers) == 1 && p.Flags == nil && p.NestedParam == nil && s.zsh {
		if v, ok := modify(vals[0], p.Modifiers[0].Value); ok {
			return []abstract.Value{v}
		}
	}
	return []abstract.Value{vague(show, vals...)}
}

// expandedTwice walks what ${(e)x} runs of a value, and ${(%)x} where prompts are expanded.
func (s *state) expandedTwice(p *syntax.ParamExp, vals []abstract.Value) {
	letters := flagLetters(p.Flags.Value)
	always := strings.Contains(letters, "e")
	if strings.Contains(letters, "P") { // they name variables
		for i, v := range vals {
			s.subscriptIn(v, true)
			if b, ok := s.attribute(v.Text); ok && v.Known() && !b.array && !b.weak {
				vals[i] = b.val
			} else {
				vals[i] = vague("${(P)…}", v)
			}
		}
	}
	if !always && !strings.Contains(letters, "%") {
		return
	}
	for _, v := range vals {
		switch {
		case v.Known():
			s.expandsText(v.Text, s.spanOf(p))
		case always:
			s.dynamic(v.Cause(), "an expansion runs what a value holds: "+abstract.Clip(v.String()), s.spanOf(p))
		}
	}
}

// expandsText walks the expansions in a text that is no code otherwise, such as a prompt.
func (s *state) expandsText(text string, at effect.Span) {
	s.nested("echo \""+strings.ReplaceAll(text, `"`, `\"`)+"\"", at)
}

// flagLetters returns the flags of an expansion without what stands behind some of them,
// between characters that may be any.
func flagLetters(flags string) string {
	var b strings.Builder
	for i := 0; i < len(flags); i++ {
		b.WriteByte(flags[i])
		if strings.IndexByte("gIjlrsZ_", flags[i]) < 0 {
			continue
		}
		for i+1 < len(flags) {
			open := flags[i+1]
			end := open
			if at := strings.IndexByte("({[<", open); at >= 0 {
				end = ")}]>"[at]
			} else if open >= '0' && open <= '9' || open|0x20 >= 'a' && open|0x20 <= 'z' {
				break
			}
			n := strings.IndexByte(flags[i+2:], end)
			if n < 0 {
				return b.String()
			}
			i += 2 + n
		}
	}
	return b.String()
}

// modified returns the parts that zsh makes of a parameter and what is written behind it:
// $#name, and $name:t. It is nil where it makes the same of them as other shells.
func (s *state) modified(p *syntax.ParamExp, l *syntax.Lit) []syntax.WordPart {
	switch {
	case p.Param.Value == "#" && l.Value != "" && (l.Value[0] == '_' || syntax.ValidName(l.Value[:1])):
		if s.asZsh() {
			return []syntax.WordPart{unknownPart()}
		}
	case len(l.Value) > 1 && l.Value[0] == ':' && strings.IndexByte("aAceghlpPqQrstuwWx&", l.Value[1]) >= 0:
		if s.modifies(p.Param.Value) && s.asZsh() {
			if strings.IndexByte("ehlrtu", l.Value[1]) < 0 {
				return []syntax.WordPart{unknownPart()}
			}
			member := *p
			member.Modifiers = []*syntax.Lit{{ValuePos: l.ValuePos, Value: l.Value[1:2]}}
			return append([]syntax.WordPart{&member}, literal(l.Value[2:], l).Parts...)
		}
	}
	return nil
}

// modifies reports whether a modifier behind a parameter is looked at: what the environment holds is mostly not
// known, with or without one.
func (s *state) modifies(name string) bool {
	switch name {
	case "PWD", "OLDPWD", "HOME", "SHELL", "TMPDIR", "0", "@", "*":
		return true
	}
	_, bound := s.attribute(name)
	if n, err := strconv.Atoi(name); err == nil {
		_, bound = s.parameterAt(n)
	}
	return bound
}

// modify applies a modifier of zsh to a value.
func modify(v abstract.Value, how string) (abstract.Value, bool) {
	slash := strings.LastIndexByte(v.Text, '/')
	switch {
	case !v.Known():
		return v, false
	case how == "l":
		v.Text = strings.ToLower(v.Text)
	case how == "u":
		v.Text = strings.ToUpper(v.Text)
	case how == "t" && !strings.HasSuffix(v.Text, "/"):
		v.Text = v.Text[slash+1:]
	case how == "h" && slash > 0 && !strings.HasSuffix(v.Text, "/"):
		v.Text = strings.TrimRight(v.Text[:slash], "/")
	default:
		return v, false
	}
	return v, true
}

// zshWords returns the words of a command as zsh reads them: =name is the path of a program,
// and a brace that closes ends a command wherever it stands.
func (s *state) zshWords(words []*syntax.Word, argv []abstract.Value) []abstract.Value {
	for i, w := range words {
		switch text := w.Lit(); {
		case text == "}" && s.asZsh():
			s.dynamic(effect.CauseSyntax, "zsh ends a command at a brace", s.spanOf(w))
		case text == "foreach" && i == 0 && s.asZsh():
			s.dynamic(effect.CauseSyntax, "zsh reads a loop here", s.spanOf(w))
		case len(text) > 1 && text[0] == '=' && text[1] != '=' && i < len(argv) && len(argv) == len(words) && argv[i].Text == text && s.asZsh():
			if i == 0 {
				argv[i].Text = text[1:]
				continue
			}
			argv[i] = abstract.Value{Text: "*/" + effect.Quote(text[1:]), Show: text, IsPattern: true, From: argv[i].From}
		}
	}
	return argv
}

// repeat walks what zsh runs any number of times.
func (s *state) repeat(words []*syntax.Word, at effect.Span, io abstract.Streams) abstract.Value {
	var b abstract.Builder
	text := s.asTyped(words)
	s.turns(func() { b.Add(s.nestedWith(text, at, io)) })
	s.exit = anyExit
	return maybe(b.Value())
}

// disables takes functions and aliases away, or may do so.
func (s *state) disables(argv []abstract.Value) {
	for _, v := range argv[1:] {
		if strings.HasPrefix(v.Text, "-") {
			continue
		}
		if !v.Known() || strings.ContainsAny(v.Text, "*?[") {
			v = abstract.Unknown("…", 0)
		}
		s.undefine(v, false)
	}
}

// emulates walks the code that zsh runs as another shell would, or notes that what follows
// is read so.
func (s *state) emulates(argv []abstract.Value, io abstract.Streams) {
	code := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.Text == "-c" })
	if code < 0 || code+1 == len(argv) {
		s.posix = s.posix || s.asZsh()
		return
	}
	posix := s.posix
	s.posix = true
	s.eval([]abstract.Value{argv[0], argv[code+1]}, io)
	s.posix = posix
}

// readsAliases notes that text is read when aliases stand for any word in it.
func (s *state) readsAliases(at effect.Span) {
	if s.anyWord && s.asZsh() {
		s.dynamic(effect.CauseCode, "an alias may stand for any word of what is run", at)
	}
}

// setsCommands follows an array that is set as a whole, by which zsh gives names what they run.
func (s *state) setsCommands(b *binding) {
	if !commandTables[b.name] || strings.HasPrefix(b.name, "BASH_") || !s.asZsh() {
		return
	}
	known := len(s.funcs)
	for i := 0; i+1 < len(b.elems); i += 2 {
		s.setsCommand(b.name, b.elems[i].val, b.elems[i+1].val)
	}
	for i := known; i < len(s.funcs); i++ {
		s.funcs[i].called = true // if nothing calls it, it may as well be a list of words
	}
}

// tied follows an array that zsh keeps the same as something else: the parameters, or where
// programs are looked for.
func (s *state) tied(b *binding) {
	if !s.asZsh() {
		return
	}
	switch {
	case b.name == "argv":
		s.vars = append(s.vars, binding{name: positionalName, array: true, unsure: true, elems: slices.Clone(b.elems)})
	case b.name == "path" && b.array && len(b.elems) > 0:
		s.searchPath(b.elems[0].val)
	}
}

// print is echo of zsh, with options of its own.
func (s *state) print(argv []abstract.Value, io abstract.Streams) abstract.Value {
	words, flags := argv[1:], ""
	for len(words) > 0 && words[0].Known() && len(words[0].Text) > 1 && words[0].Text[0] == '-' {
		if flags += words[0].Text[1:]; words[0].Text == "--" {
			words = words[1:]
			break
		}
		last := words[0].Text[len(words[0].Text)-1]
		if words = words[1:]; strings.IndexByte("CfuvxX", last) >= 0 && len(words) > 0 {
			if last == 'v' {
				s.assignTo(words[0], vague("$"+words[0].Text, words[1:]...))
			}
			words = words[1:]
		}
	}
	out := abstract.JoinValues(words)
	if strings.Contains(flags, "P") && out.Known() {
		s.expandsText(out.Text, join(argv))
	}
	switch {
	case strings.ContainsAny(flags, "suvz"):
		return abstract.Value{}
	case strings.Trim(flags, "nr-") != "" || strings.Contains(out.Text, `\\`):
		return maybe(out)
	}
	return s.echo(append([]abstract.Value{argv[0]}, words...), io)
}

// qualifiers are those of a glob of zsh that run code: e with the code between two
// characters, and + with the name of a function.
var qualifiers = prefilter.Lazy(`^(?:#q)?[-/F.@=p*%rwxAIERWXsStUG^MTNDnoO,]*(?:e[^a-zA-Z0-9_|]|\+[a-zA-Z_])`)

// qualifierRuns reports whether what stands in brackets behind a glob runs code in zsh.
func qualifierRuns(text string) bool {
	return !strings.Contains(text, "|") && qualifiers().MatchString(text)
}

// qualifierList is a list of qualifiers of zsh up to its end, or to one that holds text:
// in add(3,4) and f(key) there is none, so that no file has that name.
var qualifierList = prefilter.Lazy(`^(?:#q)?(?:[-/F.@=p*%rwxAIERWXsStUG^MTNDn,]|[dl][-+]?\d+|[amcL][hMwsmkKpPgGtT]?[-+]?\d+|[oO][nLlamcdN])*(?:\)|$|[f:[YPug#+]|[oO+]\w|[oO]?e[^\w\s])`)

// qualified returns the pattern of a word that ends in qualifiers as zsh has them.
func (s *state) qualified(l *syntax.Lit) (abstract.Value, bool) {
	before, in, ok := strings.Cut(l.Value, "(")
	if !ok || strings.HasSuffix(before, `\`) || !s.asZsh() || !qualifierList().MatchString(in) {
		return abstract.Value{}, false
	}
	if qualifierRuns(in) {
		s.dynamic(effect.CauseCode, "a glob may run code: "+abstract.Clip(in), s.span(0, 0))
	}
	var b abstract.Builder
	b.Unescaped(before)
	show := "(" + in
	if strings.HasPrefix(in, "#") { // no qualifiers, but how the rest is matched
		show += "…"
	}
	b.Add(abstract.Value{Text: "*", Show: show, IsPattern: true})
	return b.Value(), true
}
