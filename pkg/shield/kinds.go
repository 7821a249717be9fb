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
func (p *Pipeline) ruleFindings(ctx context.Context, c *analysis.ActionCase) (findingNames []string, effectMatched []bool, err error) {
	findingNames, effectMatched, err = p.rules.MatchingDenyAndVerifyRules(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	k, ok := p.tiers[TierClassify].(*classify.Classifier)
	if !ok {
		return nil, nil, fmt.Errorf("internal error: Tier 1 is not the classifier; please report this")
	}
	rules, doubts, suspected, err := k.EvidenceAgainstAction(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range doubts {
		findingNames = append(findingNames, "doubt "+d)
	}
	if suspected {
		findingNames = append(findingNames, kind.ModelSuspicionFinding)
	}
	if len(rules) > 0 { // a classifier rule may be about any part of the action
		for i := range effectMatched {
			effectMatched[i] = true
		}
	}
	findingNames = append(findingNames, rules...)
	sorted.SortStrings(findingNames)
	return slices.Compact(findingNames), effectMatched, nil
}

// actionKindForApproval returns the kind of a case, or an error that says why it has none.
func (p *Pipeline) actionKindForApproval(ctx context.Context, c *analysis.ActionCase) (k kind.ActionKind, findings []string, err error) {
	findings, met, err := p.ruleFindings(ctx, c)
	if err != nil {
		return k, nil, err
	}
	if f := slices.IndexFunc(findings, isNonOverridableRule); f >= 0 {
		return k, nil, fmt.Errorf("the rule %s allows no exceptions", findings[f])
	}
	k, err = kind.OfAction(c, findings, func(i int) bool { return met[i] })
	return k, findings, err
}

// advanceApprovalScope returns the key of the session in which a person's approval of a kind of actions holds:
// installation, user, host, stream, session, roots and fingerprints. It is "" if no approval can hold: without
// roots, for a host's action without a session, or without a host outside a stream. Without a host only the
// agent names the session, so an approval holds only in the current stream.
func (p *Pipeline) advanceApprovalScope(c *analysis.ActionCase) string {
	stream := ""
	if r, ok := c.SessionState.(*sessionMemory); ok && r != nil {
		stream = r.pipeline.actionStreamID
	}
	if p.agentHostName == "" && stream == "" || p.agentHostName != "" && c.Action.Session == "" || len(c.ExecutionContext().WorkspaceRoots) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", []string{
		p.installationIDForApprovalKeys, p.caller.User, p.agentHostName, stream, c.Action.Session, strings.Join(c.ExecutionContext().WorkspaceRoots, "\n"),
		p.fingerprints.Policy, p.fingerprints.Rules, p.fingerprints.Model, p.fingerprints.Config,
	})
}

// approvalInvalidatingTaintLabels returns the session labels, sorted, whose arrival ends a person's
// approvals of kinds of actions: a credential was read, or untrusted text came in. An approval holds while the
// result is the same as when it was given.
func approvalInvalidatingTaintLabels(c *analysis.ActionCase) string {
	var out []string
	if c.SessionState != nil {
		for _, l := range c.SessionState.Labels() {
			if l == effect.LabelFromCredentialLocation || l == effect.LabelUntrusted {
				out = append(out, string(l))
			}
		}
	}
	sorted.SortStrings(out)
	return strings.Join(out, " ")
}

// newAdvanceApproval returns the approval that a person can give for the kind of a case.
func (p *Pipeline) newAdvanceApproval(c *analysis.ActionCase, k kind.ActionKind) approve.AdvanceApproval {
	return approve.AdvanceApproval{Kind: k, ApprovedActionText: p.redactor.RedactText(approve.ActionPartCausingEffect(c, nil)), SpaceSeparatedSessionTaintLabels: approvalInvalidatingTaintLabels(c), Session: c.Action.Session}
}

// offerAdvanceApproval describes what an approval of all actions of a case's kind would cover in its session, and
// returns the function that saves it.
func (p *Pipeline) offerAdvanceApproval(ctx context.Context, c *analysis.ActionCase) (string, func(ctx context.Context, by string) error) {
	p = p.pipelineJudgingCase(c)
	within := p.advanceApprovalScope(c)
	if p.personDecisionStore == nil || within == "" || p.wasSameTargetDeniedInSession(c) {
		return "", nil
	}
	k, _, err := p.actionKindForApproval(ctx, c)
	if err != nil {
		return "", nil
	}
	s := p.newAdvanceApproval(c, k)
	return approve.DescribeActionKind(&k), func(ctx context.Context, by string) error {
		s.By = by
		return p.personDecisionStore.AddAdvanceApproval(ctx, within, s)
	}
}

// wasSameTargetDeniedInSession reports whether an action with the same target was denied in the
// session.
func (p *Pipeline) wasSameTargetDeniedInSession(c *analysis.ActionCase) bool {
	r, ok := c.SessionState.(*sessionMemory)
	return ok && r != nil && r.earlierProcessSessionData == nil && (r.loadSession().DenialOfSameTarget(c) != nil || r.denialCountingSession().DenialOfSameTarget(c) != nil)
}

// allowedByAdvanceApproval returns an ALLOW if a person has approved all actions of a case's kind.
func (p *Pipeline) allowedByAdvanceApproval(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, bool) {
	var none verdict.Verdict
	if p.personDecisionStore == nil || !canPersonDecideCase(c) {
		return none, false
	}
	var list []approve.AdvanceApproval
	if within := p.advanceApprovalScope(c); within != "" {
		kinds, err := p.personDecisionStore.AdvanceApprovals(ctx, within)
		if err != nil {
			return none, false // when in doubt, ask
		}
		labels := approvalInvalidatingTaintLabels(c)
		list = slices.DeleteFunc(kinds, func(s approve.AdvanceApproval) bool { return s.SpaceSeparatedSessionTaintLabels != labels })
	}
	if p.advanceApprovalsPath != "" {
		stored, err := approve.ReadAdvanceApprovals(p.advanceApprovalsPath)
		if err != nil && p.notifyUser != nil {
			p.notifyUser("shield ignores the answers of 'shield allow'; correct or delete answers.yaml: " + err.Error())
		}
		for _, s := range stored {
			if s.Project == "" || slices.Contains(c.ExecutionContext().WorkspaceRoots, s.Project) {
				list = append(list, s)
			}
		}
	}
	if len(list) == 0 || p.wasSameTargetDeniedInSession(c) || p.mustAskDespiteAdvanceApproval(ctx, c) {
		return none, false
	}
	own, findings, err := p.actionKindForApproval(ctx, c)
	var exact *kind.ActionKind
	for i := range list {
		s := &list[i]
		covers := err == nil && !s.Kind.CoversOnlyOneAction() && s.Kind.Covers(&own)
		if s.Kind.CoversOnlyOneAction() && slices.Contains(s.Kind.ActionFactTexts, "action "+c.Action.TypeAndPayloadHash) {
			if exact == nil {
				if findings == nil {
					findings, _, _ = p.ruleFindings(ctx, c)
				}
				if k, err := kind.OfOnlyThisAction(c, findings); err == nil && findings != nil {
					exact = &k
				} else {
					exact = &kind.ActionKind{}
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
			v := addFinding(c, TierApprove, verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, JudgeName: judgeNameByTier[TierApprove], Confidence: 1, Reasoning: fmt.Sprintf("%s allowed this kind of action %s (%s)", s.By, scope, s.Name)})
			v.AnswerChannel, v.AnsweredBy = "kind", s.By
			return v, true
		}
	}
	return none, false
}

// addAdvanceApprovalToRefusal adds to a refusal what an approval of several actions would cover.
func (p *Pipeline) addAdvanceApprovalToRefusal(ctx context.Context, r *approve.Refusal, c *analysis.ActionCase) {
	r.AdvanceApprovalSessionKey = p.advanceApprovalScope(c)
	for _, root := range c.ExecutionContext().WorkspaceRoots {
		if cwd := c.ExecutionContext().CWD; cwd == root || strings.HasPrefix(cwd, root+"/") {
			r.WorkspaceRoots = append(r.WorkspaceRoots, root)
		}
	}
	k, findings, err := p.actionKindForApproval(ctx, c)
	if p.wasSameTargetDeniedInSession(c) {
		r.NoAdvanceApprovalReason = "the user or shield denied an action of the same kind in this session"
		return
	}
	if err == nil {
		s := p.newAdvanceApproval(c, k)
		r.OfferedAdvanceApproval, r.AdvanceApprovalActionExamples = &s, p.advanceApprovalExamples(ctx, c.Action, &k)
	} else {
		r.NoAdvanceApprovalReason = err.Error()
	}
	if findings == nil {
		return
	}
	if k, err := kind.OfOnlyThisAction(c, findings); err == nil {
		s := p.newAdvanceApproval(c, k)
		r.ExactActionApproval = &s
	}
}

// advanceApprovalExamples returns example actions that an approval of the kind would cover as well.
func (p *Pipeline) advanceApprovalExamples(ctx context.Context, a *action.Action, k *kind.ActionKind) (out []string) {
	covered := kind.CoveredVariants(a, func(n *action.Action) bool {
		own, _, err := p.actionKindForApproval(ctx, p.analyzer.AnalyzeAction(n))
		return err == nil && k.Covers(&own)
	})
	for _, n := range covered {
		out = append(out, approve.ActionPartCausingEffect(p.analyzer.AnalyzeAction(n), nil))
	}
	return out
}
