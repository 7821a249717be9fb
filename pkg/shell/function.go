package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A frame is a function being walked: the names that it declared local, with
// the number of bindings before each.
type frame struct {
	of     *syntax.Stmt // its body
	locals map[string]int
}

// local makes a name end with the function being walked.
func (s *state) local(name string) {
	if len(s.frames) == 0 {
		return
	}
	f := &s.frames[len(s.frames)-1]
	if _, ok := f.locals[name]; !ok || s.vars[f.locals[name]].weak {
		f.locals[name] = len(s.vars)
		s.bind(binding{name: localPrefix + name})
	}
}

// localPrefix stands before the name of a local variable, in a binding that says so.
const localPrefix = "\x00local "

// endLocals drops what a function assigned to its local variables since mark. Where one
// may not have been declared, it may be of the variable outside.
func (s *state) endLocals(mark int, locals map[string]int) {
	drops := map[string]int{positionalName: mark}
	for name, from := range locals {
		drops[localPrefix+name] = from
		if from < len(s.vars) && s.vars[from].weak {
			for i := from; i < len(s.vars); i++ {
				s.vars[i].weak = s.vars[i].weak || s.vars[i].name == name
			}
			continue
		}
		drops[name] = from
	}
	s.drop(mark, drops)
}

// isLocal reports whether a function that is being walked declared a name local.
func (s *state) isLocal(name string) bool {
	return slices.ContainsFunc(s.frames, func(f frame) bool { _, ok := f.locals[name]; return ok })
}

// given reports whether a name was assigned before the call of a function being walked.
func (s *state) given(name string) bool {
	return len(s.frames) > 0 && slices.ContainsFunc(s.vars, func(b binding) bool { return b.exported && b.name == name })
}

// revealed notes that unset may end a local variable of a function around the one being walked:
// what follows is then of the variable outside.
func (s *state) revealed(name string) {
	for i, f := range s.frames {
		if at, ok := f.locals[name]; ok && i < len(s.frames)-1 && at < len(s.vars) {
			s.vars[at].weak = true
		}
	}
}

// mostCalls is how deep functions are walked in one another. Behind that, one is
// walked with all variables unknown, once, which stands for every deeper call.
const mostCalls = 8

// manySteps is after how many steps a function that calls itself is walked so at
// once: each of its calls may double how often the next is walked.
const manySteps = maxSteps / 4

// A deepest is a walk of a function with all variables unknown: what it depended
// on beside them.
type deepest struct {
	folder string
	in     abstract.Taint
	remote bool
}

// deeper reports whether a call is deep enough to stand for all others.
func (s *state) deeper(f *function) bool {
	return s.inFunc == mostCalls || s.steps > manySteps && slices.ContainsFunc(s.frames, func(on frame) bool { return on.of == f.body })
}

// callFunction walks a function's body.
func (s *state) callFunction(i int, args []abstract.Value, in abstract.Value, self abstract.Value) abstract.Value {
	f := &s.funcs[i]
	f.called = true
	if s.inFunc > mostCalls || !s.enter(self.From) {
		s.failsLine() // shells end somewhere, if it does not
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	deep := s.deeper(f)
	if now := (deepest{s.place().CWD, in.Taint, s.remote > 0}); deep && s.quiet == 0 {
		if slices.Contains(f.deepest, now) {
			s.forget()
			return abstract.Unknown("…", abstract.Foreign)
		}
		f.deepest = append(f.deepest, now)
	}
	fixed, base, way := s.fixed, s.base, s.left
	s.fixed, s.base = f.fixed, f.base
	mark, traps := len(s.vars), len(s.traps)
	s.frames = append(s.frames, frame{f.body, map[string]int{}})
	if deep {
		s.forget()
		s.bind(binding{name: positionalName, array: true, unsure: true})
	} else {
		s.setPositional(args)
	}
	s.inFunc++
	s.left.loop, s.left.call, s.left.loops = 0, 0, 0
	out := s.stmt(f.body, in)
	broke := s.left.loop > 0
	s.endCall(left{})
	if s.left.loop, s.left.call, s.left.loops = way.loop, way.call, way.loops; broke && way.loops > 0 {
		s.leaving(&s.left.loop)
	}
	s.inFunc--
	s.endLocals(mark, s.frames[len(s.frames)-1].locals)
	s.left.line = min(s.left.line, 1+mark) // of what is left of the bindings
	s.frames = s.frames[:len(s.frames)-1]
	s.zshTraps(traps)
	s.fixed, s.base = fixed, base
	return out
}
