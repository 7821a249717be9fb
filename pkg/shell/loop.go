package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// loops walks a loop.
func (s *state) loops(c syntax.Command, in abstract.Value) (out abstract.Value) {
	s.left.loops++
	switch c := c.(type) {
	case *syntax.WhileClause:
		out = s.while(c, in)
	case *syntax.ForClause:
		out = s.forClause(c, in)
	}
	s.left.loops--
	return out
}

// while walks a loop turn by turn as long as its condition is decided.
func (s *state) while(c *syntax.WhileClause, in abstract.Value) abstract.Value {
	cond := func() (abstract.Value, exit) {
		in = s.remaining(in)
		out := s.stmts(c.Cond, in)
		if c.Until {
			return out, s.decided().negated()
		}
		return out, s.decided()
	}
	way, left := s.left, false
	body := func() abstract.Value {
		in = s.remaining(in)
		out := s.stmts(c.Do, in)
		left = left || s.left != way
		return out
	}
	names, last, stdin := reads(c), s.remaining(in), s.stdin
	out := s.loop(cond, body, nil)
	if ends := last.Known() && (last.Text == "" || strings.HasSuffix(last.Text, "\n")); ends && !left && s.left == way && s.stdin == stdin && !s.constants {
		s.atEnd(names)
	}
	return out
}

// reads returns the names that a loop reads lines into until there are none.
func reads(c *syntax.WhileClause) []string {
	if c.Until || len(c.Cond) != 1 || c.Cond[0].Negated || c.Cond[0].Background || len(c.Cond[0].Redirs) > 0 {
		return nil
	}
	call, ok := c.Cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 || call.Args[0].Lit() != "read" {
		return nil
	}
	var names []string
	for i, w := range call.Args[1:] {
		switch name := w.Lit(); {
		case i == 0 && name == "-r":
		case syntax.ValidName(name):
			names = append(names, name)
		default:
			return nil
		}
	}
	return names
}

// atEnd gives names what read does at the end of its input, where it is not known anyway.
func (s *state) atEnd(names []string) {
	if slices.ContainsFunc(s.funcs, func(f function) bool { return f.name == "read" }) || slices.ContainsFunc(s.aliases, func(a alias) bool { return a.name == "read" }) {
		return
	}
	for _, name := range names {
		if b, ok := s.attribute(name); ok && b.kind <= unset && !b.array && (b.weak || !b.val.Known()) {
			s.bind(binding{name: name})
		}
	}
}

// mostTurns is how many turns of a loop are walked one by one.
const mostTurns = 16

// loop walks a loop turn by turn as long as it is decided whether there is another. From
// there on it is not known how often it runs, and the names in counters hold any number.
func (s *state) loop(cond func() (abstract.Value, exit), body func() abstract.Value, counters []string) abstract.Value {
	var b abstract.Builder
	way := s.left
	for n := 0; n < mostTurns && s.steps < manySteps && s.left == way; n++ {
		holds := s.trial(cond)
		if holds == anyExit {
			break
		}
		repeated := len(s.effects)
		out, _ := cond()
		b.Add(out)
		if holds == failure || s.left.sure != stays {
			if n == 0 {
				s.unreached(func() { body() })
			}
			s.exit = anyExit
			return b.Value()
		}
		b.Add(body())
		s.dropRepeated(repeated)
		if s.left.sure > continues {
			s.endTurn(way)
			s.exit = anyExit
			return b.Value()
		}
		s.left.sure = stays
	}
	for _, name := range counters {
		s.bind(binding{name: name, val: abstract.Number("$" + name), weak: true})
	}
	s.turns(func() {
		out, _ := cond()
		b.Add(out)
		b.Add(body())
	})
	s.endTurn(way)
	s.exit = anyExit
	return maybe(b.Value())
}

// turns walks a loop of which it is not known how often it runs.
func (s *state) turns(walk func()) {
	mark, before, way, remains := len(s.vars), s.outcomes(), s.left, s.remains
	walk()
	s.unsure()
	s.mayRead(remains)
	if len(s.vars) > mark && !s.gaveUp {
		s.weaken(mark)
		for _, old := range slices.Clone(s.vars[mark:]) {
			if old.kind < forgotten && old.kind != workdir && old.kind != reference && old.name[0] != 0 || old.name == positionalName {
				v := vague("$"+old.name, old.val)
				if old.val.Text == "*" { // a number
					v = old.val
				}
				s.bind(binding{name: old.name, val: v, array: old.array, unsure: true, kind: old.kind})
			}
		}
		repeated := len(s.effects)
		walk()
		s.dropRepeated(repeated)
	}
	s.mayRead(remains)
	s.weaken(mark)
	s.uncertain(before)
	s.endTurn(way)
}

func (s *state) forClause(c *syntax.ForClause, in abstract.Value) abstract.Value {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		out := s.forWords(c, loop, in)
		s.exit = anyExit
		return out
	case *syntax.CStyleLoop:
		s.arithmCommand(loop.Init)
		cond := func() (abstract.Value, exit) {
			in = s.remaining(in)
			return abstract.Value{}, notZero(s.arithmCommand(loop.Cond))
		}
		body := func() abstract.Value {
			out := s.stmts(c.Do, in)
			if s.left.sure <= continues {
				s.left.sure = stays
				s.arithmCommand(loop.Post)
			}
			return out
		}
		return s.loop(cond, body, arithmNames(loop.Post, nil))
	}
	return abstract.Value{}
}

// forWords walks "for" over words: once for each.
func (s *state) forWords(c *syntax.ForClause, loop *syntax.WordIter, in abstract.Value) abstract.Value {
	var lists [][]abstract.Value // more than one if the words are not the same in each round
	s.inRounds(func() {
		var items []abstract.Value
		if loop.InPos.IsValid() {
			for _, w := range loop.Items {
				items = append(items, s.fields(w)...)
			}
		} else {
			items = s.positional()
		}
		lists = append(lists, items)
	})
	if len(lists) == 1 {
		return s.forItems(c, loop.Name.Value, lists[0], in)
	}
	var b abstract.Builder
	mark, before := len(s.vars), s.outcomes()
	for _, items := range lists {
		repeated := len(s.effects)
		b.Add(s.forItems(c, loop.Name.Value, items, in))
		s.dropRepeated(repeated)
		s.weaken(mark)
		s.uncertain(before)
	}
	return maybe(b.Value())
}

// each gives the variable of a loop its value. A reference becomes one to another variable.
func (s *state) each(name string, item abstract.Value) {
	if s.refers(name) {
		s.forget()
		s.bind(binding{name: name, val: abstract.Variable(name, 0), kind: mixed})
		return
	}
	s.assign(name, item)
}

// refers reports whether a name may be a reference.
func (s *state) refers(name string) bool {
	b, ok := s.attribute(name)
	return ok && (b.kind == reference || b.kind == mixed)
}

func (s *state) forItems(c *syntax.ForClause, name string, items []abstract.Value, in abstract.Value) abstract.Value {
	var b abstract.Builder
	if mark := len(s.vars); s.refers(name) { // which may be an error
		defer func() { s.weaken(mark) }()
	}
	if len(items) == 0 && !c.Select {
		s.unreached(func() {
			s.assign(name, abstract.Variable(name, 0))
			s.stmts(c.Do, in)
		})
		return abstract.Value{}
	}
	if c.Select || slices.ContainsFunc(items, func(v abstract.Value) bool { return !v.Known() }) {
		// Any number of turns, in each of which what an earlier one left is there.
		if len(items) == 0 {
			items = []abstract.Value{abstract.Variable(name, 0)}
		}
		s.turns(func() {
			for _, item := range items {
				in = s.remaining(in)
				s.each(name, item)
				b.Add(s.stmts(c.Do, in))
			}
		})
		return maybe(b.Value())
	}
	way, before := s.left, s.outcomes()
	for _, item := range items {
		if s.gaveUp {
			break
		}
		repeated, gone := len(s.effects), s.left.any()
		s.each(name, item)
		out := s.stmts(c.Do, in)
		in = s.remaining(in)
		if gone {
			out = maybe(out)
		}
		b.Add(out)
		if s.left.loop > 0 { // it may not have come to its end, nor to another turn
			s.uncertain(before)
			s.weaken(s.left.loop - 1)
			s.mayRead(nil)
		}
		if repeated > 0 {
			s.dropRepeated(repeated)
		}
		if s.left.sure > continues {
			break
		}
		s.left.sure = stays
	}
	s.endTurn(way)
	return b.Value()
}
