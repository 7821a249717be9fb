package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A trap is code that the text sets up to run later.
type trap struct {
	code abstract.Value
	mark int // of the bindings when it was set
	exit bool
}

// runTraps walks the traps since mark, and forgets them: variables may hold by
// then what was assigned after the trap was set, and any of it.
func (s *state) runTraps(mark int) {
	list := slices.Clone(s.traps[min(mark, len(s.traps)):])
	s.traps = s.traps[:min(mark, len(s.traps))]
	s.walkTraps(list)
}

// zshTraps walks the traps that a function has set since mark, when it has ended: in zsh,
// those of its end run then, and what they assign lasts.
func (s *state) zshTraps(mark int) {
	if len(s.traps) <= mark || !s.asZsh() {
		return
	}
	vars, before, remains, exit := len(s.vars), s.outcomes(), s.remains, s.exit
	sure := s.left.sure
	for _, t := range slices.Clone(s.traps[mark:]) {
		repeated := len(s.effects)
		s.left.sure = stays
		s.nested(t.code.Text, t.code.From)
		s.unsure()
		s.dropRepeated(repeated)
	}
	s.weaken(vars)
	s.uncertain(before)
	s.mayRead(remains)
	s.exit, s.left.sure = exit, sure
}

func (s *state) walkTraps(list []trap) {
	for _, t := range list {
		vars := slices.Clone(s.vars)
		if t.mark < len(s.vars) && t.exit {
			s.weaken(t.mark)
		} else if !t.exit {
			s.forget()
		}
		if len(s.frames) > 0 { // some shells have left the function by then
			s.bind(binding{name: positionalName, array: true, unsure: true, weak: true})
		}
		before, exit, remains, way := len(s.effects), s.exit, s.remains, s.left
		s.left.sure = stays
		s.nested(t.code.Text, t.code.From)
		s.unsure()
		s.left.sure = way.sure
		s.dropRepeated(before)
		s.vars, s.exit = vars, exit
		s.mayRead(remains)
	}
}

// trap sets code up to run later, and walks it as it would run now.
func (s *state) trap(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if len(argv) > 2 && (argv[1].Text == "-" || argv[1].Text == "") && slices.ContainsFunc(argv[2:], func(v abstract.Value) bool { return v.Text == "DEBUG" }) {
		s.guard("trap", "removes the check of commands before they run", argv[1].From)
	}
	if len(argv) < 3 || argv[1].Text == "-" || argv[1].Text == "-p" || argv[1].Text == "-l" {
		return abstract.Value{}
	}
	code, signals := argv[1], argv[2:]
	if code.Text == "--" {
		code, signals = argv[2], argv[3:]
	}
	if !code.Known() {
		return s.runText("shell", code, "trap", code.From, nil)
	}
	mark := len(s.vars)
	exit := !slices.ContainsFunc(signals, func(v abstract.Value) bool { return v.Text != "EXIT" && v.Text != "0" })
	end, before, remains := s.apart(), s.outcomes(), s.remains
	out := s.nestedWith(code.Text, code.From, io)
	assigns := len(s.vars) > mark
	end()
	s.uncertain(before)
	s.mayRead(remains)
	s.exit = exitOf(true, exit)
	if len(s.traps) > 64 {
		s.giveUp("too many traps")
	}
	s.traps = append(s.traps, trap{code: code, mark: mark, exit: exit})
	if assigns && !exit { // at any time from now on
		s.wild = true
	}
	return maybe(out)
}
