package analysis

import (
	"maps"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/patch"
)

// An edit replaces old text by new text. A payload can hold the old or the new text in several
// fields, and only the tool knows which of them it reads, so an edit keeps the texts of all these
// fields.
type edit struct {
	oldTexts, newTexts []string
	replaceAll         bool // replaces every occurrence, not only the first
}

// oldTextFieldNames are the fields of a payload or of one of its edits that hold the text to replace;
// newTextFieldNames hold the new text.
var (
	oldTextFieldNames = [...]string{"old_string", "old_str", "old_text", "oldText", "oldString", "old_content", "search", "search_string", "target_content", "TargetContent"}
	newTextFieldNames = [...]string{"content", "new_string", "new_str", "new_text", "newText", "newString", "new_content", "replace", "replacement", "text"}
)

// parseEdit reads the fields of an edit.
func parseEdit(fields map[string]any) (e edit) {
	for _, name := range oldTextFieldNames {
		if text, ok := fields[name].(string); ok && text != "" {
			e.oldTexts = append(e.oldTexts, text)
		}
	}
	for _, name := range newTextFieldNames {
		if text, ok := fields[name].(string); ok {
			e.newTexts = append(e.newTexts, text)
		}
	}
	e.replaceAll = fields["replace_all"] == true
	return e
}

// parseEdits returns the edits in a payload's field that lists edits.
func parseEdits(payload map[string]any) (list []edit) {
	items, isList := payload["edits"].([]any)
	if !isList && payload["edits"] != nil {
		items = []any{payload["edits"]}
	}
	for _, item := range items {
		var e edit
		if fields, ok := item.(map[string]any); ok {
			e = parseEdit(fields)
			fields = maps.Clone(fields)
			maps.DeleteFunc(fields, func(name string, _ any) bool {
				return slices.Contains(oldTextFieldNames[:], name) || name == "old" || name == "before" || name == "find"
			})
			item = fields
		}
		if text := joinPayloadTextsByNewline(item); len(e.newTexts) == 0 && text != "" {
			e.newTexts = []string{text}
		}
		e.replaceAll = e.replaceAll || payload["replace_all"] == true
		list = append(list, e)
	}
	return list
}

// editsWithOldText returns the edits in a payload that contain the text to replace. A payload that
// itself has a field with the text to replace counts as an edit too.
func editsWithOldText(payload map[string]any) (list []edit) {
	list = parseEdits(payload)
	for _, name := range oldTextFieldNames {
		if payload[name] != nil {
			list = append(list, parseEdit(payload))
			break
		}
	}
	return slices.DeleteFunc(list, func(e edit) bool { return len(e.oldTexts) == 0 })
}

// newTextOfEdits returns the new text of a payload's edits.
func newTextOfEdits(payload map[string]any) string {
	var parts []string
	for _, e := range parseEdits(payload) {
		parts = append(parts, e.newTexts...)
	}
	return strings.Join(parts, "\n")
}

// oldTextOfEdits returns the old text of a payload's edits.
func oldTextOfEdits(payload map[string]any) string {
	var gone strings.Builder
	for _, e := range editsWithOldText(payload) {
		for _, text := range e.oldTexts {
			gone.WriteString(text + "\n")
		}
	}
	return gone.String()
}

// contentAfterEdits returns what a file holds once a payload has written or edited it.
func contentAfterEdits(payload map[string]any, old string) (text string, known bool) {
	list := editsWithOldText(payload)
	if len(list) == 0 && payload["edits"] == nil {
		text, known = payload["content"].(string)
		if _, _, isDiff := patch.RemovedAndAddedLines(text); isDiff {
			return "", false
		}
		return text, known
	}
	if slices.ContainsFunc(parseEdits(payload), func(e edit) bool { return len(e.oldTexts) == 0 }) {
		return "", false // an edit without old text cannot be applied
	}
	return applyEdits(list, old)
}

// applyEdits returns what a file holds once some edits are made; known is false if there are none, or one fails.
func applyEdits(list []edit, old string) (text string, known bool) {
	text = old
	for _, e := range list {
		if !strings.Contains(text, e.oldTexts[0]) {
			return "", false // the edit fails
		}
		come, n := "", 1
		if len(e.newTexts) > 0 {
			come = e.newTexts[0]
		}
		if e.replaceAll {
			n = -1
		}
		text, known = strings.Replace(text, e.oldTexts[0], come, n), true
	}
	return text, known
}

// diffOfEdits returns the edits of a payload like a patch: removed lines after a minus, then added lines after
// a plus, with surrounding blanks trimmed. Comments and imports are left out because they check nothing. It
// is "" if the payload does not name the text to replace.
func diffOfEdits(payload map[string]any) string {
	gone := oldTextOfEdits(payload)
	text, _ := payload["content"].(string)
	old, come, isDiff := patch.RemovedAndAddedLines(text)
	gone += old
	if gone == "" {
		return ""
	}
	if !isDiff {
		come = writtenText(payload)
	}
	var b strings.Builder
	write := func(sign string, lines []string) {
		for _, line := range lines {
			if !isCommentOrImport(line) {
				b.WriteString(sign + line + "\n")
			}
		}
	}
	went, came := patch.DifferentLines(gone, come)
	write("-", went)
	write("+", came)
	return b.String()
}

// isCommentOrImport reports whether a line does nothing by itself: a comment or an import.
func isCommentOrImport(line string) bool {
	for _, start := range [...]string{"//", "/*", "*", "--", "<!--", "import ", "from ", "using ", "use "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "#[")
}
