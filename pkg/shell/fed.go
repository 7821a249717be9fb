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
func (s *state) walkInputFile(base string, argv []abstract.Value, use command.Interpretation) {
	if !command.IsQuery(use.Language) || s.remoteDepth > 0 || command.OnlyWritesFiles(use.Language) && use.Stdin != command.Code {
		return
	}
	for _, v := range argv[1:] {
		if !v.Known() || isFileOrCode(v, use) {
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
		if vals := s.fileValues(p, false); !pattern && len(vals) > 0 && vals[0].Taint&foreignCodeTaints != 0 {
			s.runText(use.Language, vals[0], base, v.From, nil)
		}
	}
}

// recordRemoteSQL records that a database client runs SQL statements on a remote database, if
// shield could not analyze the statements. blind is the value of unanalyzedTextCount before the
// client was walked.
func (s *state) recordRemoteSQL(base string, argv []abstract.Value, use command.Interpretation, blind int) {
	if s.unanalyzedTextCount > blind && use.RemoteDatabase != "" {
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemote, Service: "database", Verb: "run", Harms: []effect.Harm{effect.RunsRemotely}, Target: use.RemoteDatabase, Span: wordsSpan(argv),
			Reason: base + " runs unread SQL statements on a database of another machine"})
	}
}

// isFileOrCode reports whether an argument is known to be a file that the program reads or writes, or code.
func isFileOrCode(v abstract.Value, use command.Interpretation) bool {
	return slices.ContainsFunc(use.OperandEffects, func(t command.OperandEffect) bool {
		return (t.Kind == effect.ReadFile || t.Kind == effect.WriteFile) && t.Word.Span == v.From
	}) || slices.ContainsFunc(use.Nested, func(n command.Nested) bool { return n.Words[0].Span == v.From })
}
