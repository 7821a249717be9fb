package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkDownloadedQueryFile walks a downloaded file in the arguments of a program that reads code of its own language, such as
// SQL. Any argument that is not known to be data may be such a file.
func (s *analysisState) walkDownloadedQueryFile(base string, argv []abstract.Value, use command.Interpretation) {
	if !command.IsQueryLanguage(use.StdinCodeLanguage) || s.remoteOrContainerDepth > 0 || command.HasOnlyFileWriteEffects(use.StdinCodeLanguage) && use.Stdin != command.StreamExecutedCode {
		return
	}
	for _, v := range argv[1:] {
		if !v.IsLiteral() || isFileOperandOrNestedCode(v, use) {
			continue
		}
		name := v.Text
		if option, value, ok := strings.Cut(name, "="); ok && strings.HasPrefix(option, "-") {
			name = value
		}
		p, pattern := name, false
		if !strings.HasPrefix(name, "/dev/fd/") {
			p, pattern = s.workingFolderContext().CanonicalPath(name, false)
		}
		if vals := s.writtenFileContents(p, false); !pattern && len(vals) > 0 && vals[0].Taint&externalOrDecodedTaints != 0 {
			s.walkExecutedText(use.StdinCodeLanguage, vals[0], base, v.SourceSpan, nil)
		}
	}
}

// recordRemoteSQL records that a database client runs SQL statements on a remote database, if shield could not
// analyze the statements. unanalyzedTextCountBefore is the value of analysisState.unanalyzedTextCount before the
// client was walked.
func (s *analysisState) recordRemoteSQL(base string, argv []abstract.Value, use command.Interpretation, unanalyzedTextCountBefore int) {
	if s.unanalyzedTextCount > unanalyzedTextCountBefore && use.RemoteDatabaseHostOrURL != "" {
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: "database", RemoteOperationVerb: "run", Harms: []effect.Harm{effect.RunsCommandsOnRemoteMachines}, RemoteTargetName: use.RemoteDatabaseHostOrURL, Span: wordsSpan(argv),
			Reason: base + " runs unread SQL statements on a database of another machine"})
	}
}

// isFileOperandOrNestedCode reports whether an argument is known to be a file that the program reads or writes, or code.
func isFileOperandOrNestedCode(v abstract.Value, use command.Interpretation) bool {
	return slices.ContainsFunc(use.OperandEffects, func(t command.OperandEffect) bool {
		return (t.Kind == effect.ReadFile || t.Kind == effect.WriteFile) && t.Word.Span == v.SourceSpan
	}) || slices.ContainsFunc(use.NestedCommandsAndCode, func(n command.NestedCommandOrCode) bool { return n.Words[0].Span == v.SourceSpan })
}
