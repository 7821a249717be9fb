package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// ordinary names commands of the shell before which an assignment is of them alone.
var ordinary = map[string]bool{
	"echo": true, "printf": true, "print": true, "test": true, "[": true, "cd": true, "pwd": true, "read": true, "mapfile": true,
	"readarray": true, "let": true, "type": true, "umask": true, "true": true, "false": true, "getopts": true, "jobs": true,
}

// stands notes that the bindings since mark are of assignments to names before a command.
func (s *state) stands(names []string, mark int) {
	for i := mark; i < len(s.vars); i++ {
		b := &s.vars[i]
		b.exported = slices.Contains(names, b.name)
		b.weak = b.weak || !b.exported // what a value assigns does not last in all shells
		if b.kind > reference {        // bash leaves the value as it is
			b.val = vague("$"+b.name, b.val)
		}
	}
}

// endAssigns ends the assignments that stand before a command. Where it is a
// function or of the shell itself, they last in some shells, and what it assigned to
// these names does in others.
func (s *state) endAssigns(names []string, mark, set int, command abstract.Value) {
	if set == mark || len(s.vars) < set {
		return
	}
	_, own := builtin(command.Text)
	defined := slices.ContainsFunc(s.funcs, func(f function) bool { return f.name == command.Text }) ||
		slices.ContainsFunc(s.aliases, func(a alias) bool { return a.name == command.Text })
	if ordinary[command.Text] && !defined && !s.referred(names) { // no shell keeps them, nor what it assigned
		s.vars = append(s.vars[:mark], slices.DeleteFunc(slices.Clone(s.vars[mark:]), func(b binding) bool { return slices.Contains(names, b.name) })...)
		return
	}
	if own = own || defined; !own && set-mark <= len(names) { // else a value assigned to it as well
		kept := s.vars[:mark]
		for i, b := range s.vars[mark:] {
			if mark+i >= set || !slices.Contains(names, b.name) && b.kind != forgotten {
				kept = append(kept, b)
			}
		}
		s.vars = kept
		return
	}
	for i := mark; i < len(s.vars); i++ {
		if slices.Contains(names, s.vars[i].name) {
			s.vars[i].weak, s.vars[i].exported = true, false
		}
	}
}

// referred reports whether some name is or may be one that a reference is to.
func (s *state) referred(names []string) bool {
	return slices.ContainsFunc(s.vars, func(b binding) bool {
		return b.kind == reference && (slices.Contains(names, b.name) || !b.val.Known() || slices.Contains(names, b.val.Text))
	})
}

// assigns returns the names that are assigned before a command: of a reference both.
func (s *state) assigns(c *syntax.CallExpr) []string {
	var names []string
	for _, a := range c.Assigns {
		if a.Name == nil {
			continue
		}
		names = append(names, a.Name.Value)
		if to, ok := s.target(a.Name.Value); !ok || to != a.Name.Value {
			names = append(names, to)
		}
	}
	return names
}

// assignment binds a variable. One that lasts takes all the values that its
// right side may have.
func (s *state) assignment(a *syntax.Assign, lasts bool) {
	if a.Name == nil {
		if a.Value != nil {
			s.word(a.Value)
		}
		return
	}
	name := a.Name.Value
	if a.Naked {
		return
	}
	if !lasts {
		to, ok := s.target(name)
		s.assignOnce(name, a)
		if !ok || to != name { // bash gives the value to the reference itself where that is a local one
			s.forget()
		}
		return
	}
	mark, rounds := len(s.vars), 0
	var bound []binding // in all rounds, of which none sees another
	s.inRounds(func() {
		s.assignOnce(name, a)
		bound = append(bound, s.vars[min(mark, len(s.vars)):]...)
		s.vars = s.vars[:min(mark, len(s.vars))]
		if rounds = s.rounds; s.shared {
			rounds = 1
		}
	})
	if rounds > 1 && len(bound) > 0 { // together they replace what was there
		last := bound[len(bound)-1]
		replaced := false
		for i := range bound {
			if bound[i].name == last.name && !bound[i].weak && !replaced {
				replaced = true
			} else {
				bound[i].weak = true
			}
		}
	}
	for _, b := range bound {
		s.bind(b)
	}
}

// assignOnce binds a variable to one value of the right side.
func (s *state) assignOnce(name string, a *syntax.Assign) {
	switch {
	case a.Array != nil && a.Index != nil: // members in place of others, in zsh
		s.index(a.Index)
		s.bindArray(name, a)
		s.forget()
		return
	case a.Array != nil:
		s.bindArray(name, a)
		return
	case a.Index != nil:
		s.bindElement(name, a)
		return
	}
	v := s.word(a.Value)
	if old, ok := s.attribute(name); ok && old.array && a.Append && old.kind != reference {
		if _, ok := s.target(name); !ok {
			s.forget()
			return
		}
		s.addTo(name, old, v)
		return
	}
	if a.Append {
		if old, ok := s.lookup(name); ok && old.kind != integer && old.kind != mixed {
			v = abstract.Concat(s.first(old, "$"+name), v)
		} else if ok {
			v = vague("$"+name, old.val, v)
		} else {
			v = abstract.Concat(s.environment(name)[0], v)
		}
	}
	v.From = s.spanOf(a)
	s.assign(name, v)
}
