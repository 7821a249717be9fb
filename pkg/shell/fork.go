package shell

import (
	"maps"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A Shell is the state of one shell at one point of the text. It is a value: Fork copies it for a subshell, a
// branch, a side of a pipe or a turn of a loop, and Join merges the copies. No other code copies or restores its
// fields.
//
// The tables and lists that a Shell points to are copied before a change if two Shells share them.
type Shell struct {
	vars                     *variableTable
	possibleFunctionsByName  map[string]possibleFunctions
	aliases                  []alias
	fds                      []descriptor
	traps                    []abstract.Value
	trapCodeVariableNames    []string    // variables that a trap reads or sets; an assignment to one keeps its earlier values as possible values
	frames                   []callFrame // call stack of the functions being walked
	stdin                    *abstract.Value
	workingFolder            *effect.PathContext // the working folder; nil for the initial one
	isWorkingFolderUncertain bool                // cd may have failed, and later commands run all the same
	possibleExits            possibleExits       // the loop, function or shell may have ended here, so later commands possibly do not run
	dotenvFileReadEffects    []effect.Effect
	dialect                  shellDialect
	nounset                  bool // set -u: expanding an unset parameter ends the shell
	hasGlobalAlias           bool // a global alias of zsh may replace words that are not commands
}

// A variableTable holds the variables that the text has set.
type variableTable struct {
	byName                       map[string]variable
	isSharedWithForkedShell      bool // a forked Shell shares the table, so a change copies the table first
	hasAssignmentToUnknownName   bool // a variable of unknown name was assigned: any variable may hold any value
	hasVariableWithSeveralValues bool // some variable has several possible values
}

// A possibleExits says which parts of the text may have ended: the loop, the function call or the shell.
type possibleExits struct{ mayHaveExitedLoop, mayHaveExitedFunction, mayHaveExitedShell bool }

func (e possibleExits) isExitPossible() bool {
	return e.mayHaveExitedLoop || e.mayHaveExitedFunction || e.mayHaveExitedShell
}

// A function is a function that the text defines.
type function struct {
	name                       string
	body                       *syntax.Stmt
	hasBeenCalled              bool
	spanOfTextAroundDefinition *effect.CommandTextSpan
	offsetInAnalyzedText       int

	deepestCalls []recursionLimitCallContext // contexts of the calls walked at the recursion limit; a further call in the same context is not walked
}

// A possibleFunctions holds the functions that a name may refer to.
type possibleFunctions struct {
	functions            []*function
	mayAlsoBeNonFunction bool // the name may also refer to a builtin or a program
}

// An alias is an alias that the text defines.
type alias struct {
	name               string
	isCommandHashEntry bool // not an alias: an entry of the shell's command hash table
}

// A descriptor is a file descriptor that the text opens. Shells that share it share the stream, too.
type descriptor struct {
	id string
	*openFile
}

// An openFile is an open file: the value that a read returns, and the target of writes.
type openFile struct {
	readableContent abstract.Value // the value that a read returns
	out             *abstract.OutputTarget
}

// A callFrame is a function being walked, with the outer values of its local variables.
type callFrame struct {
	body   *syntax.Stmt // its body
	locals map[string]variable
}

func newShell() Shell { return Shell{vars: &variableTable{}} }

// Fork returns a copy of the shell's state.
func (sh *Shell) Fork() Shell {
	sh.vars.isSharedWithForkedShell = true
	sh.aliases, sh.fds, sh.traps = slices.Clip(sh.aliases), slices.Clip(sh.fds), slices.Clip(sh.traps)
	sh.frames, sh.trapCodeVariableNames, sh.dotenvFileReadEffects = slices.Clip(sh.frames), slices.Clip(sh.trapCodeVariableNames), slices.Clip(sh.dotenvFileReadEffects)
	return *sh
}

// Join returns the state that holds if one of several shells continues and it is not known which.
func Join(shells ...Shell) Shell {
	out := shells[0].Fork()
	for i := range shells[1:] {
		out.joinAlternative(&shells[i+1])
	}
	return out
}

// joinAlternative merges other into the shell: the result may be either state.
func (sh *Shell) joinAlternative(other *Shell) {
	sh.joinVars(other)
	sh.joinFuncs(other)
	for _, a := range other.aliases {
		if !slices.Contains(sh.aliases, a) {
			sh.aliases = append(slices.Clip(sh.aliases), a)
		}
	}
	sh.joinStreams(other)
	for _, t := range other.traps {
		if !slices.ContainsFunc(sh.traps, func(have abstract.Value) bool { return have.Text == t.Text }) {
			sh.traps = append(slices.Clip(sh.traps), t)
		}
	}
	for _, name := range other.trapCodeVariableNames {
		if !slices.Contains(sh.trapCodeVariableNames, name) {
			sh.trapCodeVariableNames = append(slices.Clip(sh.trapCodeVariableNames), name)
		}
	}
	for i := range min(len(sh.frames), len(other.frames)) {
		sh.joinLocals(i, other.frames[i].locals)
	}
	if len(other.frames) < len(sh.frames) {
		sh.frames = sh.frames[:len(other.frames)]
	}
	if sh.stdin != other.stdin {
		v := abstract.Unknown("…", abstract.TaintUnknownText).WithOrigin(abstract.OriginStdin)
		for _, in := range []*abstract.Value{sh.stdin, other.stdin} {
			if in != nil {
				v.Taint |= in.Taint
			}
		}
		sh.stdin = &v
	}
	if len(other.dotenvFileReadEffects) > len(sh.dotenvFileReadEffects) {
		sh.dotenvFileReadEffects = other.dotenvFileReadEffects
	}
	sh.possibleExits.mayHaveExitedLoop, sh.possibleExits.mayHaveExitedFunction, sh.possibleExits.mayHaveExitedShell = sh.possibleExits.mayHaveExitedLoop || other.possibleExits.mayHaveExitedLoop, sh.possibleExits.mayHaveExitedFunction || other.possibleExits.mayHaveExitedFunction, sh.possibleExits.mayHaveExitedShell || other.possibleExits.mayHaveExitedShell
	sh.isWorkingFolderUncertain, sh.nounset, sh.hasGlobalAlias = sh.isWorkingFolderUncertain || other.isWorkingFolderUncertain, sh.nounset || other.nounset, sh.hasGlobalAlias || other.hasGlobalAlias
	sh.dialect.zshOptionsChanged = sh.dialect.zshOptionsChanged || other.dialect.zshOptionsChanged
	sh.dialect.isReadAsZsh = sh.dialect.isReadAsZsh && other.dialect.isReadAsZsh // read as zsh only if both shells are; walkAgainAsZsh sets this for a single command and then resets it
}

func (sh *Shell) joinVars(o *Shell) {
	if sh.vars == o.vars {
		return
	}
	t := &variableTable{byName: maps.Clone(sh.vars.byName), hasAssignmentToUnknownName: sh.vars.hasAssignmentToUnknownName || o.vars.hasAssignmentToUnknownName, hasVariableWithSeveralValues: sh.vars.hasVariableWithSeveralValues || o.vars.hasVariableWithSeveralValues}
	if t.byName == nil {
		t.byName = map[string]variable{}
	}
	for name, v := range sh.vars.byName {
		t.set(name, v.merge(o.vars.get(name)))
	}
	for name, v := range o.vars.byName {
		if _, both := sh.vars.byName[name]; !both {
			t.set(name, v.merge(sh.vars.get(name)))
		}
	}
	sh.vars = t
}

func (sh *Shell) joinFuncs(o *Shell) {
	for name, d := range o.possibleFunctionsByName {
		have, ok := sh.possibleFunctionsByName[name]
		next := possibleFunctions{functions: slices.Clip(have.functions), mayAlsoBeNonFunction: have.mayAlsoBeNonFunction || d.mayAlsoBeNonFunction || !ok}
		for _, f := range d.functions {
			if !slices.Contains(next.functions, f) {
				next.functions = append(next.functions, f)
			}
		}
		if !ok || next.mayAlsoBeNonFunction != have.mayAlsoBeNonFunction || len(next.functions) != len(have.functions) {
			sh.setFunction(name, next)
		}
	}
	for name, d := range sh.possibleFunctionsByName {
		if _, ok := o.possibleFunctionsByName[name]; !ok && !d.mayAlsoBeNonFunction {
			sh.setFunction(name, possibleFunctions{functions: d.functions, mayAlsoBeNonFunction: true})
		}
	}
}

// setFunction sets the functions that a name may refer to.
func (sh *Shell) setFunction(name string, d possibleFunctions) {
	sh.possibleFunctionsByName = maps.Clone(sh.possibleFunctionsByName)
	if sh.possibleFunctionsByName == nil {
		sh.possibleFunctionsByName = map[string]possibleFunctions{}
	}
	sh.possibleFunctionsByName[name] = d
}

// joinStreams merges the file descriptors of two shells, only one of which is the real state. A
// descriptor that they do not share gets an unknown value.
func (sh *Shell) joinStreams(o *Shell) {
	if slices.Equal(sh.fds, o.fds) {
		return
	}
	list := slices.Clone(sh.fds)
	for _, d := range o.fds {
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	for i, d := range list {
		if !slices.Contains(sh.fds, d) || !slices.Contains(o.fds, d) {
			list[i].openFile = &openFile{readableContent: unknownValueWithTaintsOf("…", d.readableContent), out: d.out}
		}
	}
	sh.fds = list
}

func (sh *Shell) joinLocals(i int, locals map[string]variable) {
	next := maps.Clone(sh.frames[i].locals)
	for name, was := range locals {
		if _, both := next[name]; !both {
			next[name] = was
		}
	}
	for name, was := range next {
		if _, ok := locals[name]; !ok { // the variable may be local
			was.isPossiblyUndeclaredLocal = true
			next[name] = was
		}
		if _, ok := sh.frames[i].locals[name]; !ok {
			was.isPossiblyUndeclaredLocal = true
			next[name] = was
		}
	}
	sh.frames = slices.Clone(sh.frames)
	sh.frames[i].locals = next
}

// set binds a variable.
func (t *variableTable) set(name string, v variable) {
	if t.byName == nil {
		t.byName = map[string]variable{}
	}
	t.byName[name] = v
	t.hasVariableWithSeveralValues = t.hasVariableWithSeveralValues || len(v.possibleContents) > 1
}

// get returns the possible values of a variable. For a variable that the analysed text has not set,
// this is the value inherited from the environment or, if a variable of unknown name was assigned,
// any value.
func (t *variableTable) get(name string) variable {
	if v, ok := t.byName[name]; ok {
		return v
	}
	if t.hasAssignmentToUnknownName && name[0] != 0 {
		return variable{possibleContents: []variableContent{{val: abstract.UnsetVariableValue(name, abstract.TaintUnknownText).WithOrigin(abstract.OriginAssignmentToUnknownName), mayBeUnset: true}}}
	}
	return variable{possibleContents: []variableContent{{isFromBeforeCommandText: true}}}
}

// setVariable sets the possible values of a variable, in this shell alone.
func (sh *Shell) setVariable(name string, v variable) {
	if sh.vars.isSharedWithForkedShell {
		t := *sh.vars
		t.byName, t.isSharedWithForkedShell = maps.Clone(t.byName), false
		sh.vars = &t
	}
	sh.vars.set(name, v)
}

// hasSameVariables reports whether two shells have the same variables.
func (sh *Shell) hasSameVariables(o *Shell) bool {
	return sh.vars == o.vars || sh.vars.hasAssignmentToUnknownName == o.vars.hasAssignmentToUnknownName && maps.EqualFunc(sh.vars.byName, o.vars.byName, variable.equal)
}

// An earlyExitStates collects the states at the points where a loop iteration, a function call or a line
// can end early, because of break, return or an error.
type earlyExitStates struct {
	kind                     blockKind
	callDepth                int // depth of the call stack where the iteration, call or line starts
	possibleExitsBeforeBlock possibleExits
	exitStates               []Shell
}

type blockKind uint8

const (
	blockKindTopLevelLine blockKind = iota
	blockKindLoopIteration
	blockKindFunctionCall
)

// newEarlyExits returns an empty collection of early exits for a loop iteration, a function call or
// a line that starts at this point.
func (s *analysisState) newEarlyExits(of blockKind) *earlyExitStates {
	return &earlyExitStates{kind: of, callDepth: len(s.frames), possibleExitsBeforeBlock: s.possibleExits}
}

// addEarlyExit adds a copy of the current state to from: break, return or an error may end the loop iteration,
// function call or line here. It does nothing if from is nil or full.
func (s *analysisState) addEarlyExit(from *earlyExitStates) {
	if from == nil || len(from.exitStates) == maxPossibleVariableValues*4 {
		return
	}
	out := s.Fork()
	for len(out.frames) > from.callDepth {
		out.endFrame()
	}
	from.exitStates = append(from.exitStates, out)
}

// joinEarlyExits joins the states in which a part of the text was left early with the state at its end.
func (s *analysisState) joinEarlyExits(from *earlyExitStates) {
	for _, o := range from.exitStates {
		s.joinSkippedCommandState(o, len(s.writtenFiles))
	}
	if from.kind != blockKindTopLevelLine {
		s.possibleExits.mayHaveExitedLoop = from.possibleExitsBeforeBlock.mayHaveExitedLoop
	}
	if from.kind == blockKindFunctionCall {
		s.possibleExits.mayHaveExitedFunction = from.possibleExitsBeforeBlock.mayHaveExitedFunction
	}
	from.exitStates = nil
}

// joinSkippedCommandState joins the current state with skipped, the state if a command has not run.
// The files written from index firstNewFile on become uncertain. The working folder stays the
// current one: people write `cd x && make` and mean x from there on.
func (s *analysisState) joinSkippedCommandState(skipped Shell, firstNewFile int) {
	place := s.Shell.workingFolder
	s.Shell = Join(skipped, s.Shell)
	s.Shell.workingFolder = place
	s.markFilesUncertain(firstNewFile)
}

// walkAlternativeBranches walks branches of which exactly one runs or, if mayRunNone is true,
// possibly none.
func (s *analysisState) walkAlternativeBranches(mayRunNone bool, walks ...func()) {
	from, mark := s.Fork(), len(s.writtenFiles)
	var ends []Shell
	if mayRunNone {
		ends = append(ends, from)
	}
	for _, walk := range walks {
		s.Shell = from.Fork()
		walk()
		ends = append(ends, s.Shell)
	}
	s.Shell = Join(ends...)
	for i := len(ends) - 1; i >= 0; i-- { // keep the changed folder: people write `test -d x && cd x` and mean x from there on
		if ends[i].workingFolder != from.workingFolder {
			s.Shell.workingFolder = ends[i].workingFolder
			break
		}
	}
	s.markFilesUncertain(mark)
	s.markFilesWithSeveralWriters(from.fds)
}

// walkCodeThatMayRun walks a part of the text that may or may not run.
func (s *analysisState) walkCodeThatMayRun(walk func()) { s.walkAlternativeBranches(true, walk) }

// walkSubshell walks a subshell: its state is dropped at the end, its effects and written files stay.
func (s *analysisState) walkSubshell(walk func()) {
	from := s.Shell
	s.Shell = s.Fork()
	s.walkInNestedTextScope(func() {
		s.possibleExits, s.traps = possibleExits{}, nil
		s.functionExits, s.currentLineExitStates, s.loopExits = nil, nil, nil
		walk()
		s.runTraps()
	})
	s.Shell = from
}

// walkDeferredCode walks code that may run at any time from now on, any number of times, in this shell or in parallel.
func (s *analysisState) walkDeferredCode(walk func()) {
	mark := len(s.effects)
	s.walkLoop(walk)
	s.dropRepeatedEffects(mark)
}

// walkLoop walks code that runs any number of times, until an iteration changes no variable. The
// state after each iteration is joined with the state before it; variables that still change become
// unknown.
func (s *analysisState) walkLoop(walk func()) {
	for turn := range maxLoopIterations {
		from, mark := s.Fork(), len(s.effects)
		s.walkCodeThatMayRun(walk)
		s.dropRepeatedEffects(mark)
		if s.isAnalysisAborted || s.hasSameVariables(&from) {
			return
		}
		switch turn {
		case 0: // keep the possible values of the variables: the second iteration may change none
		case maxLoopIterations - 2:
			s.forgetVariables()
		default:
			s.forgetVariablesChangedSince(&from)
		}
	}
}

// maxLoopIterations is how many turns of a loop are walked.
const maxLoopIterations = 5

// forgetVariablesChangedSince makes the variables unknown whose content differs from that in earlierShell.
func (s *analysisState) forgetVariablesChangedSince(earlierShell *Shell) {
	for name, v := range s.vars.byName {
		if old := earlierShell.vars.get(name); !v.equal(old) {
			s.setVariable(name, v.withUnknownContent(name))
		}
	}
}

// markFilesUncertain marks the files written from index firstNewFile on as uncertain: the writes
// may not have happened.
func (s *analysisState) markFilesUncertain(firstNewFile int) {
	for i := min(firstNewFile, len(s.writtenFiles)); i < len(s.writtenFiles); i++ {
		s.writtenFiles[i].isWriteUncertain = true
	}
}

// markFilesWithSeveralWriters marks files that are open only in some alternatives: each descriptor writes at its own
// position.
func (s *analysisState) markFilesWithSeveralWriters(otherBranchDescriptors []descriptor) {
	if slices.Equal(s.fds, otherBranchDescriptors) {
		return
	}
	both := append(slices.Clone(otherBranchDescriptors), s.fds...)
	for _, d := range both {
		changed := func(o descriptor) bool {
			return o.id == d.id && !(slices.Contains(otherBranchDescriptors, o) && slices.Contains(s.fds, o))
		}
		if d.out != nil && d.out.Path != "" && slices.ContainsFunc(both, changed) {
			s.addFile(writtenFile{path: d.out.Path, isPathPattern: d.out.PathIsGlobPattern, hasSeveralWriters: true})
		}
	}
}

// walkEachVariableValue walks code once for each combination of values of the variables in node. If there are too many, the
// variables are unknown. If the shell is not known and zsh reads the code differently, it is walked again as zsh.
// The resulting states are joined.
func (s *analysisState) walkEachVariableValue(node syntax.Node, walk func()) {
	picks, n := s.ambiguousVariables(node)
	from, mark := s.Fork(), len(s.writtenFiles)
	var ends []Shell
	for round := 0; round < n && !s.isAnalysisAborted; round++ {
		s.Shell = from.Fork()
		for k, rest := 0, round; k < len(picks); k++ {
			v, may := s.vars.get(picks[k].name), picks[k].contents
			v.possibleContents = may[rest%len(may) : rest%len(may)+1]
			rest /= len(may)
			s.Shell.setVariable(picks[k].name, v)
		}
		effects := len(s.effects)
		ends = append(ends, s.walkAgainAsZsh(walk)...)
		if round > 0 {
			s.dropRepeatedEffects(effects)
		}
	}
	if s.Shell = Join(ends...); len(ends) > 1 {
		s.Shell.workingFolder = ends[0].workingFolder
		s.markFilesUncertain(mark)
		s.markFilesWithSeveralWriters(from.fds)
	}
}

// walkAgainAsZsh walks code, and again as zsh if zsh reads it differently and the shell is not known.
func (s *analysisState) walkAgainAsZsh(walk func()) []Shell {
	from, differs := s.Fork(), s.isReadDifferentlyByZsh
	s.isReadDifferentlyByZsh = false
	walk()
	ends := []Shell{s.Shell}
	if s.isReadDifferentlyByZsh && !s.isAnalysisAborted {
		mark := len(s.effects)
		s.Shell = from
		s.dialect.isReadAsZsh = true
		walk()
		s.dialect.isReadAsZsh = false
		s.dropRepeatedEffects(mark)
		ends = append(ends, s.Shell)
	}
	s.isReadDifferentlyByZsh = differs
	return ends
}

// An ambiguousVariable is a variable with several possible values.
type ambiguousVariable struct {
	name     string
	contents []variableContent
}

// ambiguousVariables returns the variables in node that have several possible values, and the
// number of combinations of these values. A variable that would raise this number above
// maxPossibleVariableValues is left out. A variable tested by ${x+word} may be set or unset.
func (s *analysisState) ambiguousVariables(node syntax.Node) (ambiguous []ambiguousVariable, combinationCount int) {
	combinationCount = 1
	if !s.vars.hasVariableWithSeveralValues && !s.hasPlusSignInText {
		return nil, combinationCount
	}
	syntax.Walk(node, func(at syntax.Node) bool {
		p, ok := at.(*syntax.ParamExp)
		if !ok || p.Param == nil {
			return true
		}
		name := p.Param.Value
		if _, err := strconv.Atoi(name); err == nil && name != dollarZeroName || name == "*" || name == "#" {
			name = positionalParametersName
		}
		may := s.vars.get(name).possibleContents
		if c := may[0]; len(may) == 1 && (c.isFromBeforeCommandText || !c.val.IsLiteral()) && !c.isArray && p.Exp != nil && (p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull) && syntax.ValidName(name) {
			if c.isFromBeforeCommandText {
				c.val = s.environmentValue(name)[0]
			}
			may = []variableContent{{isUnset: true}, {val: c.val, isAssumedNonEmpty: true}}
		}
		if len(may) > 1 && combinationCount*len(may) <= maxPossibleVariableValues && !slices.ContainsFunc(ambiguous, func(p ambiguousVariable) bool { return p.name == name }) {
			ambiguous, combinationCount = append(ambiguous, ambiguousVariable{name, may}), combinationCount*len(may)
		}
		return true
	})
	return ambiguous, combinationCount
}
