package shell

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// param returns the values of a parameter expansion: one, or as many as the
// members of a list.
func (s *state) param(p *syntax.ParamExp) []value {
	if !s.step(1+len(s.vars)/64) || !s.enter(s.span(0, 0)) {
		return nil
	}
	defer s.leave()
	show := s.shownParam(p)
	if p.Param == nil {
		if p.NestedParam != nil {
			return []value{s.part(p.NestedParam)}
		}
		return []value{unknown(show, 0)}
	}
	if p.Names != 0 {
		return s.namesWith(p.Param.Value)
	}
	vals, set := s.parameter(p, show)
	if p.Excl && !s.listIndex(p) {
		vals, set = s.indirect(vals, show)
	}
	switch {
	case p.Length:
		return []value{s.length(p, vals)}
	case p.Slice != nil:
		return s.slice(p, vals, show)
	case p.Repl != nil:
		orig, with := s.word(p.Repl.Orig), value{}
		if p.Repl.With != nil {
			with = s.word(p.Repl.With)
		}
		return each(vals, func(v value) value { return s.replace(v, orig, with, p.Repl.All, show) })
	case p.Exp != nil:
		return s.expansion(p, vals, set, show)
	}
	return vals
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

func each(vals []value, f func(value) value) []value {
	out := make([]value, len(vals))
	for i, v := range vals {
		out[i] = f(v)
	}
	return out
}

// parameter returns what a parameter holds and whether the text sets it.
func (s *state) parameter(p *syntax.ParamExp, show string) (vals []value, set bool) {
	name := p.Param.Value
	switch name {
	case "@", "*":
		return s.positional(), len(s.args) > 0
	case "#":
		return []value{lit(strconv.Itoa(len(s.args)))}, true
	case "0":
		return []value{lit("bash")}, true
	case "?", "$", "!", "-", "_", "RANDOM", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS", "UID", "EUID", "PPID", "SRANDOM":
		if b, ok := s.lookup(name); ok {
			return []value{b.val}, true
		}
		return []value{{text: "*", show: "$" + name, pattern: true}}, true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(s.args) {
			return []value{s.args[n-1]}, true
		}
		if s.args == nil && s.inFunc == 0 {
			return []value{{}}, false // text given to sh -c has no parameters
		}
		return []value{{}}, false
	}
	b, ok := s.lookup(name)
	if !ok {
		if p.Index != nil {
			s.index(p.Index) // a subscript is evaluated all the same
		}
		return s.environment(name), false
	}
	if b.array {
		return s.member(p, b, show), true
	}
	if p.Index != nil {
		s.index(p.Index)
	}
	return []value{b.val}, true
}

// environment returns what is known of a variable that the text does not set.
func (s *state) environment(name string) []value {
	v := unknown("$"+name, 0)
	switch name {
	case "HOME":
		v = lit("~")
		if s.at.Home != "" {
			v = lit(s.at.Home)
		}
	case "PWD", "OLDPWD":
		if cwd := s.place().CWD; cwd != "" && name == "PWD" {
			v = lit(cwd)
		}
	case "IFS":
		v = lit(" \t\n")
	case "SHELL", "BASH":
		v = lit("/bin/bash")
	case "TMPDIR", "TMP", "TEMP":
		v = lit("/tmp")
	case "OSTYPE", "HOSTTYPE", "MACHTYPE", "USER", "LOGNAME", "USERNAME", "HOSTNAME", "SHLVL":
		v = value{text: "*", show: "$" + name, pattern: true}
	}
	if secretName(name) {
		v.taint |= credential
		v.secrets = "$" + name
	}
	return []value{v}
}

func (s *state) positional() []value {
	return slices.Clone(s.args)
}

// listIndex reports whether ${!a[@]} asks for the keys of an array.
func (s *state) listIndex(p *syntax.ParamExp) bool {
	w, ok := p.Index.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

func (s *state) member(p *syntax.ParamExp, b binding, show string) []value {
	if s.listIndex(p) {
		var out []value
		for _, e := range b.elems {
			if p.Excl {
				out = append(out, lit(e.key))
			} else {
				out = append(out, e.val)
			}
		}
		return out
	}
	key := "0"
	if p.Index != nil {
		v := s.index(p.Index)
		if !v.known() {
			var b2 builder
			for _, e := range b.elems {
				b2.taint |= e.val.taint
			}
			return []value{unknown(show, b2.taint)}
		}
		key = v.text
		if n, err := strconv.Atoi(key); err == nil && n < 0 && len(b.elems)+n >= 0 {
			return []value{b.elems[len(b.elems)+n].val}
		}
	}
	for i := len(b.elems) - 1; i >= 0; i-- {
		if b.elems[i].key == key {
			return []value{b.elems[i].val}
		}
	}
	return []value{{}}
}

// index returns a subscript: a number, or the key of an associative array.
func (s *state) index(x syntax.ArithmExpr) value {
	if n, ok := s.number(x); ok {
		return lit(strconv.FormatInt(n, 10))
	}
	if w, ok := x.(*syntax.Word); ok {
		return s.word(w)
	}
	return unknown("[…]", 0)
}

func (s *state) indirect(vals []value, show string) ([]value, bool) {
	if len(vals) != 1 || !vals[0].known() {
		return []value{unknown(show, 0)}, false
	}
	name, sub, _ := strings.Cut(vals[0].text, "[")
	if sub != "" {
		s.arithmText(vals[0].text)
	}
	b, ok := s.lookup(name)
	if !ok {
		return s.environment(name), false
	}
	if b.array && len(b.elems) > 0 {
		return []value{b.elems[0].val}, true
	}
	return []value{b.val}, true
}

func (s *state) namesWith(prefix string) []value {
	var out []value
	for _, b := range s.vars {
		if strings.HasPrefix(b.name, prefix) && b.kind != workdir && !slices.ContainsFunc(out, func(v value) bool { return v.text == b.name }) {
			out = append(out, lit(b.name))
		}
	}
	return out
}

func (s *state) length(p *syntax.ParamExp, vals []value) value {
	if s.listIndex(p) || p.Param.Value == "@" || p.Param.Value == "*" {
		return lit(strconv.Itoa(len(vals)))
	}
	if len(vals) == 1 && vals[0].known() {
		return lit(strconv.Itoa(utf8.RuneCountInString(vals[0].text)))
	}
	return value{text: "*", show: "${#" + p.Param.Value + "}", pattern: true}
}

func (s *state) slice(p *syntax.ParamExp, vals []value, show string) []value {
	from, ok := s.number(p.Slice.Offset)
	count, counted := int64(1<<31), true
	if p.Slice.Length != nil {
		count, counted = s.number(p.Slice.Length)
	}
	if !ok || !counted {
		return each(vals, func(v value) value { return unknown(show, v.taint) })
	}
	name := p.Param.Value
	if s.listIndex(p) || name == "@" || name == "*" {
		if name == "@" || name == "*" {
			from = max(0, from-1)
		}
		lo, hi := cut(from, count, len(vals))
		return vals[lo:hi]
	}
	return each(vals, func(v value) value {
		if !v.known() {
			// These start with a slash wherever they are set.
			if from == 0 && count == 1 && (name == "PATH" || name == "PWD" || name == "OLDPWD" || name == "HOME" || name == "SHELL") {
				return lit("/")
			}
			return unknown(show, v.taint)
		}
		text := v.text
		if text == "~" && from == 0 && count == 1 {
			return lit("/")
		}
		runes := []rune(text)
		lo, hi := cut(from, count, len(runes))
		v.text = string(runes[lo:hi])
		return v
	})
}

// cut turns an offset and a length as in ${x:o:l} into bounds.
func cut(from, count int64, n int) (lo, hi int) {
	size := int64(n)
	if from < 0 {
		from = max(0, size+from)
	}
	from = min(from, size)
	end := from + count
	if count < 0 {
		end = size + count
	}
	return int(from), int(max(from, min(end, size)))
}

func (s *state) expansion(p *syntax.ParamExp, vals []value, set bool, show string) []value {
	e := p.Exp
	empty := len(vals) == 0 || len(vals) == 1 && vals[0].known() && vals[0].text == ""
	envVar := !set && !empty // of the environment: may be set or not
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		assigns := e.Op == syntax.AssignUnset || e.Op == syntax.AssignUnsetOrNull
		if set && !(empty && (e.Op == syntax.DefaultUnsetOrNull || e.Op == syntax.AssignUnsetOrNull)) {
			return vals
		}
		if envVar && vals[0].known() {
			return vals
		}
		word := s.word(e.Word)
		if envVar {
			word.taint |= vals[0].taint
		}
		if assigns {
			s.assign(p.Param.Value, word)
		}
		return []value{word}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		word := s.word(e.Word)
		if empty && !envVar {
			return []value{{}}
		}
		return []value{word}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		s.word(e.Word)
		return vals
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		pat := s.word(e.Word)
		return each(vals, func(v value) value { return s.trim(v, pat, e.Op, show) })
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		return each(vals, func(v value) value { return changeCase(v, e.Op) })
	case syntax.OtherParamOps:
		op := s.word(e.Word).text
		return each(vals, func(v value) value {
			if !v.known() {
				return v
			}
			switch op {
			case "E":
				v.text = ansiC(v.text)
			case "U":
				v.text = strings.ToUpper(v.text)
			case "L":
				v.text = strings.ToLower(v.text)
			case "P":
				// A prompt runs the command substitutions in it.
				s.nested("echo \""+strings.ReplaceAll(v.text, `"`, `\"`)+"\"", s.spanOf(p))
				return unknown(show, v.taint|foreign)
			}
			return v
		})
	}
	return each(vals, func(v value) value { return unknown(show, v.taint) })
}

func changeCase(v value, op syntax.ParExpOperator) value {
	if !v.known() {
		return v
	}
	switch op {
	case syntax.UpperAll:
		v.text = strings.ToUpper(v.text)
	case syntax.LowerAll:
		v.text = strings.ToLower(v.text)
	default:
		r, n := utf8.DecodeRuneInString(v.text)
		first := strings.ToUpper(string(r))
		if op == syntax.LowerFirst {
			first = strings.ToLower(string(r))
		}
		if n > 0 {
			v.text = first + v.text[n:]
		}
	}
	return v
}
