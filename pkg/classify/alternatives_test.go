package classify

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/shell"
)

// A mutant is a rule from which one alternative was taken.
type mutant struct {
	rule Rule
	what string
	pass bool // a pass example has to turn red, rather than a match example
}

// TestEveryAlternative takes each alternative from each rule in turn: an
// expression's, a clause, an entry of a clause's list. An example must turn
// red, or nothing would tell if the alternative broke.
func TestEveryAlternative(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("tries thousands of rules")
	}
	for i := range ruleTable {
		r := &ruleTable[i]
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			match, pass := exampleCases(t, r.MatchingExamples), exampleCases(t, r.NonMatchingExamples)
			for _, m := range mutants(r) {
				eng := newEngine([]Rule{m.rule}, exampleHome, []string{exampleWorkspaceRoot})
				s := newRuleMatchBuffers(eng)
				hits := func(c *analysis.ActionCase) bool {
					eng.run(s, c, ruleScopeAll)
					return len(s.hits) > 0
				}
				if m.pass && !slices.ContainsFunc(pass, hits) || !m.pass && !slices.ContainsFunc(match, func(c *analysis.ActionCase) bool { return !hits(c) }) {
					t.Errorf("%s: no example turns red without %s", r.ID, m.what)
				}
			}
		})
	}
}

func exampleCases(t *testing.T, texts []string) []*analysis.ActionCase {
	var out []*analysis.ActionCase
	for _, text := range texts {
		c, err := exampleCase(shell.Analyze, text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// mutants returns every rule that lacks one alternative of r.
func mutants(r *Rule) []mutant {
	var out []mutant
	for i, p := range r.patterns {
		if len(r.patterns)+len(r.clauses) > 1 {
			m := *r
			m.patterns = slices.Delete(slices.Clone(r.patterns), i, i+1)
			out = append(out, mutant{m, fmt.Sprintf("pattern %d", i+1), false})
		}
		for _, less := range fewer(p.expr) {
			m := *r
			m.patterns = slices.Clone(r.patterns)
			m.patterns[i] = pattern{expr: less.expr}
			out = append(out, mutant{m, fmt.Sprintf("%q of pattern %d", less.gone, i+1), false})
		}
	}
	for i := range r.actionTypes {
		if len(r.actionTypes) > 1 {
			m := *r
			m.actionTypes = slices.Delete(slices.Clone(r.actionTypes), i, i+1)
			out = append(out, mutant{m, "type " + r.actionTypes[i], false})
		}
	}
	for i := range r.payloadFields {
		if len(r.payloadFields) > 1 {
			m := *r
			m.payloadFields = slices.Delete(slices.Clone(r.payloadFields), i, i+1)
			out = append(out, mutant{m, "field " + r.payloadFields[i], false})
		}
	}
	add := func(name string, clauses []ruleClause, single bool, set func(*Rule, []ruleClause)) {
		for _, less := range fewerClauses(clauses, single) {
			m := *r
			set(&m, less.clauses)
			out = append(out, mutant{m, name + ", " + less.what, less.pass})
		}
	}
	add("effects", r.clauses, len(r.patterns) > 0, func(m *Rule, c []ruleClause) { m.clauses = c })
	add("requires", r.requires, false, func(m *Rule, c []ruleClause) { m.requires = c })
	if r.except.expr != "" {
		m := *r
		m.except = pattern{}
		out = append(out, mutant{m, "except", true})
	}
	for i := range r.unless {
		m := *r
		m.unless = slices.Delete(slices.Clone(r.unless), i, i+1)
		out = append(out, mutant{m, fmt.Sprintf("unless, entry %d", i+1), true})
	}
	return out
}

type fewerClause struct {
	clauses []ruleClause
	what    string
	pass    bool
}

// fewerClauses returns the lists that lack one clause (a single one only if
// single) or one entry of a clause.
func fewerClauses(clauses []ruleClause, single bool) []fewerClause {
	var out []fewerClause
	for i := range clauses {
		with := func(what string, pass bool, change func(*ruleClause)) {
			list := slices.Clone(clauses)
			change(&list[i])
			out = append(out, fewerClause{list, fmt.Sprintf("entry %d, %s", i+1, what), pass})
		}
		c := clauses[i]
		if len(clauses) > 1 || single {
			out = append(out, fewerClause{slices.Delete(slices.Clone(clauses), i, i+1), fmt.Sprintf("entry %d", i+1), false})
		}
		for k := range c.kinds {
			if len(c.kinds) > 1 {
				with("kind "+string(c.kinds[k]), false, func(m *ruleClause) { m.kinds = slices.Delete(slices.Clone(c.kinds), k, k+1) })
			}
		}
		for k := range c.programs {
			if len(c.programs) > 1 {
				with("program "+c.programs[k], false, func(m *ruleClause) { m.programs = slices.Delete(slices.Clone(c.programs), k, k+1) })
			}
		}
		for k := range c.harms {
			if len(c.harms) > 1 {
				with("harm "+string(c.harms[k]), false, func(m *ruleClause) { m.harms = slices.Delete(slices.Clone(c.harms), k, k+1) })
			}
		}
		for k := range c.paths {
			if len(c.paths) > 1 {
				with("path "+c.paths[k], false, func(m *ruleClause) { m.paths = slices.Delete(slices.Clone(c.paths), k, k+1) })
			}
		}
		for k := range c.hosts {
			if len(c.hosts) > 1 {
				with("host "+c.hosts[k], false, func(m *ruleClause) { m.hosts = slices.Delete(slices.Clone(c.hosts), k, k+1) })
			}
		}
		for _, less := range fewer(c.args.expr) {
			with(fmt.Sprintf("%q of args", less.gone), false, func(m *ruleClause) { m.args = pattern{expr: less.expr} })
		}
		if c.excludedArgs.expr != "" {
			with("not", true, func(m *ruleClause) { m.excludedArgs = pattern{} })
		}
		if len(c.notPaths) > 0 {
			with("not_path", true, func(m *ruleClause) { m.notPaths = nil })
		}
	}
	return out
}

type lessExpr struct{ expr, gone string }

// fewer returns the expressions that lack one alternative of expr, as its text
// has them: the parser joins those that begin alike.
func fewer(expr string) []lessExpr {
	type group struct {
		start int
		bars  []int
	}
	var out []lessExpr
	stack := []group{{}}
	end := func(g group, at int) {
		if len(g.bars) == 0 {
			return
		}
		edges := append(append([]int{g.start - 1}, g.bars...), at)
		for i := range len(edges) - 1 {
			from, to := edges[i]+1, edges[i+1]
			gone := expr[from:to]
			if i+1 < len(edges)-1 {
				to++
			} else {
				from--
			}
			if less := expr[:from] + expr[to:]; !edge(gone) {
				if _, err := regexp.Compile(less); err == nil {
					out = append(out, lessExpr{less, gone})
				}
			}
		}
	}
	for i := 0; i < len(expr); i++ {
		switch expr[i] {
		case '\\':
			i++
		case '[':
			i++
			if i < len(expr) && expr[i] == '^' {
				i++
			}
			for i++; i < len(expr) && expr[i] != ']'; i++ {
				if expr[i] == '\\' {
					i++
				}
			}
		case '(':
			start := i + 1
			if i+1 < len(expr) && expr[i+1] == '?' {
				for start < len(expr) && expr[start] != ':' && expr[start] != ')' {
					start++
				}
				if start < len(expr) && expr[start] == ')' {
					i = start // flags for what follows
					if len(stack) == 1 && len(stack[0].bars) == 0 {
						stack[0].start = i + 1
					}
					continue
				}
				start++
			}
			i = start - 1
			stack = append(stack, group{start: start})
		case ')':
			end(stack[len(stack)-1], i)
			stack = stack[:len(stack)-1]
		case '|':
			top := &stack[len(stack)-1]
			top.bars = append(top.bars, i)
		}
	}
	end(stack[0], len(expr))
	return out
}

// edge reports whether an alternative only says that a word ends there.
func edge(alternative string) bool {
	switch alternative {
	case "", "^", "$", " ", `\b`:
		return true
	}
	return false
}

func TestFewer(t *testing.T) {
	t.Parallel()
	var got []string
	for _, l := range fewer(`(?i)a(?:bc|bd|[|)]\||e)f|g`) {
		got = append(got, l.expr)
	}
	want := []string{`(?i)a(?:bd|[|)]\||e)f|g`, `(?i)a(?:bc|[|)]\||e)f|g`, `(?i)a(?:bc|bd|e)f|g`, `(?i)a(?:bc|bd|[|)]\|)f|g`, `(?i)g`, `(?i)a(?:bc|bd|[|)]\||e)f`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
