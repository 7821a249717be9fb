package shell

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// first returns what a variable without a subscript holds.
func (s *state) first(b binding, show string) abstract.Value {
	if !b.array {
		return b.val
	}
	if b.alike {
		return b.elems[0].val
	}
	if b.unsure || len(b.elems) > 0 && b.elems[0].key != "0" {
		return vague(show, members(b)...)
	}
	if len(b.elems) == 0 {
		return abstract.Value{}
	}
	return b.elems[0].val
}

func members(b binding) []abstract.Value {
	out := make([]abstract.Value, len(b.elems))
	for i, e := range b.elems {
		out[i] = e.val
	}
	return out
}

// bindArray is NAME=(…). The members are known if they count up from 0.
func (s *state) bindArray(name string, a *syntax.Assign) {
	name, ok := s.target(name)
	if !ok {
		s.forget()
		return
	}
	b := binding{name: name, array: true}
	if old, ok := s.attribute(name); ok && (old.kind > unset || old.keyed) {
		b.unsure = true
	}
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			v := abstract.Value{}
			if e.Value != nil {
				v = s.word(e.Value)
			}
			b.unsure = true
			key := s.index(e.Index).Text
			if w, ok := e.Index.(*syntax.Word); ok && w.Lit() != "" {
				key = w.Lit()
			}
			b.elems = append(b.elems, element{key, v})
			continue
		}
		if e.Value == nil {
			continue
		}
		for _, v := range s.fields(e.Value) {
			b.unsure = b.unsure || v.IsPattern && !v.Written // how many words?
			b.alike = v.Lines && len(a.Array.Elems) == 1 && !a.Append
			b.elems = append(b.elems, element{itoa(len(b.elems)), v})
		}
		if len(b.elems) > abstract.MaxFields {
			s.giveUp("an array is too long")
			return
		}
	}
	if a.Append { // what the new members assign comes first
		old, unsure := s.oldMembers(name, true)
		b.unsure = b.unsure || unsure
		for i := range b.elems {
			if n, err := strconv.Atoi(b.elems[i].key); err == nil {
				b.elems[i].key = itoa(n + len(old))
			}
		}
		b.elems = append(old, b.elems...)
	}
	s.bind(b)
}

// oldMembers returns what an array holds before a member is set, or before members are
// added behind those of the environment.
func (s *state) oldMembers(name string, add bool) (elems []element, unsure bool) {
	old, ok := s.lookup(name)
	switch {
	case !ok:
		return nil, add
	case old.kind == unset:
		return nil, false
	case old.array:
		return slices.Clone(old.elems), old.unsure
	}
	return []element{{"0", old.val}}, old.val.IsPattern
}

func (s *state) bindElement(name string, a *syntax.Assign) {
	name, ok := s.target(name)
	if !ok {
		s.forget()
		return
	}
	old, _ := s.attribute(name)
	key := s.key(old, a.Index)
	v := abstract.Value{}
	if a.Value != nil {
		v = s.word(a.Value)
	}
	s.setElement(name, key, v, a.Append)
}

// setElement binds one member of an array.
func (s *state) setElement(name string, key, v abstract.Value, add bool) {
	b := binding{name: name, array: true}
	b.elems, b.unsure = s.oldMembers(name, false)
	old, bound := s.attribute(name)
	b.keyed = old.keyed
	if len(b.elems) > abstract.MaxFields {
		s.giveUp("an array is too long")
		return
	}
	i, err := strconv.Atoi(key.Text)
	switch {
	case b.keyed && key.Known() && !add:
		b.elems = append(b.elems, element{key.Text, v})
	case !key.Known() || err != nil || add || i < 0 || i > len(b.elems):
		b.unsure = true
		b.elems = append(b.elems, element{key.Text, v})
	case i == len(b.elems):
		b.elems = append(b.elems, element{key.Text, v})
	default:
		b.elems[i].val = v
	}
	b.unsure = b.unsure || bound && old.kind > unset
	if !s.notZsh && !b.keyed && !b.unsure { // which counts members from 1
		s.bind(binding{name: name, array: true, unsure: true, elems: b.elems})
		b.weak = true
	}
	s.bind(b)
}
