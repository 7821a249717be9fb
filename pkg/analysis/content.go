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

// content adds what the files that an action of a file tool writes would do
// when they run.
func (c *Case) content() {
	if c.written == nil || c.Action.Type == "execute_command" {
		return
	}
	for _, text := range c.writtenTexts(writtenText(c.Action.Payload)) {
		if strings.TrimSpace(text) != "" {
			c.addWrittenEffects(text)
		}
	}
}

// addWrittenEffects adds what the files that an action writes would do if they held a text.
func (c *Case) addWrittenEffects(text string) {
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile || e.Pattern || slices.ContainsFunc(c.Effects[:i], func(o effect.Effect) bool { return o.Kind == e.Kind && o.Path == e.Path }) {
			continue
		}
		c.Effects = append(c.Effects, c.written(e.Path, text, &c.place)...)
		c.Effects = append(c.Effects, servesShell(e.Path, text)...)
	}
}

// writtenTexts returns the text that an action writes, what it holds in base64, if the payload says that it is
// encoded so, or what the file holds that it copies.
func (c *Case) writtenTexts(text string) []string {
	texts := []string{text}
	for _, v := range c.Action.Payload {
		if encoding, ok := v.(string); ok && strings.EqualFold(encoding, "base64") {
			if data, ok := decode.Base64(strings.TrimSpace(text)); ok {
				texts = append(texts, data)
			}
			break
		}
	}
	if from := c.Action.Text("source"); from != "" && text == "" && c.place.Script != nil {
		if path, isPattern := c.place.Path(from, false); !isPattern {
			if data, err := c.place.Script(path); err == nil {
				texts = append(texts, string(data))
			}
		}
	}
	return texts
}

// Writes calls f with a case for each text that a command writes to a file: that of
// a tool which writes the same.
func (c *Case) Writes(f func(*Case)) {
	for _, w := range c.writes {
		payload := map[string]any{"path": w.Path, "content": w.Text}
		if w.Gone != "" {
			payload["old_string"] = w.Gone
		}
		one := &Case{
			Action:  &action.Action{Type: "write_file", Payload: payload},
			Effects: []effect.Effect{{Kind: effect.WriteFile, Path: w.Path}},
			place:   c.place,
		}
		f(one)
		c.unexamined(one.Unexamined)
	}
}

// Replaced returns the text in whose place an action of a tool for files puts another; "" if it says none.
func (c *Case) Replaced() string { return replacedText(c.Action.Payload) }

// Edited returns what a file holds once an action of a tool for files has written or edited it, given what it held.
func (c *Case) Edited(old string) (text string, known bool) { return edited(c.Action.Payload, old) }

// onlyPrints matches code that does nothing, or nothing but write texts that stand in it.
var onlyPrints = prefilter.Lazy(`\A(?:\s*(?:#[^\n]*|//[^\n]*|<\?php|\?>|['"]use strict['"];?|(?:console\.(?:log|info|warn|error)|print|puts|echo)[ (]\s*(?:"[^"\\$\x60{}\n]*"|'[^'\\\n]*')\s*\)?;?)[ \t\r]*(?:\n|\z))*\s*\z`)

// Runs returns the files of the workspace and of temporary folders whose code the case
// runs, and of which analysis knows only what literal calls show.
func (c *Case) Runs() (out []effect.Text) {
	for i := 1; i < len(c.Effects); i++ {
		e, by := &c.Effects[i], &c.Effects[i-1]
		if e.Kind != effect.ReadFile || e.Pattern || by.Kind != effect.Execute || by.Class != effect.UnknownClass && !compilesAndRuns(by) {
			continue
		}
		at := slices.IndexFunc(c.seen, func(t effect.Text) bool { return t.Path == e.Path })
		switch {
		case !c.harmless(e) && !temporary(e):
		case at >= 0 && onlyPrints().MatchString(c.seen[at].Text):
		case at >= 0:
			out = append(out, c.seen[at])
		case compilesAndRuns(by) && c.place.Script != nil:
			if text, err := c.place.Script(e.Path); err == nil {
				out = append(out, effect.Text{Path: e.Path, Text: string(text)})
			}
		}
	}
	return out
}

// compilesAndRuns reports whether a program runs the source file that it is given.
func compilesAndRuns(e *effect.Effect) bool {
	return e.Program == "go" && len(e.Args) > 1 && e.Args[0] == "run" && strings.HasSuffix(e.Args[len(e.Args)-1], ".go")
}

// writtenText returns the text that a payload writes: its content, and what its
// edits put in. If it has neither, it is what other fields say, since the tool alone
// knows what it reads. What is in the form of a diff is read as it is, too: a file may
// look like one.
func writtenText(payload map[string]any) string {
	text, isText := payload["content"].(string)
	if v := payload["content"]; v != nil && !isText {
		data := canonjson.AppendValue(nil, v) // as the tool would write it
		text = string(data)
	}
	edited := editedText(payload)
	if text == "" && edited == "" {
		text = otherText(payload)
	}
	if _, come, ok := patch.Parts(text); ok {
		text += "\n" + come
	}
	if text == "" || edited == "" {
		return text + edited
	}
	return text + "\n" + edited
}

// otherText returns the texts of fields that are neither known nor say what is replaced.
func otherText(payload map[string]any) string {
	left := map[string]any{}
	for name, v := range payload {
		switch {
		case slices.Contains(fields[:], name) || slices.Contains(replacedFields[:], name):
		case name == "edits" || name == "description" || name == "explanation" || name == "instructions":
		default:
			left[name] = v
		}
	}
	return textOf(left)
}
