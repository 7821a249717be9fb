package policy

import (
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A finding is the result of a list for a case: the rule that certainly matches (sure), and the rule that
// possibly matches, depending on an unknown part of the action (perhaps).
type finding struct {
	sure, perhaps choice
}

// A choice is a rule and the effect that matches it.
type choice struct {
	rule *rulefile.Rule
	at   int // index of rule
	by   *effect.Effect
}

// tier returns the lowest tier that may decide according to the chosen rule; 0 without a rule.
func (ch *choice) tier() int {
	if ch.rule == nil {
		return 0
	}
	return ch.rule.Tier
}

// prefer replaces the chosen rule by rule r if r asks for a higher tier, or for the same tier and is listed
// earlier.
func (ch *choice) prefer(rules []rulefile.Rule, r int, e *effect.Effect) {
	if r < 0 || ch.rule != nil && (rules[r].Tier < ch.rule.Tier || rules[r].Tier == ch.rule.Tier && r >= ch.at) {
		return
	}
	*ch = choice{&rules[r], r, e}
}

// guarded matches every effect with the deny and verify rules. For each effect the first matching rule of a
// list counts; guarded returns the strictest of these rules. If a deny rule matches, errors of verify rules
// are ignored.
func (p *Policy) guarded(s *search) (denied, verified finding, err error) {
	x, err := p.guards.compile()
	if err != nil {
		return denied, verified, err
	}
	s.enter(x)
	s.denies = len(p.set.Deny)
	s.pair()
	rules := p.guards.rules
	var failed error
	try := func(i int, e *effect.Effect) {
		t := s.touched(e)
		for _, part := range [...]struct {
			found    *finding
			from, to int
		}{{&denied, 0, len(p.set.Deny)}, {&verified, len(p.set.Deny), len(rules)}} {
			sure, err := s.pick(&t.sure, part.from, part.to, e)
			part.found.sure.prefer(rules, sure, e)
			if err == nil {
				var perhaps int
				perhaps, err = s.pick(&t.perhaps, part.from, part.to, e)
				part.found.perhaps.prefer(rules, perhaps, e)
				s.meet(i, rules, sure, perhaps)
			}
			if err != nil {
				failed = err
			}
		}
	}
	for i := range s.c.Effects {
		try(i, &s.c.Effects[i])
	}
	if len(s.c.Effects) == 0 {
		try(-1, &nothing)
	}
	if denied.sure.rule != nil {
		return denied, verified, nil
	}
	return denied, verified, failed
}

// meet records, for traces, the rule of a list that counts for an effect: the rule that matches, else the
// rule that possibly matches. A negative index means none.
func (s *search) meet(effect int, rules []rulefile.Rule, sure, perhaps int) {
	switch {
	case sure >= 0:
		s.c.RecordMatch(effect, analysis.RuleMatch{Rule: rules[sure].Name})
	case perhaps >= 0:
		s.c.RecordMatch(effect, analysis.RuleMatch{Rule: rules[perhaps].Name, Perhaps: true})
	}
}

// covering returns the first rule that covers every effect of a case, or nil. Unknown effects are never
// covered, except the effect of an unknown tool that the rule names.
func (l *list) covering(s *search) (*rulefile.Rule, error) {
	c := s.c
	for i := range c.Effects {
		if unreadable(c, &c.Effects[i]) {
			return nil, nil
		}
	}
	x, err := l.compile()
	if err != nil {
		return nil, err
	}
	s.enter(x)
	left := x.typed(c.Action, "")
	left.keep(&x.placeless)
	for i := range c.Effects {
		set, err := s.covers(&c.Effects[i])
		if err != nil {
			return nil, err
		}
		if i == 0 {
			left = set
		} else {
			left.keep(&set)
		}
		if left.empty() {
			return nil, nil
		}
	}
	for r := left.next(0); r >= 0; r = left.next(r + 1) {
		ok, err := s.allows(r)
		if err != nil {
			return nil, err
		}
		if ok {
			return &l.rules[r], nil
		}
	}
	return nil, nil
}

// unreadable reports whether no rule can cover an effect: it is unknown and not that of an unknown tool, or
// it is an unknown program that such a tool would run.
func unreadable(c *analysis.Case, e *effect.Effect) bool {
	return e.Sure == effect.Unknown && !c.UnknownTool(e) || e.Kind == effect.Execute && e.Class == effect.UnknownClass && !analysis.KnownType(c.Action.Type)
}

// covers returns the rules whose types, paths and hosts cover an effect. A rule with paths or hosts does not
// cover an effect that has neither.
func (s *search) covers(e *effect.Effect) (ruleSet, error) {
	placed := ruleSet{}
	if e.Path != "" {
		for _, set := range s.x.sets(e.Path, e.Pattern) {
			for _, g := range set.compiled().AppendCovering(s.found[:0], e.Path, e.Pattern, e.Tree, e.Recursive) {
				placed.add(set.rule[g])
			}
		}
	}
	if e.Host != "" || e.URL != "" {
		hosts := s.hosts(e)
		if e.Path == "" {
			placed = hosts
		} else {
			placed.keep(&hosts)
		}
	}
	placed.addAll(&s.x.placeless)
	typed := s.x.fits(s.c.Action, e)
	if e.Sure == effect.Unknown { // of an unknown tool: a rule for all types, or for this kind, does not name the tool
		typed = s.x.named(s.c.Action)
	}
	placed.keep(&typed)
	for r := placed.next(0); r >= 0; r = placed.next(r + 1) {
		ok, err := s.x.rules[r].facts.match(s, e)
		if err != nil {
			return placed, &ruleError{r, err}
		}
		if !ok {
			placed.take(r)
		}
	}
	return placed, nil
}

// allows reports whether the other criteria of a rule match and none of its exceptions holds for an effect.
func (s *search) allows(rule int) (bool, error) {
	ok, err := s.slow(rule)
	if !ok || err != nil {
		return false, err
	}
	for i := range s.c.Effects {
		out, err := s.excepted(rule, &s.c.Effects[i])
		if out || err != nil {
			return false, err
		}
	}
	return true, nil
}
