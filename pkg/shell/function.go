package shell

import (
	"maps"
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// local makes a variable local to the function that is being walked.
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

// noteOuterVariable records that unset may remove a local variable of a calling function: later uses then refer to
// the variable outside of it.
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

// endFrame ends a function: its local names get back the values that they had outside.
func (sh *Shell) endFrame() {
	last := len(sh.frames) - 1
	for name, was := range sh.frames[last].locals {
		if was.loose { // the name may not have been declared local
			was.loose = false
			was = was.or(sh.vars.get(name))
		}
		sh.bind(name, was)
	}
	sh.frames = sh.frames[:last:last]
}

// mostCalls is the maximum depth of nested function calls. A call at this depth is walked once, with all variables
// unknown; the result is used for every deeper call.
const mostCalls = 8

// manySteps is the number of steps after which a recursive call is walked with all variables unknown: the number
// of walks can double with each level.
const manySteps = maxSteps / 4

// A deepestCall is a walk of a function with all variables unknown. Its fields are what the result depends on
// besides variables.
type deepestCall struct {
	folder string
	in     abstract.Taint
	remote bool
}

// deeper reports whether a call is so deep that its result is used for all deeper calls.
func (s *state) deeper(f *function) bool {
	return s.calls == mostCalls || s.steps > manySteps && slices.ContainsFunc(s.frames, func(on frame) bool { return on.of == f.body })
}

// callFunction walks a function's body.
func (s *state) callFunction(f *function, args []abstract.Value, in abstract.Value, self abstract.Value) (out abstract.Value) {
	f.called = true
	if s.calls > mostCalls || !s.enter(self.From) {
		s.mayFailLine() // shells abort at some depth, if the function does not end
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
	if len(broke.shells) > 0 { // break or continue may leave a loop around the call
		s.Shell = Join(append(broke.shells, s.Shell)...)
		for _, loop := range around {
			s.mayLeave(loop)
		}
	}
	return out
}

// recursion records a function that calls itself: infinite recursion if no condition can end it, and a possible
// fork bomb if it starts copies of itself in the background.
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

// leavesHere records that break, continue, return or exit runs here, or may. The walk continues, and its result is
// joined with the state at this point.
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
	case "exit", "logout": // an interactive shell may not exit
		s.mayFail()
	}
}
