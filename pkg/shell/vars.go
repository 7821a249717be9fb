package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A binding is one assignment. Lookups read the log of bindings backwards, so
// that leaving a subshell is cutting the log, and a branch that may not have
// run leaves weak bindings: values that come in addition to the older ones.
type binding struct {
	name  string
	val   abstract.Value
	elems []element // of an array
	array bool
	weak  bool
	kind  bindingKind
	place *effect.Place // of the working folder

	unsure   bool // the members of an array are not known
	alike    bool // but each is as the only one of elems
	headed   bool // but what it is without a subscript is the last of elems
	keyed    bool // an associative array
	exported bool // stands before a command, which sees it
	global   bool // outlives the function that declared the name local
	open     bool // not even whether it is set is known
	counts   bool // mixed only since zsh may have made it an integer
	astray   bool // a working folder that may not be there, and what follows runs all the same
}

// An element is one member of an array.
type element struct {
	key string // index or, in an associative array, key
	val abstract.Value
}

type bindingKind uint8

const (
	scalar  bindingKind = iota
	workdir             // the working folder, kept under a name that no variable has
	unset
	reference // declare -n: val names another variable
	upper     // declare -u
	lower     // declare -l
	integer   // declare -i
	formatted // typeset -Z 3, typeset -i 16 of zsh: in digits of some kind
	mixed     // several of these
	forgotten // every variable is unknown
	boundary  // another shell starts, which sees what is exported
	constant  // the variable is readonly from here on
)

// maxAlternatives is how many values a variable may have at once before it
// counts as unknown.
const maxAlternatives = 8

// maxLookback bounds how far a lookup reads, so that a text of many
// assignments stays linear.
const maxLookback = 1024

func (s *state) bind(b binding) {
	if len(s.vars) >= maxLookback {
		s.giveUp("too many assignments")
		return
	}
	b.weak = b.weak || b.kind != constant && s.isConstant(b.name)
	switch b.name {
	case "argv", "path", "fpath", "cdpath":
		s.tied(&b)
	case "LINENO", "RANDOM", "SRANDOM", "SECONDS", "BASHPID", "EPOCHSECONDS", "HISTCMD": // what they are given is not what they hold
		b.val = abstract.Number("$" + b.name)
	case "BASH_COMMAND", "DIRSTACK", "FUNCNAME", "GROUPS", "PIPESTATUS", "_":
		b.val, b.unsure = vague("$"+b.name, b.val), true
	}
	if b.array && !b.keyed && !internal(b.name) && b.name != positionalName {
		if old, ok := s.attribute(b.name); ok && old.keyed { // which it stays
			b.keyed, b.unsure = true, true
		}
	}
	s.subscripts = s.subscripts || slices.ContainsFunc(texts(held(b)), runsInSubscript)
	s.vars = append(s.vars, b)
}

// isConstant reports whether a name may be readonly: an assignment to it may fail.
func (s *state) isConstant(name string) bool {
	return s.constants && slices.ContainsFunc(s.vars, func(b binding) bool { return b.kind == constant && b.name == name })
}

// assign gives a variable a value, as its attributes change it, and walks what runs because of that.
func (s *state) assign(name string, v abstract.Value) {
	s.give(name, v)
	if to, ok := s.target(name); ok {
		before := len(s.effects)
		if s.environmentCode(to, v, v.From); s.round > 0 {
			s.dropRepeated(before)
		}
	}
}

// give is assign without what runs because of the value.
func (s *state) give(name string, v abstract.Value) {
	s.subscriptIn(v, false)
	switch name {
	case "RANDOM", "SECONDS", "OPTIND": // integers
		s.arithmText(v.Text)
	}
	to, ok := s.target(name)
	if !ok {
		if b, bound := s.attribute(name); bound && b.val.Known() { // it may be a member that is meant
			array, sub, _ := strings.Cut(b.val.Text, "[")
			s.setsCommand(array, abstract.Lit(strings.TrimSuffix(sub, "]")), v)
		}
		s.forget()
		return
	}
	name = to
	b, ok := s.attribute(name)
	if !ok {
		s.bind(binding{name: name, val: v})
		return
	}
	kind := scalar
	switch b.kind {
	case upper, lower, integer, formatted:
		kind = b.kind
		s.counts(name, kind, v)
		v = converted(kind, v)
	case mixed:
		kind = mixed
		s.counts(name, kind, v)
		if !b.counts && !converted(integer, v).Known() && !(v.IsPattern && v.Text == "*") {
			v = vague("$"+name, v)
		}
	}
	if !b.array {
		s.bind(binding{name: name, val: v, kind: kind, counts: b.counts})
		if b.counts && !v.IsNumber() && !converted(integer, v).Known() {
			s.bind(binding{name: name, val: abstract.Number("$((…))"), kind: kind, counts: true, weak: true})
		}
		return
	}
	next := binding{name: name, array: true, kind: kind, keyed: b.keyed && !s.asZsh(), unsure: b.unsure || b.alike || b.keyed && s.zsh || kind != scalar || s.unusual(), elems: slices.Clone(b.elems)}
	switch {
	case s.asZsh() && !b.keyed && kind == scalar && !s.unusual(): // puts it in place of the array
		next = binding{name: name, val: v}
	case next.unsure || next.keyed:
		next.elems = append(next.elems, element{"0", v})
		next.headed = next.unsure && kind == scalar && !s.asZsh()
	default:
		next.put(0, v, false)
	}
	s.bind(next)
}

// converted returns what a variable with an attribute holds when it is
// assigned a value.
func converted(kind bindingKind, v abstract.Value) abstract.Value {
	switch {
	case kind == formatted:
		return vague("${…}", v)
	case kind == integer:
		if n, err := strconv.ParseInt(v.Text, 10, 64); v.Known() && err == nil && strconv.FormatInt(n, 10) == v.Text {
			return v
		}
		return abstract.Number("$((…))")
	case v.Known() && kind == upper:
		v.Text = strings.ToUpper(v.Text)
	case v.Known() && kind == lower:
		v.Text = strings.ToLower(v.Text)
	case !v.Known():
		return vague(v.Show, v)
	}
	return v
}

// attribute returns the newest binding of a name. Its kind is mixed if not all
// that count have the same, and it is an unsure array if some are arrays.
func (s *state) attribute(name string) (binding, bool) {
	var b binding
	n, counts, other := 0, false, false
	for i := len(s.vars) - 1; i >= 0; i-- {
		o := &s.vars[i]
		if o.kind == boundary {
			break
		}
		if o.name != name || o.kind == constant {
			continue
		}
		if n++; n == 1 {
			b = *o
		}
		b.keyed, counts, other = b.keyed || o.keyed, counts || o.counts, other || o.kind > unset && !o.counts
		if o.kind != b.kind && (o.kind > unset || b.kind > unset) || o.kind == reference && n > 1 || o.kind > unset && o.weak {
			b.kind = mixed
		}
		if n > 1 && (o.array || b.array) || o.array && o.weak {
			b.array, b.unsure, b.alike, b.headed = true, true, false, false
		}
		if !o.weak {
			break
		}
	}
	b.counts = counts && !other
	return b, n > 0
}

// lasting returns the kind that a variable keeps when it becomes an array.
func (b *binding) lasting() bindingKind {
	if b.kind > reference && b.kind < forgotten {
		return mixed
	}
	return scalar
}

// forget makes all variables unknown, since something was assigned and which is
// not known.
func (s *state) forget() { s.bind(binding{kind: forgotten}) }

// target follows references (declare -n) to the name of a variable. It is false
// where that is not known.
func (s *state) target(name string) (string, bool) {
	for range 4 {
		b, ok := s.attribute(name)
		switch {
		case ok && b.kind == mixed:
			for i := range s.vars {
				if s.vars[i].name == name && s.vars[i].kind == reference {
					return name, false
				}
			}
			return name, true
		case !ok || b.kind != reference:
			return name, true
		case !b.val.Known() || !syntax.ValidName(b.val.Text) || b.val.Text == name || s.hides(name, b.val.Text):
			return name, false
		}
		name = b.val.Text
	}
	return name, false
}

// hides reports whether a function has declared a name local after a reference to that name
// was made, which then is to the variable around in some shells. So it may be where the name
// was given before the call of a function.
func (s *state) hides(by, name string) bool {
	if s.given(name) {
		return true
	}
	for _, f := range s.frames {
		at, ok := f.locals[name]
		if ok && !slices.ContainsFunc(s.vars[min(at, len(s.vars)):], func(b binding) bool { return b.name == by && b.kind == reference }) {
			return true
		}
	}
	return false
}

// lookup returns the binding of a variable that counts in the current round.
// Where a branch may or may not have assigned it, each round of a command sees
// another of the values; s.rounds is raised so that every one gets its turn.
func (s *state) lookup(name string) (binding, bool) {
	to, ok := s.target(name)
	if !ok {
		return binding{name: name, val: abstract.Variable(name, abstract.Foreign), open: true}, true
	}
	return s.lookupOnce(to)
}

func (s *state) lookupOnce(name string) (binding, bool) {
	if s.wild && name[0] != 0 {
		return binding{name: name, val: abstract.Variable(name, abstract.Foreign), open: true}, true
	}
	var found [maxAlternatives]int
	n, hidden, more, edge := 0, false, true, len(s.vars)
	all := abstract.Variable(name, 0)
	for i := len(s.vars) - 1; i >= 0 && more; i-- {
		b := &s.vars[i]
		switch {
		case b.kind == boundary:
			hidden, edge = true, i
			continue
		case b.kind == forgotten && name[0] != 0:
			return binding{name: name, val: abstract.Variable(name, abstract.Foreign), open: true}, true
		case b.name != name || b.kind == constant:
			continue
		}
		all.Taint |= b.val.Taint
		if !internal(name) && hidden && (b.array || !b.exported && b.kind != unset && !s.isExported(name, edge)) {
			return binding{name: name, val: all, open: true}, true
		}
		more = b.weak
		if slices.ContainsFunc(found[:n], func(o int) bool { return s.vars[o].same(b) }) {
			continue
		}
		if !internal(name) && n == maxAlternatives-1 {
			return binding{name: name, val: all, open: true}, true
		}
		if n == maxAlternatives {
			break
		}
		found[n] = i
		n++
	}
	if n == 0 {
		return binding{}, false
	}
	if more && !internal(name) { // it may as well be what it was before the text
		found[n] = -1
		n++
	}
	pick, ok := 0, true
	if n > 1 {
		pick, ok = s.choose(name, n, found[0])
	}
	switch {
	case !ok && !internal(name):
		return binding{name: name, val: all, open: true}, true
	case found[pick] < 0:
		return binding{}, false
	}
	return s.vars[found[pick]], true
}

// same reports whether two bindings of a name give it the same text.
func (b *binding) same(o *binding) bool {
	return b.kind == o.kind && b.kind <= unset && !b.array && !o.array && b.exported == o.exported && !b.val.IsPattern && !o.val.IsPattern &&
		b.val.Text == o.val.Text && b.val.Taint == o.val.Taint && b.val.Secrets == o.val.Secrets
}

// internal reports whether a name is of the analysis: of its bindings the newest
// counts.
func internal(name string) bool { return name[0] == 0 && name != positionalName }

// A choice is a variable of which the command being walked sees another value in
// each round.
type choice struct {
	name string
	n    int
	at   int // of the newest binding
}

// choose returns which of n values of a variable counts in the current round.
// It is false where that are too many, or no rounds are made.
func (s *state) choose(name string, n, at int) (int, bool) {
	if s.round < 0 {
		return 0, false
	}
	stride := 1
	for _, c := range s.choices {
		if c.name == name {
			return s.round / stride % n, c.n == n && c.at == at
		}
		stride *= c.n
	}
	if stride*n > maxAlternatives {
		return 0, false
	}
	s.choices = append(s.choices, choice{name, n, at})
	s.rounds = stride * n
	return s.round / stride % n, true
}

// inRounds walks something once for each combination of the values that the
// variables in it may have. Within a substitution these are of the command around it.
func (s *state) inRounds(walk func()) {
	if s.shared {
		walk()
		return
	}
	round, rounds, choices := s.round, s.rounds, s.choices
	s.rounds, s.choices = 1, nil
	for s.round = 0; s.round < s.rounds && !s.gaveUp; s.round++ {
		walk()
	}
	s.round, s.rounds, s.choices = round, rounds, choices
}

// isExported reports whether programs that were started at an edge are sure to see a variable.
func (s *state) isExported(name string, edge int) bool {
	return slices.ContainsFunc(s.vars[:edge], func(b binding) bool { return b.name == exportPrefix+name && !b.weak })
}

// exportPrefix stands before the name of a variable that is exported, in a
// binding that says so.
const exportPrefix = "\x00export "

// weaken makes the bindings since mark such that may not have happened.
func (s *state) weaken(mark int) {
	for i := mark; i < len(s.vars); i++ {
		s.vars[i].weak = true
	}
}

// settled returns the names that are certain to be bound since mark, each with
// the index of its newest binding that is certain.
func (s *state) settled(mark int) map[string]int {
	names := map[string]int{}
	for i := mark; i < len(s.vars); i++ {
		if !s.vars[i].weak && s.vars[i].kind < forgotten {
			names[s.vars[i].name] = i
		}
	}
	return names
}

// drop removes the bindings since mark of names, of each only from an index on.
func (s *state) drop(mark int, names map[string]int) {
	mark = min(mark, len(s.vars))
	kept := s.vars[:mark]
	for i, b := range s.vars[mark:] {
		if from, ok := names[b.name]; !ok || mark+i < from || b.global {
			kept = append(kept, b)
		}
	}
	s.vars = kept
}

const workdirName = "\x00cwd"

// place returns where relative paths start.
func (s *state) place() *effect.Place {
	if b, ok := s.lookupOnce(workdirName); ok {
		return b.place
	}
	return s.at
}
