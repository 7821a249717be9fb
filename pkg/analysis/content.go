package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/patch"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
)

// addEffectsOfWrittenFiles adds the effects that the files written by an action of a file tool would have when they run.
func (c *ActionCase) addEffectsOfWrittenFiles() {
	if c.fileAnalyzer == nil || c.Action.Type == "execute_command" {
		return
	}
	for _, text := range c.possibleWrittenFileTexts(writtenText(c.Action.Payload)) {
		if strings.TrimSpace(text) != "" {
			c.addEffectsOfWrittenText(text)
		}
	}
}

// addEffectsOfWrittenText adds the effects that the written files would have if they held a text.
func (c *ActionCase) addEffectsOfWrittenText(text string) {
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile || e.PathIsPattern || slices.ContainsFunc(c.Effects[:i], func(o effect.Effect) bool { return o.Kind == e.Kind && o.Path == e.Path }) {
			continue
		}
		c.Effects = append(c.Effects, c.fileAnalyzer(e.Path, text, &c.executionContext)...)
		c.Effects = append(c.Effects, webOrReverseShellEffects(e.Path, text)...)
	}
}

// possibleWrittenFileTexts returns the texts that a written file may hold: the given text, its base64-decoded form if the
// payload says that it is encoded, and the content of the file that the action copies.
func (c *ActionCase) possibleWrittenFileTexts(payloadText string) []string {
	texts := []string{payloadText}
	for _, v := range c.Action.Payload {
		if encoding, ok := v.(string); ok && strings.EqualFold(encoding, "base64") {
			if data, ok := decode.Base64(strings.TrimSpace(payloadText)); ok {
				texts = append(texts, data)
			}
			break
		}
	}
	if from := c.Action.Text("source"); from != "" && payloadText == "" && c.executionContext.ReadScript != nil {
		if path, isPattern := c.executionContext.CanonicalPath(from, false); !isPattern {
			if data, err := c.executionContext.ReadScript(path); err == nil {
				texts = append(texts, string(data))
			}
		}
	}
	return texts
}

// EachFileWriteCase calls f once for each text that a command writes to a file. f gets a new case:
// the action write_file with the same path and text.
func (c *ActionCase) EachFileWriteCase(f func(*ActionCase)) {
	for _, w := range c.filesWrittenByCommand {
		payload := map[string]any{"path": w.Path, "content": w.NewText}
		if w.OldText != "" {
			payload["old_string"] = w.OldText
		}
		one := &ActionCase{
			Action:           &action.Action{Type: "write_file", Payload: payload},
			Effects:          []effect.Effect{{Kind: effect.WriteFile, Path: w.Path}},
			executionContext: c.executionContext,
		}
		f(one)
		c.setUnexamined(one.UnexaminedReason)
	}
}

// OldTextOfEdits returns the text that an action of a file tool replaces; "" if the action does not name it.
func (c *ActionCase) OldTextOfEdits() string { return oldTextOfEdits(c.Action.Payload) }

// ContentAfterEdit returns the content of a file after an action of a file tool, given its old content.
func (c *ActionCase) ContentAfterEdit(old string) (text string, known bool) {
	return contentAfterEdits(c.Action.Payload, old)
}

// literalPrintOnlyCodePattern matches code that does nothing except print literal texts.
var literalPrintOnlyCodePattern = prefilter.LazyRegexp(`\A(?:\s*(?:#[^\n]*|//[^\n]*|<\?php|\?>|['"]use strict['"];?|(?:console\.(?:log|info|warn|error)|print|puts|echo)[ (]\s*(?:"[^"\\$\x60{}\n]*"|'[^'\\\n]*')\s*\)?;?)[ \t\r]*(?:\n|\z))*\s*\z`)

// FilesExecutedByAction returns the files of the workspace and of temporary folders whose code the case runs,
// with their text. The analysis finds the effects of this code only where its calls have literal arguments. Code
// that only prints literal texts is left out.
func (c *ActionCase) FilesExecutedByAction() (out []effect.WrittenFileText) {
	for i := 1; i < len(c.Effects); i++ {
		e, by := &c.Effects[i], &c.Effects[i-1]
		if e.Kind != effect.ReadFile || e.PathIsPattern || by.Kind != effect.Execute || by.Class != effect.UnknownClass && !compilesAndRuns(by) {
			continue
		}
		at := slices.IndexFunc(c.filesReadByAnalysis, func(t effect.WrittenFileText) bool { return t.Path == e.Path })
		switch {
		case !c.isHarmlessEffect(e) && !isTemporaryFile(e):
		case at >= 0 && literalPrintOnlyCodePattern().MatchString(c.filesReadByAnalysis[at].NewText):
		case at >= 0:
			out = append(out, c.filesReadByAnalysis[at])
		case compilesAndRuns(by) && c.executionContext.ReadScript != nil:
			if text, err := c.executionContext.ReadScript(e.Path); err == nil {
				out = append(out, effect.WrittenFileText{Path: e.Path, NewText: string(text)})
			}
		}
	}
	return out
}

// compilesAndRuns reports whether a program compiles and runs the source file that it is given.
func compilesAndRuns(e *effect.Effect) bool {
	return e.Program == "go" && len(e.Args) > 1 && e.Args[0] == "run" && strings.HasSuffix(e.Args[len(e.Args)-1], ".go")
}

// writtenText returns the text that a payload writes: its content and the new text of its edits. If it has
// neither, it returns the text of the other fields, since only the tool knows which it reads. Text in diff
// format is returned unchanged too: a file may look like a diff.
func writtenText(payload map[string]any) string {
	text, isText := payload["content"].(string)
	if v := payload["content"]; v != nil && !isText {
		data := canonjson.AppendValue(nil, v) // in JSON, as the tool would write a value that is not text
		text = string(data)
	}
	edited := newTextOfEdits(payload)
	if text == "" && edited == "" {
		text = unknownFieldsText(payload)
	}
	if _, come, ok := patch.RemovedAndAddedLines(text); ok {
		text += "\n" + come
	}
	if text == "" || edited == "" {
		return text + edited
	}
	return text + "\n" + edited
}

// unknownFieldsText returns the texts of payload fields with unknown names, one per line. It leaves out the
// fields that rules read by default, descriptions for people, edits, and text that an edit replaces.
func unknownFieldsText(payload map[string]any) string {
	left := map[string]any{}
	for name, v := range payload {
		switch {
		case slices.Contains(defaultTextVariantFields[:], name) || slices.Contains(oldTextFieldNames[:], name):
		case name == "edits" || name == "description" || name == "explanation" || name == "instructions":
		default:
			left[name] = v
		}
	}
	return joinPayloadTextsByNewline(left)
}
