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
	vars    *table
	funcs   map[string]defined
	aliases []alias
	fds     []descriptor
	traps   []abstract.Value
	watched []string // variables that a trap reads or sets: their earlier values count too
	frames  []frame  // call stack of the functions being walked
	stdin   *abstract.Value
	place   *effect.Place // the working folder; nil for the initial one
	astray  bool          // cd may have failed, and later commands run all the same
	ended   ended         // what may have ended, so that later commands may not run
	loaded  []effect.Effect
	dialect dialectOf
	strict  bool // set -u: expanding an unset parameter ends the shell
	anyWord bool // a global alias of zsh may replace words that are not commands
}

// A table holds the variables that the text has set.
type table struct {
	names  map[string]variable
	shared bool // two shells share the table
	lost   bool // a variable of unknown name was assigned: any variable may hold any value
	many   bool // some variable has several possible values
}

// An ended says which parts of the text may have ended: the loop, the function call or the shell.
type ended struct{ loop, call, shell bool }

func (e ended) any() bool { return e.loop || e.call || e.shell }

// A function is a function that the text defines.
type function struct {
	name   string
	body   *syntax.Stmt
	called bool
	fixed  *effect.Span
	base   int

	deepest []deepestCall // walks whose result is used for all deeper calls
}

// A defined holds the functions that a name may refer to.
type defined struct {
	may  []*function
	none bool // the name may also not be a function
}

// An alias is an alias that the text defines.
type alias struct {
	name   string
	hashed bool // not an alias: an entry of the shell's command hash table
}

// A descriptor is a file descriptor that the text opens. Shells that share it share the stream, too.
type descriptor struct {
	n string
	*stream
}

// A stream is an open file.
type stream struct {
	val abstract.Value // the value that a read returns
	out *abstract.Target
}

// A frame is a function being walked, with the outer values of its local variables.
type frame struct {
	of     *syntax.Stmt // its body
	locals map[string]variable
}

func newShell() Shell { return Shell{vars: &table{}} }

// Fork returns a copy of the shell's state.
func (sh *Shell) Fork() Shell {
	sh.vars.shared = true
	sh.aliases, sh.fds, sh.traps = slices.Clip(sh.aliases), slices.Clip(sh.fds), slices.Clip(sh.traps)
	sh.frames, sh.watched, sh.loaded = slices.Clip(sh.frames), slices.Clip(sh.watched), slices.Clip(sh.loaded)
	return *sh
}

// Join returns the state that holds if one of several shells continues and it is not known which.
func Join(shells ...Shell) Shell {
	out := shells[0].Fork()
	for i := range shells[1:] {
		out.or(&shells[i+1])
	}
	return out
}

// or merges o into the shell: the result may be either.
func (sh *Shell) or(o *Shell) {
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
	for _, name := range o.watched {
		if !slices.Contains(sh.watched, name) {
			sh.watched = append(slices.Clip(sh.watched), name)
		}
	}
	for i := range min(len(sh.frames), len(o.frames)) {
		sh.joinLocals(i, o.frames[i].locals)
	}
	if len(o.frames) < len(sh.frames) {
		sh.frames = sh.frames[:len(o.frames)]
	}
	if sh.stdin != o.stdin {
		v := abstract.Unknown("…", abstract.Foreign).Of(abstract.FromInput)
		for _, in := range []*abstract.Value{sh.stdin, o.stdin} {
			if in != nil {
				v.Taint |= in.Taint
			}
		}
		sh.stdin = &v
	}
	if len(o.loaded) > len(sh.loaded) {
		sh.loaded = o.loaded
	}
	sh.ended.loop, sh.ended.call, sh.ended.shell = sh.ended.loop || o.ended.loop, sh.ended.call || o.ended.call, sh.ended.shell || o.ended.shell
	sh.astray, sh.strict, sh.anyWord = sh.astray || o.astray, sh.strict || o.strict, sh.anyWord || o.anyWord
	sh.dialect.odd = sh.dialect.odd || o.dialect.odd
	sh.dialect.zsh = sh.dialect.zsh && o.dialect.zsh // reading a command as zsh ends with the command
}

func (sh *Shell) joinVars(o *Shell) {
	if sh.vars == o.vars {
		return
	}
	t := &table{names: maps.Clone(sh.vars.names), lost: sh.vars.lost || o.vars.lost, many: sh.vars.many || o.vars.many}
	if t.names == nil {
		t.names = map[string]variable{}
	}
	for name, v := range sh.vars.names {
		t.set(name, v.or(o.vars.get(name)))
	}
	for name, v := range o.vars.names {
		if _, both := sh.vars.names[name]; !both {
			t.set(name, v.or(sh.vars.get(name)))
		}
	}
	sh.vars = t
}

func (sh *Shell) joinFuncs(o *Shell) {
	for name, d := range o.funcs {
		have, ok := sh.funcs[name]
		next := defined{may: slices.Clip(have.may), none: have.none || d.none || !ok}
		for _, f := range d.may {
			if !slices.Contains(next.may, f) {
				next.may = append(next.may, f)
			}
		}
		if !ok || next.none != have.none || len(next.may) != len(have.may) {
			sh.define(name, next)
		}
	}
	for name, d := range sh.funcs {
		if _, ok := o.funcs[name]; !ok && !d.none {
			sh.define(name, defined{may: d.may, none: true})
		}
	}
}

// define sets the functions that a name may refer to.
func (sh *Shell) define(name string, d defined) {
	sh.funcs = maps.Clone(sh.funcs)
	if sh.funcs == nil {
		sh.funcs = map[string]defined{}
	}
	sh.funcs[name] = d
}

// joinStreams merges the descriptors of two shells: one that differs may hold the value of either.
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
			was.loose = true
			next[name] = was
		}
		if _, ok := sh.frames[i].locals[name]; !ok {
			was.loose = true
			next[name] = was
		}
	}
	sh.frames = slices.Clone(sh.frames)
	sh.frames[i].locals = next
}

// set binds a variable.
func (t *table) set(name string, v variable) {
	if t.names == nil {
		t.names = map[string]variable{}
	}
	t.names[name] = v
	t.many = t.many || len(v.may) > 1
}

// get returns the possible values of a variable. If the text has not set it, that is its value before the text, or
// any value if a variable of unknown name was assigned.
func (t *table) get(name string) variable {
	if v, ok := t.names[name]; ok {
		return v
	}
	if t.lost && name[0] != 0 {
		return variable{may: []content{{val: abstract.Variable(name, abstract.Foreign).Of(abstract.Forgotten), open: true}}}
	}
	return variable{may: []content{{before: true}}}
}

// bind sets the possible values of a variable, in this shell alone.
func (sh *Shell) bind(name string, v variable) {
	if sh.vars.shared {
		t := *sh.vars
		t.names, t.shared = maps.Clone(t.names), false
		sh.vars = &t
	}
	sh.vars.set(name, v)
}

// same reports whether two shells have the same variables.
func (sh *Shell) same(o *Shell) bool {
	return sh.vars == o.vars || sh.vars.lost == o.vars.lost && maps.EqualFunc(sh.vars.names, o.vars.names, variable.equal)
}

// An ends collects the states at the points where a turn of a loop, a function or a line is left early.
type ends struct {
	of     ending
	frames int // depth of the call stack at the start
	was    ended
	shells []Shell
}

type ending uint8

const (
	ofLine ending = iota
	ofTurn
	ofCall
)

// begins starts a part of the text that break, return or an error may leave early.
func (s *state) begins(of ending) *ends { return &ends{of: of, frames: len(s.frames), was: s.ended} }

// mayLeave records that the part of the text may be left at this point.
func (s *state) mayLeave(from *ends) {
	if from == nil || len(from.shells) == maxAlternatives*4 {
		return
	}
	out := s.Fork()
	for len(out.frames) > from.frames {
		out.endFrame()
	}
	from.shells = append(from.shells, out)
}

// comesTo joins the states in which a part of the text was left early with the state at its end.
func (s *state) comesTo(from *ends) {
	for _, o := range from.shells {
		s.orElse(o, len(s.files))
	}
	if from.of != ofLine {
		s.ended.loop = from.was.loop
	}
	if from.of == ofCall {
		s.ended.call = from.was.call
	}
	from.shells = nil
}

// orElse joins the current state with o, the state if a command has not run. The files written since mark become
// uncertain. The working folder stays the current one: people write `cd x && make` and mean x from there on.
func (s *state) orElse(o Shell, mark int) {
	place := s.Shell.place
	s.Shell = Join(o, s.Shell)
	s.Shell.place = place
	s.doubt(mark)
}

// either walks alternatives: one of them runs, or possibly none if none is set.
func (s *state) either(none bool, walks ...func()) {
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
	s.doubt(mark)
	s.markDivergedFiles(from.fds)
}

// may walks a part of the text that may or may not run.
func (s *state) may(walk func()) { s.either(true, walk) }

// apart walks a subshell: its state is dropped at the end, its effects and written files stay.
func (s *state) apart(walk func()) {
	from := s.Shell
	s.Shell = s.Fork()
	s.within(func() {
		s.ended, s.traps = ended{}, nil
		s.body, s.row, s.around = nil, nil, nil
		walk()
		s.runTraps()
	})
	s.Shell = from
}

// atAnyTime walks code that may run at any time from now on, any number of times, in this shell or in parallel.
func (s *state) atAnyTime(walk func()) {
	mark := len(s.effects)
	s.loop(walk)
	s.dropRepeated(mark)
}

// loop walks code any number of times, until a turn changes nothing new. The state after each turn is joined with
// the state before it; variables that still change become unknown.
func (s *state) loop(walk func()) {
	for turn := range mostTurns {
		from, mark := s.Fork(), len(s.effects)
		s.may(walk)
		s.dropRepeated(mark)
		if s.gaveUp || s.same(&from) {
			return
		}
		switch turn {
		case 0: // two turns may be enough
		case mostTurns - 2:
			s.forget()
		default:
			s.widen(&from)
		}
	}
}

// mostTurns is how many turns of a loop are walked.
const mostTurns = 5

// widen makes the variables unknown that differ from those in from.
func (s *state) widen(from *Shell) {
	for name, v := range s.vars.names {
		if old := from.vars.get(name); !v.equal(old) {
			s.bind(name, v.widened(name))
		}
	}
}

// doubt marks the files written since mark as uncertain: the writes may not have happened.
func (s *state) doubt(mark int) {
	for i := min(mark, len(s.files)); i < len(s.files); i++ {
		s.files[i].weak = true
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
		changed := func(o descriptor) bool { return o.n == d.n && !(slices.Contains(from, o) && slices.Contains(s.fds, o)) }
		if d.out != nil && d.out.Path != "" && slices.ContainsFunc(both, changed) {
			s.addFile(file{path: d.out.Path, pattern: d.out.Pattern, torn: true})
		}
	}
}

// each walks code once for each combination of values of the variables in node. If there are too many, the
// variables are unknown. If the shell is not known and zsh reads the code differently, it is walked again as zsh.
// The resulting states are joined.
func (s *state) each(node syntax.Node, walk func()) {
	picks, n := s.variableChoices(node)
	from, mark := s.Fork(), len(s.files)
	var ends []Shell
	for round := 0; round < n && !s.gaveUp; round++ {
		s.Shell = from.Fork()
		for k, rest := 0, round; k < len(picks); k++ {
			v, may := s.vars.get(picks[k].name), picks[k].may
			v.may = may[rest%len(may) : rest%len(may)+1]
			rest /= len(may)
			s.Shell.bind(picks[k].name, v)
		}
		effects := len(s.effects)
		ends = append(ends, s.walkAsZsh(walk)...)
		if round > 0 {
			s.dropRepeated(effects)
		}
	}
	if s.Shell = Join(ends...); len(ends) > 1 {
		s.Shell.place = ends[0].place
		s.doubt(mark)
		s.markDivergedFiles(from.fds)
	}
}

// walkAsZsh walks code, and again as zsh if zsh reads it differently and the shell is not known.
func (s *state) walkAsZsh(walk func()) []Shell {
	from, differs := s.Fork(), s.differs
	s.differs = false
	walk()
	ends := []Shell{s.Shell}
	if s.differs && !s.gaveUp {
		mark := len(s.effects)
		s.Shell = from
		s.dialect.zsh = true
		walk()
		s.dialect.zsh = false
		s.dropRepeated(mark)
		ends = append(ends, s.Shell)
	}
	s.differs = differs
	return ends
}

// A variableChoice is a variable with several possible values.
type variableChoice struct {
	name string
	may  []content
}

// variableChoices returns the variables in node that have several possible values, as long as there are few
// combinations, and the number of combinations. A variable tested by ${x+word} may be set or unset.
func (s *state) variableChoices(node syntax.Node) (picks []variableChoice, n int) {
	n = 1
	if !s.vars.many && !s.asks {
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
		may := s.vars.get(name).may
		if c := may[0]; len(may) == 1 && (c.before || !c.val.Known()) && !c.array && p.Exp != nil && (p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull) && syntax.ValidName(name) {
			if c.before {
				c.val = s.environment(name)[0]
			}
			may = []content{{gone: true}, {val: c.val, full: true}}
		}
		if len(may) > 1 && n*len(may) <= maxAlternatives && !slices.ContainsFunc(picks, func(p variableChoice) bool { return p.name == name }) {
			picks, n = append(picks, variableChoice{name, may}), n*len(may)
		}
		return true
	})
	return picks, n
}
