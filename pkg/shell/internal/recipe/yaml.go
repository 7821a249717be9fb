package recipe

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

const commandKeyAlternatives = `run|script|before_script|after_script|command|cmd|cmds|commands|args|entry|entrypoint|exec|shell|bash|sh|inlineScript|pwsh|powershell|install|before_install|after_success|postCreateCommand`

var commandKeyPattern = prefilter.LazyRegexp(`^(\s*(?:-\s+)*)["']?(` + commandKeyAlternatives + `)["']?\s*:(?:\s+(.*))?$`)
var listItemPattern = prefilter.LazyRegexp(`^(\s*)-\s+(.*)$`)
var yamlInlineCommandPattern = prefilter.LazyRegexp(`["']?\b(?:` + commandKeyAlternatives + `)["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\[[^\]]*\])`)
var blockScalarPattern = prefilter.LazyRegexp(`^[|>][-+\d]*\s*(?:#.*)?$`)
var templateLastIdentifierPattern = prefilter.LazyRegexp(`^\s*(?:[\w-]+\.)*([\w-]*)`)
var secretReferencePattern = prefilter.LazyRegexp(`\bsecrets\b(?:\.|\[['"])?(\w*)`)
var secretSettingPattern = prefilter.LazyRegexp(`(?m)^\s*["']?(\w+)["']?\s*:\s*["']?\$\{\{[^}\n]*\bsecrets\b[^}\n]*\}\}`)

// harmlessWorkflowSecretNamePattern matches names of values that workflows often store as secrets but that are not secret.
var harmlessWorkflowSecretNamePattern = prefilter.LazyRegexp(`(?i)url|name|host|user|registry|region|path|email|account|project|bucket|_id$`)
var variablePattern = prefilter.LazyRegexp(`\$\{?\w+`)

// commandKeys are the YAML keys whose values are commands, such as run and script.
var commandKeys = func() map[string]bool {
	set := map[string]bool{}
	for key := range strings.SplitSeq(commandKeyAlternatives, "|") {
		set[key] = true
	}
	return set
}()

// matchCommandKey returns the match of commandKeyPattern in a line. To save time, it runs the
// regular expression only if the line begins with one of commandKeys.
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

// mayHaveYAMLInlineCommand reports whether yamlInlineCommandPattern can match a line: a key before a colon, and a quote or bracket after it.
func mayHaveYAMLInlineCommand(line string) bool {
	const space = " \t\n\f\r"
	for at := strings.IndexByte(line, ':'); at >= 0; {
		key := strings.TrimRight(line[:at], space)
		if n := len(key); n > 0 && (key[n-1] == '"' || key[n-1] == '\'') {
			key = key[:n-1]
		}
		value := strings.TrimLeft(line[at+1:], space)
		if value != "" && strings.IndexByte(`"'[`, value[0]) >= 0 && commandKeys[trailingIdentifier(key)] {
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

// trailingIdentifier returns the ASCII letters, digits and underscores at the end of a text.
func trailingIdentifier(s string) string {
	at := len(s)
	for at > 0 && (s[at-1] == '_' || '0' <= s[at-1] && s[at-1] <= '9' || 'a' <= s[at-1]|0x20 && s[at-1]|0x20 <= 'z') {
		at--
	}
	return s[at:]
}

// yamlCodeBlocks returns the commands below the command keys of workflows, pipelines, tasks and manifests. It works
// line by line, so it also handles invalid YAML.
func yamlCodeBlocks(text string) []CodeBlock {
	set := map[string]bool{}
	if strings.Contains(text, "${{") {
		for _, m := range secretSettingPattern().FindAllStringSubmatch(text, 64) {
			if !harmlessWorkflowSecretNamePattern().MatchString(m[1]) {
				set[m[1]] = true
			}
		}
	}
	lines := strings.Split(text, "\n")
	var out []CodeBlock
	for i := 0; i < len(lines) && len(out) < maxCodeBlocks; i++ {
		m := matchCommandKey(lines[i])
		if m == nil {
			if mayHaveYAMLInlineCommand(lines[i]) {
				for _, f := range yamlInlineCommandPattern().FindAllStringSubmatch(lines[i], 16) {
					out = append(out, shellCodeBlocks(parseScalar(f[1]))...)
				}
			}
			continue
		}
		value := strings.TrimSpace(m[3])
		switch {
		case blockScalarPattern().MatchString(value):
			block, next := yamlIndentedBlock(lines, i, len(m[1]))
			out = append(out, shellCodeBlocks(block)...)
			i = next - 1
		case value == "" || value[0] == '#':
			items, next := parseYAMLList(lines, i, len(m[1]))
			if len(items) > 0 && isShellProgram(items[0]) { // command: [sh, -c, …] of a manifest
				items = []string{quoteWords(items)}
			}
			out = append(out, shellCodeBlocks(items...)...)
			if next > i+1 {
				i = next - 1
			}
		case value[0] == '[' && isKeyOfCommandList(m[2]):
			out = append(out, shellCodeBlocks(parseFlowList(value)...)...)
		default:
			out = append(out, shellCodeBlocks(parseScalar(value))...)
		}
	}
	for i := range out {
		out[i].Text = replaceTemplatesWithShellVariables(out[i].Text, set)
	}
	return out
}

// addSecretPrefixToVariables adds the prefix SECRET_ to the names of variables that hold secrets, so that
// the analysis recognises them.
func addSecretPrefixToVariables(text string, secretNames map[string]bool) string {
	if len(secretNames) == 0 {
		return text
	}
	return variablePattern().ReplaceAllStringFunc(text, func(v string) string {
		name := strings.TrimLeft(v, "${")
		if !secretNames[name] {
			return v
		}
		return strings.TrimSuffix(v, name) + "SECRET_" + name
	})
}

// maxWorkflowTemplateBytes is the maximum length of a workflow template, in bytes.
const maxWorkflowTemplateBytes = 512

// replaceTemplatesWithShellVariables replaces the templates ${{ … }} of a workflow, which are filled in before a
// shell reads the text, by shell variables. Variables that stand for a secret, or that the workflow
// sets to one, get names with the prefix SECRET_.
func replaceTemplatesWithShellVariables(text string, secretNames map[string]bool) string {
	text = addSecretPrefixToVariables(text, secretNames)
	if !strings.Contains(text, "${{") {
		return text
	}
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if strings.HasPrefix(text[i:], "${{") {
			if end := strings.Index(text[i:min(len(text), i+maxWorkflowTemplateBytes)], "}}"); end > 0 {
				name := "${" + templateReplacementVariableName(text[i+3:i+end]) + "}"
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

// templateReplacementVariableName returns the variable name that represents a template.
func templateReplacementVariableName(template string) string {
	if m := secretReferencePattern().FindStringSubmatch(template); m != nil && !harmlessWorkflowSecretNamePattern().MatchString(m[1]) {
		return "SECRET_" + m[1]
	}
	return templateLastIdentifierPattern().FindStringSubmatch(template)[1]
}

func indentWidth(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// yamlIndentedBlock returns the lines after parentLine that are indented more than parentIndent,
// and the index of the next line.
func yamlIndentedBlock(lines []string, parentLine, parentIndent int) (text string, nextLine int) {
	for nextLine = parentLine + 1; nextLine < len(lines); nextLine++ {
		if strings.TrimSpace(lines[nextLine]) != "" && indentWidth(lines[nextLine]) <= parentIndent {
			break
		}
	}
	return strings.Join(lines[parentLine+1:nextLine], "\n"), nextLine
}

// parseYAMLList returns the items of a list that follows parentLine, and the index of the next
// line.
func parseYAMLList(lines []string, parentLine, parentIndent int) (items []string, nextLine int) {
	for nextLine = parentLine + 1; nextLine < len(lines); nextLine++ {
		m := listItemPattern().FindStringSubmatch(lines[nextLine])
		if strings.TrimSpace(lines[nextLine]) == "" {
			continue
		}
		if m == nil || len(m[1]) < parentIndent || matchCommandKey(lines[nextLine]) != nil {
			break
		}
		value := strings.TrimSpace(m[2])
		if blockScalarPattern().MatchString(value) {
			block, after := yamlIndentedBlock(lines, nextLine, len(m[1]))
			items, nextLine = append(items, block), after-1
			continue
		}
		items = append(items, parseScalar(value))
	}
	return items, nextLine
}

// parseScalar returns the text of a one-line YAML value. It removes quotes and comments, and joins
// the items of a flow list [a, b] to one line of quoted shell words.
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
	for _, w := range yamlFlowListItemPattern().FindAllString(strings.Trim(value, "[] "), -1) {
		words = append(words, parseScalar(strings.TrimSpace(w)))
	}
	return words
}

// isKeyOfCommandList reports whether a list below a key contains commands, and not the words of one command.
func isKeyOfCommandList(key string) bool {
	switch key {
	case "script", "before_script", "after_script", "cmds", "commands":
		return true
	}
	return false
}

var yamlFlowListItemPattern = prefilter.LazyRegexp(`"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,"'\s][^,]*`)
var yamlUnescaper = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n", `\t`, "\t")

func isShellProgram(programNameOrPath string) bool {
	base := programNameOrPath[strings.LastIndexByte(programNameOrPath, '/')+1:]
	return base == "sh" || base == "bash" || base == "ash" || base == "dash" || base == "zsh"
}

// taskfileCodeBlocks returns the commands of the goals of a Taskfile.
func taskfileCodeBlocks(text string, goals []string) []CodeBlock {
	if goals == nil {
		return yamlCodeBlocks(text)
	}
	lines := strings.Split(text, "\n")
	var out []CodeBlock
	for i, line := range lines {
		name, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && indentWidth(line) > 0 && slices.Contains(goals, strings.Trim(name, `"'`)) {
			block, _ := yamlIndentedBlock(lines, i, indentWidth(line))
			out = append(out, yamlCodeBlocks(block)...)
		}
	}
	return out
}
