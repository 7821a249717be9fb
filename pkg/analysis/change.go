package analysis

import "strings"

// replacedFields are the fields, of a payload or of one of its edits, that hold
// the text which an edit replaces.
var replacedFields = [...]string{"old_string", "old_str", "old_text", "oldText", "oldString", "old_content", "search", "search_string", "target_content", "TargetContent"}

// changeText returns what the edits of a payload change, as a patch says it: lines
// that go, behind a minus, then lines that come, behind a plus, without the blanks
// around them. A line that stays in the text, wherever, is in neither; nor are
// comments and imports, which check nothing. It is "" if the payload does not say
// what is replaced.
func changeText(payload map[string]any) string {
	gone := replacedText(payload)
	text, _ := payload["content"].(string)
	old, come, isDiff := parted(text)
	gone += old
	if gone == "" {
		return ""
	}
	if !isDiff {
		come = writtenText(payload)
	}
	var b strings.Builder
	without(&b, "-", gone, come)
	without(&b, "+", come, gone)
	return b.String()
}

// replacedText returns the text that the edits of a payload replace.
func replacedText(payload map[string]any) string {
	var gone strings.Builder
	keep := func(fields map[string]any) {
		for _, name := range replacedFields {
			if text, ok := fields[name].(string); ok && text != "" {
				gone.WriteString(text + "\n")
			}
		}
	}
	keep(payload)
	edits, _ := payload["edits"].([]any)
	for _, edit := range edits {
		if fields, ok := edit.(map[string]any); ok {
			keep(fields)
		}
	}
	return gone.String()
}

// without writes the lines of a text that are not in another, behind a sign.
func without(b *strings.Builder, sign, text, other string) {
	stay := map[string]bool{"": true}
	for line := range strings.Lines(other) {
		stay[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !stay[line] && !idle(line) {
			b.WriteString(sign + line + "\n")
		}
	}
}

// idle reports whether a line does nothing by itself: a comment or an import.
func idle(line string) bool {
	for _, start := range [...]string{"//", "/*", "*", "--", "<!--", "import ", "from ", "using ", "use "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "#[")
}
