package shield

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/kind"
	"github.com/shieldcli/shield/pkg/verdict"
)

// findings returns what the rules of tiers 0 and 1 and the model find in a case, and for each effect
// whether a rule asks about it.
func (p *Pipeline) findings(ctx context.Context, c *analysis.Case) (all []string, met []bool, err error) {
	all, met, err = p.rules.Findings(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	k, ok := p.tiers[TierClassify].(*classify.Classifier)
	if !ok {
		return nil, nil, fmt.Errorf("internal error: Tier 1 is not the classifier; please report this")
	}
	rules, doubts, suspected, err := k.Findings(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range doubts {
		all = append(all, "doubt "+d)
	}
	if suspected {
		all = append(all, kind.ModelFinding)
	}
	if len(rules) > 0 { // these rules may be about any part of the action
		for i := range met {
			met[i] = true
		}
	}
	all = append(all, rules...)
	sorted.Strings(all)
	return slices.Compact(all), met, nil
}

// kindOf returns the kind of a case, or an error that says why it has none.
func (p *Pipeline) kindOf(ctx context.Context, c *analysis.Case) (k kind.Kind, findings []string, err error) {
	findings, met, err := p.findings(ctx, c)
	if err != nil {
		return k, nil, err
	}
	if f := slices.IndexFunc(findings, allowsNoException); f >= 0 {
		return k, nil, fmt.Errorf("the rule %s allows no exceptions", findings[f])
	}
	k, err = kind.Of(c, findings, func(i int) bool { return met[i] })
	return k, findings, err
}

// within names the session in which an approval of a kind holds, with its user, host, roots and
// fingerprints; "" if an approval can hold in none. Without a host the session is the agent's claim,
// so the approval stays in its stream.
func (p *Pipeline) within(c *analysis.Case) string {
	stream := ""
	if r, ok := c.Memory.(*sessionMemory); ok && r != nil {
		stream = r.p.stream
	}
	if p.host == "" && stream == "" || p.host != "" && c.Action.Session == "" || len(c.At().Roots) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", []string{
		p.approvals, p.caller.User, p.host, stream, c.Action.Session, strings.Join(c.At().Roots, "\n"),
		p.prints.Policy, p.prints.Rules, p.prints.Model, p.prints.Config,
	})
}

// labelsEndingAnswers returns the session's labels that end approvals given before the label came.
func labelsEndingAnswers(c *analysis.Case) string {
	var out []string
	if c.Memory != nil {
		for _, l := range c.Memory.Labels() {
			if l == effect.LabelSecret || l == effect.LabelUntrusted {
				out = append(out, string(l))
			}
		}
	}
	sorted.Strings(out)
	return strings.Join(out, " ")
}

// standing returns the approval that a person can give for the kind of a case.
func (p *Pipeline) standing(c *analysis.Case, k kind.Kind) approve.AdvanceApproval {
	return approve.AdvanceApproval{Kind: k, What: p.redactor.String(approve.EffectText(c, nil)), Labels: labelsEndingAnswers(c), Session: c.Action.Session}
}

// offerKind describes what an approval of all actions of a case's kind would cover in its session, and
// returns the function that saves it.
func (p *Pipeline) offerKind(ctx context.Context, c *analysis.Case) (string, func(ctx context.Context, by string) error) {
	p = p.judging(c)
	within := p.within(c)
	if p.kinds == nil || within == "" || p.deniedBefore(c) {
		return "", nil
	}
	k, _, err := p.kindOf(ctx, c)
	if err != nil {
		return "", nil
	}
	s := p.standing(c, k)
	return k.String(), func(ctx context.Context, by string) error {
		s.By = by
		return p.kinds.AddKind(ctx, within, s)
	}
}

// deniedBefore reports whether an action like this was denied in the session.
func (p *Pipeline) deniedBefore(c *analysis.Case) bool {
	r, ok := c.Memory.(*sessionMemory)
	return ok && r != nil && r.known == nil && (r.session().DenialOfSame(c) != nil || r.denials().DenialOfSame(c) != nil)
}

// answered returns an ALLOW if a person has approved all actions of a case's kind.
func (p *Pipeline) answered(ctx context.Context, c *analysis.Case) (verdict.Verdict, bool) {
	var none verdict.Verdict
	if p.kinds == nil || !answerCounts(c) {
		return none, false
	}
	var list []approve.AdvanceApproval
	if within := p.within(c); within != "" {
		kinds, err := p.kinds.Kinds(ctx, within)
		if err != nil {
			return none, false // when in doubt, ask
		}
		labels := labelsEndingAnswers(c)
		list = slices.DeleteFunc(kinds, func(s approve.AdvanceApproval) bool { return s.Labels != labels })
	}
	if p.answers != "" {
		stored, err := approve.Answers(p.answers)
		if err != nil && p.notify != nil {
			p.notify("the answers of 'shield allow' in answers.yaml do not count: " + err.Error())
		}
		for _, s := range stored {
			if s.Project == "" || slices.Contains(c.At().Roots, s.Project) {
				list = append(list, s)
			}
		}
	}
	if len(list) == 0 || p.deniedBefore(c) || p.keepsAsking(ctx, c) {
		return none, false
	}
	own, findings, err := p.kindOf(ctx, c)
	var exact *kind.Kind
	for i := range list {
		s := &list[i]
		covers := err == nil && !s.Kind.IsExact() && s.Kind.Covers(&own)
		if s.Kind.IsExact() && slices.Contains(s.Kind.Facts, "action "+c.Action.Hash) {
			if exact == nil {
				if findings == nil {
					findings, _, _ = p.findings(ctx, c)
				}
				if k, err := kind.Exact(c, findings); err == nil && findings != nil {
					exact = &k
				} else {
					exact = &kind.Kind{}
				}
			}
			covers = s.Kind.Covers(exact)
		}
		if covers {
			scope := "for this session"
			switch {
			case s.Session == "" && s.Project == "":
				scope = "everywhere"
			case s.Session == "":
				scope = "in this project"
			}
			v := addFinding(c, TierApprove, verdict.Finding{Who: verdict.Person, Source: sources[TierApprove], Confidence: 1, Reasoning: fmt.Sprintf("%s has allowed this kind %s (%s)", s.By, scope, s.Name)})
			v.Channel, v.By = "kind", s.By
			return v, true
		}
	}
	return none, false
}

// describe adds to a refusal what an approval of several actions would cover.
func (p *Pipeline) describe(ctx context.Context, r *approve.Refusal, c *analysis.Case) {
	r.KindSession = p.within(c)
	for _, root := range c.At().Roots {
		if cwd := c.At().CWD; cwd == root || strings.HasPrefix(cwd, root+"/") {
			r.Roots = append(r.Roots, root)
		}
	}
	k, findings, err := p.kindOf(ctx, c)
	if p.deniedBefore(c) {
		r.NoKindReason = "an action of the same kind was denied in this session"
		return
	}
	if err == nil {
		s := p.standing(c, k)
		r.Kind, r.KindExamples = &s, p.neighbours(ctx, c.Action, &k)
	} else {
		r.NoKindReason = err.Error()
	}
	if findings == nil {
		return
	}
	if k, err := kind.Exact(c, findings); err == nil {
		s := p.standing(c, k)
		r.ExactKind = &s
	}
}

// neighbours returns example actions that an approval of the kind would cover as well.
func (p *Pipeline) neighbours(ctx context.Context, a *action.Action, k *kind.Kind) (out []string) {
	covered := kind.Neighbours(a, func(n *action.Action) bool {
		own, _, err := p.kindOf(ctx, p.analyzer.Case(n))
		return err == nil && k.Covers(&own)
	})
	for _, n := range covered {
		out = append(out, approve.EffectText(p.analyzer.Case(n), nil))
	}
	return out
}
