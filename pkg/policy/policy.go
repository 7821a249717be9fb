// Package policy is Tier 0: it judges actions by rules that people write. A
// [Policy] comes from [Load] or [Preset].
//
// A policy has three lists, tried in the order deny, verify, allow. In each
// list the first rule that meets an effect of the action counts for it. One
// effect that meets a deny rule blocks the action; of those that meet verify
// rules the strictest decides how far the action must go; an allow rule must
// cover every effect. So whatever else an action does cannot hide one thing
// that it does, and the order of its parts changes nothing.
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

// Options say what policies depend on beside their text.
type Options struct {
	// Vars are the folders that $NAME stands for at the start of a glob, as
	// canonical paths: HOME the user's home folder beside the usual ones,
	// WORKSPACE the workspace roots, SHIELD what belongs to shield and is
	// neither to be read nor changed (configuration, seal key, state, audit
	// log), SHIELD_PROGRAM what is not to be changed (the program, and what it
	// runs or trusts), SHIELD_POLICY the files of policy, which are neither to
	// be read by name nor changed, SHIELD_WAY folders on the way to all these
	// that are links or missing, so that nothing else may be put there,
	// SHIELD_ABOVE all folders on that way, over which nothing may be mounted,
	// SHIELD_CACHE what is not to be changed but may be deleted. A name without
	// folders matches nothing.
	Vars map[string][]string
}

// A Policy is a compiled policy. Goroutines may share it.
type Policy struct {
	name        string
	fingerprint string
	set         rulefile.Set
	guards      list // deny, then verify: both ask what effects touch
	allow       list
}

func newPolicy(name, fingerprint string, set rulefile.Set, opts Options) *Policy {
	return &Policy{
		name:        name,
		fingerprint: fingerprint,
		set:         set,
		guards:      newList(slices.Concat(set.Deny, set.Verify), opts.Vars, false),
		allow:       newList(set.Allow, opts.Vars, true),
	}
}

// Name returns the preset's or the file's name.
func (p *Policy) Name() string { return p.name }

// Fingerprint returns "sha256:" and the hex digest of the effective rules. The
// folders of [Options.Vars] do not count: they are configuration.
func (p *Policy) Fingerprint() string { return p.fingerprint }

// nothing stands for what an action without effects does.
var nothing effect.Effect

// Judge decides a case: BLOCK by a deny rule, ESCALATE by a verify rule or
// where no rule matches, ALLOW by an allow rule. A rule whose condition fails
// blocks, with error "policy".
func (p *Policy) Judge(ctx context.Context, c *analysis.Case) (verdict.Verdict, error) {
	s := &search{ctx: ctx, c: c}
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
	r, err := p.allow.covering(s)
	if err != nil {
		return p.failed(err, p.allow.rules)
	}
	// Trying a rule may be what shows that not all of the text can be read.
	if v := escalation(c, denied, verified); v.Decision != verdict.None {
		return v, nil
	}
	if r != nil {
		return verdict.Verdict{
			Decision: verdict.Allow, Confidence: 1, Rule: r.Name,
			Reasoning: explain("allow", r, nil),
		}, nil
	}
	return verdict.Verdict{
		Decision: verdict.Escalate, Confidence: 0.7, NextTier: 1,
		Reasoning: "policy: no rule matches",
	}, nil
}

// escalation returns the strictest of the reasons to ask a higher tier, or no
// decision.
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
			Reasoning: "policy: not all of the action was examined: " + shown(c.Unexamined),
		}
	}
	return v
}

// failed returns the BLOCK of a rule that could not be tried, or the error
// itself if it is no rule's.
func (p *Policy) failed(err error, rules []rulefile.Rule) (verdict.Verdict, error) {
	var re *ruleError
	if !errors.As(err, &re) {
		return verdict.Verdict{}, err
	}
	name := rules[re.rule].Name
	return verdict.Verdict{
		Decision: verdict.Block, Confidence: 1, Rule: name, Error: "policy",
		Reasoning: "policy: rule " + name + " could not be tried: " + shown(re.err.Error()),
	}, nil
}
