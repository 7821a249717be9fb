package recipe

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// makefileExpansionBudget is the maximum number of bytes expanded and targets compared for one Makefile.
const makefileExpansionBudget = 1 << 20

// A makefile is a parsed Makefile.
type makefile struct {
	vars                              map[string]string
	rules                             []makeRule
	parseTimeCommands                 []string // commands that run while the Makefile is parsed
	remainingExpansionBudget          int      // remaining budget of makefileExpansionBudget
	resultDiscardingMakeFunctionDepth int      // nesting of make functions whose result is discarded or replaced by a placeholder
}

type makeRule struct {
	targets, prerequisites []string
	recipeLines            []string
}

// makefileCodeBlocks returns the recipe lines for the goals of a Makefile and their prerequisites; without goals, those of
// all targets. Variables that depend on conditions are expanded twice, with the first and the last value.
func makefileCodeBlocks(text string, goals []string) (blocks []CodeBlock, isComplete bool) {
	m := parseMakefile(text, false)
	blocks, isComplete = m.codeBlocks(goals)
	if makeConditionalPattern().MatchString(text) {
		other, wholeToo := parseMakefile(text, true).codeBlocks(goals)
		for _, step := range other {
			if !slices.Contains(blocks[:min(len(blocks), maxCodeBlocks)], step) {
				blocks = append(blocks, step)
			}
		}
		isComplete = isComplete && wholeToo
	}
	return blocks, isComplete
}

var makeConditionalPattern = prefilter.LazyRegexp(`(?m)^ *(?:ifn?eq|ifn?def)\b`)

func (m *makefile) codeBlocks(goals []string) (blocks []CodeBlock, isComplete bool) {
	blocks = shellCodeBlocks(m.goalCommands(goals)...)
	for i := 0; i < len(m.parseTimeCommands); i++ { // expand may append another command
		blocks = append(blocks, shellCodeBlocks(m.expand(m.parseTimeCommands[i], 0))...)
	}
	return blocks, m.spendBudget(0)
}

// spendBudget takes n off the budget, and reports whether some is left.
func (m *makefile) spendBudget(n int) bool {
	m.remainingExpansionBudget -= n
	return m.remainingExpansionBudget > 0
}

var justVariablePattern = prefilter.LazyRegexp(`\{\{\s*([\w-]+)\s*\}\}`)

// justfileToMakefile converts a justfile to a Makefile.
func justfileToMakefile(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "$", "$$"), "\n")
	for i, line := range lines {
		if name, value, ok := strings.Cut(line, ":="); ok {
			lines[i] = name + ":=" + strings.Trim(strings.TrimSpace(value), `"'`)
		}
		if line != "" && (line[0] == ' ' || line[0] == '\t') {
			lines[i] = "\t" + strings.TrimSpace(line)
		}
		lines[i] = justVariablePattern().ReplaceAllString(lines[i], "$$($1)")
	}
	return strings.Join(lines, "\n")
}

// DefaultGoal returns the target that a Makefile or justfile builds by default; "" if it has none.
func DefaultGoal(format, text string) string {
	if format == "just" {
		text = justfileToMakefile(text)
	}
	m := parseMakefile(text, false)
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
	lines                      []string // remaining lines
	currentRule                makeRule
	definedVariables           map[string]bool // variables that the Makefile sets
	conditionDepth             int             // nesting of conditions
	keepsFirstConditionalValue bool            // if conditions (ifeq) give a variable several values, keep the first; if false, the last
}

// parseMakefile parses a Makefile. Where conditions choose between values, it keeps the first or the last value.
func parseMakefile(text string, keepFirstConditionalValue bool) *makefile {
	r := &makeReader{
		makefile: &makefile{
			vars:                     map[string]string{"MAKE": "make", "CC": "cc", "CXX": "c++", "AR": "ar", "RM": "rm -f", "LD": "ld", "SHELL": "sh", ".RECIPEPREFIX": "\t"},
			remainingExpansionBudget: makefileExpansionBudget,
		},
		lines: splitIntoLogicalLines(text), definedVariables: map[string]bool{}, keepsFirstConditionalValue: keepFirstConditionalValue,
	}
	for len(r.lines) > 0 {
		line := r.lines[0]
		r.lines = r.lines[1:]
		if prefix := r.vars[".RECIPEPREFIX"]; prefix != "" && strings.HasPrefix(line, prefix[:1]) {
			r.currentRule.recipeLines = append(r.currentRule.recipeLines, line[1:])
		} else if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			r.parseLine(line)
		}
	}
	r.endRule()
	return r.makefile
}

// parseLine parses a line that is not part of a recipe.
func (r *makeReader) parseLine(line string) {
	r.parseTimeCommands = append(r.parseTimeCommands, commandsInMakeShellCalls(line)...)
	if directive := makeDirectivePattern().FindStringSubmatch(line); directive != nil {
		switch directive[1] {
		case "define":
			r.parseDefine(directive[2])
		case "ifeq", "ifneq", "ifdef", "ifndef":
			r.conditionDepth++
		case "endif":
			r.conditionDepth--
		}
		return
	}
	if name, value, ok := parseMakefileAssignment(line); ok {
		if line[strings.IndexByte(line, '=')-1] == '!' {
			r.parseTimeCommands = append(r.parseTimeCommands, value)
			value = "$(shell " + value + ")"
		}
		r.setVariable(name, value, strings.Contains(line, "?="))
		return
	}
	targets, rest, ok := strings.Cut(line, ":")
	if !ok || strings.HasPrefix(line, "$(") && closingBracket(line, 1) == len(line)-1 { // $(info …)
		return
	}
	r.endRule()
	needs, inline, _ := strings.Cut(strings.TrimPrefix(rest, ":"), ";")
	r.currentRule = makeRule{targets: strings.Fields(targets), prerequisites: strings.Fields(strings.ReplaceAll(needs, "|", " "))}
	if inline != "" {
		r.currentRule.recipeLines = append(r.currentRule.recipeLines, inline)
	}
}

// makeDirectivePattern matches lines that are neither rules nor variables.
var makeDirectivePattern = prefilter.LazyRegexp(`^(?:override\s+|export\s+)?(define|ifn?eq|ifn?def|else|endif|-?include|sinclude|vpath|undefine|unexport)\b\s*([^:?!+=\s]*)(?:$|[^:=\s]|\s*[:?!+]*=?\s*$)`)

// parseDefine parses a multi-line variable.
func (r *makeReader) parseDefine(name string) {
	n := slices.IndexFunc(r.lines, func(line string) bool { return strings.TrimSpace(line) == "endef" })
	if n < 0 {
		n = len(r.lines)
	}
	value := strings.Join(r.lines[:n], "\n")
	r.lines = r.lines[min(n+1, len(r.lines)):]
	r.parseTimeCommands = append(r.parseTimeCommands, commandsInMakeShellCalls(value)...)
	r.setVariable(name, value, false)
}

// setVariable assigns a variable; a name that ends in + appends, and a default does not replace an existing value.
func (r *makeReader) setVariable(name, value string, isDefault bool) {
	name, more := strings.CutSuffix(name, "+")
	name = strings.TrimSpace(name)
	old, isSet := r.vars[name]
	switch {
	case isSet && isDefault && !more, r.definedVariables[name] && r.keepsFirstConditionalValue && r.conditionDepth > 0:
	case more:
		r.vars[name] = old + " " + value
	default:
		r.vars[name] = value
	}
	r.definedVariables[name] = true
}

// endRule adds the current rule to the rules of the Makefile, if it has targets or recipe lines.
func (r *makeReader) endRule() {
	if len(r.currentRule.recipeLines) > 0 || len(r.currentRule.targets) > 0 {
		r.rules = append(r.rules, r.currentRule)
	}
}

// parseMakefileAssignment parses NAME = value, with any of make's assignment operators; for +=, the + stays at the end of the
// name.
func parseMakefileAssignment(line string) (name, value string, ok bool) {
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

// goalCommands returns the lines that make runs for the goals.
func (m *makefile) goalCommands(goals []string) []string {
	var out []string
	if goals == nil {
		for i := range m.rules {
			out = append(out, m.recipeCommands(&m.rules[i])...)
		}
		return out
	}
	byTarget, patterns := m.indexTargets()
	done := map[string]bool{}
	var build func(goal string)
	build = func(goal string) {
		if done[goal] || !m.spendBudget(1) {
			return
		}
		done[goal] = true
		rules := slices.Clone(byTarget[goal])
		for _, p := range patterns {
			if m.spendBudget(1) && matchesPattern(p.target, goal) {
				rules = append(rules, p.ruleIndex)
			}
		}
		slices.Sort(rules)
		for _, i := range slices.Compact(rules) {
			r := &m.rules[i]
			for _, need := range r.prerequisites {
				for _, n := range strings.Fields(m.expand(need, 0)) {
					build(n)
				}
			}
			out = append(out, m.recipeCommands(r)...)
		}
	}
	for _, g := range goals {
		build(g)
	}
	return out
}

// A patternRuleTarget is a target with a %, and the index of its rule.
type patternRuleTarget struct {
	target    string
	ruleIndex int
}

// indexTargets returns the indices of the rules by target, and the pattern targets.
func (m *makefile) indexTargets() (rules map[string][]int, patterns []patternRuleTarget) {
	rules = map[string][]int{}
	for i := range m.rules {
		for _, text := range m.rules[i].targets {
			for _, target := range strings.Fields(m.expand(text, 0)) {
				if strings.Contains(target, "%") {
					patterns = append(patterns, patternRuleTarget{target, i})
				} else {
					rules[target] = append(rules[target], i)
				}
			}
		}
	}
	return rules, patterns
}

// matchesPattern reports whether a target with one % matches a goal.
func matchesPattern(targetPattern, goal string) bool {
	before, after, _ := strings.Cut(targetPattern, "%")
	return len(goal) > len(before)+len(after) && strings.HasPrefix(goal, before) && strings.HasSuffix(goal, after)
}

// recipeCommands returns the commands of a rule.
func (m *makefile) recipeCommands(r *makeRule) []string {
	var commands []string
	for _, line := range r.recipeLines {
		for command := range strings.SplitSeq(m.expand(line, 0), "\n") { // a multi-line variable
			if rest, is := strings.CutPrefix(strings.TrimLeft(command, "@-+ \t"), "names"); is && (rest == "" || rest[0] == ' ') {
				command = unknownPlaceholder + rest // the program's name comes from a function
			}
			commands = append(commands, strings.TrimLeft(command, "\t @-+"))
		}
	}
	return commands
}

// expand replaces each variable that the Makefile sets by its value. Automatic variables such as $@
// become placeholder file names; other variables become shell variables, because make takes them
// from the environment.
func (m *makefile) expand(text string, depth int) string {
	if !m.spendBudget(1+len(text)) || depth > 8 || !strings.Contains(text, "$") || len(text) > 1<<16 {
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
			end := closingBracket(text, i)
			name := text[i+1 : end]
			i = end
			b.WriteString(m.expandedVariableValue(name, depth))
		default:
			b.WriteString(m.expandedVariableValue(string(c), depth))
		}
	}
	return b.String()
}

// closingBracket returns the index of the bracket that closes the one at i.
func closingBracket(text string, i int) int {
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

// expandedVariableValue returns the value of $(name).
func (m *makefile) expandedVariableValue(name string, expansionDepth int) string {
	if v, ok := m.vars[name]; ok {
		return m.expand(v, expansionDepth+1)
	}
	function, args, call := strings.Cut(name, " ")
	if tab := strings.IndexByte(function, '\t'); tab >= 0 {
		function, args, call = name[:tab], name[tab+1:], true
	}
	call = call && strings.Trim(function, "abcdefghijklmnopqrstuvwxyz-") == ""
	switch {
	case call && function == "shell" && m.resultDiscardingMakeFunctionDepth > 0:
		m.parseTimeCommands = append(m.parseTimeCommands, args)
		return "names"
	case call && function == "shell":
		return "$(" + m.expand(args, expansionDepth+1) + ")"
	case call:
		return m.evalFunction(function, args, expansionDepth)
	case len(name) == 2 && strings.IndexByte("@<^*?+%", name[0]) >= 0: // $(@D)
		return "target"
	case strings.Contains(name, ":"): // $(SRC:.c=.o)
		base, change, _ := strings.Cut(name, ":")
		if added := m.fileNamesPlaceholder(change, expansionDepth+1); added != "names" {
			return m.expandedVariableValue(base, expansionDepth+1) + " " + added
		}
		return m.expandedVariableValue(base, expansionDepth+1)
	case strings.Contains(name, "$"): // $($(X))
		if of := m.expand(name, expansionDepth+1); !strings.ContainsAny(of, " $(){}") {
			return m.expandedVariableValue(of, expansionDepth+1)
		}
		return unknownPlaceholder
	case name == "" || strings.ContainsAny(name, " (){}"):
		return ""
	}
	if strings.Trim(name, "0123456789") == "" { // a parameter of a called function
		return unknownPlaceholder
	}
	return "${" + name + "}"
}

// commandsInMakeShellCalls returns the texts of $(shell …) and ${shell …} in a value.
func commandsInMakeShellCalls(value string) []string {
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
		out = append(out, call[1:max(1, closingBracket(call, 0))])
		rest = after
	}
	return out
}
