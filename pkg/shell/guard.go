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

// guardPath is where a shell finds shield: in some folder.
func guardPath(name abstract.Value) abstract.Value {
	v := abstract.Unknown("$(command -v "+guardName+")", 0).Of(abstract.FromCommand)
	v.Text, v.IsPattern, v.From = "/**/"+guardName, true, name.From
	return v
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
