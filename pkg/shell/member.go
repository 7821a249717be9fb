package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// present reports whether an array has what an expansion asks for. In zsh, one without
// members is set.
func (s *state) present(p *syntax.ParamExp, b binding) bool {
	switch {
	case b.headed:
		return p.Index == nil
	case s.listIndex(p) || p.Index == nil && s.asZsh():
		return len(b.elems) > 0 || s.asZsh()
	case p.Index == nil && b.keyed:
		return slices.ContainsFunc(b.elems, func(e element) bool { return e.key == "0" })
	case p.Index == nil:
		_, ok := b.at(0)
		return ok
	}
	s.quiet++
	defer func() { s.quiet-- }()
	i, err := strconv.Atoi(s.index(p.Index).Text)
	_, ok := b.at(s.counted(b, i))
	return b.keyed || err != nil || ok
}

// ofScalar returns what a variable that is no array holds at a subscript: it is an array of
// one member, or a row of letters in zsh.
func (s *state) ofScalar(p *syntax.ParamExp, b binding, show string) ([]abstract.Value, bool) {
	if s.listIndex(p) {
		switch {
		case !b.val.Known(): // it may be an array
			return []abstract.Value{vague(show, b.val)}, false
		case p.Excl:
			return []abstract.Value{abstract.Lit("0")}, true
		}
		return []abstract.Value{b.val}, true
	}
	v := s.index(p.Index)
	i, err := strconv.Atoi(v.Text)
	switch {
	case !v.Known() || err != nil || !b.val.Known() || s.unusual():
		return []abstract.Value{vague(show, b.val)}, false
	case s.asZsh():
		letters := []rune(b.val.Text)
		if i > 0 {
			i--
		} else if i += len(letters); i == len(letters) {
			i = -1 // of no letter
		}
		out := b.val
		if out.Text = ""; i >= 0 && i < len(letters) {
			out.Text = string(letters[i])
		}
		return []abstract.Value{out}, true
	case i == 0:
		return []abstract.Value{b.val}, true
	}
	return []abstract.Value{{}}, false
}

// listIndex reports whether ${!a[@]} asks for the keys of an array.
func (s *state) listIndex(p *syntax.ParamExp) bool {
	w, ok := p.Index.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// member returns what an array holds at a subscript, or without one.
func (s *state) member(p *syntax.ParamExp, b binding, show string) []abstract.Value {
	switch {
	case b.headed && p.Index == nil:
		return []abstract.Value{s.first(b, show)}
	case b.unsure || b.alike:
		if p.Index != nil && !s.listIndex(p) {
			s.index(p.Index)
		}
		if b.alike && !p.Excl && !p.Length {
			return members(b)
		}
		return []abstract.Value{vague(show, members(b)...)}
	case s.listIndex(p):
		if b.keyed && len(b.elems) > 0 { // in any order, and the newest of each key
			return []abstract.Value{vague(show, members(b)...)}
		}
		if p.Excl {
			return keys(b)
		}
		return members(b)
	case p.Index == nil:
		return s.whole(p, b, show)
	}
	v := s.key(b, p.Index)
	if b.keyed && v.Known() {
		return []abstract.Value{b.keyedAt(v.Text)}
	}
	i, err := strconv.Atoi(v.Text)
	if !v.Known() || err != nil {
		return []abstract.Value{vague(show, members(b)...)}
	}
	if at, ok := b.at(s.counted(b, i)); ok {
		return []abstract.Value{b.elems[at].val}
	}
	return []abstract.Value{{}}
}

// whole returns what an array is without a subscript: its first member, or all of them in
// zsh.
func (s *state) whole(p *syntax.ParamExp, b binding, show string) []abstract.Value {
	switch {
	case b.keyed && s.asZsh(): // in any order
		out := []abstract.Value{vague(show, members(b)...)}
		if n := len(b.elems); n > 0 {
			if i, ok := s.choose("first of "+strings.Join(texts(members(b)), "\x00"), n, 0); ok {
				return append([]abstract.Value{b.elems[i].val}, out...)
			}
		}
		return out
	case b.keyed:
		return []abstract.Value{b.keyedAt("0")}
	case s.asZsh():
		return members(b)
	}
	return []abstract.Value{s.first(b, show)}
}

// keyedAt returns what an associative array holds under a key.
func (b *binding) keyedAt(key string) abstract.Value {
	for i := len(b.elems) - 1; i >= 0; i-- {
		if b.elems[i].key == key {
			return b.elems[i].val
		}
	}
	return abstract.Value{}
}

// key returns a subscript of an array: text, if it is an associative one.
func (s *state) key(b binding, x syntax.ArithmExpr) abstract.Value {
	if w, ok := x.(*syntax.Word); ok && b.keyed {
		return s.word(w)
	}
	return s.index(x)
}

// index returns a subscript: a number, or the key of an associative array.
func (s *state) index(x syntax.ArithmExpr) abstract.Value {
	if n, ok := s.number(x); ok {
		return abstract.Lit(strconv.FormatInt(n, 10))
	}
	return abstract.Unknown("[…]", 0)
}

// indirect is ${!name}: what the variable is that name holds the name of. Of a reference it is
// the name that it is to.
func (s *state) indirect(of string, vals []abstract.Value, show string) ([]abstract.Value, bool) {
	b, _ := s.attribute(of)
	switch to, ok := s.target(of); {
	case b.kind == reference && ok && b.val.Text == to:
		return []abstract.Value{abstract.Lit(to)}, true
	case !ok || to != of:
		return []abstract.Value{vague(show)}, false
	}
	if len(vals) != 1 || !vals[0].Known() {
		s.failsLine() // perhaps
		return []abstract.Value{vague(show)}, false
	}
	name, sub, _ := strings.Cut(vals[0].Text, "[")
	if sub != "" {
		s.arithmText(vals[0].Text)
	}
	if sub != "" || !syntax.ValidName(name) {
		s.failsLine() // perhaps
		return []abstract.Value{vague(show, vals...)}, false
	}
	b, ok := s.lookup(name)
	if !ok {
		return s.environment(name), false
	}
	return []abstract.Value{s.first(b, show)}, b.kind != unset
}
