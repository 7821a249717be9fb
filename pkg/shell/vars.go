package shell

import (
	"strings"

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
}

// An element is one member of an array.
type element struct {
	key string // index or, in an associative array, key
	val abstract.Value
}

type bindingKind uint8

const (
	scalar    bindingKind = iota
	reference             // declare -n: val names another variable
	upper                 // declare -u
	lower                 // declare -l
	integer               // declare -i
	workdir               // the working folder, kept under a name that no variable has
	unset
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
	s.vars = append(s.vars, b)
}

func (s *state) assign(name string, v abstract.Value) {
	s.subscript(name)
	kind := scalar
	if b, ok := s.attribute(name); ok {
		switch b.kind {
		case reference:
			if b.val.Known() && b.val.Text != name {
				name = b.val.Text
			}
		case upper:
			kind = upper
			if v.Known() {
				v.Text = strings.ToUpper(v.Text)
			}
		case lower:
			kind = lower
			if v.Known() {
				v.Text = strings.ToLower(v.Text)
			}
		case integer:
			kind = integer
			if v.Known() {
				v = s.arithmText(v.Text)
			}
		case scalar, workdir, unset:
		}
	}
	s.bind(binding{name: name, val: v, kind: kind})
}

// attribute returns the newest binding of a name.
func (s *state) attribute(name string) (binding, bool) {
	for i := len(s.vars) - 1; i >= 0; i-- {
		if s.vars[i].name == name {
			return s.vars[i], true
		}
	}
	return binding{}, false
}

// lookup returns the binding of a variable that counts in the current round.
// Where a branch may or may not have assigned it, each round of a command sees
// another of the values; s.rounds is raised so that every one gets its turn.
func (s *state) lookup(name string) (binding, bool) {
	for range 4 { // a chain of references
		b, ok := s.lookupOnce(name)
		if ok && b.kind == reference && b.val.Known() && b.val.Text != name {
			name = b.val.Text
			continue
		}
		return b, ok
	}
	return binding{}, false
}

func (s *state) lookupOnce(name string) (binding, bool) {
	var found [maxAlternatives]int
	n := 0
	for i := len(s.vars) - 1; i >= 0; i-- {
		if s.vars[i].name != name {
			continue
		}
		if n == maxAlternatives {
			return binding{name: name, val: abstract.Variable(name, abstract.Foreign)}, true
		}
		found[n] = i
		n++
		if !s.vars[i].weak {
			break
		}
	}
	if n == 0 {
		return binding{}, false
	}
	s.rounds = max(s.rounds, n)
	b := s.vars[found[s.round%n]]
	if b.kind == unset {
		return binding{name: name}, true
	}
	return b, true
}

// weaken marks the bindings since mark as ones that may not have happened.
func (s *state) weaken(mark int) {
	for i := mark; i < len(s.vars); i++ {
		s.vars[i].weak = true
	}
}

const workdirName = "\x00cwd"

// place returns where relative paths start.
func (s *state) place() *effect.Place {
	if b, ok := s.lookupOnce(workdirName); ok && b.place != nil {
		return b.place
	}
	return s.at
}
