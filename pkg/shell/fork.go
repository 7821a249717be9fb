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
	vars            *variableTable
	funcs           map[string]functionCandidates
	aliases         []alias
	fds             []descriptor
	traps           []abstract.Value
	trapVariables   []string    // variables that a trap reads or sets: their earlier values count too
	frames          []callFrame // call stack of the functions being walked
	stdin           *abstract.Value
	place           *effect.Place // the working folder; nil for the initial one
	folderUncertain bool          // cd may have failed, and later commands run all the same
	possibleExits   possibleExits // the loop, function or shell may have ended here, so later commands possibly do not run
	loadedSettings  []effect.Effect
	dialect         shellDialect
	nounset         bool // set -u: expanding an unset parameter ends the shell
	hasGlobalAlias  bool // a global alias of zsh may replace words that are not commands
}

// A variableTable holds the variables that the text has set.
type variableTable struct {
	byName               map[string]variable
	isShared             bool // two shells share the table
	hasUnknownAssignment bool // a variable of unknown name was assigned: any variable may hold any value
	hasAlternatives      bool // some variable has several possible values
}

// A possibleExits says which parts of the text may have ended: the loop, the function call or the shell.
type possibleExits struct{ loop, function, shell bool }

func (e possibleExits) any() bool { return e.loop || e.function || e.shell }

// A function is a function that the text defines.
type function struct {
	name       string
	body       *syntax.Stmt
	isCalled   bool
	nestedSpan *effect.Span
	textOffset int

	deepestCalls []deepestCall // walks whose result is used for all deeper calls
}

// A functionCandidates holds the functions that a name may refer to.
type functionCandidates struct {
	functions        []*function
	mayNotBeFunction bool // the name may also refer to a builtin or a program
}

// An alias is an alias that the text defines.
type alias struct {
	name             string
	isHashTableEntry bool // not an alias: an entry of the shell's command hash table
}

// A descriptor is a file descriptor that the text opens. Shells that share it share the stream, too.
type descriptor struct {
	id string
	*stream
}

// A stream is an open file.
type stream struct {
	val abstract.Value // the value that a read returns
	out *abstract.Target
}

// A callFrame is a function being walked, with the outer values of its local variables.
type callFrame struct {
	body   *syntax.Stmt // its body
	locals map[string]variable
}

func newShell() Shell { return Shell{vars: &variableTable{}} }

// Fork returns a copy of the shell's state.
func (sh *Shell) Fork() Shell {
	sh.vars.isShared = true
	sh.aliases, sh.fds, sh.traps = slices.Clip(sh.aliases), slices.Clip(sh.fds), slices.Clip(sh.traps)
	sh.frames, sh.trapVariables, sh.loadedSettings = slices.Clip(sh.frames), slices.Clip(sh.trapVariables), slices.Clip(sh.loadedSettings)
	return *sh
}

// Join returns the state that holds if one of several shells continues and it is not known which.
func Join(shells ...Shell) Shell {
	out := shells[0].Fork()
	for i := range shells[1:] {
		out.mergeFrom(&shells[i+1])
	}
	return out
}

// mergeFrom merges o into the shell: the result may be either.
func (sh *Shell) mergeFrom(o *Shell) {
	sh.joinVars(o)
	sh.joinFuncs(o)
	for _, a := range o.aliases {
		if !slices.Contains(sh.aliases, a) {
			sh.aliases = append(slices.Clip(sh.aliases), a)
		}
	}
	sh.joinStreams(o)
	for _, t := range o.traps {
		if !slices.ContainsFunc(sh.traps, func(have abstract.Value) bool { return have.Text == t.Text }) {
			sh.traps = append(slices.Clip(sh.traps), t)
		}
	}
	for _, name := range o.trapVariables {
		if !slices.Contains(sh.trapVariables, name) {
			sh.trapVariables = append(slices.Clip(sh.trapVariables), name)
		}
	}
	for i := range min(len(sh.frames), len(o.frames)) {
		sh.joinLocals(i, o.frames[i].locals)
	}
	if len(o.frames) < len(sh.frames) {
		sh.frames = sh.frames[:len(o.frames)]
	}
	if sh.stdin != o.stdin {
		v := abstract.Unknown("…", abstract.UnknownText).WithOrigin(abstract.FromInput)
		for _, in := range []*abstract.Value{sh.stdin, o.stdin} {
			if in != nil {
				v.Taint |= in.Taint
			}
		}
		sh.stdin = &v
	}
	if len(o.loadedSettings) > len(sh.loadedSettings) {
		sh.loadedSettings = o.loadedSettings
	}
	sh.possibleExits.loop, sh.possibleExits.function, sh.possibleExits.shell = sh.possibleExits.loop || o.possibleExits.loop, sh.possibleExits.function || o.possibleExits.function, sh.possibleExits.shell || o.possibleExits.shell
	sh.folderUncertain, sh.nounset, sh.hasGlobalAlias = sh.folderUncertain || o.folderUncertain, sh.nounset || o.nounset, sh.hasGlobalAlias || o.hasGlobalAlias
	sh.dialect.zshOptionsChanged = sh.dialect.zshOptionsChanged || o.dialect.zshOptionsChanged
	sh.dialect.zsh = sh.dialect.zsh && o.dialect.zsh // the second walk as zsh (walkAgainAsZsh) covers only one command
}

func (sh *Shell) joinVars(o *Shell) {
	if sh.vars == o.vars {
		return
	}
	t := &variableTable{byName: maps.Clone(sh.vars.byName), hasUnknownAssignment: sh.vars.hasUnknownAssignment || o.vars.hasUnknownAssignment, hasAlternatives: sh.vars.hasAlternatives || o.vars.hasAlternatives}
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
	for name, d := range o.funcs {
		have, ok := sh.funcs[name]
		next := functionCandidates{functions: slices.Clip(have.functions), mayNotBeFunction: have.mayNotBeFunction || d.mayNotBeFunction || !ok}
		for _, f := range d.functions {
			if !slices.Contains(next.functions, f) {
				next.functions = append(next.functions, f)
			}
		}
		if !ok || next.mayNotBeFunction != have.mayNotBeFunction || len(next.functions) != len(have.functions) {
			sh.setFunction(name, next)
		}
	}
	for name, d := range sh.funcs {
		if _, ok := o.funcs[name]; !ok && !d.mayNotBeFunction {
			sh.setFunction(name, functionCandidates{functions: d.functions, mayNotBeFunction: true})
		}
	}
}

// setFunction sets the functions that a name may refer to.
func (sh *Shell) setFunction(name string, d functionCandidates) {
	sh.funcs = maps.Clone(sh.funcs)
	if sh.funcs == nil {
		sh.funcs = map[string]functionCandidates{}
	}
	sh.funcs[name] = d
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
			list[i].stream = &stream{val: uncomputed("…", d.val), out: d.out}
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
			was.mayNotBeLocal = true
			next[name] = was
		}
		if _, ok := sh.frames[i].locals[name]; !ok {
			was.mayNotBeLocal = true
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
	t.hasAlternatives = t.hasAlternatives || len(v.contents) > 1
}

// get returns the possible values of a variable. For a variable that the analysed text has not set,
// this is the value inherited from the environment or, if a variable of unknown name was assigned,
// any value.
func (t *variableTable) get(name string) variable {
	if v, ok := t.byName[name]; ok {
		return v
	}
	if t.hasUnknownAssignment && name[0] != 0 {
		return variable{contents: []variableContent{{val: abstract.Variable(name, abstract.UnknownText).WithOrigin(abstract.FromUnknownAssignment), mayBeUnset: true}}}
	}
	return variable{contents: []variableContent{{isInherited: true}}}
}

// setVariable sets the possible values of a variable, in this shell alone.
func (sh *Shell) setVariable(name string, v variable) {
	if sh.vars.isShared {
		t := *sh.vars
		t.byName, t.isShared = maps.Clone(t.byName), false
		sh.vars = &t
	}
	sh.vars.set(name, v)
}

// hasSameVariables reports whether two shells have the same variables.
func (sh *Shell) hasSameVariables(o *Shell) bool {
	return sh.vars == o.vars || sh.vars.hasUnknownAssignment == o.vars.hasUnknownAssignment && maps.EqualFunc(sh.vars.byName, o.vars.byName, variable.equal)
}

// An earlyExits collects the states at the points where a loop iteration, a function call or a line
// can end early, because of break, return or an error.
type earlyExits struct {
	kind        blockKind
	callDepth   int // depth of the call stack at the start
	exitsBefore possibleExits
	exitStates  []Shell
}

type blockKind uint8

const (
	lineBlock blockKind = iota
	iterationBlock
	callBlock
)

// newEarlyExits starts a part of the text that break, return or an error may leave early.
func (s *state) newEarlyExits(of blockKind) *earlyExits {
	return &earlyExits{kind: of, callDepth: len(s.frames), exitsBefore: s.possibleExits}
}

// addEarlyExit records that the part of the text may be left at this point.
func (s *state) addEarlyExit(from *earlyExits) {
	if from == nil || len(from.exitStates) == maxAlternatives*4 {
		return
	}
	out := s.Fork()
	for len(out.frames) > from.callDepth {
		out.endFrame()
	}
	from.exitStates = append(from.exitStates, out)
}

// joinEarlyExits joins the states in which a part of the text was left early with the state at its end.
func (s *state) joinEarlyExits(from *earlyExits) {
	for _, o := range from.exitStates {
		s.joinSkippedState(o, len(s.files))
	}
	if from.kind != lineBlock {
		s.possibleExits.loop = from.exitsBefore.loop
	}
	if from.kind == callBlock {
		s.possibleExits.function = from.exitsBefore.function
	}
	from.exitStates = nil
}

// joinSkippedState joins the current state with o, the state if a command has not run. The files written since mark become
// uncertain. The working folder stays the current one: people write `cd x && make` and mean x from there on.
func (s *state) joinSkippedState(o Shell, mark int) {
	place := s.Shell.place
	s.Shell = Join(o, s.Shell)
	s.Shell.place = place
	s.markFilesUncertain(mark)
}

// walkAlternatives walks branches of which exactly one runs. If the parameter none is true,
// possibly no branch runs.
func (s *state) walkAlternatives(none bool, walks ...func()) {
	from, mark := s.Fork(), len(s.files)
	var ends []Shell
	if none {
		ends = append(ends, from)
	}
	for _, walk := range walks {
		s.Shell = from.Fork()
		walk()
		ends = append(ends, s.Shell)
	}
	s.Shell = Join(ends...)
	for i := len(ends) - 1; i >= 0; i-- { // keep the changed folder: people write `test -d x && cd x` and mean x from there on
		if ends[i].place != from.place {
			s.Shell.place = ends[i].place
			break
		}
	}
	s.markFilesUncertain(mark)
	s.markDivergedFiles(from.fds)
}

// walkPossibly walks a part of the text that may or may not run.
func (s *state) walkPossibly(walk func()) { s.walkAlternatives(true, walk) }

// walkSubshell walks a subshell: its state is dropped at the end, its effects and written files stay.
func (s *state) walkSubshell(walk func()) {
	from := s.Shell
	s.Shell = s.Fork()
	s.walkInScope(func() {
		s.possibleExits, s.traps = possibleExits{}, nil
		s.functionExits, s.lineExits, s.loopExits = nil, nil, nil
		walk()
		s.runTraps()
	})
	s.Shell = from
}

// walkAtAnyTime walks code that may run at any time from now on, any number of times, in this shell or in parallel.
func (s *state) walkAtAnyTime(walk func()) {
	mark := len(s.effects)
	s.walkLoop(walk)
	s.dropRepeated(mark)
}

// walkLoop walks code that runs any number of times, until an iteration changes no variable. The
// state after each iteration is joined with the state before it; variables that still change become
// unknown.
func (s *state) walkLoop(walk func()) {
	for turn := range maxLoopIterations {
		from, mark := s.Fork(), len(s.effects)
		s.walkPossibly(walk)
		s.dropRepeated(mark)
		if s.gaveUp || s.hasSameVariables(&from) {
			return
		}
		switch turn {
		case 0: // keep the variables: the second iteration may change nothing
		case maxLoopIterations - 2:
			s.forgetVariables()
		default:
			s.forgetChangedVariables(&from)
		}
	}
}

// maxLoopIterations is how many turns of a loop are walked.
const maxLoopIterations = 5

// forgetChangedVariables makes the variables unknown that differ from those in from.
func (s *state) forgetChangedVariables(from *Shell) {
	for name, v := range s.vars.byName {
		if old := from.vars.get(name); !v.equal(old) {
			s.setVariable(name, v.withUnknownContent(name))
		}
	}
}

// markFilesUncertain marks the files written since mark as uncertain: the writes may not have happened.
func (s *state) markFilesUncertain(mark int) {
	for i := min(mark, len(s.files)); i < len(s.files); i++ {
		s.files[i].isUncertain = true
	}
}

// markDivergedFiles marks files that are open only in some alternatives: each descriptor writes at its own
// position.
func (s *state) markDivergedFiles(from []descriptor) {
	if slices.Equal(s.fds, from) {
		return
	}
	both := append(slices.Clone(from), s.fds...)
	for _, d := range both {
		changed := func(o descriptor) bool {
			return o.id == d.id && !(slices.Contains(from, o) && slices.Contains(s.fds, o))
		}
		if d.out != nil && d.out.Path != "" && slices.ContainsFunc(both, changed) {
			s.addFile(writtenFile{path: d.out.Path, pattern: d.out.Pattern, hasSeveralWriters: true})
		}
	}
}

// walkEachValue walks code once for each combination of values of the variables in node. If there are too many, the
// variables are unknown. If the shell is not known and zsh reads the code differently, it is walked again as zsh.
// The resulting states are joined.
func (s *state) walkEachValue(node syntax.Node, walk func()) {
	picks, n := s.ambiguousVariables(node)
	from, mark := s.Fork(), len(s.files)
	var ends []Shell
	for round := 0; round < n && !s.gaveUp; round++ {
		s.Shell = from.Fork()
		for k, rest := 0, round; k < len(picks); k++ {
			v, may := s.vars.get(picks[k].name), picks[k].contents
			v.contents = may[rest%len(may) : rest%len(may)+1]
			rest /= len(may)
			s.Shell.setVariable(picks[k].name, v)
		}
		effects := len(s.effects)
		ends = append(ends, s.walkAgainAsZsh(walk)...)
		if round > 0 {
			s.dropRepeated(effects)
		}
	}
	if s.Shell = Join(ends...); len(ends) > 1 {
		s.Shell.place = ends[0].place
		s.markFilesUncertain(mark)
		s.markDivergedFiles(from.fds)
	}
}

// walkAgainAsZsh walks code, and again as zsh if zsh reads it differently and the shell is not known.
func (s *state) walkAgainAsZsh(walk func()) []Shell {
	from, differs := s.Fork(), s.zshDiffers
	s.zshDiffers = false
	walk()
	ends := []Shell{s.Shell}
	if s.zshDiffers && !s.gaveUp {
		mark := len(s.effects)
		s.Shell = from
		s.dialect.zsh = true
		walk()
		s.dialect.zsh = false
		s.dropRepeated(mark)
		ends = append(ends, s.Shell)
	}
	s.zshDiffers = differs
	return ends
}

// An ambiguousVariable is a variable with several possible values.
type ambiguousVariable struct {
	name     string
	contents []variableContent
}

// ambiguousVariables returns the variables in node that have several possible values, as long as there are few
// combinations, and the number of combinations. A variable tested by ${x+word} may be set or unset.
func (s *state) ambiguousVariables(node syntax.Node) (picks []ambiguousVariable, n int) {
	n = 1
	if !s.vars.hasAlternatives && !s.hasSetTests {
		return nil, n
	}
	syntax.Walk(node, func(at syntax.Node) bool {
		p, ok := at.(*syntax.ParamExp)
		if !ok || p.Param == nil {
			return true
		}
		name := p.Param.Value
		if _, err := strconv.Atoi(name); err == nil && name != zeroName || name == "*" || name == "#" {
			name = positionalName
		}
		may := s.vars.get(name).contents
		if c := may[0]; len(may) == 1 && (c.isInherited || !c.val.Known()) && !c.isArray && p.Exp != nil && (p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull) && syntax.ValidName(name) {
			if c.isInherited {
				c.val = s.environmentValue(name)[0]
			}
			may = []variableContent{{isUnset: true}, {val: c.val, isNonEmpty: true}}
		}
		if len(may) > 1 && n*len(may) <= maxAlternatives && !slices.ContainsFunc(picks, func(p ambiguousVariable) bool { return p.name == name }) {
			picks, n = append(picks, ambiguousVariable{name, may}), n*len(may)
		}
		return true
	})
	return picks, n
}
