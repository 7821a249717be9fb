package shell

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// sedInsertPattern matches a sed command that inserts text (a, i or c), after its address.
var sedInsertPattern = prefilter.Lazy(`(?s)^(?:[0-9$,~]+|/(?:[^/\\]|\\.)*/)?\s*[aic](?:\\\n|\\|\s)\s*(.+)$`)

// sedDeletePattern matches a sed command that deletes the lines that match a pattern.
var sedDeletePattern = prefilter.Lazy(`^/((?:[^/\\]|\\.)*)/I?\s*d\s*$`)

// recordEdits records the effects that files which run later will have after an edit by sed or the like.
func (s *state) recordEdits(argv []abstract.Value, use command.Interpretation) {
	type edit struct {
		in   abstract.Value
		gone string
	}
	var list []edit
	for _, v := range argv[1:] {
		if gone, text, ok := parseSedEdit(v.Text); ok && v.Known() {
			in := abstract.Lit(text)
			in.From = v.From
			list = append(list, edit{in, gone})
		}
	}
	for _, t := range use.OperandEffects {
		if t.Kind != effect.WriteFile || t.Word.Pattern {
			continue
		}
		p, pattern := s.place().Path(t.Word.Text, false)
		for _, e := range list {
			if !pattern && !s.gaveUp {
				s.recordWrittenText(p, e.in, e.gone)
			}
		}
	}
}

// insertedTextSteps is the cost, in steps of the budget, of analysing a text that is inserted into a file.
const insertedTextSteps = 40

// recordWrittenText records what a text that replaces another text (gone) in a file would do if the file runs
// later.
func (s *state) recordWrittenText(p string, v abstract.Value, gone string) {
	s.recordFileText(p, v, gone, false)
	if format, _ := command.Recipe(p); format == "" && !hasSettings(p) || !s.spendSteps(insertedTextSteps+len(v.Text)/64) {
		return
	}
	for _, e := range AnalyzeWrittenFile(p, v.Text, s.startPlace) {
		e.Span = v.From
		s.emitOnce(e)
	}
}

// parseSedEdit parses a substitution of sed or perl (s/OLD/NEW/), or a sed command that inserts or
// deletes lines. gone is the removed text and text the inserted text; ok is false for other
// scripts.
func parseSedEdit(script string) (gone, text string, ok bool) {
	if m := sedInsertPattern().FindStringSubmatch(script); m != nil {
		return "", m[1], true
	}
	if m := sedDeletePattern().FindStringSubmatch(script); m != nil {
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
