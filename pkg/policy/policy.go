// Package policy is Tier 0: it judges actions by rules that people write. [Load]
// and [Preset] return a [Policy].
//
// A policy has three lists, tried in the order deny, verify, allow. In each list
// the first rule that matches an effect of the action counts for that effect.
// One effect that matches a deny rule blocks the action. If effects match verify
// rules, the strictest of these rules decides which tier must judge the action.
// An allow rule must cover every effect. So an action cannot hide one effect
// behind others, and the order of its parts does not matter.
package policy

import (
	"context"
	"errors"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Options are the parts of a policy that are not in its text.
type Options struct {
	// Vars are the folders that $NAME stands for at the start of a glob, as
	// canonical paths. A name without folders matches nothing.
	//
	//	HOME            the user's home folder; ~ also means the usual ones
	//	WORKSPACE       the workspace roots
	//	SHIELD          shield's configuration, seal key, state and audit log:
	//	                must not be read or changed
	//	SHIELD_PROGRAM  the program, and what it runs or trusts: must not be changed
	//	SHIELD_POLICY   policy files: must not be read by name or changed
	//	SHIELD_WAY      parents of all these that are links or missing: nothing
	//	                else may be created there
	//	SHIELD_ABOVE    all parents of these: nothing may be mounted over them
	//	SHIELD_CACHE    must not be changed, but may be deleted
	Vars map[string][]string
}

// A Policy is a compiled policy. Goroutines may share it.
type Policy struct {
	ownChannel  []string // rules whose questions shield asks itself
	name        string
	fingerprint string
	set         rulefile.Set
	guards      list // deny, then verify: both look at what effects touch
	allow       list
	lost        error // entries for rules that the preset does not have

	layer string    // "" for the highest
	lower []*Policy // layers below, which only tighten; see [Policy.Over]
}

func newPolicy(name, fingerprint string, set rulefile.Set, opts Options) *Policy {
	return &Policy{
		name:        name,
		fingerprint: fingerprint,
		set:         set,
		guards:      newList(slices.Concat(set.Deny, set.Verify), opts.Vars, false),
		allow:       newList(set.Allow, opts.Vars, true),
		ownChannel:  presetOwnChannel,
	}
}

// OwnChannel reports whether shield asks itself about a case, even where the agent host
// could: one of the rules that ask is named under own_channel.
func (p *Policy) OwnChannel(c *analysis.Case) bool {
	for i := range c.Trail {
		s := &c.Trail[i]
		named := func(l *Policy) bool { return slices.Contains(l.ownChannel, s.Rule) }
		if s.Decision == verdict.Escalate && s.Rule != "" && (named(p) || slices.ContainsFunc(p.lower, named)) {
			return true
		}
	}
	return false
}

// Name returns the preset's or the file's name.
func (p *Policy) Name() string { return p.name }

// Lost returns the entries of the policy's file that do not do what they say, because
// the preset lacks a rule that they name; nil if there are none. The policy holds
// without them.
func (p *Policy) Lost() error { return p.lost }

// Fingerprint returns "sha256:" and the hex digest of the effective rules. It
// does not include the folders of [Options.Vars], which are configuration.
func (p *Policy) Fingerprint() string { return p.fingerprint }

// nothing is the effect of an action without effects.
var nothing effect.Effect

// Judge decides a case: BLOCK by a deny rule, ESCALATE by a verify rule or if no
// rule matches, ALLOW by an allow rule. If the condition of a rule fails, the
// verdict is BLOCK with error "policy". Of several layers the strictest decides.
func (p *Policy) Judge(ctx context.Context, c *analysis.Case) (verdict.Verdict, error) {
	v, err := p.own(ctx, c)
	for _, l := range p.lower {
		if err != nil || v.Decision == verdict.Block {
			break
		}
		var below verdict.Verdict
		if below, err = l.own(ctx, c); stricter(&below, &v) {
			v = below
		}
	}
	return v, err
}

// own decides a case by the rules of one layer.
func (p *Policy) own(ctx context.Context, c *analysis.Case) (verdict.Verdict, error) {
	s := searches.Get().(*search)
	s.ctx, s.c = ctx, c
	defer func() {
		*s = search{}
		searches.Put(s)
	}()
	denied, verified, err := p.guarded(s)
	if err != nil {
		return p.failed(err, p.guards.rules)
	}
	if r := denied.sure.rule; r != nil {
		return verdict.Verdict{
			Decision: verdict.Block, Confidence: 1, Rule: r.Name,
			Reasoning: explain("deny", r, denied.sure.by),
		}, nil
	}
	if v := escalation(c, denied, verified); v.Decision != verdict.None {
		return v, nil
	}
	if p.layer != "" {
		return verdict.Verdict{}, nil
	}
	r, err := p.allow.covering(s)
	if err != nil {
		return p.failed(err, p.allow.rules)
	}
	// Trying the allow rules can reveal that part of the text cannot be read.
	if v := escalation(c, denied, verified); v.Decision != verdict.None {
		return v, nil
	}
	if r != nil {
		return verdict.Verdict{
			Decision: verdict.Allow, Confidence: 1, Rule: r.Name,
			Reasoning: explain("allow", r, nil), Fixed: true,
		}, nil
	}
	return verdict.Verdict{
		Decision: verdict.Escalate, Confidence: 0.7, NextTier: 1,
		Reasoning: "policy: no rule matches", Fixed: true,
	}, nil
}

// escalation returns the strictest reason to ask a higher tier, or a verdict
// without a decision.
func escalation(c *analysis.Case, denied, verified finding) verdict.Verdict {
	v := verdict.Verdict{}
	if r := verified.sure.rule; r != nil {
		v = verdict.Verdict{
			Decision: verdict.Escalate, Confidence: 1, Rule: r.Name, NextTier: r.Tier,
			Reasoning: explain("verify", r, verified.sure.by),
		}
	}
	raise := func(ch choice, tier int) {
		if r := ch.rule; r != nil && v.NextTier < tier {
			v = verdict.Verdict{
				Decision: verdict.Escalate, Confidence: 0.7, Rule: r.Name, NextTier: tier,
				Reasoning: explain("verify", r, ch.by) + inFull(ch.by),
			}
		}
	}
	if r := verified.perhaps.rule; r != nil {
		raise(verified.perhaps, r.Tier)
	}
	raise(denied.perhaps, 2)
	if c.Unexamined != "" && v.NextTier < 2 {
		v = verdict.Verdict{
			Decision: verdict.Escalate, Confidence: 1, NextTier: 2,
			Reasoning: "policy: part of the action could not be examined: " + shown(c.Unexamined),
		}
	}
	return v
}

// failed returns the BLOCK for a rule that could not be evaluated, or the error
// itself if no rule caused it.
func (p *Policy) failed(err error, rules []rulefile.Rule) (verdict.Verdict, error) {
	var re *ruleError
	if !errors.As(err, &re) {
		return verdict.Verdict{}, err
	}
	name := rules[re.rule].Name
	return verdict.Verdict{
		Decision: verdict.Block, Confidence: 1, Rule: name, Error: "policy",
		Reasoning: "policy: rule " + name + " could not be evaluated: " + shown(re.err.Error()),
	}, nil
}
