package shell

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// sedInsertPattern matches a sed command that inserts text (a, i or c), after its address.
var sedInsertPattern = prefilter.LazyRegexp(`(?s)^(?:[0-9$,~]+|/(?:[^/\\]|\\.)*/)?\s*[aic](?:\\\n|\\|\s)\s*(.+)$`)

// sedLineDeletionCommandPattern matches a sed command that deletes the lines that match a pattern.
var sedLineDeletionCommandPattern = prefilter.LazyRegexp(`^/((?:[^/\\]|\\.)*)/I?\s*d\s*$`)

// recordInPlaceFileEdits records the effects that a file edited in place, as by sed -i, has when a
// program runs or loads it later.
func (s *analysisState) recordInPlaceFileEdits(argv []abstract.Value, use command.Interpretation) {
	type edit struct {
		in   abstract.Value
		gone string
	}
	var list []edit
	for _, v := range argv[1:] {
		if gone, text, ok := parseSedEdit(v.Text); ok && v.IsLiteral() {
			in := abstract.Lit(text)
			in.SourceSpan = v.SourceSpan
			list = append(list, edit{in, gone})
		}
	}
	for _, t := range use.OperandEffects {
		if t.Kind != effect.WriteFile || t.Word.IsGlobPattern {
			continue
		}
		p, pattern := s.workingFolderContext().CanonicalPath(t.Word.Text, false)
		for _, e := range list {
			if !pattern && !s.isAnalysisAborted {
				s.recordInsertedFileText(p, e.in, e.gone)
			}
		}
	}
}

// analysisStepsPerFileInsertion is the cost, in steps of the budget, of analysing a text that is inserted into a file.
const analysisStepsPerFileInsertion = 40

// recordInsertedFileText records what a text that replaces replacedText in a file would do if the
// file runs later.
func (s *analysisState) recordInsertedFileText(filePath string, v abstract.Value, replacedText string) {
	s.recordWrittenFileText(filePath, v, replacedText, false)
	if format, _ := command.RecipeFormat(filePath); format == "" && !isCodeRunningSettingsFile(filePath) || !s.spendSteps(analysisStepsPerFileInsertion+len(v.Text)/64) {
		return
	}
	for _, e := range AnalyzeWrittenFile(filePath, v.Text, s.initialPathContext) {
		e.Span = v.SourceSpan
		s.emitOnce(e)
	}
}

// parseSedEdit parses a substitution of sed or perl (s/OLD/NEW/), or a sed command that inserts or
// deletes lines. It returns the removed and the inserted text; ok is false for other scripts.
func parseSedEdit(script string) (replacedText, insertedText string, ok bool) {
	if m := sedInsertPattern().FindStringSubmatch(script); m != nil {
		return "", m[1], true
	}
	if m := sedLineDeletionCommandPattern().FindStringSubmatch(script); m != nil {
		return m[1], "", true
	}
	i := strings.IndexByte(script, 's')
	if i < 0 || i+1 >= len(script) || strings.IndexByte(`/|#,@!:;%~^_+=`, script[i+1]) < 0 {
		return "", "", false
	}
	sign := script[i+1]
	parts := [2]strings.Builder{}
	n := 0
	for j := i + 2; j < len(script); j++ {
		switch c := script[j]; {
		case c == '\\' && j+1 < len(script):
			j++
			if c = script[j]; c == 'n' {
				c = '\n'
			}
			parts[n].WriteByte(c)
		case c == sign:
			if n++; n == 2 {
				return parts[0].String(), parts[1].String(), true
			}
		default:
			parts[n].WriteByte(c)
		}
	}
	return "", "", false
}
