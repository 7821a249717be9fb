package recipe

import (
	"maps"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// maxMakeListWords is the maximum number of words in a list that make iterates over.
const maxMakeListWords = 64

// evalFunction returns the value of a make function. Functions that list files return a placeholder name; if a
// condition is unknown, the result has all possible values.
func (m *makefile) evalFunction(name, args string, depth int) string {
	parts := splitArguments(args)
	arg := func(i int) string {
		if i < len(parts) {
			return m.expand(parts[i], depth+1)
		}
		return ""
	}
	words := func(i int) []string {
		list := strings.Fields(arg(i))
		return list[:min(len(list), maxMakeListWords)]
	}
	switch name {
	case "subst":
		return strings.ReplaceAll(arg(2), arg(0), arg(1))
	case "strip":
		return strings.Join(strings.Fields(arg(0)), " ")
	case "addprefix":
		return mapWords(words(1), func(w string) string { return arg(0) + w })
	case "addsuffix":
		return mapWords(words(1), func(w string) string { return w + arg(0) })
	case "join":
		return evalMakeJoinFunction(words(0), words(1))
	case "firstword", "lastword", "word":
		return evalMakeWordFunction(name, arg(0), words(len(parts)-1))
	case "sort":
		return strings.Join(words(0), " ")
	case "value":
		return m.vars[arg(0)]
	case "call":
		return m.expandCall(parts, depth)
	case "foreach":
		return m.expandForEach(parts, depth)
	case "if":
		return m.expandConditional(arg(0), parts[1:], depth)
	case "or", "and":
		return m.expandConditional("$", parts, depth)
	case "info", "warning", "error", "eval", "file":
		m.resultDiscardingMakeFunctionDepth++ // the command in $(shell …) runs, even if its output is not used
		given := strings.TrimSpace(m.expand(args, depth+1))
		m.resultDiscardingMakeFunctionDepth--
		if file, _, _ := strings.Cut(given, ","); name == "file" && strings.HasPrefix(file, ">") {
			m.parseTimeCommands = append(m.parseTimeCommands, ": "+file)
		}
		return ""
	case "let", "intcmp":
		given := m.expand(args, depth+1)
		for _, bound := range strings.Fields(arg(0)) {
			given = strings.ReplaceAll(given, "${"+bound+"}", unknownPlaceholder)
		}
		return unknownTextContaining(given)
	case "guile": // guile runs Scheme code inside make
		return "$(" + unknownPlaceholder + ")"
	}
	return m.fileNamesPlaceholder(args, depth)
}

// unknownPlaceholder represents an unknown text in a recipe.
const unknownPlaceholder = "${" + abstract.UnknownPlaceholderVariable + "}"

// unknownTextContaining returns an unknown text that may contain parts of a given text. If these parts
// may run a command, the result contains a command substitution.
func unknownTextContaining(knownText string) string {
	plain := strings.ReplaceAll(knownText, "${", "")
	switch {
	case strings.Count(plain, "(") != strings.Count(plain, ")"):
		return "$(" + unknownPlaceholder + ")"
	case strings.ContainsAny(plain, "$`"):
		return "$(" + unknownPlaceholder + ") " + knownText
	}
	return unknownPlaceholder + " " + knownText
}

// fileNamesPlaceholder returns a placeholder for the result of a function that mostly returns file names. Commands in its
// arguments are recorded separately; if an argument may contain shell code, the rest of the line is unknown.
func (m *makefile) fileNamesPlaceholder(args string, expansionDepth int) string {
	m.resultDiscardingMakeFunctionDepth++
	given := m.expand(args, expansionDepth+1)
	m.resultDiscardingMakeFunctionDepth--
	if strings.ContainsAny(strings.ReplaceAll(given, "${", ""), "$`;&|<>()\n") {
		return unknownTextContaining(given)
	}
	return "names"
}

// splitArguments splits the arguments of a function at commas.
func splitArguments(args string) []string {
	var out []string
	depth, start := 0, 0
	for i := range len(args) {
		switch args[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, args[start:i])
				start = i + 1
			}
		}
	}
	return append(out, args[start:])
}

func mapWords(words []string, change func(string) string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = change(w)
	}
	return strings.Join(out, " ")
}

func evalMakeJoinFunction(a, b []string) string {
	out := make([]string, max(len(a), len(b)))
	for i := range out {
		if i < len(a) {
			out[i] = a[i]
		}
		if i < len(b) {
			out[i] += b[i]
		}
	}
	return strings.Join(out, " ")
}

// evalMakeWordFunction returns one word of a list.
func evalMakeWordFunction(functionName, indexText string, words []string) string {
	i := 0
	switch n, err := strconv.Atoi(strings.TrimSpace(indexText)); {
	case functionName == "lastword":
		i = len(words) - 1
	case functionName == "word" && err == nil:
		i = n - 1
	}
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

// expandCall returns the value of $(call NAME,…), with the arguments in $(1) and so on.
func (m *makefile) expandCall(parts []string, depth int) string {
	set := map[string]string{}
	for i, part := range parts {
		set[strconv.Itoa(i)] = m.expand(part, depth+1)
	}
	return m.expandWithVariables(set, m.vars[strings.TrimSpace(set["0"])], depth)
}

// expandForEach returns the expansion of a text for each word of a list.
func (m *makefile) expandForEach(parts []string, depth int) string {
	if len(parts) < 3 {
		return ""
	}
	name, list := strings.TrimSpace(parts[0]), strings.Fields(m.expand(parts[1], depth+1))
	var out []string
	for _, w := range list[:min(len(list), maxMakeListWords)] {
		out = append(out, m.expandWithVariables(map[string]string{name: w}, strings.Join(parts[2:], ","), depth))
	}
	return strings.Join(out, " ")
}

// expandWithVariables expands a text while some variables have other values.
func (m *makefile) expandWithVariables(variables map[string]string, text string, depth int) string {
	before := m.vars
	if !m.spendBudget(len(before)) {
		return ""
	}
	m.vars = maps.Clone(before)
	maps.Copy(m.vars, variables)
	out := m.expand(text, depth+1)
	m.vars = before
	return out
}

// expandConditional returns the first text if a condition holds, the second if it does not, and all texts if the condition is
// unknown.
func (m *makefile) expandConditional(condition string, branches []string, depth int) string {
	if !strings.Contains(condition, "$") && len(branches) > 0 {
		if strings.TrimSpace(condition) == "" {
			branches = branches[1:]
		}
		branches = branches[:min(len(branches), 1)]
	}
	out := make([]string, len(branches))
	for i, t := range branches {
		out[i] = m.expand(t, depth+1)
	}
	return strings.Join(out, " ")
}
