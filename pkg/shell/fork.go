package shell

import (
	"maps"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A Shell is what one shell knows at one point of the text. It is a value: Fork copies it, for
// a subshell, a branch, a side of a pipe or a turn of a loop, and Join merges what such parts
// leave. Nothing else copies its fields or puts them back.
//
// What a Shell points to does not change once it is in two of them: a table of variables is
// copied before one is set, and so are lists.
type Shell struct {
	vars    *table
	funcs   map[string]defined
	aliases []alias
	fds     []descriptor
	traps   []abstract.Value
	watched []string // names that a trap reads or sets: what they held counts as well
	frames  []frame  // of the functions being walked
	stdin   *abstract.Value
	place   *effect.Place // the working folder, nil where the text started
	astray  bool          // it may not be there, and what follows runs all the same
	ended   ended         // what follows may not run, since it has ended
	loaded  []effect.Effect
	dialect dialectOf
	strict  bool // set -u: a parameter that is not set ends the shell
	anyWord bool // an alias of zsh stands for words that are no command
}

// A table holds the variables that the text has set.
type table struct {
	names  map[string]variable
	shared bool // by two shells
	lost   bool // something was assigned of which the name is not known: any variable may hold anything
	many   bool // some variable may hold one of several texts
}

// An ended says what a part of the text may have ended.
type ended struct{ loop, call, shell bool }

func (e ended) any() bool { return e.loop || e.call || e.shell }

// A function is a function that the text defines.
type function struct {
	name   string
	body   *syntax.Stmt
	called bool
	fixed  *effect.Span
	base   int

	deepest []deepestCall // the walks that stand for all others
}

// A defined is what a name of a function may stand for.
type defined struct {
	may  []*function
	none bool // it may as well be no function
}

// An alias is an alias that the text defines.
type alias struct {
	name   string
	hashed bool // it is no alias, but what the shell runs when it looks for a program of that name
}

// A descriptor is a file descriptor that the text opens: shells that share it share the
// stream, too.
type descriptor struct {
	n string
	*stream
}

// A stream is an open file.
type stream struct {
	val abstract.Value // what reading it yields
	out *abstract.Target
}

// A frame is a function being walked: what the names held that end with it.
type frame struct {
	of     *syntax.Stmt // its body
	locals map[string]variable
}

func newShell() Shell { return Shell{vars: &table{}} }

// Fork returns a copy of what a shell knows.
func (sh *Shell) Fork() Shell {
	sh.vars.shared = true
	sh.aliases, sh.fds, sh.traps = slices.Clip(sh.aliases), slices.Clip(sh.fds), slices.Clip(sh.traps)
	sh.frames, sh.watched, sh.loaded = slices.Clip(sh.frames), slices.Clip(sh.watched), slices.Clip(sh.loaded)
	return *sh
}

// Join returns what is known where one of several shells is at hand, and not which.
func Join(shells ...Shell) Shell {
	out := shells[0].Fork()
	for i := range shells[1:] {
		out.or(&shells[i+1])
	}
	return out
}

// or makes a shell one that is it or another.
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
	sh.dialect.zsh = sh.dialect.zsh && o.dialect.zsh // how zsh reads one command does not outlast it
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

// define makes a name of a function stand for something.
func (sh *Shell) define(name string, d defined) {
	sh.funcs = maps.Clone(sh.funcs)
	if sh.funcs == nil {
		sh.funcs = map[string]defined{}
	}
	sh.funcs[name] = d
}

// joinStreams makes a descriptor that is not the same in both one that may hold what it does
// in either.
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
		if _, ok := locals[name]; !ok { // perhaps
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

// get returns what a variable may hold, which is what it did before the text if that has not set it.
func (t *table) get(name string) variable {
	if v, ok := t.names[name]; ok {
		return v
	}
	if t.lost && name[0] != 0 {
		return variable{may: []content{{val: abstract.Variable(name, abstract.Foreign).Of(abstract.Forgotten), open: true}}}
	}
	return variable{may: []content{{before: true}}}
}

// bind gives a variable what it may hold, in this shell alone.
func (sh *Shell) bind(name string, v variable) {
	if sh.vars.shared {
		t := *sh.vars
		t.names, t.shared = maps.Clone(t.names), false
		sh.vars = &t
	}
	sh.vars.set(name, v)
}

// same reports whether two shells know the same of variables.
func (sh *Shell) same(o *Shell) bool {
	return sh.vars == o.vars || sh.vars.lost == o.vars.lost && maps.EqualFunc(sh.vars.names, o.vars.names, variable.equal)
}

// An ends collects the shells that leave a turn of a loop, a function or a line before its end.
type ends struct {
	of     ending
	frames int // where it started
	was    ended
	shells []Shell
}

type ending uint8

const (
	ofLine ending = iota
	ofTurn
	ofCall
)

// begins starts something that parts of it may leave.
func (s *state) begins(of ending) *ends { return &ends{of: of, frames: len(s.frames), was: s.ended} }

// mayLeave notes that the walk may go on behind some part of the text from here.
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

// comesTo joins the shells that have left a part of the text with the one at its end.
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

// orElse joins what the shell knows with what it did where something may not have run, which has written the
// files since mark. Its working folder is that behind it: people write `cd x && make` and mean x from there on.
func (s *state) orElse(o Shell, mark int) {
	place := s.Shell.place
	s.Shell = Join(o, s.Shell)
	s.Shell.place = place
	s.doubt(mark)
}

// either walks alternatives: one of them runs, or none where that may be.
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
	for i := len(ends) - 1; i >= 0; i-- { // people write `test -d x && cd x` and mean x from there on
		if ends[i].place != from.place {
			s.Shell.place = ends[i].place
			break
		}
	}
	s.doubt(mark)
	s.markDivergedFiles(from.fds)
}

// may walks what may run, or not.
func (s *state) may(walk func()) { s.either(true, walk) }

// apart walks a shell of its own: nothing that it knows lasts, but what it does to the machine.
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

// atAnyTime walks what may run at any time from now on, any number of times: here, or in a
// shell beside this one.
func (s *state) atAnyTime(walk func()) {
	mark := len(s.effects)
	s.loop(walk)
	s.dropRepeated(mark)
}

// loop walks something any number of times, up to where another time shows nothing new: what
// each turn leaves is joined with what was there, and what still changes then is unknown.
func (s *state) loop(walk func()) {
	for turn := range mostTurns {
		from, mark := s.Fork(), len(s.effects)
		s.may(walk)
		s.dropRepeated(mark)
		if s.gaveUp || s.same(&from) {
			return
		}
		switch turn {
		case 0: // what two turns leave may be all
		case mostTurns - 2:
			s.forget()
		default:
			s.widen(&from)
		}
	}
}

// mostTurns is how many turns of a loop are walked.
const mostTurns = 5

// widen makes unknown what has changed since.
func (s *state) widen(from *Shell) {
	for name, v := range s.vars.names {
		if old := from.vars.get(name); !v.equal(old) {
			s.bind(name, v.widened(name))
		}
	}
}

// doubt marks what the text has written since as what may not be there.
func (s *state) doubt(mark int) {
	for i := min(mark, len(s.files)); i < len(s.files); i++ {
		s.files[i].weak = true
	}
}

// markDivergedFiles marks files that are open in some alternatives alone: each writes where it is.
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

// each walks something once for each text that the variables may hold which it names, each
// time in a shell in which they hold that alone; where that are too many, they are unknown.
// It is walked once more as zsh reads it if that is another way and nothing says about which shell
// the text is. What the walks leave is joined.
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

// walkAsZsh walks something, and once more as zsh reads it where that may be meant.
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

// A variableChoice is a variable that may hold one of several texts.
type variableChoice struct {
	name string
	may  []content
}

// variableChoices returns the variables that a part of the text names and that may hold one of several
// texts, as far as the combinations of these are few, and how many there are. What ${x+word}
// asks about may be set, or not.
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
