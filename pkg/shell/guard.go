package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// guardName is the program that judges, and guardVariables begin the names of
// the variables that it reads.
const (
	guardName      = "shield"
	guardVariables = "SHIELD_"
)

// guard records that the guard is weakened.
func (s *state) guard(program, why string, at effect.Span) {
	s.once(effect.Effect{Kind: effect.ChangeGuard, Program: program, Reason: why, From: at})
}

// shadow looks at a name that is given another meaning.
func (s *state) shadow(name string, at effect.Span) {
	if programName(name) == guardName {
		s.guard(name, "puts another program in the place of shield", at)
	}
}

// found is what a shell says where a program is: its name stands for the path.
// Of shield the path counts, which is some folder's.
func found(name abstract.Value) abstract.Value {
	if !name.Known() || name.Text != guardName {
		return name
	}
	v := abstract.Value{Text: "/**/" + guardName, Show: "$(command -v " + guardName + ")", IsPattern: true, From: name.From}
	return v.Of(abstract.FromCommand)
}

// stops records that shield's own process or service is stopped.
func (s *state) stops(base string, argv []abstract.Value, use command.Use) {
	for _, k := range use.Effects {
		if k != effect.StopProcess && k != effect.ChangeSystem {
			continue
		}
		for _, v := range argv[1:] {
			for word := range strings.FieldsFuncSeq(strings.ToLower(v.String()), func(c rune) bool { return strings.ContainsRune(" \t$()`\"'/=[]^:.,", c) }) {
				if word == guardName || word == guardName+"d" {
					s.guard(base, "stops shield", join(argv))
					return
				}
			}
		}
	}
}
