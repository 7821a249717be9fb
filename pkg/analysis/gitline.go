package analysis

import (
	"slices"
	"strings"
)

// gitLine returns the command line of git that a tool stands for, if that does more than the
// tool's name says: git takes a value that begins with a dash for an option, and runs what an
// address with two colons names. All else is judged by the name and the fields.
func (c *Case) gitLine(sub string) (line string, more bool) {
	options, operands := []string{}, []string{}
	add := func(field, text string) {
		switch {
		case text == "":
		case prose(field):
			if option(text) && !strings.ContainsAny(text, " \t\n") {
				options, more = append(options, text), true
			}
		case option(text):
			more = true
			if first, _, _ := strings.Cut(text, " "); strings.Contains(first, "=") {
				options = append(options, text)
			} else {
				options = append(options, strings.Fields(text)...)
			}
		case field == "mode" && resetModes[text]:
			options, more = append(options, "--"+text), more || text != "soft" && text != "mixed"
		case field == "repo" || field == "repo_path" || field == "repository":
		default:
			more = more || strings.Contains(text, "::") && sub != "show" && sub != "log" && sub != "diff"
			operands = append(operands, text)
		}
	}
	fields := make([]string, 0, len(c.Action.Payload))
	for field := range c.Action.Payload {
		fields = append(fields, field)
	}
	slices.SortFunc(fields, func(a, b string) int {
		if verbs := slices.Contains(gitVerbs[:], a); verbs != slices.Contains(gitVerbs[:], b) {
			if verbs {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, field := range fields {
		switch v := c.Action.Payload[field].(type) {
		case bool:
			if v {
				options = append(options, "--"+strings.ReplaceAll(field, "_", "-"))
			}
		case string:
			add(field, v)
		case []any:
			for _, item := range v[:min(len(v), maxLeaves)] {
				if text, ok := item.(string); ok {
					add(field, text)
				}
			}
		}
	}
	if sub == "remote" && len(operands) > 0 && !slices.Contains([]string{"list", "show", "get-url"}, operands[0]) {
		more = true
	}
	var b strings.Builder
	b.WriteString("git")
	for _, field := range [...]string{"repo", "repo_path", "repository"} {
		if text := c.Action.Text(field); text != "" && !option(text) {
			b.WriteString(" -C " + quoteWord(text))
			break
		}
	}
	words := append(gitWords(sub), operands[:min(len(operands), gitVerbCount(fields))]...)
	words = append(words, options...)
	for _, word := range append(words, operands[min(len(operands), gitVerbCount(fields)):]...) {
		b.WriteString(" " + quoteWord(word))
	}
	return b.String(), more
}

// gitVerbs are the fields that name a subcommand of the subcommand, which comes first.
var gitVerbs = [...]string{"action", "operation", "subcommand"}

func gitVerbCount(fields []string) (n int) {
	for _, field := range fields {
		if slices.Contains(gitVerbs[:], field) {
			n++
		}
	}
	return n
}

// gitWords returns the words of a subcommand by the name of its tool.
func gitWords(sub string) []string {
	switch sub {
	case "diff-staged":
		return []string{"diff", "--staged"}
	case "diff-unstaged":
		return []string{"diff"}
	case "create-branch", "list-branches":
		return []string{"branch"}
	case "list-tags":
		return []string{"tag"}
	}
	return []string{sub}
}

// resetModes are what a field "mode" says of git reset.
var resetModes = map[string]bool{"hard": true, "soft": true, "mixed": true, "keep": true, "merge": true}

// option reports whether git takes a value for an option.
func option(text string) bool { return len(text) > 1 && text[0] == '-' && text[1] != ' ' }

// prose reports whether a field holds text for people.
func prose(field string) bool {
	switch field {
	case "message", "body", "title", "description", "comment", "notes":
		return true
	}
	return false
}
