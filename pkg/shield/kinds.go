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

// ruleFindings returns what the rules of tiers 0 and 1 and the model find in a case, and for each effect
// whether a rule asks about it.
func (p *Pipeline) ruleFindings(ctx context.Context, c *analysis.Case) (all []string, met []bool, err error) {
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
	if len(rules) > 0 { // a classifier rule may be about any part of the action
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
	findings, met, err := p.ruleFindings(ctx, c)
	if err != nil {
		return k, nil, err
	}
	if f := slices.IndexFunc(findings, allowsNoException); f >= 0 {
		return k, nil, fmt.Errorf("the rule %s allows no exceptions", findings[f])
	}
	k, err = kind.Of(c, findings, func(i int) bool { return met[i] })
	return k, findings, err
}

// kindApprovalScope names the session in which an approval of a kind holds, with its user, host, roots and
// fingerprints; "" if an approval can hold in none. Without a host the session is the agent's claim,
// so the approval stays in its stream.
func (p *Pipeline) kindApprovalScope(c *analysis.Case) string {
	stream := ""
	if r, ok := c.Memory.(*sessionMemory); ok && r != nil {
		stream = r.pipeline.streamID
	}
	if p.host == "" && stream == "" || p.host != "" && c.Action.Session == "" || len(c.Place().Roots) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", []string{
		p.approvalInstallationID, p.caller.User, p.host, stream, c.Action.Session, strings.Join(c.Place().Roots, "\n"),
		p.fingerprints.Policy, p.fingerprints.Rules, p.fingerprints.Model, p.fingerprints.Config,
	})
}

// approvalEndingLabels returns the session's labels that end approvals given before the label came.
func approvalEndingLabels(c *analysis.Case) string {
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

// newKindApproval returns the approval that a person can give for the kind of a case.
func (p *Pipeline) newKindApproval(c *analysis.Case, k kind.Kind) approve.AdvanceApproval {
	return approve.AdvanceApproval{Kind: k, What: p.redactor.String(approve.EffectText(c, nil)), Labels: approvalEndingLabels(c), Session: c.Action.Session}
}

// offerKindApproval describes what an approval of all actions of a case's kind would cover in its session, and
// returns the function that saves it.
func (p *Pipeline) offerKindApproval(ctx context.Context, c *analysis.Case) (string, func(ctx context.Context, by string) error) {
	p = p.judgingPipeline(c)
	within := p.kindApprovalScope(c)
	if p.kindApprovals == nil || within == "" || p.wasDeniedBefore(c) {
		return "", nil
	}
	k, _, err := p.kindOf(ctx, c)
	if err != nil {
		return "", nil
	}
	s := p.newKindApproval(c, k)
	return k.String(), func(ctx context.Context, by string) error {
		s.By = by
		return p.kindApprovals.AddKind(ctx, within, s)
	}
}

// wasDeniedBefore reports whether an action like this was denied in the session.
func (p *Pipeline) wasDeniedBefore(c *analysis.Case) bool {
	r, ok := c.Memory.(*sessionMemory)
	return ok && r != nil && r.priorStageMemory == nil && (r.loadSession().DenialOfSameTarget(c) != nil || r.denialSession().DenialOfSameTarget(c) != nil)
}

// allowedByKind returns an ALLOW if a person has approved all actions of a case's kind.
func (p *Pipeline) allowedByKind(ctx context.Context, c *analysis.Case) (verdict.Verdict, bool) {
	var none verdict.Verdict
	if p.kindApprovals == nil || !acceptsPersonAnswer(c) {
		return none, false
	}
	var list []approve.AdvanceApproval
	if within := p.kindApprovalScope(c); within != "" {
		kinds, err := p.kindApprovals.Kinds(ctx, within)
		if err != nil {
			return none, false // when in doubt, ask
		}
		labels := approvalEndingLabels(c)
		list = slices.DeleteFunc(kinds, func(s approve.AdvanceApproval) bool { return s.Labels != labels })
	}
	if p.answersFile != "" {
		stored, err := approve.Answers(p.answersFile)
		if err != nil && p.notify != nil {
			p.notify("shield ignores the answers of 'shield allow'; correct or delete answers.yaml: " + err.Error())
		}
		for _, s := range stored {
			if s.Project == "" || slices.Contains(c.Place().Roots, s.Project) {
				list = append(list, s)
			}
		}
	}
	if len(list) == 0 || p.wasDeniedBefore(c) || p.mustStillAsk(ctx, c) {
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
					findings, _, _ = p.ruleFindings(ctx, c)
				}
				if k, err := kind.OfSingleAction(c, findings); err == nil && findings != nil {
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
			v := addFinding(c, TierApprove, verdict.Finding{Authority: verdict.Person, Source: tierSources[TierApprove], Confidence: 1, Reasoning: fmt.Sprintf("%s allowed this kind of action %s (%s)", s.By, scope, s.Name)})
			v.Channel, v.By = "kind", s.By
			return v, true
		}
	}
	return none, false
}

// describeKindApproval adds to a refusal what an approval of several actions would cover.
func (p *Pipeline) describeKindApproval(ctx context.Context, r *approve.Refusal, c *analysis.Case) {
	r.KindSession = p.kindApprovalScope(c)
	for _, root := range c.Place().Roots {
		if cwd := c.Place().CWD; cwd == root || strings.HasPrefix(cwd, root+"/") {
			r.Roots = append(r.Roots, root)
		}
	}
	k, findings, err := p.kindOf(ctx, c)
	if p.wasDeniedBefore(c) {
		r.NoKindReason = "the user or shield denied an action of the same kind in this session"
		return
	}
	if err == nil {
		s := p.newKindApproval(c, k)
		r.KindApproval, r.KindExamples = &s, p.kindExamples(ctx, c.Action, &k)
	} else {
		r.NoKindReason = err.Error()
	}
	if findings == nil {
		return
	}
	if k, err := kind.OfSingleAction(c, findings); err == nil {
		s := p.newKindApproval(c, k)
		r.ExactActionApproval = &s
	}
}

// kindExamples returns example actions that an approval of the kind would cover as well.
func (p *Pipeline) kindExamples(ctx context.Context, a *action.Action, k *kind.Kind) (out []string) {
	covered := kind.CoveredVariants(a, func(n *action.Action) bool {
		own, _, err := p.kindOf(ctx, p.analyzer.Case(n))
		return err == nil && k.Covers(&own)
	})
	for _, n := range covered {
		out = append(out, approve.EffectText(p.analyzer.Case(n), nil))
	}
	return out
}
