package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// framework records what the words do that a script of a framework is given, such as artisan or
// manage.py: what the script itself does is found out elsewhere.
func (s *state) framework(script abstract.Value, args []abstract.Value) {
	base := programName(script.Text)
	if !script.Known() || !command.Frameworks[base] {
		return
	}
	words := append([]command.Word{{Text: base}}, s.withoutEnvironment(base, commandWords(args))...)
	use := command.Interpret(words)
	use.At(s.placesOf(base)...)
	for _, k := range use.Effects {
		if k == effect.ChangeRemote {
			e := effect.Effect{Kind: k, Program: base, From: script.From, Reason: base + " changes the database of the application"}
			elsewhere(&e, use.Remote)
			s.emitOnce(e)
		}
	}
}

// withoutEnvironment leaves out that artisan is told to use the settings of an environment that it has none
// for: it takes those of .env then, whatever the name says.
func (s *state) withoutEnvironment(base string, args []command.Word) (out []command.Word) {
	for _, w := range args {
		name, ok := strings.CutPrefix(w.Text, "--env=")
		if ok && base == "artisan" && s.at.Script != nil {
			has := func(file string) bool { _, err := s.at.Script(s.place().CWD + "/" + file); return err == nil }
			if has(".env") && !has(".env."+name) {
				continue
			}
		}
		out = append(out, w)
	}
	return out
}
