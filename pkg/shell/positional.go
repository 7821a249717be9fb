package shell

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// positionalName is the name under which positional parameters are bound, as
// the members of an array.
const positionalName = "\x00args"

// zeroName is the name under which $0 is bound in a shell that the text starts.
const zeroName = "\x00zero"

// setPositional binds the positional parameters, from $1.
func (s *state) setPositional(args []abstract.Value) {
	b := binding{name: positionalName, array: true}
	for i, v := range args {
		if v.IsPattern && !v.Written { // any number of words
			b.unsure, b.val = true, vague("$@", args[i:]...)
			if v.Lines && i == len(args)-1 {
				b.val = v
			}
			break
		}
		s.subscriptIn(v, false)
		b.elems = append(b.elems, element{itoa(i + 1), v})
	}
	s.bind(b)
}

// parameterAt returns one positional parameter.
func (s *state) parameterAt(n int) (v abstract.Value, set bool) {
	b, ok := s.lookupOnce(positionalName)
	switch {
	case ok && n >= 1 && n <= len(b.elems):
		return b.elems[n-1].val, true
	case ok && (!b.array || b.unsure):
		return entry(b.val, vague("$"+itoa(n), b.val)), false
	}
	return abstract.Value{}, false
}

// parameters returns the positional parameters, from $1. It is false where they are
// not known.
func (s *state) parameters() ([]abstract.Value, bool) {
	b, ok := s.lookupOnce(positionalName)
	if !ok {
		return nil, true
	}
	if !b.array || b.unsure {
		return nil, false
	}
	args := make([]abstract.Value, len(b.elems))
	for i, e := range b.elems {
		args[i] = e.val
	}
	return args, true
}

// positional returns what $@ is.
func (s *state) positional() []abstract.Value {
	args, ok := s.parameters()
	if !ok {
		b, _ := s.lookupOnce(positionalName)
		return append(members(b), entry(b.val, vague("$@", b.val)))
	}
	return args
}

// shift drops the first positional parameters. Where there are fewer, shells differ.
func (s *state) shift(argv []abstract.Value) {
	args, ok := s.parameters()
	n := 1
	if len(argv) > 1 {
		var err error
		if n, err = strconv.Atoi(argv[1].Text); err != nil || !argv[1].Known() {
			ok = false
		}
	}
	if !ok || n < 0 || n > len(args) {
		s.mayFail()
		s.bind(binding{name: positionalName, array: true, unsure: !ok || len(args) > 0})
		return
	}
	rest := binding{name: positionalName, array: true}
	for i, v := range args[n:] {
		rest.elems = append(rest.elems, element{itoa(i + 1), v})
	}
	s.bind(rest)
	s.exit = exitOf(true, s.rounds <= 1)
}

// getopts gives a name the next option: the first one is known.
func (s *state) getopts(argv []abstract.Value) {
	_, again := s.attribute("OPTIND")
	for _, n := range [...]string{"OPTARG", "OPTIND"} {
		s.assign(n, abstract.Variable(n, 0))
	}
	if len(argv) < 3 {
		return
	}
	args, ok := argv[3:], !again && argv[1].Known()
	if len(args) == 0 {
		var known bool
		args, known = s.parameters()
		ok = ok && known
	}
	option := abstract.Variable("option", 0)
	if ok && len(args) > 0 && args[0].Known() && len(args[0].Text) > 1 && args[0].Text[0] == '-' && args[0].Text[1] < 0x80 {
		letter := args[0].Text[1:2]
		_, behind, listed := strings.Cut(strings.TrimPrefix(argv[1].Text, ":"), letter)
		if listed && strings.Trim(letter, "-:?+") != "" && (!strings.HasPrefix(behind, ":") || len(args[0].Text) > 2 || len(args) > 1) {
			option = abstract.Lit(letter)
		}
	}
	s.assignTo(argv[2], option)
}
