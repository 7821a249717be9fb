package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A variable is what a name may hold, and how it takes what it is given.
type variable struct {
	may      []content
	exported bool
	constant bool           // readonly, perhaps: what it held counts as well
	odd      bool           // it changes what it is given: declare -i, -u, -A and the like
	refers   bool           // declare -n: it stands for another variable
	loose    bool           // as a local one that may not have been declared
	from     *effect.Effect // the file of settings that sets it
}

// A content is one thing that a variable may hold.
type content struct {
	val    abstract.Value
	list   []abstract.Value // the members of an array that is written out
	array  bool             // it is an array; if list is nil, val stands for all members
	gone   bool             // it is not set
	open   bool             // not even whether it is set is known
	before bool             // what it was before the text
	full   bool             // it is set, and not empty
}

// maxAlternatives is how many texts a variable may hold before it counts as unknown.
const maxAlternatives = 8

// maxNamed bounds the names that a text gives values.
const maxNamed = 1024

// positionalName and zeroName are the names of the positional parameters, as the members
// of an array, and of $0.
const (
	positionalName = "@"
	zeroName       = "0"
)

// pathChanged is bound where $PATH starts with a folder that is not the
// system's: no program is then certain to be the one that its name says.
const pathChanged = "\x00path"

func (c content) equal(o content) bool {
	return c.array == o.array && c.gone == o.gone && c.open == o.open && c.before == o.before && sameText(c.val, o.val) && slices.EqualFunc(c.list, o.list, sameText)
}

// sameText reports whether two values are the same but for where they stand.
func sameText(v, o abstract.Value) bool {
	v.From, o.From = effect.Span{}, effect.Span{}
	return v == o
}

func (v variable) equal(o variable) bool {
	return v.exported == o.exported && v.constant == o.constant && v.odd == o.odd && v.refers == o.refers && v.loose == o.loose && slices.EqualFunc(v.may, o.may, content.equal)
}

// or returns what is known where a variable is one of two.
func (v variable) or(o variable) variable {
	v.exported, v.constant, v.odd, v.refers = v.exported && o.exported, v.constant || o.constant, v.odd || o.odd, v.refers || o.refers
	v.loose = v.loose || o.loose
	if v.from == nil {
		v.from = o.from
	}
	v.may = slices.Clip(v.may)
	for _, c := range o.may {
		if !slices.ContainsFunc(v.may, c.equal) {
			v.may = append(v.may, c)
		}
	}
	if len(v.may) > maxAlternatives {
		v.may = []content{{val: v.any("…"), open: true, array: slices.ContainsFunc(v.may, func(c content) bool { return c.array })}}
	}
	return v
}

// any returns a value that stands for all that a variable may hold.
func (v variable) any(show string) abstract.Value {
	var all []abstract.Value
	for _, c := range v.may {
		if c.before {
			all = append(all, abstract.Variable(show, 0))
			continue
		}
		all = append(append(all, c.list...), c.val)
	}
	numbers, outside := true, false
	for _, one := range all {
		before := isEnvironmentOnly(one) && one.Bare
		numbers = numbers && (one.IsNumber() || isDecimal(one) || before) && one.Taint == 0
		outside = outside || before
	}
	switch {
	case !numbers:
		return uncomputed(show, all...)
	case outside:
		return abstract.Unknown(show, 0).Of(abstract.FromVariable | abstract.FromCount)
	}
	return abstract.Number(show)
}

func isDecimal(v abstract.Value) bool {
	_, err := decimal(v.Text)
	return v.Known() && err == nil
}

// decimal reads a number that means the same everywhere.
func decimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil && strconv.FormatInt(n, 10) != text {
		err = strconv.ErrSyntax
	}
	return n, err
}

// widened returns a variable of which what it may hold does not come to an end.
func (v variable) widened(name string) variable {
	c := content{val: v.any("$" + name), open: true, array: slices.ContainsFunc(v.may, func(c content) bool { return c.array })}
	v.may = []content{c}
	return v
}

// lookup returns what a variable holds, and whether the text sets it. Where it may hold one
// of several texts, nothing is known of it: see state.each.
func (s *state) lookup(name string) (content, bool) {
	v := s.vars.get(name)
	if len(v.may) > 1 {
		return content{val: v.any("$" + name), open: true, array: slices.ContainsFunc(v.may, func(c content) bool { return c.array })}, true
	}
	if v.refers || v.odd && !v.may[0].gone && !v.may[0].before {
		return content{val: v.any("$" + name), open: true, array: v.may[0].array}, true
	}
	return v.may[0], !v.may[0].before
}

// bound reports whether the text gives a variable a value.
func (s *state) bound(name string) bool {
	_, ok := s.vars.names[name]
	return ok || s.vars.lost && syntax.ValidName(name)
}

// hold makes a variable hold a content, and nothing else.
func (s *state) hold(name string, c content) {
	v := s.vars.names[name]
	v.from = nil
	switch name {
	case "LINENO", "RANDOM", "SRANDOM", "SECONDS", "BASHPID", "EPOCHSECONDS", "HISTCMD": // what they are given is not what they hold
		c = content{val: abstract.Number("$" + name)}
	case "BASH_COMMAND", "DIRSTACK", "FUNCNAME", "GROUPS", "PIPESTATUS", "_":
		c = content{val: uncomputed("$"+name, c.val), open: true}
	}
	next := variable{may: []content{c}, exported: v.exported, constant: v.constant, odd: v.odd, refers: v.refers}
	if v.constant || slices.Contains(s.watched, name) {
		next = next.or(s.vars.get(name))
	}
	if v.odd && !isDecimal(c.val) { // which may be no number, or no key
		s.mayFailLine()
	}
	if v.refers {
		s.dynamic(effect.CauseUnresolved, "assigns through the nameref $"+name, c.val.From)
		s.forget()
		return
	}
	if len(s.vars.names) >= maxNamed {
		s.giveUp("too many assignments")
		return
	}
	s.Shell.bind(name, next)
}

// assign gives a variable a value, and walks what runs because of that.
func (s *state) assign(name string, v abstract.Value) {
	s.give(name, v)
	s.environmentCode(name, v, v.From)
}

// give is assign without what runs because of the name.
func (s *state) give(name string, v abstract.Value) {
	s.subscriptIn(v, false)
	if commandTables[name] {
		s.renamesCommand(name, v.From)
	}
	if old, ok := s.lookup(name); ok && old.array { // its first member, or all of it
		v = uncomputed("$"+name, append([]abstract.Value{v, old.val}, old.list...)...)
		s.hold(name, content{val: v, array: true})
		return
	}
	s.hold(name, content{val: v})
}

// mayGive is give where it is not known whether that is done.
func (s *state) mayGive(name string, v abstract.Value) { s.may(func() { s.give(name, v) }) }

// assignTo gives a value to what a word names: a variable, or a member of an array. If
// the word is not known, any variable may have it.
func (s *state) assignTo(to, v abstract.Value) {
	name, _, member := strings.Cut(to.Text, "[")
	switch {
	case !to.Known() || !syntax.ValidName(name):
		s.subscriptIn(to, true)
		s.unknownName(to)
	case member:
		s.subscriptIn(to, false)
		s.setMember(name, v)
	default:
		s.assign(name, v)
	}
}

// unknownName gives some variable a value: all are forgotten, and a name that the text computes may be any
// that makes programs run code.
func (s *state) unknownName(v abstract.Value) {
	if v.Computed() {
		s.dynamic(effect.CauseUnresolved, "the name of the assigned variable is unknown: "+abstract.Clip(v.String()), v.From)
	}
	s.forget()
}

// setMember gives some member of an array a value.
func (s *state) setMember(name string, v abstract.Value) {
	s.keeps(name, v)
	if commandTables[name] {
		s.renamesCommand(name, v.From)
	}
	old, _ := s.lookup(name)
	all := append([]abstract.Value{v, old.val}, old.list...)
	if name == "argv" { // of zsh
		s.setAnyPositional(all...)
	}
	s.hold(name, content{val: uncomputed("$"+name, all...), array: true})
}

// forget makes all variables unknown, since something was assigned and which is
// not known.
func (s *state) forget() {
	kept := &table{names: map[string]variable{}, lost: true}
	for name, v := range s.vars.names {
		if !syntax.ValidName(name) { // not one of these
			kept.set(name, v)
		} else if v.exported || v.odd || v.refers || v.constant {
			v.may = []content{{val: abstract.Variable(name, abstract.Foreign).Of(abstract.Forgotten), open: true}}
			kept.set(name, v)
		}
	}
	s.vars = kept
}

// assignment binds a variable to what NAME=VALUE says.
func (s *state) assignment(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		if a.Value != nil {
			s.word(a.Value)
		}
		return
	}
	name := a.Name.Value
	switch {
	case a.Array != nil && a.Index != nil: // members in place of others, in zsh
		s.walkIndex(a.Index)
		s.setMember(name, uncomputed("$"+name, s.members(a.Array)...))
		return
	case a.Array != nil:
		s.assignArray(name, a)
		return
	case a.Index != nil:
		s.walkIndex(a.Index)
		v := abstract.Value{}
		if a.Value != nil {
			v = s.word(a.Value)
		}
		s.setMember(name, v)
		return
	}
	v := s.word(a.Value)
	if a.Append {
		old, ok := s.lookup(name)
		switch {
		case old.array:
			s.setMember(name, v)
			return
		case ok:
			v = abstract.Concat(old.val, v)
		default:
			v = abstract.Concat(s.environment(name)[0], v)
		}
	}
	v.From = s.spanOf(a)
	s.assign(name, v)
}

// members returns the words that the members of an array are written as.
func (s *state) members(a *syntax.ArrayExpr) (out []abstract.Value) {
	for _, e := range a.Elems {
		if e.Index != nil {
			s.walkIndex(e.Index)
		}
		if e.Value != nil {
			out = append(out, s.fields(e.Value)...)
		}
		if len(out) > abstract.MaxFields {
			s.giveUp("an array is too long to analyse")
			break
		}
	}
	return out
}

// assignArray is NAME=(…): its members are known where each is written out as one word.
func (s *state) assignArray(name string, a *syntax.Assign) {
	list := s.members(a.Array)
	for _, v := range list {
		s.keeps(name, v)
	}
	if commandTables[name] {
		s.renamesCommand(name, s.spanOf(a))
	}
	old, bound := s.lookup(name)
	exact := !slices.ContainsFunc(a.Array.Elems, func(e *syntax.ArrayElem) bool { return e.Index != nil }) &&
		!slices.ContainsFunc(list, func(v abstract.Value) bool { return v.IsPattern && !v.Written })
	if a.Append {
		exact = exact && bound && old.array && old.list != nil
		list = append(slices.Clip(old.list), list...)
	}
	c := content{list: list, array: true}
	switch {
	case exact && list == nil:
		c.list = []abstract.Value{}
	case !exact && len(list) == 1 && list[0].Lines && !a.Append:
		c = content{val: list[0], array: true}
	case !exact:
		c = content{val: uncomputed("$"+name, append(list, old.val)...), array: true}
	}
	if name == "argv" { // of zsh
		s.setAnyPositional(list...)
	}
	if name == "path" && len(list) > 0 {
		s.searchPath(list[0])
	}
	s.hold(name, c)
}

// walkIndex walks what a subscript runs.
func (s *state) walkIndex(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		s.subscriptIn(s.word(w), true)
		return
	}
	s.arithm(x)
}

// setPositional binds the positional parameters, from $1.
func (s *state) setPositional(args []abstract.Value) {
	c := content{array: true, list: []abstract.Value{}}
	for i, v := range args {
		if v.IsPattern && !v.Written { // any number of words
			c = content{array: true, val: uncomputed("$@", args...)}
			if v.Lines && len(args) == 1 && i == 0 {
				c.val = v
			}
			break
		}
		s.subscriptIn(v, false)
		c.list = append(c.list, v)
	}
	s.Shell.bind(positionalName, variable{may: []content{c}})
}

// setAnyPositional makes the positional parameters any of some words.
func (s *state) setAnyPositional(of ...abstract.Value) {
	s.Shell.bind(positionalName, variable{may: []content{{array: true, val: uncomputed("$@", of...)}}})
}

// parameters returns the positional parameters, from $1. It is false where they are not known.
func (s *state) parameters() (content, bool) {
	c, ok := s.lookup(positionalName)
	if !ok {
		return content{array: true, list: []abstract.Value{}}, true
	}
	return c, c.list != nil
}

// parameterAt returns one positional parameter, and whether it is set.
func (s *state) parameterAt(n int) (v abstract.Value, set bool) {
	c, known := s.parameters()
	switch {
	case !known:
		return entry(c.val, uncomputed("$"+strconv.Itoa(n), c.val)), false
	case n >= 1 && n <= len(c.list):
		return c.list[n-1], true
	}
	return abstract.Value{}, false
}

// positional returns what $@ is.
func (s *state) positional() []abstract.Value {
	c, known := s.parameters()
	if !known {
		return []abstract.Value{entry(c.val, uncomputed("$@", c.val))}
	}
	return c.list
}

// entry returns one line of a list, or what is given if a value is none.
func entry(in, unknown abstract.Value) abstract.Value {
	if !in.Lines {
		return unknown
	}
	in.Show, in.Taint = unknown.Show, unknown.Taint
	return in
}
