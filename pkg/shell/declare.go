package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A declaration is what a declare or one of its kin says of the names in it.
type declaration struct {
	kind              bindingKind
	local, export     bool
	global, constants bool
	keyed, list       bool
	removes           bool // +u and the like, and nothing else
}

// declare walks declare, local, export, readonly, typeset and nameref.
func (s *state) declare(c *syntax.DeclClause) abstract.Value {
	variant := c.Variant.Value
	d := declaration{export: variant == "export", constants: variant == "readonly"}
	d.local = variant == "local" || variant == "declare" || variant == "typeset"
	if variant == "nameref" {
		d.kind = reference
	}
	argv := []abstract.Value{{Text: variant, From: s.spanOf(c.Variant)}}
	list := false
	mark, pure := len(s.vars), true
	for _, a := range c.Args {
		if a.Name == nil { // an option, or words known only at run time
			for _, v := range s.declaredWords(a.Value) {
				argv = append(argv, v)
				d.option(v)
				if d.kind == integer && v.Known() && strings.Trim(v.Text, "0123456789") == "" { // the base in which zsh writes it
					d.kind = formatted
				}
				list = list || v.Text == "-p" || v.Text == "-x"
				s.declareWord(v, d)
			}
			continue
		}
		if a.Value != nil || a.Array != nil {
			argv = append(argv, abstract.Value{Text: a.Name.Value + "=…", From: s.spanOf(a)})
		} else {
			argv = append(argv, abstract.Value{Text: a.Name.Value, From: s.spanOf(a)})
		}
		s.declareOne(a, d, mark, pure)
		pure = pure && a.Array == nil && a.Index == nil && (a.Value == nil || simpleWord(a.Value) && !assigns(a.Value))
	}
	if variant == "local" && len(s.frames) == 0 { // an error, but in zsh
		s.weaken(mark)
	}
	s.exit = exitOf(true, !s.constants && (variant == "export" || variant == "local" && len(s.frames) > 0) && !slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool {
		return a.Name == nil || a.Array != nil || a.Index != nil || a.Value != nil && !simpleWord(a.Value)
	}))
	if slices.ContainsFunc(argv[1:], func(v abstract.Value) bool {
		return strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "f") && strings.Contains(v.Text, "u")
	}) {
		s.autoload(argv[1:])
	}
	s.execute(argv, variant, effect.ReadOnly)
	if list && len(argv) < 3 || len(argv) == 1 {
		out := abstract.Unknown("the environment", abstract.Dump)
		s.show(out, c.Variant.Value, s.spanOf(c))
		return out
	}
	if list {
		return abstract.Unknown("…", 0).Of(abstract.FromCommand)
	}
	return abstract.Value{}
}

// declaredWords returns the words that one without a name becomes. zsh does not split it.
func (s *state) declaredWords(w *syntax.Word) []abstract.Value {
	v := s.word(w)
	if !expands(w) || v.Known() && !strings.ContainsAny(v.Text, usualIFS) {
		return []abstract.Value{v}
	}
	s.quiet++
	list := s.fields(w)
	s.quiet--
	if len(list) == 1 && list[0].Text == v.Text || len(list) > 1 && s.asZsh() && !s.unusual() {
		return []abstract.Value{v}
	}
	return list
}

// option takes an option of declare and its kin.
func (d *declaration) option(v abstract.Value) {
	if !v.Known() || len(v.Text) < 2 || v.Text[0] != '-' && v.Text[0] != '+' {
		return
	}
	set := func(letter string) bool { return strings.Contains(v.Text, letter) }
	d.removes = v.Text == "+u" || v.Text == "+l" || v.Text == "+i"
	d.global = d.global || set("g")
	d.export = d.export && !set("n") || set("x")
	d.constants = d.constants || set("r")
	d.keyed = d.keyed || set("A")
	d.list = d.list || set("a")
	switch {
	case d.kind == formatted:
	case strings.ContainsAny(v.Text, "EFLRTUZ0123456789"): // how zsh writes it
		d.kind = formatted
	case v.Text[0] == '+':
		d.kind = mixed
	case d.export && set("n"):
	case set("n"):
		d.kind = reference
	case set("u") && d.kind == scalar:
		d.kind = upper
	case set("l") && d.kind == scalar:
		d.kind = lower
	case set("i") && d.kind == scalar:
		d.kind = integer
	case d.kind != scalar:
		d.kind = mixed
	}
}

// declareWord takes a word that is an assignment only when it is expanded.
func (s *state) declareWord(v abstract.Value, d declaration) {
	name, text, ok := strings.Cut(v.Text, "=")
	s.subscript(name)
	if array, sub, member := strings.Cut(name, "["); ok && member {
		s.setsCommand(array, abstract.Lit(strings.TrimSuffix(sub, "]")), abstract.Value{Text: text, Taint: v.Taint, From: v.From})
	}
	switch {
	case strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+"):
	case ok && syntax.ValidName(name) && strings.HasPrefix(text, "(") && (d.list || d.keyed || !v.Known()): // it is read as it would be in the text
		s.runText("shell", v, "declare", v.From, nil)
		s.forget()
	case ok && syntax.ValidName(name):
		val := v
		val.Text = text
		if d.kind > unset || d.global || d.local && len(s.frames) > 0 {
			val = vague("$"+name, val)
		}
		if d.local && !d.global {
			s.local(name)
		}
		s.assign(name, val)
		if d.export {
			s.bind(binding{name: exportPrefix + name})
		}
	case !v.Known():
		s.forget()
	}
}

// declareOne takes a name with or without a value, which sees nothing of what the command
// has declared since mark. pure says that nothing else was assigned since then.
func (s *state) declareOne(a *syntax.Assign, d declaration, mark int, pure bool) {
	name := a.Name.Value
	declares := d.local && !d.global && len(s.frames) > 0
	value := abstract.Value{}
	if a.Value != nil {
		value = s.inTurn(a.Value, mark, pure)
	}
	if declares {
		s.redeclares(name, d)
		s.local(name)
	} else if d.kind != reference {
		to, ok := s.target(name)
		if !ok || to != name && d.global && len(s.frames) > 0 { // the reference may be a local one
			s.forget()
			return
		}
		name = to
	}
	n := len(s.vars)
	switch {
	case (d.list || d.keyed) && strings.HasPrefix(value.Text, "("): // it is read as it would be in the text
		s.runText("shell", abstract.Concat(abstract.Lit(name+"="), value), "declare", s.spanOf(a), nil)
		s.forget()
		return
	case d.global && s.isLocal(name): // two variables of one name
		s.bind(binding{name: name, val: abstract.Variable(name, 0), kind: mixed, global: true})
	case a.Array != nil:
		s.declareArray(name, a, d, declares)
	case a.Index != nil || a.Append:
		s.assignment(a, true)
	case a.Naked && d.keyed:
		old, had := s.attribute(name)
		b := binding{name: name, array: true, keyed: true, unsure: had, kind: old.lasting(), elems: []element{{"0", old.val}}[:truth(had)]}
		if d.kind > unset {
			b.kind = mixed
		}
		s.bind(b)
	case d.list && !d.keyed && d.kind <= unset:
		s.declareList(name, a.Naked, value, declares)
	case a.Naked:
		s.declareNaked(name, d, declares)
	case d.kind == mixed:
		s.bind(binding{name: name, val: vague("$"+name, value), kind: mixed})
	case d.kind == reference: // which an array cannot become
		s.subscript(value.Text)
		old, _ := s.attribute(name)
		s.bind(binding{name: name, val: value, kind: reference, weak: old.array})
	default:
		value.From = s.spanOf(a)
		s.declareText(name, d, value, declares)
		s.environmentCode(name, value, value.From)
	}
	if d.constants && !d.local {
		s.constants = true
		s.bind(binding{name: name, kind: constant})
	}
	if d.export {
		s.bind(binding{name: exportPrefix + name})
	}
	if d.global {
		for i := n; i < len(s.vars); i++ {
			s.vars[i].global = true
		}
	}
}

// declareArray binds a name to NAME=(…).
func (s *state) declareArray(name string, a *syntax.Assign, d declaration, declares bool) {
	n := len(s.vars)
	old, had := s.attribute(name)
	other := had && declares && old.kind > unset // it is another variable
	if other {
		s.expandsBefore(a.Array)
		s.bind(binding{name: name, kind: unset})
	}
	s.assignment(a, true)
	for i := n; i < len(s.vars)-1; i++ { // what the members assign may be before the local variable is there
		s.vars[i].global = s.vars[i].global || declares && s.vars[i].name == name
		s.vars[i].weak = s.vars[i].weak || s.vars[i].global
	}
	if last := len(s.vars) - 1; d.keyed && last >= n && s.vars[last].array && !a.Append {
		b := &s.vars[last]
		b.keyed, b.unsure = true, !literalKeys(a.Array) || old.array && (!old.keyed || old.unsure) // which stays as it is
		b.weak = b.weak && (b.unsure || s.isConstant(name))                                        // no error in zsh
	}
	if d.kind > unset || other && expandsAny(a.Array) {
		s.bind(binding{name: name, array: true, unsure: true, kind: mixed})
	}
}

// expandsBefore walks what the members of an array run before there is a variable for it.
func (s *state) expandsBefore(a *syntax.ArrayExpr) {
	mark := len(s.vars)
	for _, e := range a.Elems {
		if e.Value != nil {
			s.fields(e.Value)
		}
	}
	s.weaken(mark)
}

// expandsAny reports whether a member of an array is not the same wherever it stands.
func expandsAny(a *syntax.ArrayExpr) bool {
	return slices.ContainsFunc(a.Elems, func(e *syntax.ArrayElem) bool { return e.Value != nil && expands(e.Value) })
}

// declareText binds a name that is no array.
func (s *state) declareText(name string, d declaration, value abstract.Value, declares bool) {
	old, ok := s.attribute(name)
	switch {
	case !declares && d.kind <= unset:
		mark := len(s.vars)
		s.give(name, value)
		if ok && old.array && s.asZsh() { // an error, behind which a text that called this goes on
			s.weaken(mark)
		}
	case ok && old.array: // it may stay one
		s.bind(binding{name: name, array: true, unsure: true, kind: mixed})
	case ok && !declares && old.kind > unset && old.kind != d.kind:
		s.bind(binding{name: name, val: vague("$"+name, value), kind: mixed})
	default:
		if d.kind == integer {
			s.codeIn(value.Text, 0)
		}
		s.bind(binding{name: name, val: converted(d.kind, value), kind: d.kind})
	}
}

// declareList makes a name an array: of what it was, or of a value.
func (s *state) declareList(name string, naked bool, value abstract.Value, declares bool) {
	old, had := s.attribute(name)
	b := binding{name: name, array: true, kind: old.lasting()}
	switch {
	case !naked: // an error in zsh
		b.elems, b.unsure, b.weak = []element{{"0", value}}, old.array || old.kind > unset, s.asZsh()
	case declares && (!had || !old.array && old.kind <= unset) || had && old.kind == unset && !old.weak:
	case !had || old.array || old.kind > unset || old.weak || s.asZsh():
		b.elems, b.unsure = append(slices.Clone(old.elems), element{"0", old.val}), true
		if !had {
			b.elems[0].val = abstract.Variable(name, 0)
		}
		if had && old.array && old.kind == scalar && !old.weak {
			return // it is one
		}
	default:
		b.elems = []element{{"0", old.val}}
	}
	s.bind(b)
}

// redeclares notes that a name which is a local reference is declared once more: what it
// refers to may change.
func (s *state) redeclares(name string, d declaration) {
	if old, ok := s.attribute(name); ok && s.isLocal(name) && d.kind != reference && (old.kind == reference || old.kind == mixed && old.val.Known()) {
		s.forget()
	}
}

// literalKeys reports whether the keys of an associative array are known.
func literalKeys(a *syntax.ArrayExpr) bool {
	for _, e := range a.Elems {
		if w, ok := e.Index.(*syntax.Word); !ok || w.Lit() == "" {
			return false
		}
	}
	return true
}

// declareNaked takes a name without a value. In a function, a local variable has
// none, or what the one around has, as shells differ.
func (s *state) declareNaked(name string, d declaration, declares bool) {
	old, had := s.attribute(name)
	switch {
	case declares && (had && old.array || d.kind > unset):
		s.bind(binding{name: name, val: vague("$"+name, old.val), kind: mixed})
		if d.kind == reference {
			s.bind(binding{name: name, val: abstract.Variable(name, 0), kind: reference})
		}
	case declares && s.asZsh(): // it is empty
		s.bind(binding{name: name, weak: true})
	case declares:
		s.bind(binding{name: name, kind: unset, weak: true})
	case d.kind == reference:
		s.bind(binding{name: name, val: old.val, kind: reference})
	case d.removes && had && old.kind <= unset && !old.array: // what it does not have
	case (!had || old.kind == unset) && d.kind == scalar && s.asZsh(): // what it is in the environment, or empty
		s.bind(binding{name: name, val: abstract.Variable(name, 0)})
	case d.kind > unset:
		if old.kind > unset && old.kind != d.kind {
			d.kind = mixed
		}
		val := abstract.Variable(name, 0)
		if !had || old.kind == unset {
			s.bind(binding{name: name, val: val, kind: d.kind})
			break
		}
		val = vague("$"+name, old.val)
		if !old.array && old.kind == scalar && !old.weak && (d.kind == upper || d.kind == lower || d.kind == integer) {
			if val = old.val; s.asZsh() { // others leave it as it is until it is assigned
				val = converted(d.kind, val)
			}
		}
		s.bind(binding{name: name, val: val, kind: d.kind, array: old.array, unsure: true})
	}
}

// inTurn returns a value of declare.
func (s *state) inTurn(w *syntax.Word, mark int, pure bool) abstract.Value {
	v := s.word(w)
	if mark == len(s.vars) || !expands(w) {
		return v
	}
	later := slices.Clone(s.vars[mark:])
	s.vars = s.vars[:mark]
	s.quiet++
	before := s.word(w)
	s.quiet--
	s.vars = append(s.vars[:mark], later...)
	switch {
	case !pure:
		return vague("${…}", v, before)
	case before.Text == v.Text && before.IsPattern == v.IsPattern:
		return v
	case !assigns(w):
		return before
	}
	return vague("${…}", v, before)
}

// assigns reports whether an expansion in a word assigns something.
func assigns(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			found = found || n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) || n.Index != nil || n.Slice != nil
		case *syntax.ArithmExp:
			found = true
		}
		return !found
	})
	return found
}
