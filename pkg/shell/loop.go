package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// while walks a loop twice if it assigns: the second time with the assigned
// variables unknown, since they may hold what an earlier turn left in them.
func (s *state) while(c *syntax.WhileClause, in abstract.Value) abstract.Value {
	var b abstract.Builder
	s.turns(func() {
		if s.consumed {
			in = rest(in)
		}
		b.Add(s.stmts(c.Cond, in))
		b.Add(s.stmts(c.Do, in))
	})
	return maybe(b.Value())
}

// turns walks a loop of which it is not known how often it runs.
func (s *state) turns(walk func()) {
	mark, before, way := len(s.vars), s.outcomes(), s.left
	walk()
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
	s.weaken(mark)
	s.uncertain(before)
	s.endTurn(way)
}

func (s *state) forClause(c *syntax.ForClause, in abstract.Value) abstract.Value {
	var b abstract.Builder
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		return s.forWords(c, loop, in)
	case *syntax.CStyleLoop:
		s.arithm(loop.Init)
		for _, n := range arithmNames(loop.Post, nil) {
			s.bind(binding{name: n, val: abstract.Short("$"+n, abstract.FromVariable), weak: true})
		}
		s.turns(func() {
			if s.consumed {
				in = rest(in)
			}
			s.arithm(loop.Cond)
			b.Add(s.stmts(c.Do, in))
			s.arithm(loop.Post)
		})
	}
	return maybe(b.Value())
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

func (s *state) forItems(c *syntax.ForClause, name string, items []abstract.Value, in abstract.Value) abstract.Value {
	var b abstract.Builder
	if c.Select || len(items) == 0 || slices.ContainsFunc(items, func(v abstract.Value) bool { return !v.Known() }) {
		// Any number of turns, in each of which what an earlier one left is there.
		if len(items) == 0 {
			items = []abstract.Value{abstract.Variable(name, 0)}
		}
		s.turns(func() {
			for _, item := range items {
				if s.consumed {
					in = rest(in)
				}
				s.assign(name, item)
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
		s.assign(name, item)
		out := s.stmts(c.Do, in)
		if s.consumed {
			in = rest(in)
		}
		if gone {
			out = maybe(out)
		}
		b.Add(out)
		if s.left.loop > 0 { // it may not have come to its end, nor to another turn
			s.uncertain(before)
			s.weaken(s.left.loop - 1)
		}
		if repeated > 0 {
			s.dropRepeated(repeated)
		}
	}
	s.endTurn(way)
	return b.Value()
}
