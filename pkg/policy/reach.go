package policy

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A hiding says how far an earlier rule keeps a later one from counting.
type hiding uint8

const (
	hidesNone   hiding = iota
	hidesPart          // all but what exceptions of the earlier rule leave
	hidesSure          // all but paths of which a part is unknown
	hidesAlways        // all
)

// reach looks for rules that never count, since rules before them count for
// everything that they meet: those of their own list that stand earlier, and
// deny rules for the others, and verify rules for allow rules. It says only what
// is certain, by comparing criteria entry by entry.
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
			msg = fmt.Sprintf("rule %s is never reached for a path that is known", name)
		}
		l.add(r.Pos, Warning, "%s: %s", msg, b.why(list))
	default:
		for _, b := range hidden {
			what := ""
			if b.typ != "" && len(types) > 1 {
				what = " for " + b.typ
			}
			if b.how == hidesPart {
				l.add(r.Pos, Note, "rule %s is reached%s only where rule %s makes an exception: %s", name, what, b.rule.Name, b.why(list))
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

// A blocker is a rule that counts before another, for effects of a type.
type blocker struct {
	rule *rulefile.Rule
	list string
	typ  string // "" for all
	how  hiding
}

// why says in which way the blocker comes first, and what mends it.
func (b blocker) why(list string) string {
	where := "of the preset"
	if b.rule.Pos.Line > 0 {
		where = fmt.Sprintf("in line %d", b.rule.Pos.Line)
	}
	s := fmt.Sprintf("%s rule %s %s comes first and matches the same", b.list, b.rule.Name, where)
	switch {
	case isCore(b.rule.Name):
		return s + ", and takes no exceptions"
	case b.rule.Pos.Line == 0:
		return s + fmt.Sprintf("; add to the list %s: {name: %s, except: {…}}", b.list, b.rule.Name)
	case b.list == list:
		return s + "; put the narrower rule first"
	}
	return s + "; give it an exception"
}

func isCore(name string) bool {
	return slices.ContainsFunc(preset{deny: coreRules}.set().Deny, func(r rulefile.Rule) bool { return r.Name == name })
}

// blocker returns the first rule that hides most of a rule of a list, as far as
// it is about a type.
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

// withinList says how far rule a hides rule b that comes later in its list.
func withinList(list string) func(a, b *rulefile.Rule) hiding {
	return func(a, b *rulefile.Rule) hiding {
		// Another allow rule must cover all effects of an action, whose types differ.
		whole := list == "allow" || paired(a)
		if whole && !within(b.Types, a.Types) || !placeless(a) && !samePlaces(a, b) || !within(b.Commands, a.Commands) || !within(b.Content, a.Content) || a.When != "" && a.When != b.When || a.Trusted != "" && a.Trusted != b.Trusted {
			return hidesNone
		}
		how := excepting(a, b)
		// Of a path that is unknown in part a rule without paths is met surely and
		// one with paths perhaps, and the stricter counts.
		if list == "verify" && how == hidesAlways && placeless(a) && len(b.Paths) > 0 && b.Tier > a.Tier {
			return hidesSure
		}
		return how
	}
}

// acrossLists says how far rule a of an earlier list hides rule b. Only an
// allow rule must cover whole effects, so that what it covers surely meets a
// rule of the same paths.
func acrossLists(list string) func(a, b *rulefile.Rule) hiding {
	return func(a, b *rulefile.Rule) hiding {
		if len(a.Commands) > 0 || len(a.Content) > 0 || a.When != "" && a.When != b.When || a.Trusted != "" && a.Trusted != b.Trusted {
			return hidesNone
		}
		if !placeless(a) && (list != "allow" || paired(a) || !samePlaces(a, b) || slices.ContainsFunc(b.Paths, saysNothing)) {
			return hidesNone
		}
		return excepting(a, b)
	}
}

// excepting says how far a, whose criteria hold wherever those of b do, hides
// b in spite of its exceptions.
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

// paired reports whether a rule asks for a path and a host, which may be those
// of two effects.
func paired(r *rulefile.Rule) bool { return len(r.Paths) > 0 && len(r.Hosts) > 0 }

func saysNothing(glob string) bool { return !says(glob) }

// samePlaces reports whether every path and host of b is one of a.
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

// within reports whether a criterion's entries are among those of another;
// one without entries holds everything.
func within(entries, of []string) bool {
	if len(of) == 0 {
		return true
	}
	return len(entries) > 0 && !slices.ContainsFunc(entries, func(s string) bool { return !slices.Contains(of, s) })
}
