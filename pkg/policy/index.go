package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A list is a list of rules, compiled on first use: many actions are decided before the last list is needed.
type list struct {
	rules   []rulefile.Rule
	compile func() (*index, error)
}

// newList returns a list. Exceptions to deny and verify rules make the policy less strict; exceptions to
// allow rules make it stricter.
func newList(rules []rulefile.Rule, vars map[string][]string, allow bool) list {
	return list{rules, sync.OnceValues(func() (*index, error) { return compileList(rules, vars, allow) })}
}

// An index finds the rules of a list that match an effect. All globs are matched at once, so the time hardly
// depends on the number of rules.
type index struct {
	rules []matcher

	byType    map[string]*ruleSet // rules that list an action type or kind
	anyType   ruleSet             // rules without types
	placeless ruleSet             // rules with neither paths nor hosts
	core      ruleSet             // rules of the protected core
	trusted   truths              // rules that require a trusted place, or an untrusted one
	kept      truths              // rules that require that version control can restore the file, or cannot
	copied    ruleSet             // rules that require that shield backs up the file
	flows     truths              // rules for values that the session has seen, or for all other values
	byPath    ruleSet
	byHost    ruleSet

	single []string // policy files, and parents of shield's files that are links or missing
	roots  []string // workspace folders

	posix    globSet
	drives   globSet // globs that begin with a drive or a share
	all      [2]*globSet
	hosts    []effect.HostPattern
	hostRule []int // index of the rule of each entry of hosts
}

// A matcher is the criteria of a rule other than types, paths and hosts.
type matcher struct {
	facts  facts
	slow   *slowCriteria
	except []exception
}

func compileList(rules []rulefile.Rule, vars map[string][]string, allow bool) (*index, error) {
	if len(rules) > most {
		return nil, fmt.Errorf("more than %d rules in a list; combine rules", most)
	}
	x := &index{
		rules: make([]matcher, len(rules)), byType: make(map[string]*ruleSet, 32),
		single: slices.Concat(vars["SHIELD_POLICY"], vars["SHIELD_WAY"]), roots: vars["WORKSPACE"],
	}
	x.all = [...]*globSet{&x.posix, &x.drives}
	for i := range rules {
		r := &rules[i]
		x.addTypes(i, r.Types)
		if len(r.Paths) == 0 && len(r.Hosts) == 0 {
			x.placeless.add(i)
		}
		if isCore(r.Name) {
			x.core.add(i)
		}
		x.trusted.add(i, r.Trusted)
		x.kept.add(i, r.Restorable)
		if r.Restorable == "kept" {
			x.copied.add(i)
		}
		x.flows.add(i, r.Session.Flow)
		for _, g := range r.Paths {
			x.byPath.add(i)
			for _, g := range rulefile.Expand(g) {
				if onDrive(g) {
					x.drives.add(g, i)
				} else {
					x.posix.add(g, i)
				}
			}
		}
		for _, h := range r.Hosts {
			p, err := effect.ParseHostPattern(h)
			if err != nil {
				return nil, fmt.Errorf("rule %s: %w", yamlfile.Quote(r.Name), err)
			}
			x.byHost.add(i)
			x.hosts = append(x.hosts, p)
			x.hostRule = append(x.hostRule, i)
		}
		x.rules[i].facts = compileFacts(r.Facts)
		x.rules[i].slow = compileSlow(&r.Criteria, allow)
		for k := range r.Except {
			e, err := compileException(&r.Except[k], vars, !allow)
			if err != nil {
				return nil, fmt.Errorf("rule %s: %w", yamlfile.Quote(r.Name), err)
			}
			x.rules[i].except = append(x.rules[i].except, e)
		}
	}
	x.drives.compile(vars)
	x.posix.compile(vars)
	_, err := x.posix.set()
	return x, err
}

// A globSet matches the globs of many rules.
type globSet struct {
	globs []string
	rule  []int // index of the rule of each glob
	vars  map[string][]string
	set   func() (*effect.Globs, error)
}

func (s *globSet) add(glob string, rule int) {
	s.globs = append(s.globs, glob)
	s.rule = append(s.rule, rule)
}

// compile prepares the set for compilation on first use: most processes never see a path with a drive.
func (s *globSet) compile(vars map[string][]string) {
	s.vars = vars
	s.set = sync.OnceValues(func() (*effect.Globs, error) { return effect.NewGlobs(s.globs, vars) })
}

// compiled returns the set. It panics on an invalid glob: all globs were checked when the policy was loaded,
// so that would be a bug. The caller turns the panic into a BLOCK.
func (s *globSet) compiled() *effect.Globs {
	g, err := s.set()
	if err != nil {
		panic(err)
	}
	return g
}

// names returns glob g with the folders of its variables, for comparing names.
func (s *globSet) names(g int) names { return names{s.globs[g], s.vars} }

// onDrive reports whether a glob matches only Windows paths.
func onDrive(glob string) bool {
	return len(glob) > 1 && glob[1] == ':' || strings.HasPrefix(glob, "//")
}

// sets returns the glob sets that can match a path. A path that starts with "/" is not on a drive, so most
// paths skip half of the globs.
func (x *index) sets(path string, pattern bool) []*globSet {
	if !pattern && path[0] == '/' {
		return x.all[:1]
	}
	return x.all[:]
}

func (x *index) addTypes(rule int, types []string) {
	if len(types) == 0 {
		x.anyType.add(rule)
	}
	for _, t := range types {
		set := x.byType[t]
		if set == nil {
			set = new(ruleSet)
			x.byType[t] = set
		}
		set.add(rule)
	}
}

// truths are the rules with a criterion of value true or false.
type truths struct{ yes, no ruleSet }

func (t *truths) add(rule int, want string) {
	switch want {
	case "true":
		t.yes.add(rule)
	case "false":
		t.no.add(rule)
	}
}

// left removes the rules from a set that require the opposite of holds.
func (t *truths) left(set *ruleSet, holds bool) {
	if holds {
		set.drop(&t.no)
	} else {
		set.drop(&t.yes)
	}
}

// fits returns the rules whose types, and criteria on trust, restorability and seen values, an effect meets.
func (x *index) fits(a *action.Action, e *effect.Effect) ruleSet {
	set := x.typed(a, e.Word())
	x.trusted.left(&set, e.Trusted)
	x.kept.left(&set, e.Restorable)
	if !e.Kept {
		set.drop(&x.copied)
	}
	x.flows.left(&set, e.Cause == effect.CauseValue)
	return set
}

// named returns the rules that list the action's type under one of its names.
func (x *index) named(a *action.Action) (set ruleSet) {
	for _, name := range [...]string{a.Type, a.Given} {
		if s := x.byType[name]; s != nil {
			set.addAll(s)
		}
	}
	return set
}

// typed returns the rules that list a kind of effect, or the action's type under one of its names, or no
// types.
func (x *index) typed(a *action.Action, kind effect.Kind) ruleSet {
	set := x.anyType
	if s := x.byType[a.Type]; s != nil {
		set.addAll(s)
	}
	if s := x.byType[a.Given]; s != nil {
		set.addAll(s)
	}
	if string(kind) != a.Type {
		if s := x.byType[string(kind)]; s != nil {
			set.addAll(s)
		}
	}
	return set
}

// A search is the state of judging one case by the lists of a policy.
type search struct {
	ctx  context.Context
	c    *analysis.Case
	x    *index  // of the list that is searched
	both ruleSet // rules with paths and hosts that both match some effect

	denies int // number of deny rules, which are first in the list

	operand any // input of jq conditions; nil until the first is evaluated

	known, holds  ruleSet // rules whose slow criteria were evaluated, and those that matched
	found, itself [48]int // buffers for indices of globs
}

var searches = sync.Pool{New: func() any { return new(search) }}

// enter starts the search of a list.
func (s *search) enter(x *index) {
	s.x, s.both, s.known, s.holds = x, ruleSet{}, ruleSet{}, ruleSet{}
}

// slow reports whether a rule's slow criteria match the case.
func (s *search) slow(rule int) (bool, error) {
	m := &s.x.rules[rule]
	if m.slow == nil {
		return true, nil
	}
	if !s.known.has(rule) {
		ok, err := m.slow.match(s)
		if err != nil {
			return false, &ruleError{rule, err}
		}
		s.known.add(rule)
		if ok {
			s.holds.add(rule)
		}
	}
	return s.holds.has(rule), nil
}

// excepted reports whether an exception of a rule holds for an effect.
func (s *search) excepted(rule int, e *effect.Effect) (bool, error) {
	for i := range s.x.rules[rule].except {
		ok, err := s.x.rules[rule].except[i].match(s, e)
		if err != nil {
			return false, &ruleError{rule, err}
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}

// A ruleError means that a rule could not be evaluated.
type ruleError struct {
	rule int
	err  error
}

func (e *ruleError) Error() string { return e.err.Error() }
func (e *ruleError) Unwrap() error { return e.err }
