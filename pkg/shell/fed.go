package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkInputFile walks a downloaded file in the arguments of a program that reads code of its own language, such as
// SQL. Any argument that is not known to be data may be such a file.
func (s *state) walkInputFile(base string, argv []abstract.Value, use command.Use) {
	if !command.IsQuery(use.Language) || s.remote > 0 || command.OnlyWrites(use.Language) && use.Stdin != command.Code {
		return
	}
	for _, v := range argv[1:] {
		if !v.Known() || taken(v, use) {
			continue
		}
		name := v.Text
		if option, value, ok := strings.Cut(name, "="); ok && strings.HasPrefix(option, "-") {
			name = value
		}
		p, pattern := name, false
		if !strings.HasPrefix(name, "/dev/fd/") {
			p, pattern = s.place().Path(name, false)
		}
		if vals := s.fileValues(p, false); !pattern && len(vals) > 0 && vals[0].Taint&foreignCode != 0 {
			s.runText(use.Language, vals[0], base, v.From, nil)
		}
	}
}

// recordRemoteSQL records that a database client runs statements that were not analysed on a remote database.
// blind is the count of unread texts before the client ran.
func (s *state) recordRemoteSQL(base string, argv []abstract.Value, use command.Use, blind int) {
	if s.blind > blind && use.Away != "" {
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemote, Service: "database", Verb: "run", Harms: []effect.Harm{effect.Runs}, Target: use.Away, From: join(argv),
			Reason: base + " runs unread SQL statements on a database of another machine"})
	}
}

// taken reports whether an argument is known to be a file that the program reads or writes, or code.
func taken(v abstract.Value, use command.Use) bool {
	return slices.ContainsFunc(use.Touches, func(t command.Touch) bool {
		return (t.Kind == effect.ReadFile || t.Kind == effect.WriteFile) && t.Word.From == v.From
	}) || slices.ContainsFunc(use.Nested, func(n command.Nested) bool { return n.Words[0].From == v.From })
}
