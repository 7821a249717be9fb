package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A frame is a function being walked: the names that it declared local, with
// the number of bindings before each.
type frame struct{ locals map[string]int }

// local makes a name end with the function being walked.
func (s *state) local(name string) {
	if len(s.frames) == 0 {
		return
	}
	f := &s.frames[len(s.frames)-1]
	if _, ok := f.locals[name]; !ok {
		f.locals[name] = len(s.vars)
	}
}

// isLocal reports whether a function that is being walked declared a name local.
func (s *state) isLocal(name string) bool {
	return slices.ContainsFunc(s.frames, func(f frame) bool { _, ok := f.locals[name]; return ok })
}

// mostCalls is how deep functions are walked in one another. Behind that, one is
// walked with all variables unknown, once, which stands for every deeper call.
const mostCalls = 8

// callFunction walks a function's body.
func (s *state) callFunction(i int, args []abstract.Value, in abstract.Value, self abstract.Value) abstract.Value {
	f := &s.funcs[i]
	f.called = true
	if s.inFunc > mostCalls || !s.enter(self.From) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	fixed, base, way := s.fixed, s.base, s.left
	s.fixed, s.base = f.fixed, f.base
	mark, traps := len(s.vars), len(s.traps)
	s.frames = append(s.frames, frame{locals: map[string]int{}})
	if s.inFunc == mostCalls {
		s.forget()
		s.bind(binding{name: positionalName, array: true, unsure: true})
	} else {
		s.setPositional(args)
	}
	s.inFunc++
	s.left.loop, s.left.call = 0, 0
	out := s.stmt(f.body, in)
	s.endCall(left{})
	s.left.loop, s.left.call = way.loop, way.call
	s.inFunc--
	s.zshTraps(traps)
	locals := s.frames[len(s.frames)-1].locals
	locals[positionalName] = mark
	s.drop(mark, locals)
	s.frames = s.frames[:len(s.frames)-1]
	s.fixed, s.base = fixed, base
	return out
}
