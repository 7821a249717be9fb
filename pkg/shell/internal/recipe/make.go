package recipe

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// maxWork is the maximum number of bytes expanded and targets compared for one Makefile.
const maxWork = 1 << 20

// A makefile is a parsed Makefile.
type makefile struct {
	vars   map[string]string
	rules  []rule
	calls  []string // commands that run while the Makefile is parsed
	left   int      // remaining budget of maxWork
	within int      // nesting of functions that return file names
}

type rule struct {
	targets, needs []string
	lines          []string
}

// makeSteps returns the recipe lines for the goals of a Makefile and their prerequisites; without goals, those of
// all targets. Variables that depend on conditions are expanded twice, with the first and the last value.
func makeSteps(text string, goals []string) (steps []Step, whole bool) {
	m := parseMake(text, false)
	steps, whole = m.steps(goals)
	if conditional().MatchString(text) {
		other, wholeToo := parseMake(text, true).steps(goals)
		for _, step := range other {
			if !slices.Contains(steps[:min(len(steps), most)], step) {
				steps = append(steps, step)
			}
		}
		whole = whole && wholeToo
	}
	return steps, whole
}

var conditional = prefilter.Lazy(`(?m)^ *(?:ifn?eq|ifn?def)\b`)

func (m *makefile) steps(goals []string) (steps []Step, whole bool) {
	steps = shellSteps(m.run(goals)...)
	for i := 0; i < len(m.calls); i++ { // a call may add another one
		steps = append(steps, shellSteps(m.expand(m.calls[i], 0))...)
	}
	return steps, m.spend(0)
}

// spend takes n off the budget, and reports whether some is left.
func (m *makefile) spend(n int) bool {
	m.left -= n
	return m.left > 0
}

var justVariable = prefilter.Lazy(`\{\{\s*([\w-]+)\s*\}\}`)

// justMake converts a justfile to a Makefile.
func justMake(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "$", "$$"), "\n")
	for i, line := range lines {
		if name, value, ok := strings.Cut(line, ":="); ok {
			lines[i] = name + ":=" + strings.Trim(strings.TrimSpace(value), `"'`)
		}
		if line != "" && (line[0] == ' ' || line[0] == '\t') {
			lines[i] = "\t" + strings.TrimSpace(line)
		}
		lines[i] = justVariable().ReplaceAllString(lines[i], "$$($1)")
	}
	return strings.Join(lines, "\n")
}

// DefaultGoal returns the target that a Makefile or justfile builds by default; "" if it has none.
func DefaultGoal(format, text string) string {
	if format == "just" {
		text = justMake(text)
	}
	m := parseMake(text, false)
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

// A makeReader reads a Makefile line by line.
type makeReader struct {
	*makefile
	lines   []string // remaining lines
	current rule
	own     map[string]bool // variables that the Makefile sets
	depth   int             // nesting of conditions
	first   bool            // use the first value of each condition, not the last
}

// parseMake parses a Makefile. Where conditions choose between values, it keeps the first or the last value.
func parseMake(text string, first bool) *makefile {
	r := &makeReader{
		makefile: &makefile{
			vars: map[string]string{"MAKE": "make", "CC": "cc", "CXX": "c++", "AR": "ar", "RM": "rm -f", "LD": "ld", "SHELL": "sh", ".RECIPEPREFIX": "\t"},
			left: maxWork,
		},
		lines: joinLines(text), own: map[string]bool{}, first: first,
	}
	for len(r.lines) > 0 {
		line := r.lines[0]
		r.lines = r.lines[1:]
		if prefix := r.vars[".RECIPEPREFIX"]; prefix != "" && strings.HasPrefix(line, prefix[:1]) {
			r.current.lines = append(r.current.lines, line[1:])
		} else if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			r.line(line)
		}
	}
	r.keep()
	return r.makefile
}

// line parses a line that is not part of a recipe.
func (r *makeReader) line(line string) {
	r.calls = append(r.calls, shellCalls(line)...)
	if directive := directiveForm().FindStringSubmatch(line); directive != nil {
		switch directive[1] {
		case "define":
			r.define(directive[2])
		case "ifeq", "ifneq", "ifdef", "ifndef":
			r.depth++
		case "endif":
			r.depth--
		}
		return
	}
	if name, value, ok := makeVariable(line); ok {
		if line[strings.IndexByte(line, '=')-1] == '!' {
			r.calls = append(r.calls, value)
			value = "$(shell " + value + ")"
		}
		r.set(name, value, strings.Contains(line, "?="))
		return
	}
	targets, rest, ok := strings.Cut(line, ":")
	if !ok || strings.HasPrefix(line, "$(") && closing(line, 1) == len(line)-1 { // $(info …)
		return
	}
	r.keep()
	needs, inline, _ := strings.Cut(strings.TrimPrefix(rest, ":"), ";")
	r.current = rule{targets: strings.Fields(targets), needs: strings.Fields(strings.ReplaceAll(needs, "|", " "))}
	if inline != "" {
		r.current.lines = append(r.current.lines, inline)
	}
}

// directiveForm matches lines that are neither rules nor variables.
var directiveForm = prefilter.Lazy(`^(?:override\s+|export\s+)?(define|ifn?eq|ifn?def|else|endif|-?include|sinclude|vpath|undefine|unexport)\b\s*([^:?!+=\s]*)(?:$|[^:=\s]|\s*[:?!+]*=?\s*$)`)

// define parses a multi-line variable.
func (r *makeReader) define(name string) {
	n := slices.IndexFunc(r.lines, func(line string) bool { return strings.TrimSpace(line) == "endef" })
	if n < 0 {
		n = len(r.lines)
	}
	value := strings.Join(r.lines[:n], "\n")
	r.lines = r.lines[min(n+1, len(r.lines)):]
	r.calls = append(r.calls, shellCalls(value)...)
	r.set(name, value, false)
}

// set assigns a variable; a name that ends in + appends, and a default does not replace an existing value.
func (r *makeReader) set(name, value string, isDefault bool) {
	name, more := strings.CutSuffix(name, "+")
	name = strings.TrimSpace(name)
	old, isSet := r.vars[name]
	switch {
	case isSet && isDefault && !more, r.own[name] && r.first && r.depth > 0:
	case more:
		r.vars[name] = old + " " + value
	default:
		r.vars[name] = value
	}
	r.own[name] = true
}

// keep ends a rule.
func (r *makeReader) keep() {
	if len(r.current.lines) > 0 || len(r.current.targets) > 0 {
		r.rules = append(r.rules, r.current)
	}
}

// makeVariable parses NAME = value, with any of make's assignment operators; for +=, the + stays at the end of the
// name.
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

// run returns the lines that make runs for the goals.
func (m *makefile) run(goals []string) []string {
	var out []string
	if goals == nil {
		for i := range m.rules {
			out = append(out, m.recipe(&m.rules[i])...)
		}
		return out
	}
	byTarget, patterns := m.targets()
	done := map[string]bool{}
	var build func(goal string)
	build = func(goal string) {
		if done[goal] || !m.spend(1) {
			return
		}
		done[goal] = true
		rules := slices.Clone(byTarget[goal])
		for _, p := range patterns {
			if m.spend(1) && matches(p.target, goal) {
				rules = append(rules, p.rule)
			}
		}
		slices.Sort(rules)
		for _, i := range slices.Compact(rules) {
			r := &m.rules[i]
			for _, need := range r.needs {
				for _, n := range strings.Fields(m.expand(need, 0)) {
					build(n)
				}
			}
			out = append(out, m.recipe(r)...)
		}
	}
	for _, g := range goals {
		build(g)
	}
	return out
}

// A pattern is a target with a %, and the index of its rule.
type pattern struct {
	target string
	rule   int
}

// targets returns the indices of the rules by target, and the pattern targets.
func (m *makefile) targets() (rules map[string][]int, patterns []pattern) {
	rules = map[string][]int{}
	for i := range m.rules {
		for _, text := range m.rules[i].targets {
			for _, target := range strings.Fields(m.expand(text, 0)) {
				if strings.Contains(target, "%") {
					patterns = append(patterns, pattern{target, i})
				} else {
					rules[target] = append(rules[target], i)
				}
			}
		}
	}
	return rules, patterns
}

// matches reports whether a target with one % matches a goal.
func matches(target, goal string) bool {
	before, after, _ := strings.Cut(target, "%")
	return len(goal) > len(before)+len(after) && strings.HasPrefix(goal, before) && strings.HasSuffix(goal, after)
}

// recipe returns the commands of a rule.
func (m *makefile) recipe(r *rule) []string {
	var commands []string
	for _, line := range r.lines {
		for command := range strings.SplitSeq(m.expand(line, 0), "\n") { // a multi-line variable
			if rest, is := strings.CutPrefix(strings.TrimLeft(command, "@-+ \t"), "names"); is && (rest == "" || rest[0] == ' ') {
				command = unknown + rest // the program's name comes from a function
			}
			commands = append(commands, strings.TrimLeft(command, "\t @-+"))
		}
	}
	return commands
}

// expand replaces the variables that the Makefile sets. Automatic variables become placeholder file names; other
// variables are from the environment.
func (m *makefile) expand(text string, depth int) string {
	if !m.spend(1+len(text)) || depth > 8 || !strings.Contains(text, "$") || len(text) > 1<<16 {
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

// closing returns the index of the bracket that closes the one at i.
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

// value returns the value of $(name).
func (m *makefile) value(name string, depth int) string {
	if v, ok := m.vars[name]; ok {
		return m.expand(v, depth+1)
	}
	function, args, call := strings.Cut(name, " ")
	if tab := strings.IndexByte(function, '\t'); tab >= 0 {
		function, args, call = name[:tab], name[tab+1:], true
	}
	call = call && strings.Trim(function, "abcdefghijklmnopqrstuvwxyz-") == ""
	switch {
	case call && function == "shell" && m.within > 0:
		m.calls = append(m.calls, args)
		return "names"
	case call && function == "shell":
		return "$(" + m.expand(args, depth+1) + ")"
	case call:
		return m.function(function, args, depth)
	case len(name) == 2 && strings.IndexByte("@<^*?+%", name[0]) >= 0: // $(@D)
		return "target"
	case strings.Contains(name, ":"): // $(SRC:.c=.o)
		base, change, _ := strings.Cut(name, ":")
		if added := m.names(change, depth+1); added != "names" {
			return m.value(base, depth+1) + " " + added
		}
		return m.value(base, depth+1)
	case strings.Contains(name, "$"): // $($(X))
		if of := m.expand(name, depth+1); !strings.ContainsAny(of, " $(){}") {
			return m.value(of, depth+1)
		}
		return unknown
	case name == "" || strings.ContainsAny(name, " (){}"):
		return ""
	}
	if strings.Trim(name, "0123456789") == "" { // a parameter of a called function
		return unknown
	}
	return "${" + name + "}"
}

// shellCalls returns the texts of $(shell …) and ${shell …} in a value.
func shellCalls(value string) []string {
	if !strings.Contains(value, "shell") {
		return nil
	}
	var out []string
	for rest := strings.NewReplacer("${shell", "$(shell", "$(shell\t", "$(shell ", "${shell\t", "$(shell ").Replace(value); len(out) < 16; {
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
