package recipe

import (
	"maps"
	"strconv"
	"strings"
)

// mostWords bounds the words of a list that make goes through.
const mostWords = 64

// function returns what a function of make yields. One that asks for files yields
// names in the folder; where what decides is not known, it is all that it may be.
func (m *makefile) function(name, args string, depth int) string {
	parts := splitArguments(args)
	arg := func(i int) string {
		if i < len(parts) {
			return m.expand(parts[i], depth+1)
		}
		return ""
	}
	words := func(i int) []string {
		list := strings.Fields(arg(i))
		return list[:min(len(list), mostWords)]
	}
	switch name {
	case "subst":
		return strings.ReplaceAll(arg(2), arg(0), arg(1))
	case "strip":
		return strings.Join(strings.Fields(arg(0)), " ")
	case "addprefix":
		return eachWord(words(1), func(w string) string { return arg(0) + w })
	case "addsuffix":
		return eachWord(words(1), func(w string) string { return w + arg(0) })
	case "join":
		return joinWords(words(0), words(1))
	case "firstword", "lastword", "word":
		return chosen(name, arg(0), words(len(parts)-1))
	case "sort":
		return strings.Join(words(0), " ")
	case "value":
		return m.vars[arg(0)]
	case "call":
		return m.called(parts, depth)
	case "foreach":
		return m.forEach(parts, depth)
	case "if":
		return m.either(arg(0), parts[1:], depth)
	case "or", "and":
		return m.either("$", parts, depth)
	case "info", "warning", "error", "eval", "file":
		return ""
	}
	return "names"
}

// splitArguments splits the arguments of a function at their commas.
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

func eachWord(words []string, change func(string) string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = change(w)
	}
	return strings.Join(out, " ")
}

func joinWords(a, b []string) string {
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

// chosen returns one word of a list.
func chosen(function, at string, words []string) string {
	i := 0
	switch n, err := strconv.Atoi(strings.TrimSpace(at)); {
	case function == "lastword":
		i = len(words) - 1
	case function == "word" && err == nil:
		i = n - 1
	}
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

// called returns what a variable yields as a function of the arguments behind it.
func (m *makefile) called(parts []string, depth int) string {
	set := map[string]string{}
	for i, part := range parts {
		set[strconv.Itoa(i)] = m.expand(part, depth+1)
	}
	return m.with(set, m.vars[strings.TrimSpace(set["0"])], depth)
}

// forEach returns a text for each word of a list.
func (m *makefile) forEach(parts []string, depth int) string {
	if len(parts) < 3 {
		return ""
	}
	name, list := strings.TrimSpace(parts[0]), strings.Fields(m.expand(parts[1], depth+1))
	var out []string
	for _, w := range list[:min(len(list), mostWords)] {
		out = append(out, m.with(map[string]string{name: w}, strings.Join(parts[2:], ","), depth))
	}
	return strings.Join(out, " ")
}

// with expands a text while some variables have other values.
func (m *makefile) with(set map[string]string, text string, depth int) string {
	before := m.vars
	if !m.spend(len(before)) {
		return ""
	}
	m.vars = maps.Clone(before)
	maps.Copy(m.vars, set)
	out := m.expand(text, depth+1)
	m.vars = before
	return out
}

// either returns the first of some texts if a condition holds, the second if it does
// not, and all of them if it depends on what is not known.
func (m *makefile) either(condition string, texts []string, depth int) string {
	if !strings.Contains(condition, "$") && len(texts) > 0 {
		if strings.TrimSpace(condition) == "" {
			texts = texts[1:]
		}
		texts = texts[:min(len(texts), 1)]
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = m.expand(t, depth+1)
	}
	return strings.Join(out, " ")
}
