package policy

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A hiding says which part of a later rule an earlier rule makes ineffective.
type hiding uint8

const (
	hidesNone   hiding = iota
	hidesPart          // all except the exceptions of the earlier rule
	hidesSure          // all except partly unknown paths
	hidesAlways        // all
)

// reach reports rules that never apply because earlier rules match everything that they match: earlier rules
// of the same list, deny rules before verify and allow rules, and verify rules before allow rules. It
// compares criteria entry by entry and reports only certain cases.
func (l *linter) reach(list, name string) {
	at := slices.IndexFunc(l.rules(list), func(r rulefile.Rule) bool { return r.Name == name })
	if at < 0 {
		return
	}
	r := &l.rules(list)[at]
	types := slices.DeleteFunc(slices.Clone(r.Types), func(t string) bool { return canonicalType(t) != t })
	if len(types) == 0 {
		types = []string{""}
	}
	var hidden []blocker
	for _, t := range types {
		if b := l.blocker(list, at, t); b.how != hidesNone {
			hidden = append(hidden, b)
		}
	}
	switch {
	case len(hidden) == 0:
	case len(hidden) == len(types) && !slices.ContainsFunc(hidden, func(b blocker) bool { return b.how == hidesPart }):
		b := slices.MinFunc(hidden, func(a, b blocker) int { return int(a.how) - int(b.how) })
		msg := fmt.Sprintf("rule %s is never reached", name)
		if b.how == hidesSure {
			msg = fmt.Sprintf("rule %s is never reached for a fully known path", name)
		}
		l.add(r.Pos, Warning, "%s: %s", msg, b.why(list))
	default:
		for _, b := range hidden {
			what := ""
			if b.typ != "" && len(types) > 1 {
				what = " for " + b.typ
			}
			if b.how == hidesPart {
				l.add(r.Pos, Note, "rule %s is only reached%s for the exceptions of rule %s: %s", name, what, b.rule.Name, b.why(list))
			} else {
				l.add(r.Pos, Note, "rule %s is never reached%s: %s", name, what, b.why(list))
			}
		}
	}
}

func (l *linter) rules(list string) []rulefile.Rule {
	switch list {
	case "deny":
		return l.set.Deny
	case "verify":
		return l.set.Verify
	default:
		return l.set.Allow
	}
}

// A blocker is a rule that takes precedence over another rule for effects of a type.
type blocker struct {
	rule *rulefile.Rule
	list string
	typ  string // "" for all types
	how  hiding
}

// why says why the blocker takes precedence and how to fix that.
func (b blocker) why(list string) string {
	where := "of the preset"
	if b.rule.Pos.Line > 0 {
		where = fmt.Sprintf("in line %d", b.rule.Pos.Line)
	}
	s := fmt.Sprintf("the %s rule %s %s comes first and matches the same actions", b.list, b.rule.Name, where)
	switch {
	case isCore(b.rule.Name):
		return s + "; remove your rule: that one is part of the protected core, which allows no exceptions"
	case b.rule.Pos.Line == 0:
		return s + fmt.Sprintf("; to except this from it, add to the list %s: {name: %s, except: {…}}", b.list, b.rule.Name)
	case b.list == list:
		return s + "; move the narrower rule up"
	}
	return s + "; add an exception to that rule"
}

// Protected reports whether a rule belongs to the protected core, to which no exceptions are possible.
func Protected(name string) bool { return isCore(name) }

func isCore(name string) bool {
	return slices.ContainsFunc(protected(), func(r rulefile.Rule) bool { return r.Name == name })
}

// protected returns the rules of the protected core.
var protected = sync.OnceValue(func() []rulefile.Rule { return preset{deny: coreRules}.set().Deny })

// blocker returns the rule that hides most of a rule of a list, for effects of a type.
func (l *linter) blocker(list string, at int, typ string) blocker {
	r := &l.rules(list)[at]
	best := blocker{typ: typ}
	try := func(name string, rules []rulefile.Rule, how func(a, b *rulefile.Rule) hiding) {
		for i := range rules {
			a := &rules[i]
			if len(a.Types) > 0 && !slices.Contains(a.Types, typ) {
				continue
			}
			if h := how(a, r); h > best.how {
				best.rule, best.list, best.how = a, name, h
			}
		}
	}
	if list != "deny" {
		try("deny", l.set.Deny, acrossLists(list))
	}
	if list == "allow" {
		try("verify", l.set.Verify, acrossLists(list))
	}
	try(list, l.rules(list)[:at], withinList(list))
	return best
}

// withinList returns a function that tells how much of rule b, later in the same list, rule a hides.
func withinList(list string) func(a, b *rulefile.Rule) hiding {
	return func(a, b *rulefile.Rule) hiding {
		// An allow rule must cover all effects of an action, which have different types.
		whole := list == "allow" || paired(a)
		if whole && !within(b.Types, a.Types) || !placeless(a) && !samePlaces(a, b) || !within(b.Commands, a.Commands) || !within(b.Content, a.Content) || !sameFacts(a, b) {
			return hidesNone
		}
		how := excepting(a, b)
		// A partly unknown path certainly matches a rule without paths, and
		// possibly one with paths; the stricter rule counts.
		if list == "verify" && how == hidesAlways && placeless(a) && len(b.Paths) > 0 && b.Tier > a.Tier {
			return hidesSure
		}
		return how
	}
}

// acrossLists returns a function that tells how much of rule b rule a of an earlier list hides. Only an allow
// rule must cover whole effects; an effect that it covers certainly matches a rule with the same paths.
func acrossLists(list string) func(a, b *rulefile.Rule) hiding {
	return func(a, b *rulefile.Rule) hiding {
		if len(a.Commands) > 0 || len(a.Content) > 0 || !sameFacts(a, b) {
			return hidesNone
		}
		if !placeless(a) && (list != "allow" || paired(a) || !samePlaces(a, b) || slices.ContainsFunc(b.Paths, saysNothing)) {
			return hidesNone
		}
		return excepting(a, b)
	}
}

// sameFacts reports whether rule a has no criteria on facts and actions that rule b does not have.
func sameFacts(a, b *rulefile.Rule) bool {
	return (len(a.Facts) == 0 || reflect.DeepEqual(a.Facts, b.Facts)) && (a.When == "" || a.When == b.When) && (a.Trusted == "" || a.Trusted == b.Trusted) && (a.Restorable == "" || a.Restorable == b.Restorable) &&
		(a.Session.Empty() || reflect.DeepEqual(a.Session, b.Session))
}

// excepting returns how much of rule b rule a hides despite the exceptions of a. The criteria of a must hold
// wherever those of b do.
func excepting(a, b *rulefile.Rule) hiding {
	for i := range a.Except {
		if !slices.ContainsFunc(b.Except, func(x rulefile.Criteria) bool { return sameCriteria(x, a.Except[i]) }) {
			return hidesPart
		}
	}
	return hidesAlways
}

func sameCriteria(a, b rulefile.Criteria) bool {
	a.At, b.At = nil, nil
	return reflect.DeepEqual(a, b)
}

func placeless(r *rulefile.Rule) bool { return len(r.Paths) == 0 && len(r.Hosts) == 0 }

// paired reports whether a rule has both paths and hosts, which may match two different effects.
func paired(r *rulefile.Rule) bool { return len(r.Paths) > 0 && len(r.Hosts) > 0 }

func saysNothing(glob string) bool { return !effect.Says(glob) }

// samePlaces reports whether a contains every path and host of b.
func samePlaces(a, b *rulefile.Rule) bool {
	return (len(a.Paths) == 0) == (len(b.Paths) == 0) && (len(a.Hosts) == 0) == (len(b.Hosts) == 0) &&
		within(expanded(b.Paths), expanded(a.Paths)) && within(b.Hosts, a.Hosts)
}

func expanded(globs []string) (out []string) {
	for _, g := range globs {
		out = append(out, rulefile.Expand(g)...)
	}
	return out
}

// within reports whether all entries of a criterion are among those of another. A criterion without entries
// matches everything.
func within(entries, of []string) bool {
	if len(of) == 0 {
		return true
	}
	return len(entries) > 0 && !slices.ContainsFunc(entries, func(s string) bool { return !slices.Contains(of, s) })
}
