package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// first returns what a variable without a subscript holds, but in zsh.
func (s *state) first(b binding, show string) abstract.Value {
	switch {
	case !b.array:
		return b.val
	case b.alike:
		return b.elems[0].val
	case b.headed:
		return b.elems[len(b.elems)-1].val
	case b.unsure || b.keyed:
		return vague(show, members(b)...)
	}
	if at, ok := b.at(0); ok {
		return b.elems[at].val
	}
	return abstract.Value{}
}

func members(b binding) []abstract.Value {
	out := make([]abstract.Value, len(b.elems))
	for i, e := range b.elems {
		out[i] = e.val
	}
	return out
}

func keys(b binding) []abstract.Value {
	out := make([]abstract.Value, len(b.elems))
	for i, e := range b.elems {
		out[i] = abstract.Lit(e.key)
	}
	return out
}

// at returns where the member with an index is, or where it would be, and whether there is
// one. The members of an array that is neither keyed nor unsure are in the order of their
// indices.
func (b *binding) at(index int) (int, bool) {
	return slices.BinarySearchFunc(b.elems, index, func(e element, index int) int {
		n, _ := strconv.Atoi(e.key)
		return n - index
	})
}

// next returns the index behind the last member.
func (b *binding) next() int {
	if len(b.elems) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(b.elems[len(b.elems)-1].key)
	return n + 1
}

// counted returns the index that a subscript means: one below 0 counts from the end. zsh
// counts from 1; -1 is no index at all.
func (s *state) counted(b binding, i int) int {
	switch {
	case i < 0:
		return max(-1, i+b.next())
	case s.asZsh():
		return i - 1
	}
	return i
}

// put gives the member with an index a value, behind what it has if add is set.
func (b *binding) put(index int, v abstract.Value, add bool) {
	at, ok := b.at(index)
	if !ok {
		b.elems = slices.Insert(b.elems, at, element{key: itoa(index)})
	}
	if add {
		v = abstract.Concat(b.elems[at].val, v)
	}
	b.elems[at].val = v
}

// bindArray is NAME=(…).
func (s *state) bindArray(name string, a *syntax.Assign) {
	name, ok := s.target(name)
	if !ok {
		s.forget()
		return
	}
	b := binding{name: name, array: true}
	if old, ok := s.attribute(name); ok && (old.kind > unset || old.keyed) {
		b.unsure, b.kind = true, old.lasting()
	}
	was := len(s.vars)
	s.becomesArray(name)
	index, keyed, mark := 0, false, len(s.vars)
	if a.Append {
		old, unsure := s.oldMembers(name, true)
		b.elems, b.unsure = old, b.unsure || unsure
		index = b.next()
	}
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			keyed = true
			index = s.bindKey(&b, e, index)
			continue
		}
		if e.Value == nil {
			continue
		}
		for _, v := range s.fields(e.Value) {
			b.unsure = b.unsure || v.IsPattern && !v.Written // how many words?
			b.alike = v.Lines && len(a.Array.Elems) == 1 && !a.Append
			if b.unsure {
				b.elems = append(b.elems, element{itoa(len(b.elems)), v})
			} else {
				b.put(index, v, false)
			}
			index++
		}
		if len(b.elems) > abstract.MaxFields {
			s.giveUp("an array is too long")
			return
		}
	}
	for _, e := range b.elems {
		s.keeps(name, e.val)
	}
	if a.Append && slices.ContainsFunc(s.vars[min(mark, len(s.vars)):], func(o binding) bool { return o.name == name }) {
		b.unsure = true // to what it was, or to what the new members have made of it
	}
	for ; was < min(mark, len(s.vars)); was++ { // that it was another kind of array has been seen
		s.vars[was] = binding{name: replacedName}
	}
	s.setsCommands(&b)
	// An error in zsh, and there may be something around it that goes on.
	b.weak = keyed && s.asZsh()
	s.bind(b)
}

// replacedName is the name of a binding that no longer counts.
const replacedName = "\x00replaced"

// becomesArray makes a text the first member of an array, as all shells but zsh do before
// they expand what the array is given.
func (s *state) becomesArray(name string) {
	old, ok := s.attribute(name)
	if !ok || old.array || old.kind != scalar || s.asZsh() {
		return
	}
	elems, unsure := s.oldMembers(name, true)
	s.bind(binding{name: name, array: true, unsure: unsure || old.weak, elems: elems})
}

// bindKey binds [KEY]=VALUE in an array, and returns the index of what follows it.
func (s *state) bindKey(b *binding, e *syntax.ArrayElem, index int) int {
	v := abstract.Value{}
	if e.Value != nil {
		v = s.word(e.Value)
		b.unsure = b.unsure || len(s.braces(e.Value)) > 1 // bash makes members of all of them
	}
	s.setsCommand(b.name, s.keyText(b.name, e.Index), v)
	i := s.index(e.Index)
	n, err := strconv.Atoi(i.Text)
	if i.Known() && err == nil && n >= 0 && !b.unsure {
		b.put(n, v, false)
		return n + 1
	}
	b.unsure = true
	key := i.Text
	if w, ok := e.Index.(*syntax.Word); ok && w.Lit() != "" {
		key = w.Lit()
	}
	b.elems = append(b.elems, element{key, v})
	return index
}

// oldMembers returns what an array holds before members are set, and whether there may be
// others: those of the environment stay, if stays is set.
func (s *state) oldMembers(name string, stays bool) (elems []element, unsure bool) {
	old, ok := s.lookup(name)
	switch {
	case !ok:
		return nil, stays
	case old.kind == unset:
		return nil, false
	case old.array:
		return slices.Clone(old.elems), old.unsure
	}
	return []element{{"0", old.val}}, old.val.IsPattern
}

// addTo is NAME+=VALUE of an array: to its first member, or another member in zsh.
func (s *state) addTo(name string, old binding, v abstract.Value) {
	next := binding{name: name, array: true, kind: old.lasting(), unsure: old.unsure || old.alike || old.keyed || old.kind > unset || s.unusual(), elems: slices.Clone(old.elems)}
	switch {
	case next.unsure:
		next.elems = append(next.elems, element{"0", vague("$"+name, v)})
	case s.asZsh():
		next.put(next.next(), v, false)
	default:
		next.put(0, v, true)
	}
	s.bind(next)
}

// unsetElement removes one member of an array, or a letter of a text, as zsh does, where
// a member is left empty.
func (s *state) unsetElement(name, sub string) {
	if s.given(name) {
		s.bind(binding{name: name, val: abstract.Variable(name, 0), kind: mixed})
		return
	}
	old, bound := s.attribute(name)
	i, err := strconv.Atoi(strings.Trim(strings.TrimSuffix(sub, "]"), `'"`))
	switch zsh := s.asZsh(); {
	case !bound || old.kind == unset && !old.weak:
	case s.isLocal(name) && !zsh && (!old.array || old.unsure) && (i == 0 || err != nil): // ends it, and shows the one of the function around
		s.revealed(name)
		s.bind(binding{name: name, val: abstract.Variable(name, 0), array: old.array, unsure: old.array, kind: mixed, elems: slices.Clone(old.elems)})
	case err != nil || s.unusual() || old.weak || old.kind != scalar || old.array && (old.unsure || old.alike || old.keyed) || !old.array && !old.val.Known():
		s.bind(binding{name: name, array: true, unsure: true, kind: old.lasting(), elems: slices.Clone(old.elems)})
	case !old.array && zsh:
		s.setZsh(binding{name: name}, i, abstract.Value{}, false)
	case !old.array && i == 0:
		s.bind(binding{name: name, kind: unset})
	case !old.array:
	default:
		next := binding{name: name, array: true, elems: slices.Clone(old.elems)}
		at, ok := next.at(s.counted(next, i))
		switch {
		case !ok:
			return
		case zsh:
			next.elems[at].val = abstract.Value{}
		default:
			next.elems = slices.Delete(next.elems, at, at+1)
		}
		s.bind(next)
	}
}

func (s *state) bindElement(name string, a *syntax.Assign) {
	name, ok := s.target(name)
	if !ok {
		s.forget()
		return
	}
	old, _ := s.attribute(name)
	key := s.key(old, a.Index)
	s.needsKey(old, key)
	v := abstract.Value{}
	if a.Value != nil {
		v = s.word(a.Value)
	}
	s.setsCommand(name, s.keyText(name, a.Index), v)
	s.setElement(name, key, v, a.Append)
}

// needsKey notes that bash ends the command line where an associative array is given a
// member without a key.
func (s *state) needsKey(b binding, key abstract.Value) {
	if b.keyed && (!key.Known() || key.Text == "") {
		s.failsLine()
	}
}

// setElement binds one member of an array.
func (s *state) setElement(name string, key, v abstract.Value, add bool) {
	s.keeps(name, v)
	b := binding{name: name, array: true}
	old, bound := s.attribute(name)
	b.elems, b.unsure = s.oldMembers(name, key.Text != "0" || s.asZsh())
	b.keyed = old.keyed
	if len(b.elems) > abstract.MaxFields {
		s.giveUp("an array is too long")
		return
	}
	b.unsure, b.kind = b.unsure || bound && old.kind > unset || s.unusual(), old.lasting()
	i, err := strconv.Atoi(key.Text)
	switch {
	case b.keyed && key.Known() && !add && !b.unsure:
		b.elems = append(b.elems, element{key.Text, v})
	case b.keyed || b.unsure || !key.Known() || err != nil || i > abstract.MaxFields:
		b.unsure = true
		b.elems = append(b.elems, element{key.Text, v})
	case s.asZsh():
		s.setZsh(b, i, v, add)
		return
	default:
		if i = s.counted(b, i); i < 0 { // an error
			return
		}
		b.put(i, v, add)
	}
	s.bind(b)
}

// setZsh binds one member of an array, or a letter of a text, as zsh does.
func (s *state) setZsh(b binding, i int, v abstract.Value, add bool) {
	old, bound := s.lookup(b.name)
	if bound && !old.array && old.kind != unset { // a letter of it
		letters := []rune(old.val.Text)
		before, behind := min(i-1, len(letters)), min(i, len(letters))
		switch {
		case i == 0: // an error
			return
		case i < 0: // far enough from the end, it stands before all of them
			before, behind = max(0, i+len(letters)), max(0, i+len(letters)+1)
		}
		if add {
			v = abstract.Concat(abstract.Lit(string(letters[before:behind])), v)
		}
		v = abstract.Concat(abstract.Lit(string(letters[:before])), v, abstract.Lit(string(letters[behind:])))
		v.Taint |= old.val.Taint
		s.bind(binding{name: b.name, val: v})
		return
	}
	before := i < 0 // far enough from the end, it stands before all of them
	if i = s.counted(b, i); i < 0 && before {
		b.elems = slices.Insert(b.elems, 0, element{val: v})
		for n := range b.elems {
			b.elems[n].key = itoa(n)
		}
		s.bind(b)
		return
	} else if i < 0 {
		return // an error
	}
	for n := b.next(); n < i; n++ { // there are none between
		b.put(n, abstract.Value{}, false)
	}
	b.put(i, v, add)
	s.bind(b)
}
