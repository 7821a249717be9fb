package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// param returns the values of a parameter expansion: one, or as many as the
// members of a list.
func (s *state) param(p *syntax.ParamExp) []abstract.Value {
	if !s.step(1+len(s.vars)/64) || !s.enter(s.span(0, 0)) {
		return nil
	}
	defer s.leave()
	show := s.shownParam(p)
	if p.Param == nil || zshForm(p) {
		return s.zshParam(p, show)
	}
	if p.Names != 0 {
		return s.namesWith(p.Param.Value)
	}
	s.shows(p.Param.Value)
	vals, set := s.parameter(p, show)
	if b, _ := s.attribute(p.Param.Value); s.strict && p.Length && s.listIndex(p) && (!b.array || b.unsure) { // an error of bash
		s.failsLine()
	}
	if s.strict && !set && len(vals) == 1 && vals[0].Known() && vals[0].Text == "" {
		s.left.shell = true
	}
	if p.Excl && !s.listIndex(p) {
		vals, set = s.indirect(p.Param.Value, vals, show)
	}
	switch {
	case p.Length:
		return []abstract.Value{s.length(p, vals)}
	case p.Slice != nil:
		return s.slice(p, vals, show)
	case p.Repl != nil:
		orig, with := s.word(p.Repl.Orig), abstract.Value{}
		if p.Repl.With != nil {
			with = s.word(p.Repl.With)
		}
		return each(vals, func(v abstract.Value) abstract.Value { return s.replace(v, orig, with, p.Repl.All, show) })
	case p.Exp != nil:
		return s.expansion(p, vals, set, show)
	}
	return vals
}

// zshForm reports whether an expansion is of zsh or mksh alone.
func zshForm(p *syntax.ParamExp) bool {
	return p.Flags != nil || p.IsSet || p.Width || p.Split != syntax.OptUnset || p.GlobSubst != syntax.OptUnset || p.RcExpand != syntax.OptUnset || len(p.Modifiers) > 0
}

// shownParam returns the text of an expansion as people read it.
func (s *state) shownParam(p *syntax.ParamExp) string {
	if p.Param == nil {
		return "${…}"
	}
	if p.Short || p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl {
		return "$" + p.Param.Value
	}
	return "${" + p.Param.Value + "…}"
}

// vague returns the result of an expansion that is not computed.
func vague(show string, of ...abstract.Value) abstract.Value {
	out := abstract.Unknown(show, 0)
	for _, v := range of {
		out.Taint |= v.Taint
		out.Origin |= v.Origin
		out.Loose = out.Loose || v.Loose || v.IsPattern && v.Origin == 0
	}
	if out.Origin == 0 {
		out.Origin = abstract.FromVariable
	}
	return out.Of(out.Origin)
}

func each(vals []abstract.Value, f func(abstract.Value) abstract.Value) []abstract.Value {
	out := make([]abstract.Value, len(vals))
	for i, v := range vals {
		out[i] = f(v)
	}
	return out
}

// parameter returns what a parameter holds and whether the text sets it.
func (s *state) parameter(p *syntax.ParamExp, show string) (vals []abstract.Value, set bool) {
	name := p.Param.Value
	switch name {
	case "@", "*":
		args := s.positional()
		return args, len(args) > 0 && args[0].Known()
	case "#":
		args, ok := s.parameters()
		if !ok {
			return []abstract.Value{abstract.Short("$#", abstract.FromVariable)}, true
		}
		return []abstract.Value{abstract.Lit(strconv.Itoa(len(args)))}, true
	case "0":
		if b, ok := s.lookupOnce(zeroName); ok {
			return []abstract.Value{b.val}, true
		}
		return []abstract.Value{abstract.Short("$0", abstract.FromVariable)}, true
	case "?", "$", "!", "-", "_", "RANDOM", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS", "UID", "EUID", "PPID", "SRANDOM":
		if b, ok := s.lookup(name); ok {
			return []abstract.Value{b.val}, true
		}
		from := abstract.FromVariable
		if name == "!" {
			from |= abstract.FromJob
		}
		return []abstract.Value{abstract.Short("$"+name, from)}, true
	}
	if n, err := strconv.Atoi(name); err == nil {
		v, set := s.parameterAt(n)
		return []abstract.Value{v}, set
	}
	b, ok := s.lookup(name)
	if !ok {
		if p.Index != nil {
			s.index(p.Index) // a subscript is evaluated anyway
		}
		return s.environment(name), false
	}
	if b.kind == unset {
		if p.Index != nil {
			s.index(p.Index)
			if s.listIndex(p) {
				return nil, false
			}
		}
		return []abstract.Value{{}}, false
	}
	if b.array {
		b.unsure = b.unsure || s.unusual()
		return s.member(p, b, show), (!b.unsure || b.headed) && s.present(p, b)
	}
	if p.Index == nil {
		return []abstract.Value{b.val}, !b.open
	}
	return s.ofScalar(p, b, show)
}

// namesTemporary reports whether a word is a folder for temporary files, as the text has it.
func namesTemporary(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	text, ok := plainWord(w)
	return ok && strings.HasPrefix(text, "/tmp/") && path.Clean(text) == strings.TrimSuffix(text, "/")
}

// environment returns what is known about a variable that the text does not set.
func (s *state) environment(name string) []abstract.Value {
	v := abstract.Variable(name, 0)
	switch name {
	case "HOME":
		v = abstract.Lit("~")
		if s.at.Home != "" {
			v = abstract.Lit(s.at.Home)
		}
	case "PWD", "OLDPWD":
		if cwd := s.place().CWD; cwd != "" && name == "PWD" {
			v = abstract.Lit(cwd)
		}
	case "IFS":
		v = abstract.Lit(usualIFS)
	case "SHELL", "BASH":
		v = abstract.Lit("/bin/bash")
	case "TMPDIR", "TMP", "TEMP":
		if !slices.ContainsFunc(s.ahead, func(a *syntax.Assign) bool { return a.Name != nil && a.Name.Value == name && !namesTemporary(a.Value) }) {
			v = abstract.Lit("/tmp") // else the text takes it to be something else
		}
	case "OSTYPE", "HOSTTYPE", "MACHTYPE", "USER", "LOGNAME", "USERNAME", "HOSTNAME", "SHLVL":
		v = abstract.Short("$"+name, abstract.FromVariable)
	}
	if knowledge.SecretVariable(name) {
		v.Taint |= abstract.Credential
		v.Secrets = "$" + name
	}
	return []abstract.Value{v}
}

// namesWith is ${!prefix@}: the environment may hold more.
func (s *state) namesWith(prefix string) []abstract.Value {
	return []abstract.Value{abstract.Variable("{!"+prefix+"@}", 0)}
}

func (s *state) length(p *syntax.ParamExp, vals []abstract.Value) abstract.Value {
	counts := p.Param.Value == "@" || p.Param.Value == "*"
	if b, ok := s.lookup(p.Param.Value); ok && !counts && b.kind != unset {
		counts = b.array && (s.listIndex(p) || p.Index == nil && s.asZsh()) || !b.array && s.listIndex(p) && !s.asZsh()
	} else if s.listIndex(p) {
		counts = true
	}
	if counts && !s.unusual() {
		if !slices.ContainsFunc(vals, func(v abstract.Value) bool { return !v.Known() }) {
			return abstract.Lit(strconv.Itoa(len(vals)))
		}
		vals = nil
	}
	if len(vals) == 1 && vals[0].Known() {
		return abstract.Lit(strconv.Itoa(utf8.RuneCountInString(vals[0].Text)))
	}
	return abstract.Short("${#"+p.Param.Value+"}", abstract.FromVariable)
}

func (s *state) slice(p *syntax.ParamExp, vals []abstract.Value, show string) []abstract.Value {
	from, ok := s.number(p.Slice.Offset)
	count, counted := int64(1<<31), true
	if p.Slice.Length != nil {
		count, counted = s.number(p.Slice.Length)
	}
	if !ok || !counted || s.unusual() {
		return each(vals, func(v abstract.Value) abstract.Value { return vague(show, v) })
	}
	name := p.Param.Value
	list := name == "@" || name == "*"
	if list {
		if from <= 0 { // counts $0, or from the end
			return []abstract.Value{vague(show, vals...)}
		}
		from--
	} else if b, ok := s.lookup(name); ok && b.array {
		list = s.listIndex(p) || p.Index == nil && s.asZsh()
		if list && (b.keyed || b.unsure || b.next() != len(b.elems)) {
			return []abstract.Value{vague(show, vals...)}
		}
	}
	if list {
		if slices.ContainsFunc(vals, func(v abstract.Value) bool { return !v.Known() }) {
			return []abstract.Value{vague(show, vals...)}
		}
		lo, hi := s.cut(from, count, len(vals))
		return vals[lo:hi]
	}
	if s.listIndex(p) && len(vals) == 1 && vals[0].Known() && !s.asZsh() { // of a text: no word at all behind its end
		switch n := int64(utf8.RuneCountInString(vals[0].Text)); {
		case from > n:
			return nil
		case from < 0:
			return []abstract.Value{vague(show, vals...)}
		}
	}
	return each(vals, func(v abstract.Value) abstract.Value {
		if !v.Known() {
			// These start with a slash wherever they are set.
			if from == 0 && count == 1 && (name == "PATH" || name == "PWD" || name == "OLDPWD" || name == "HOME" || name == "SHELL") {
				return abstract.Lit("/")
			}
			return vague(show, v)
		}
		text := v.Text
		if text == "~" && from == 0 && count == 1 {
			return abstract.Lit("/")
		}
		runes := []rune(text)
		lo, hi := s.cut(from, count, len(runes))
		v.Text = string(runes[lo:hi])
		return v
	})
}

// cut turns an offset and a length as in ${x:o:l} into bounds.
func (s *state) cut(from, count int64, n int) (lo, hi int) {
	size := int64(n)
	if from < -size { // nothing, or all of it in zsh
		from = size
		if s.asZsh() {
			from = 0
		}
	} else if from < 0 {
		from += size
	}
	from = min(from, size)
	end := from + count
	if count < 0 {
		end = size + count
	}
	return int(from), int(max(from, min(end, size)))
}

func (s *state) expansion(p *syntax.ParamExp, vals []abstract.Value, set bool, show string) []abstract.Value {
	e := p.Exp
	empty := len(vals) == 0 || len(vals) == 1 && vals[0].Known() && vals[0].Text == ""
	if empty && len(vals) == 1 && s.emptyMember(p) {
		s.word(e.Word)
		return []abstract.Value{vague(show)}
	}
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return s.orDefault(p, vals, set, empty, show)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return s.orAlternate(p, vals, set, empty, show)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		s.word(e.Word)
		if !set || empty || !vals[0].Known() {
			s.left.shell = true
		}
		return vals
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		pat := s.word(e.Word)
		return each(vals, func(v abstract.Value) abstract.Value { return s.trim(v, pat, e.Op, show) })
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		return each(vals, func(v abstract.Value) abstract.Value { return changeCase(v, e.Op) })
	case syntax.OtherParamOps:
		op := s.word(e.Word).Text
		return each(vals, func(v abstract.Value) abstract.Value {
			if !v.Known() {
				return v
			}
			switch op {
			case "E":
				v.Text = plain.ANSIC(v.Text)
			case "U":
				v.Text = strings.ToUpper(v.Text)
			case "L":
				v.Text = strings.ToLower(v.Text)
			case "Q":
				if s.posix || v.Text == "" || strings.ContainsFunc(v.Text, func(r rune) bool { return r == '\'' || r < ' ' || r > '~' }) {
					return vague(show, v)
				}
				v.Text = "'" + v.Text + "'"
			case "P":
				// A prompt runs the command substitutions in it.
				s.nested("echo \""+strings.ReplaceAll(v.Text, `"`, `\"`)+"\"", s.spanOf(p))
				v.Taint |= abstract.Foreign
				return vague(show, v)
			default:
				return vague(show, v)
			}
			return v
		})
	}
	return each(vals, func(v abstract.Value) abstract.Value { return vague(show, v) })
}

// emptyMember reports whether an expansion is of an array with one empty member, which is
// null in zsh only where it is quoted.
func (s *state) emptyMember(p *syntax.ParamExp) bool {
	if p.Index != nil && !s.listIndex(p) {
		return false
	}
	b, ok := s.attribute(p.Param.Value)
	list := ok && b.array || p.Param.Value == "@" || p.Param.Value == "*"
	return list && s.asZsh()
}

// operand returns what an expansion such as ${x:-word} has in the place of a variable. A list
// in it may be several words.
func (s *state) operand(w *syntax.Word) abstract.Value {
	v := s.word(w)
	if w != nil && v.Known() && (s.holdsList(w) || slices.ContainsFunc(w.Parts, isStar) && s.asZsh() || strings.ContainsAny(v.Text, usualIFS) && slices.ContainsFunc(w.Parts, substitutes) && s.asZsh()) {
		return vague("${…}", v) // zsh splits what a substitution writes
	}
	return v
}

func substitutes(p syntax.WordPart) bool {
	_, ok := p.(*syntax.CmdSubst)
	return ok
}

// holdsList reports whether a word holds the members of an array or the parameters, one by one.
func (s *state) holdsList(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && !found {
			index, _ := p.Index.(*syntax.Word)
			b, bound := s.attribute(p.Param.Value)
			found = p.Param.Value == "@" || index != nil && index.Lit() == "@" || bound && b.array && index == nil && s.asZsh()
		}
		return !found
	})
	return found
}

// orDefault is ${x-word}, ${x:-word}, ${x=word} and ${x:=word}.
func (s *state) orDefault(p *syntax.ParamExp, vals []abstract.Value, set, empty bool, show string) []abstract.Value {
	e, envVar := p.Exp, !set && !empty // of the environment: may be set or not
	assigns := e.Op == syntax.AssignUnset || e.Op == syntax.AssignUnsetOrNull
	orNull := e.Op == syntax.DefaultUnsetOrNull || e.Op == syntax.AssignUnsetOrNull
	if assigns && p.Index != nil {
		old, _ := s.attribute(p.Param.Value)
		s.needsKey(old, abstract.Variable("", 0))
	}
	if set && !(empty && orNull) {
		if orNull && len(vals) == 1 && !vals[0].Known() { // it may be empty
			mark := len(s.vars)
			word := s.operand(e.Word)
			if assigns {
				s.assignTo(abstract.Lit(p.Param.Value), word)
			}
			s.weaken(mark)
			return []abstract.Value{vague(show, vals[0], word)}
		}
		return vals
	}
	if envVar && vals[0].Known() {
		return vals
	}
	mark := len(s.vars)
	_, bound := s.attribute(p.Param.Value)
	if b, ok := s.lookup(p.Param.Value); ok && b.open {
		bound = true
	}
	word := s.operand(e.Word)
	if envVar {
		word.Taint |= vals[0].Taint
	}
	if assigns {
		to := abstract.Lit(p.Param.Value)
		if p.Index != nil || p.Excl {
			s.setsCommand(p.Param.Value, s.keyText(p.Param.Value, p.Index), word)
			to = abstract.Variable(p.Param.Value, 0)
		}
		s.assignTo(to, word)
	}
	if envVar {
		s.weaken(mark)
		if bound { // and not known, so it is not only the default
			return []abstract.Value{vague(show, vals[0], word)}
		}
	}
	return []abstract.Value{word}
}

// orAlternate is ${x+word} and ${x:+word}.
func (s *state) orAlternate(p *syntax.ParamExp, vals []abstract.Value, set, empty bool, show string) []abstract.Value {
	e, envVar := p.Exp, !set && !empty
	mark := len(s.vars)
	word := s.operand(e.Word)
	s.weaken(mark)
	null := e.Op == syntax.AlternateUnsetOrNull
	known := len(vals) > 0 && (vals[0].Known() || len(vals) > 1)
	switch {
	case set && !empty && known || set && !null && len(vals) > 0 || envVar && known:
		return []abstract.Value{word}
	case empty && (!set || null):
		return []abstract.Value{{}}
	}
	if i, ok := s.choose(p.Param.Value+" is set", 2, 0); ok && i == 0 {
		return []abstract.Value{word}
	} else if ok {
		return []abstract.Value{{}}
	}
	return []abstract.Value{vague(show, word)}
}

func changeCase(v abstract.Value, op syntax.ParExpOperator) abstract.Value {
	if !v.Known() {
		return v
	}
	switch op {
	case syntax.UpperAll:
		v.Text = strings.ToUpper(v.Text)
	case syntax.LowerAll:
		v.Text = strings.ToLower(v.Text)
	default:
		r, n := utf8.DecodeRuneInString(v.Text)
		first := strings.ToUpper(string(r))
		if op == syntax.LowerFirst {
			first = strings.ToLower(string(r))
		}
		if n > 0 {
			v.Text = first + v.Text[n:]
		}
	}
	return v
}
