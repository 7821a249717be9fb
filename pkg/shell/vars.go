package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A variable is the possible contents of a name, and its attributes.
type variable struct {
	may      []content
	exported bool
	constant bool           // it may be readonly: an assignment may fail, so the old content stays possible
	odd      bool           // an attribute may change assigned values: declare -i, -u, -A and the like
	refers   bool           // declare -n: a nameref to another variable
	loose    bool           // a local variable that may not have been declared
	from     *effect.Effect // the settings file that set it
}

// A content is one possible content of a variable.
type content struct {
	val    abstract.Value
	list   []abstract.Value // the members of an array, if they are known
	array  bool             // an array; if list is nil, val represents any member
	gone   bool             // the variable is unset
	open   bool             // unknown whether the variable is set
	before bool             // its content from before the text
	full   bool             // the variable is set and not empty
}

// maxAlternatives is the number of possible contents above which a variable counts as unknown.
const maxAlternatives = 8

// maxNamed is the maximum number of variables that a text may assign.
const maxNamed = 1024

// positionalName and zeroName are the names under which the positional parameters (as an array) and $0 are stored.
const (
	positionalName = "@"
	zeroName       = "0"
)

// pathChanged is set if $PATH starts with a folder that is not a system folder: a program's name then does not
// tell which program runs.
const pathChanged = "\x00path"

func (c content) equal(o content) bool {
	return c.array == o.array && c.gone == o.gone && c.open == o.open && c.before == o.before && sameText(c.val, o.val) && slices.EqualFunc(c.list, o.list, sameText)
}

// sameText reports whether two values are equal, apart from their spans.
func sameText(v, o abstract.Value) bool {
	v.From, o.From = effect.Span{}, effect.Span{}
	return v == o
}

func (v variable) equal(o variable) bool {
	return v.exported == o.exported && v.constant == o.constant && v.odd == o.odd && v.refers == o.refers && v.loose == o.loose && slices.EqualFunc(v.may, o.may, content.equal)
}

// or merges two versions of a variable: the result may have the contents of either.
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

// any returns one value that covers all possible contents of a variable.
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

// decimal parses a number that all shells read as decimal.
func decimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil && strconv.FormatInt(n, 10) != text {
		err = strconv.ErrSyntax
	}
	return n, err
}

// widened returns a variable with unknown content, for one that gets new contents in every turn of a loop.
func (v variable) widened(name string) variable {
	c := content{val: v.any("$" + name), open: true, array: slices.ContainsFunc(v.may, func(c content) bool { return c.array })}
	v.may = []content{c}
	return v
}

// lookup returns a variable's content, and whether the text sets it. If there are several possible contents, the
// result is unknown: see state.each.
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

// bound reports whether the text may assign a variable.
func (s *state) bound(name string) bool {
	_, ok := s.vars.names[name]
	return ok || s.vars.lost && syntax.ValidName(name)
}

// hold sets the only content of a variable.
func (s *state) hold(name string, c content) {
	v := s.vars.names[name]
	v.from = nil
	switch name {
	case "LINENO", "RANDOM", "SRANDOM", "SECONDS", "BASHPID", "EPOCHSECONDS", "HISTCMD": // reading them does not return the assigned value
		c = content{val: abstract.Number("$" + name)}
	case "BASH_COMMAND", "DIRSTACK", "FUNCNAME", "GROUPS", "PIPESTATUS", "_":
		c = content{val: uncomputed("$"+name, c.val), open: true}
	}
	next := variable{may: []content{c}, exported: v.exported, constant: v.constant, odd: v.odd, refers: v.refers}
	if v.constant || slices.Contains(s.watched, name) {
		next = next.or(s.vars.get(name))
	}
	if v.odd && !isDecimal(c.val) { // the value may not be a valid number or key
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

// assign assigns a variable, and walks code that runs because of its value.
func (s *state) assign(name string, v abstract.Value) {
	s.give(name, v)
	s.environmentCode(name, v, v.From)
}

// give assigns a variable without checking for code that programs run because of its name.
func (s *state) give(name string, v abstract.Value) {
	s.subscriptIn(v, false)
	if commandTables[name] {
		s.renamesCommand(name, v.From)
	}
	if old, ok := s.lookup(name); ok && old.array { // an array: assigns its first member, or in zsh replaces it
		v = uncomputed("$"+name, append([]abstract.Value{v, old.val}, old.list...)...)
		s.hold(name, content{val: v, array: true})
		return
	}
	s.hold(name, content{val: v})
}

// mayGive is give for an assignment that may not happen.
func (s *state) mayGive(name string, v abstract.Value) { s.may(func() { s.give(name, v) }) }

// assignTo assigns to the name in a word: a variable, or an array member. If the name is unknown, any variable may
// change.
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

// unknownName handles an assignment to an unknown variable: all variables become unknown. A computed name may be a
// variable that makes programs run code.
func (s *state) unknownName(v abstract.Value) {
	if v.Computed() {
		s.dynamic(effect.CauseUnresolved, "the name of the assigned variable is unknown: "+abstract.Clip(v.String()), v.From)
	}
	s.forget()
}

// setMember assigns to an array member.
func (s *state) setMember(name string, v abstract.Value) {
	s.keeps(name, v)
	if commandTables[name] {
		s.renamesCommand(name, v.From)
	}
	old, _ := s.lookup(name)
	all := append([]abstract.Value{v, old.val}, old.list...)
	if name == "argv" { // zsh: argv holds the positional parameters
		s.setAnyPositional(all...)
	}
	s.hold(name, content{val: uncomputed("$"+name, all...), array: true})
}

// forget makes all variables unknown, because an unknown variable was assigned.
func (s *state) forget() {
	kept := &table{names: map[string]variable{}, lost: true}
	for name, v := range s.vars.names {
		if syntax.ValidName(name) { // else an internal name, not a variable
			v.may = []content{{val: abstract.Variable(name, abstract.Foreign).Of(abstract.Forgotten), open: true}}
		}
		kept.set(name, v)
	}
	s.vars = kept
}

// assignment binds a variable for NAME=VALUE.
func (s *state) assignment(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		if a.Value != nil {
			s.word(a.Value)
		}
		return
	}
	name := a.Name.Value
	switch {
	case a.Array != nil && a.Index != nil: // zsh: assigns a slice of an array
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

// members returns the words of an array literal.
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

// assignArray handles NAME=(…): the members are known if each is one literal word.
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
	if name == "argv" { // zsh: argv holds the positional parameters
		s.setAnyPositional(list...)
	}
	if name == "path" && len(list) > 0 {
		s.searchPath(list[0])
	}
	s.hold(name, c)
}

// walkIndex walks code that an array subscript runs.
func (s *state) walkIndex(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		s.subscriptIn(s.word(w), true)
		return
	}
	s.arithm(x)
}

// setPositional sets the positional parameters, from $1.
func (s *state) setPositional(args []abstract.Value) {
	c := content{array: true, list: []abstract.Value{}}
	for i, v := range args {
		if v.IsPattern && !v.Written { // may become any number of words
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

// setAnyPositional sets the positional parameters to an unknown selection of words.
func (s *state) setAnyPositional(of ...abstract.Value) {
	s.Shell.bind(positionalName, variable{may: []content{{array: true, val: uncomputed("$@", of...)}}})
}

// parameters returns the positional parameters, from $1; false if they are unknown.
func (s *state) parameters() (content, bool) {
	c, ok := s.lookup(positionalName)
	if !ok {
		return content{array: true, list: []abstract.Value{}}, true
	}
	return c, c.list != nil
}

// parameterAt returns a positional parameter and whether it is set; n counts from 1.
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

// positional returns the values of $@.
func (s *state) positional() []abstract.Value {
	c, known := s.parameters()
	if !known {
		return []abstract.Value{entry(c.val, uncomputed("$@", c.val))}
	}
	return c.list
}

// entry returns one line of a list of lines, or unknown if the value is not a list.
func entry(in, unknown abstract.Value) abstract.Value {
	if !in.Lines {
		return unknown
	}
	in.Show, in.Taint = unknown.Show, unknown.Taint
	return in
}
