package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
)

// content adds what the files that an action of a file tool writes would do
// when they run.
func (c *Case) content() {
	if c.written == nil || c.Action.Type == "execute_command" {
		return
	}
	text := writtenText(c.Action.Payload)
	if strings.TrimSpace(text) == "" {
		return
	}
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile || e.Pattern || slices.ContainsFunc(c.Effects[:i], func(o effect.Effect) bool { return o.Kind == e.Kind && o.Path == e.Path }) {
			continue
		}
		c.Effects = append(c.Effects, c.written(e.Path, text, &c.place)...)
	}
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

// writtenText returns the text that a payload writes: its content, and what its
// edits put in.
func writtenText(payload map[string]any) string {
	text, _ := payload["content"].(string)
	edited := editedText(payload)
	if text == "" || edited == "" {
		return text + edited
	}
	return text + "\n" + edited
}

// editedText returns what the edits of a payload put in, since the tool alone
// knows which of their fields it reads.
func editedText(payload map[string]any) string {
	var parts []string
	edits, _ := payload["edits"].([]any)
	for _, edit := range edits {
		fields, _ := edit.(map[string]any)
		for _, name := range [...]string{"content", "new_string", "new_text", "newText", "newString", "text"} {
			if text, ok := fields[name].(string); ok {
				parts = append(parts, text)
			}
		}
	}
	return strings.Join(parts, "\n")
}
