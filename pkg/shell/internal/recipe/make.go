package recipe

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A makefile is what a Makefile says, as far as it is of note.
type makefile struct {
	vars  map[string]string
	rules []rule
}

type rule struct {
	targets, needs []string
	lines          []string
}

// makeSteps returns the recipes of the goals of a Makefile and of all that they
// need, one step a line; without goals, those of all targets.
func makeSteps(text string, goals []string) []Step {
	m := parseMake(text)
	out := shellSteps(m.run(goals)...)
	for _, name := range slices.Sorted(maps.Keys(m.vars)) { // := $(shell …) runs as the Makefile is read
		for _, call := range shellCalls(m.vars[name]) {
			out = append(out, shellSteps(m.expand(call, 0))...)
		}
	}
	return out
}

var justVariable = regexp.MustCompile(`\{\{\s*([\w-]+)\s*\}\}`)

// justMake writes a justfile as a Makefile.
func justMake(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "$", "$$"), "\n")
	for i, line := range lines {
		if name, value, ok := strings.Cut(line, ":="); ok {
			lines[i] = name + ":=" + strings.Trim(strings.TrimSpace(value), `"'`)
		}
		if line != "" && (line[0] == ' ' || line[0] == '\t') {
			lines[i] = "\t" + strings.TrimSpace(line)
		}
		lines[i] = justVariable.ReplaceAllString(lines[i], "$$($1)")
	}
	return strings.Join(lines, "\n")
}

// DefaultGoal returns the target that a recipe in the form of a Makefile builds
// when it is given none; "" if it has none.
func DefaultGoal(format, text string) string {
	if format == "just" {
		text = justMake(text)
	}
	m := parseMake(text)
	if goal := m.vars[".DEFAULT_GOAL"]; goal != "" {
		return goal
	}
	for _, r := range m.rules {
		if len(r.targets) > 0 && !strings.HasPrefix(r.targets[0], ".") && !strings.Contains(r.targets[0], "%") {
			return r.targets[0]
		}
	}
	return ""
}

func parseMake(text string) *makefile {
	m := &makefile{vars: map[string]string{"MAKE": "make", "CC": "cc", "CXX": "c++", "AR": "ar", "RM": "rm -f", "LD": "ld", "SHELL": "sh"}}
	current := rule{}
	keep := func() {
		if len(current.lines) > 0 || len(current.targets) > 0 {
			m.rules = append(m.rules, current)
		}
	}
	for _, line := range joinLines(text) {
		if strings.HasPrefix(line, "\t") {
			current.lines = append(current.lines, line)
			continue
		}
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if name, value, ok := makeVariable(trimmed); ok {
			if strings.HasSuffix(name, "+") {
				name = strings.TrimSpace(name[:len(name)-1])
				value = m.vars[name] + " " + value
			}
			if _, set := m.vars[name]; !set || !strings.Contains(line, "?=") {
				m.vars[name] = value
			}
			continue
		}
		targets, rest, ok := strings.Cut(trimmed, ":")
		if !ok {
			continue
		}
		keep()
		rest = strings.TrimPrefix(rest, ":")
		needs, inline, _ := strings.Cut(rest, ";")
		current = rule{targets: strings.Fields(targets), needs: strings.Fields(strings.ReplaceAll(needs, "|", " "))}
		if inline != "" {
			current.lines = append(current.lines, inline)
		}
	}
	keep()
	return m
}

// makeVariable reads NAME = value, with any of make's signs; += stays at the
// end of the name.
func makeVariable(line string) (name, value string, ok bool) {
	i := strings.IndexByte(line, '=')
	if i <= 0 {
		return "", "", false
	}
	name = strings.TrimSpace(strings.TrimRight(line[:i], ":?!"))
	name = strings.TrimPrefix(strings.TrimPrefix(name, "export "), "override ")
	if strings.ContainsAny(name, " \t:#$") && !strings.HasSuffix(name, "+") {
		return "", "", false
	}
	return name, strings.TrimSpace(line[i+1:]), name != "" && !strings.ContainsAny(strings.TrimRight(name, "+ "), " \t:")
}

// run returns the lines that make would run for goals.
func (m *makefile) run(goals []string) []string {
	var out []string
	done := map[string]bool{}
	var build func(goal string, depth int)
	build = func(goal string, depth int) {
		if done[goal] || depth > 32 {
			return
		}
		done[goal] = true
		for i := range m.rules {
			r := &m.rules[i]
			if !slices.ContainsFunc(r.targets, func(t string) bool { return matches(m.expand(t, 0), goal) }) {
				continue
			}
			for _, need := range r.needs {
				for _, n := range strings.Fields(m.expand(need, 0)) {
					build(n, depth+1)
				}
			}
			out = append(out, m.recipe(r)...)
		}
	}
	if goals == nil {
		for i := range m.rules {
			out = append(out, m.recipe(&m.rules[i])...)
		}
		return out
	}
	for _, g := range goals {
		build(g, 0)
	}
	return out
}

// matches reports whether a target, which may hold one %, is that of a goal.
func matches(target, goal string) bool {
	before, after, pattern := strings.Cut(target, "%")
	if !pattern {
		return slices.Contains(strings.Fields(target), goal)
	}
	return len(goal) > len(before)+len(after) && strings.HasPrefix(goal, before) && strings.HasSuffix(goal, after)
}

func (m *makefile) recipe(r *rule) []string {
	var lines []string
	for _, line := range r.lines {
		lines = append(lines, strings.TrimLeft(m.expand(line, 0), "\t @-+"))
	}
	return lines
}

// expand puts the variables that the Makefile sets in. Automatic variables are
// names in the folder; what else it asks for is a variable of the environment.
func (m *makefile) expand(text string, depth int) string {
	if depth > 8 || !strings.Contains(text, "$") || len(text) > 1<<16 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() < 1<<16; i++ {
		if text[i] != '$' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; {
		case c == '$':
			b.WriteByte('$')
		case strings.IndexByte("@<^*?+%|", c) >= 0:
			b.WriteString("target")
		case c == '(' || c == '{':
			end := closing(text, i)
			name := text[i+1 : end]
			i = end
			b.WriteString(m.value(name, depth))
		default:
			b.WriteString(m.value(string(c), depth))
		}
	}
	return b.String()
}

// closing returns where the bracket that opens at i closes.
func closing(text string, i int) int {
	depth := 0
	for j := i; j < len(text); j++ {
		switch text[j] {
		case '(', '{':
			depth++
		case ')', '}':
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(text) - 1
}

// value returns what $(name) stands for.
func (m *makefile) value(name string, depth int) string {
	if v, ok := m.vars[name]; ok {
		return m.expand(v, depth+1)
	}
	function, args, call := strings.Cut(name, " ")
	switch {
	case call && function == "shell":
		return "$(" + m.expand(args, depth+1) + ")"
	case call: // wildcard, patsubst, …: names in the folder
		return "names"
	case len(name) == 2 && strings.IndexByte("@<^*?+%", name[0]) >= 0: // $(@D)
		return "target"
	case strings.Contains(name, ":"): // $(SRC:.c=.o)
		base, _, _ := strings.Cut(name, ":")
		return m.value(base, depth+1)
	case name == "" || strings.ContainsAny(name, " $(){}"):
		return ""
	}
	return "${" + name + "}"
}

// shellCalls returns the texts of $(shell …) in a value.
func shellCalls(value string) []string {
	var out []string
	for rest := value; len(out) < 16; {
		_, after, ok := strings.Cut(rest, "$(shell ")
		if !ok {
			return out
		}
		call := "(" + after
		out = append(out, call[1:max(1, closing(call, 0))])
		rest = after
	}
	return out
}
