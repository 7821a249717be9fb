package shell

import (
	"maps"
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// makeLocal makes a variable local to the function that is being walked.
func (s *analysisState) makeLocal(name string) {
	if len(s.frames) == 0 {
		return
	}
	s.frames = slices.Clone(s.frames)
	f := &s.frames[len(s.frames)-1]
	was, again := f.locals[name]
	if again && !was.isPossiblyUndeclaredLocal {
		return
	}
	f.locals = maps.Clone(f.locals)
	if !again {
		was = s.vars.get(name)
	}
	was.isPossiblyUndeclaredLocal = false
	f.locals[name] = was
}

// isLocalVariable reports whether a function that is being walked declared a name local.
func (s *analysisState) isLocalVariable(name string) bool {
	return slices.ContainsFunc(s.frames, func(f callFrame) bool { _, ok := f.locals[name]; return ok })
}

// markVariablePossiblyNotLocal records that unset may remove a local variable of a calling function: later uses then refer to
// the variable outside of it.
func (s *analysisState) markVariablePossiblyNotLocal(name string) {
	frames := slices.Clone(s.frames)
	for i := range frames[:max(0, len(frames)-1)] {
		if was, ok := frames[i].locals[name]; ok {
			was.isPossiblyUndeclaredLocal = true
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
		if was.isPossiblyUndeclaredLocal { // the name may not have been declared local
			was.isPossiblyUndeclaredLocal = false
			was = was.merge(sh.vars.get(name))
		}
		sh.setVariable(name, was)
	}
	sh.frames = sh.frames[:last:last]
}

// maxCallDepth is the maximum depth of nested function calls. A call at this depth is walked once, with all variables
// unknown; the result is used for every deeper call.
const maxCallDepth = 8

// maxRecursionSteps is the number of steps after which a recursive call is walked with all variables unknown: the number
// of walks can double with each level.
const maxRecursionSteps = maxAnalysisSteps / 4

// A recursionLimitCallContext identifies a walk of a function with all variables unknown: its
// result depends only on these fields.
type recursionLimitCallContext struct {
	folder            string
	stdinTaint        abstract.Taint
	isOnRemoteMachine bool
}

// isCallAtRecursionLimit reports whether a call is so deep that its result is used for all deeper calls.
func (s *analysisState) isCallAtRecursionLimit(f *function) bool {
	return s.functionCallDepth == maxCallDepth || s.stepsSpent > maxRecursionSteps && slices.ContainsFunc(s.frames, func(on callFrame) bool { return on.body == f.body })
}

// callFunction walks a function's body.
func (s *analysisState) callFunction(f *function, args []abstract.Value, in abstract.Value, self abstract.Value) (out abstract.Value) {
	f.hasBeenCalled = true
	if s.functionCallDepth > maxCallDepth || !s.enterNesting(self.SourceSpan) {
		s.recordErrorAbortingLineOrShell() // shells abort at some depth, if the function does not end
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	defer s.leaveNesting()
	deep := s.isCallAtRecursionLimit(f)
	if now := (recursionLimitCallContext{s.workingFolderContext().CWD, in.Taint, s.remoteOrContainerDepth > 0}); deep && s.effectSuppressionDepth == 0 {
		if slices.Contains(f.deepestCalls, now) {
			s.forgetVariables()
			return abstract.Unknown("…", abstract.TaintUnknownText)
		}
		f.deepestCalls = append(f.deepestCalls, now)
	}
	around := s.loopExits
	broke := s.newEarlyExits(blockKindLoopIteration)
	s.frames = append(slices.Clip(s.frames), callFrame{f.body, map[string]variable{}})
	s.makeLocal(positionalParametersName)
	if s.setPositional(args); deep {
		s.forgetVariables()
		s.setUnknownPositional()
	}
	s.walkInNestedTextScope(func() {
		s.spanOfNestedText, s.offsetInAnalyzedText = f.spanOfTextAroundDefinition, f.offsetInAnalyzedText
		s.functionCallDepth++
		end := s.newEarlyExits(blockKindFunctionCall)
		s.functionExits, s.loopExits = end, []*earlyExitStates{broke}
		out = s.walkStmt(f.body, in)
		if s.possibleExits.mayHaveExitedFunction {
			out = outputOfPossiblySkippedCommand(out)
		}
		s.joinEarlyExits(end)
	})
	s.endFrame()
	if len(broke.exitStates) > 0 { // break or continue may leave a loop around the call
		s.Shell = Join(append(broke.exitStates, s.Shell)...)
		for _, loop := range around {
			s.addEarlyExit(loop)
		}
	}
	return out
}

// checkRecursion records a function that calls itself: infinite recursion if no condition can end it, and a possible
// fork bomb if it starts copies of itself in the background.
func (s *analysisState) checkRecursion(f *function, at effect.CommandTextSpan) {
	first := slices.IndexFunc(s.frames, func(on callFrame) bool { return on.body == f.body })
	if first < 0 {
		return
	}
	endless := certainlyCallsFunction(f.name, f.body)
	if !endless {
		endless = !slices.ContainsFunc(s.frames[first:], func(on callFrame) bool { return canEndRecursion(on.body) })
	}
	switch {
	case endless:
		s.emitOnce(effect.Effect{Kind: effect.StopProcess, Program: f.name, Cause: effect.CauseEndlessRecursion, Reason: "infinite recursion of a function", Span: at})
	case slices.ContainsFunc(s.frames[first:], func(on callFrame) bool { return isForkBomb(f.name, on.body) }):
		s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, "fork bomb: a function starts copies of itself in the background; instead: remove the function", at)
	}
}

// recordEarlyExit records that break, continue, return or exit runs here, or may. The walk continues, and its result is
// joined with the state at this point.
func (s *analysisState) recordEarlyExit(exitCommand string) {
	switch exitCommand {
	case "break", "continue":
		for _, loop := range s.loopExits {
			s.addEarlyExit(loop)
		}
		s.possibleExits.mayHaveExitedLoop = s.possibleExits.mayHaveExitedLoop || len(s.loopExits) > 0
		if len(s.loopExits) == 1 && s.functionCallDepth > 0 {
			s.addEarlyExit(s.functionExits)
		}
	case "return":
		s.addEarlyExit(s.functionExits)
		s.possibleExits.mayHaveExitedFunction = s.possibleExits.mayHaveExitedFunction || s.functionExits != nil
	case "exit", "logout": // an interactive shell may not exit
		s.recordPossibleExit()
	}
}
