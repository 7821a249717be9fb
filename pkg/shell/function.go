package shell

import (
	"maps"
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// local makes a name end with the function being walked.
func (s *state) local(name string) {
	if len(s.frames) == 0 {
		return
	}
	s.frames = slices.Clone(s.frames)
	f := &s.frames[len(s.frames)-1]
	was, again := f.locals[name]
	if again && !was.loose {
		return
	}
	f.locals = maps.Clone(f.locals)
	if !again {
		was = s.vars.get(name)
	}
	was.loose = false
	f.locals[name] = was
}

// isLocal reports whether a function that is being walked declared a name local.
func (s *state) isLocal(name string) bool {
	return slices.ContainsFunc(s.frames, func(f frame) bool { _, ok := f.locals[name]; return ok })
}

// noteOuterVariable notes that unset may end a local variable of a function around the one being walked:
// what follows is then of the variable outside.
func (s *state) noteOuterVariable(name string) {
	frames := slices.Clone(s.frames)
	for i := range frames[:max(0, len(frames)-1)] {
		if was, ok := frames[i].locals[name]; ok {
			was.loose = true
			frames[i].locals = maps.Clone(frames[i].locals)
			frames[i].locals[name] = was
		}
	}
	s.frames = frames
}

// endFrame ends a function: its local names hold what they did around it.
func (sh *Shell) endFrame() {
	last := len(sh.frames) - 1
	for name, was := range sh.frames[last].locals {
		if was.loose { // it may not have been declared
			was.loose = false
			was = was.or(sh.vars.get(name))
		}
		sh.bind(name, was)
	}
	sh.frames = sh.frames[:last:last]
}

// mostCalls is how deep functions are walked in one another. Behind that, one is
// walked with all variables unknown, once, which stands for every deeper call.
const mostCalls = 8

// manySteps is after how many steps a function that calls itself is walked so at
// once: each of its calls may double how often the next is walked.
const manySteps = maxSteps / 4

// A deepestCall is a walk of a function with all variables unknown: what it depended
// on beside them.
type deepestCall struct {
	folder string
	in     abstract.Taint
	remote bool
}

// deeper reports whether a call is deep enough to stand for all others.
func (s *state) deeper(f *function) bool {
	return s.calls == mostCalls || s.steps > manySteps && slices.ContainsFunc(s.frames, func(on frame) bool { return on.of == f.body })
}

// callFunction walks a function's body.
func (s *state) callFunction(f *function, args []abstract.Value, in abstract.Value, self abstract.Value) (out abstract.Value) {
	f.called = true
	if s.calls > mostCalls || !s.enter(self.From) {
		s.mayFailLine() // shells end somewhere, if it does not
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	deep := s.deeper(f)
	if now := (deepestCall{s.place().CWD, in.Taint, s.remote > 0}); deep && s.quiet == 0 {
		if slices.Contains(f.deepest, now) {
			s.forget()
			return abstract.Unknown("…", abstract.Foreign)
		}
		f.deepest = append(f.deepest, now)
	}
	around := s.around
	broke := s.begins(ofTurn)
	s.frames = append(slices.Clip(s.frames), frame{f.body, map[string]variable{}})
	s.local(positionalName)
	if s.setPositional(args); deep {
		s.forget()
		s.setAnyPositional()
	}
	s.within(func() {
		s.fixed, s.base = f.fixed, f.base
		s.calls++
		end := s.begins(ofCall)
		s.body, s.around = end, []*ends{broke}
		out = s.stmt(f.body, in)
		if s.ended.call {
			out = possibleOutput(out)
		}
		s.comesTo(end)
	})
	s.endFrame()
	if len(broke.shells) > 0 { // some shells leave a loop around the call
		s.Shell = Join(append(broke.shells, s.Shell)...)
		for _, loop := range around {
			s.mayLeave(loop)
		}
	}
	return out
}

// recursion looks at a function that is called while it is walked. One that surely
// calls itself again never ends, as a fork bomb; one that may end, and starts
// copies of itself beside it, can be as bad.
func (s *state) recursion(f *function, at effect.Span) {
	first := slices.IndexFunc(s.frames, func(on frame) bool { return on.of == f.body })
	if first < 0 {
		return
	}
	endless := callsAgain(f.name, f.body)
	if !endless {
		endless = !slices.ContainsFunc(s.frames[first:], func(on frame) bool { return hasCondition(on.of) })
	}
	switch {
	case endless:
		s.emitOnce(effect.Effect{Kind: effect.StopProcess, Program: f.name, Cause: effect.CauseRecursion, Reason: "infinite recursion of a function", From: at})
	case slices.ContainsFunc(s.frames[first:], func(on frame) bool { return isForkBomb(f.name, on.of) }):
		s.dynamic(effect.CauseLimit, "fork bomb: a function starts copies of itself in the background", at)
	}
}

// leavesHere notes that break, continue, return or exit runs here, or may: the walk goes on, and what
// it leaves is joined with what was here.
func (s *state) leavesHere(how string) {
	switch how {
	case "break", "continue":
		for _, loop := range s.around {
			s.mayLeave(loop)
		}
		s.ended.loop = s.ended.loop || len(s.around) > 0
		if len(s.around) == 1 && s.calls > 0 {
			s.mayLeave(s.body)
		}
	case "return":
		s.mayLeave(s.body)
		s.ended.call = s.ended.call || s.body != nil
	case "exit", "logout": // a shell that people type into may stay
		s.mayFail()
	}
}
