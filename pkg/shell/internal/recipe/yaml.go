package recipe

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

const commandKeyAlternatives = `run|script|before_script|after_script|command|cmd|cmds|commands|args|entry|entrypoint|exec|shell|bash|sh|inlineScript|pwsh|powershell|install|before_install|after_success|postCreateCommand`

var commandKeyPattern = prefilter.Lazy(`^(\s*(?:-\s+)*)["']?(` + commandKeyAlternatives + `)["']?\s*:(?:\s+(.*))?$`)
var listItemPattern = prefilter.Lazy(`^(\s*)-\s+(.*)$`)
var flowValuePattern = prefilter.Lazy(`["']?\b(?:` + commandKeyAlternatives + `)["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\[[^\]]*\])`)
var blockScalarPattern = prefilter.Lazy(`^[|>][-+\d]*\s*(?:#.*)?$`)
var templateNamePattern = prefilter.Lazy(`^\s*(?:[\w-]+\.)*([\w-]*)`)
var secretPattern = prefilter.Lazy(`\bsecrets\b(?:\.|\[['"])?(\w*)`)
var secretSettingPattern = prefilter.Lazy(`(?m)^\s*["']?(\w+)["']?\s*:\s*["']?\$\{\{[^}\n]*\bsecrets\b[^}\n]*\}\}`)

// nonSecretNamePattern matches names of values that workflows often store as secrets but that are not secret.
var nonSecretNamePattern = prefilter.Lazy(`(?i)url|name|host|user|registry|region|path|email|account|project|bucket|_id$`)
var variablePattern = prefilter.Lazy(`\$\{?\w+`)

// commandKeys are the YAML keys whose values are commands, such as run and script.
var commandKeys = func() map[string]bool {
	set := map[string]bool{}
	for key := range strings.SplitSeq(commandKeyAlternatives, "|") {
		set[key] = true
	}
	return set
}()

// matchCommandKey returns the match of commandKeyPattern in a line, and tries it only if the line begins with one of the keys.
func matchCommandKey(line string) []string {
	key := strings.TrimLeft(line, " \t\n\f\r-\"'")
	n := 0
	for n < len(key) && ('a' <= key[n] && key[n] <= 'z' || 'A' <= key[n] && key[n] <= 'Z' || key[n] == '_') {
		n++
	}
	if !commandKeys[key[:n]] {
		return nil
	}
	return commandKeyPattern().FindStringSubmatch(line)
}

// mayHaveFlowValue reports whether flowValuePattern can match a line: a key before a colon, and a quote or bracket after it.
func mayHaveFlowValue(line string) bool {
	const space = " \t\n\f\r"
	for at := strings.IndexByte(line, ':'); at >= 0; {
		key := strings.TrimRight(line[:at], space)
		if n := len(key); n > 0 && (key[n-1] == '"' || key[n-1] == '\'') {
			key = key[:n-1]
		}
		value := strings.TrimLeft(line[at+1:], space)
		if value != "" && strings.IndexByte(`"'[`, value[0]) >= 0 && commandKeys[lastWord(key)] {
			return true
		}
		next := strings.IndexByte(line[at+1:], ':')
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

// lastWord returns the ASCII letters, digits and underscores at the end of a text.
func lastWord(s string) string {
	at := len(s)
	for at > 0 && (s[at-1] == '_' || '0' <= s[at-1] && s[at-1] <= '9' || 'a' <= s[at-1]|0x20 && s[at-1]|0x20 <= 'z') {
		at--
	}
	return s[at:]
}

// yamlSteps returns the commands below the command keys of workflows, pipelines, tasks and manifests. It works
// line by line, so it also handles invalid YAML.
func yamlSteps(text string) []Step {
	set := map[string]bool{}
	if strings.Contains(text, "${{") {
		for _, m := range secretSettingPattern().FindAllStringSubmatch(text, 64) {
			if !nonSecretNamePattern().MatchString(m[1]) {
				set[m[1]] = true
			}
		}
	}
	lines := strings.Split(text, "\n")
	var out []Step
	for i := 0; i < len(lines) && len(out) < maxSteps; i++ {
		m := matchCommandKey(lines[i])
		if m == nil {
			if mayHaveFlowValue(lines[i]) {
				for _, f := range flowValuePattern().FindAllStringSubmatch(lines[i], 16) {
					out = append(out, shellSteps(parseScalar(f[1]))...)
				}
			}
			continue
		}
		value := strings.TrimSpace(m[3])
		switch {
		case blockScalarPattern().MatchString(value):
			block, next := indentedBlock(lines, i, len(m[1]))
			out = append(out, shellSteps(block)...)
			i = next - 1
		case value == "" || value[0] == '#':
			items, next := parseList(lines, i, len(m[1]))
			if len(items) > 0 && isShell(items[0]) { // command: [sh, -c, …] of a manifest
				items = []string{quoteWords(items)}
			}
			out = append(out, shellSteps(items...)...)
			if next > i+1 {
				i = next - 1
			}
		case value[0] == '[' && isCommandListKey(m[2]):
			out = append(out, shellSteps(parseFlowList(value)...)...)
		default:
			out = append(out, shellSteps(parseScalar(value))...)
		}
	}
	for i := range out {
		out[i].Text = replaceTemplates(out[i].Text, set)
	}
	return out
}

// markSecretVariables adds the prefix SECRET_ to the names of variables that hold secrets, so that
// the analysis recognises them.
func markSecretVariables(text string, set map[string]bool) string {
	if len(set) == 0 {
		return text
	}
	return variablePattern().ReplaceAllStringFunc(text, func(v string) string {
		name := strings.TrimLeft(v, "${")
		if !set[name] {
			return v
		}
		return strings.TrimSuffix(v, name) + "SECRET_" + name
	})
}

// maxTemplateBytes is the maximum length of a workflow template, in bytes.
const maxTemplateBytes = 512

// replaceTemplates replaces the templates ${{ … }} of a workflow, which are filled in before a
// shell reads the text, by shell variables. Variables that stand for a secret, or that the workflow
// sets to one, get names with the prefix SECRET_.
func replaceTemplates(text string, set map[string]bool) string {
	text = markSecretVariables(text, set)
	if !strings.Contains(text, "${{") {
		return text
	}
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if strings.HasPrefix(text[i:], "${{") {
			if end := strings.Index(text[i:min(len(text), i+maxTemplateBytes)], "}}"); end > 0 {
				name := "${" + templateVariable(text[i+3:i+end]) + "}"
				if quote == '\'' {
					name = `'"` + name + `"'`
				}
				out.WriteString(name)
				i += end + 1
				continue
			}
		}
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			out.WriteByte(c)
			i++
			c = text[i]
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		}
		out.WriteByte(c)
	}
	return out.String()
}

// templateVariable returns the variable name that represents a template.
func templateVariable(template string) string {
	if m := secretPattern().FindStringSubmatch(template); m != nil && !nonSecretNamePattern().MatchString(m[1]) {
		return "SECRET_" + m[1]
	}
	return templateNamePattern().FindStringSubmatch(template)[1]
}

func indentWidth(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// indentedBlock returns the lines after line i that are indented more than n.
func indentedBlock(lines []string, i, n int) (text string, next int) {
	for next = i + 1; next < len(lines); next++ {
		if strings.TrimSpace(lines[next]) != "" && indentWidth(lines[next]) <= n {
			break
		}
	}
	return strings.Join(lines[i+1:next], "\n"), next
}

// parseList returns the items of a list after line i.
func parseList(lines []string, i, n int) (items []string, next int) {
	for next = i + 1; next < len(lines); next++ {
		m := listItemPattern().FindStringSubmatch(lines[next])
		if strings.TrimSpace(lines[next]) == "" {
			continue
		}
		if m == nil || len(m[1]) < n || matchCommandKey(lines[next]) != nil {
			break
		}
		value := strings.TrimSpace(m[2])
		if blockScalarPattern().MatchString(value) {
			block, after := indentedBlock(lines, next, len(m[1]))
			items, next = append(items, block), after-1
			continue
		}
		items = append(items, parseScalar(value))
	}
	return items, next
}

// parseScalar returns a one-line value: quoted, a list of words, or plain.
func parseScalar(value string) string {
	switch {
	case len(value) > 1 && value[0] == '"':
		if end := strings.LastIndexByte(value, '"'); end > 0 {
			return yamlUnescaper.Replace(value[1:end])
		}
	case len(value) > 1 && value[0] == '\'':
		if end := strings.LastIndexByte(value, '\''); end > 0 {
			return strings.ReplaceAll(value[1:end], "''", "'")
		}
	case strings.HasPrefix(value, "["):
		return quoteWords(parseFlowList(value))
	}
	value, _, _ = strings.Cut(value, " #")
	return value
}

// parseFlowList returns the items of a one-line list.
func parseFlowList(value string) []string {
	var words []string
	for _, w := range flowWordPattern().FindAllString(strings.Trim(value, "[] "), -1) {
		words = append(words, parseScalar(strings.TrimSpace(w)))
	}
	return words
}

// isCommandListKey reports whether a list below a key contains commands, and not the words of one command.
func isCommandListKey(key string) bool {
	switch key {
	case "script", "before_script", "after_script", "cmds", "commands":
		return true
	}
	return false
}

var flowWordPattern = prefilter.Lazy(`"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,"'\s][^,]*`)
var yamlUnescaper = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n", `\t`, "\t")

func isShell(word string) bool {
	base := word[strings.LastIndexByte(word, '/')+1:]
	return base == "sh" || base == "bash" || base == "ash" || base == "dash" || base == "zsh"
}

// taskSteps returns the commands of the goals of a Taskfile.
func taskSteps(text string, goals []string) []Step {
	if goals == nil {
		return yamlSteps(text)
	}
	lines := strings.Split(text, "\n")
	var out []Step
	for i, line := range lines {
		name, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && indentWidth(line) > 0 && slices.Contains(goals, strings.Trim(name, `"'`)) {
			block, _ := indentedBlock(lines, i, indentWidth(line))
			out = append(out, yamlSteps(block)...)
		}
	}
	return out
}
