package shield

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/grounding"
	"github.com/shieldcli/shield/pkg/grounding/objects"
	"github.com/shieldcli/shield/pkg/kind"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/verdict"
)

// findingsWaivedIfUserNamedObject are the rules of the presets whose question is answered when the user has named the
// object: they are about sending data, and destroying or changing something.
var findingsWaivedIfUserNamedObject = []string{
	"force_push_main", "cannot_be_undone", "changes_elsewhere", "ask_before_sending", "ask_before_uploading", "ask_before_changing_by_request", "ask_before_deleting",
	"ask_before_moving_away", "ask_before_changing_documents", "evaluate_remote_changes", "evaluate_moves", "evaluate_external_communication", "evaluate_file_writes",
	"evaluate_destructive_file_ops", "evaluate_uploads", "evaluate_outside_deletes", "evaluate_sends",
	"XP-011", "XP-013", "XP-020", // recursive deletion, a force push to a main branch, destruction of a remote resource
	"doubt other", // Tier 1's doubt about unusual effects; [objects.ObjectsUserMustName] returns an error if no object is named
	"doubt contact", "doubt outside", "doubt remote", "doubt " + string(effect.SendData), "doubt " + string(effect.ChangeRemoteSystem),
}

// adjustVerdictToMentionedObjects adjusts a verdict of the lower tiers to what the session's user and untrusted
// texts have said. The user's words are applied first. An action that would otherwise be allowed,
// or that the evaluator could allow, becomes a question for the user if an untrusted text named its
// object.
func (p *Pipeline) adjustVerdictToMentionedObjects(ctx context.Context, tier int, v verdict.Verdict, c *analysis.ActionCase, r *sessionMemory) verdict.Verdict {
	if !p.isSessionOfAgentHost(r) || v.ErrorCode != "" || v.Decision == verdict.Block || r.loadSession().Err() != nil {
		return v
	}
	if named, spoken := r.loadSession().NamedObjects(); spoken {
		v = p.adjustVerdictToUserNamedObjects(ctx, tier, v, c, r, named)
	}
	if tier == TierClassify && v.Decision == verdict.Escalate {
		if own, ok := p.allowAgentInstructionFileEdit(ctx, v, c, r); ok {
			return own
		}
	}
	if v.Decision == verdict.Allow || tier == TierClassify && v.NextTier < TierApprove {
		if why := p.untrustedTextMentionReason(ctx, c, r); why != "" {
			return p.askUser(why, tier, c)
		}
	}
	return v
}

// addFinding adds a finding to the trail as a step of a tier, and returns the finding as a verdict
// of that tier.
func addFinding(c *analysis.ActionCase, tier int, f verdict.Finding) verdict.Verdict {
	c.EarlierTierSteps = append(c.EarlierTierSteps, f.Step(tier))
	return f.Verdict(tier)
}

// judgeNameSessionContext is the JudgeName of a trail step whose reason is what the session's user has written
// or approved.
const judgeNameSessionContext = "context"

// isSessionOfAgentHost reports whether a memory belongs to a session of a host.
func (p *Pipeline) isSessionOfAgentHost(memory *sessionMemory) bool {
	return memory != nil && memory.earlierProcessSessionData == nil && p.agentHostName != "" && memory.key.ID != ""
}

// askUser turns a verdict into a question for the user, with the reason why.
func (p *Pipeline) askUser(why string, tier int, c *analysis.ActionCase) verdict.Verdict {
	return p.enforceMinTierAndAddToTrail(verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, Confidence: 1, ReasoningCannotLeakActionText: true, Reasoning: why}.Verdict(tier), tier, c, p.now())
}

// adjustVerdictToUserNamedObjects adjusts a verdict of the lower tiers to what the session's user has said. An ALLOW
// becomes a question if the user said that the action is not wanted, or if it deletes or overwrites
// a remote resource that the user did not name. A question becomes an ALLOW if the user has named
// all objects that it is about, with a verb for what the action does.
func (p *Pipeline) adjustVerdictToUserNamedObjects(ctx context.Context, tier int, v verdict.Verdict, c *analysis.ActionCase, r *sessionMemory, named []grounding.PromptNamedObject) verdict.Verdict {
	key := p.sessionStoreForJudging.KeyedNameHashHex
	if v.Decision == verdict.Allow {
		why := ""
		if name := objects.ForbiddenObjectName(c, named, key); name != "" {
			why = "the user said not to change " + name + "; ask the user first"
		} else if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.ChangeRemoteSystem && e.DestroysRemoteResource() }) && p.userGivenObjectNames(ctx, c, r, named, remoteResourceDestructionPredicate(c)) == nil {
			why = "deletes or overwrites a remote resource that the user did not name; ask the user to confirm"
		}
		if why == "" {
			return v
		}
		return p.askUser(why, tier, c)
	}
	if tier < TierClassify || p.usesStrictPolicyPreset || c.Action.MinAllowTier > TierClassify || p.wasSameTargetDeniedInSession(c) || objects.ForbiddenObjectName(c, named, key) != "" {
		return v
	}
	findings, met, err := p.ruleFindings(ctx, c)
	if err != nil || slices.ContainsFunc(findings, func(f string) bool { return !slices.Contains(findingsWaivedIfUserNamedObject, f) }) {
		return v
	}
	if kind.CheckApprovalReusable(c, findings) != nil { // a person must approve each action of this kind
		return v
	}
	asked := func(i int) bool { return met[i] }
	by := p.userGivenObjectNames(ctx, c, r, named, asked)
	if by == nil {
		return v
	}
	return addFinding(c, TierClassify, verdict.Finding{RequiredAuthority: verdict.AuthorityNotNeeded, JudgeName: judgeNameSessionContext, Confidence: 1, Reasoning: "the user named " + strings.Join(by, " and ") + ", so this action needs no approval"})
}

// untrustedTextMentionReason names the untrusted text that mentioned what an action fetches, installs or sends to, when
// neither the user nor the project mentioned it; "" if none did.
func (p *Pipeline) untrustedTextMentionReason(ctx context.Context, c *analysis.ActionCase, r *sessionMemory) string {
	s := r.loadSession()
	if s.UntrustedTextCount() == 0 {
		return ""
	}
	parts := objects.ExternalResources(c)
	lists := make([][]string, len(parts))
	for i := range parts {
		lists[i] = parts[i].CanonicalNames
	}
	all, more, err := p.sessionStoreForJudging.FirstUntrustedTextsMentioning(ctx, s, lists...)
	for i, part := range parts {
		heard := all[i]
		switch {
		case heard != nil && part.Host != "" && part.Host == heard.SourceWebHost: // a web page may name its own host: no reason to ask the user
			continue
		case heard == nil && !more && err == nil || p.sessionStoreForJudging.UserPromptsMentionAnyName(s, part.CanonicalNames):
			continue
		case heard == nil:
			heard = &session.UntrustedText{OriginDescription: "source unknown", ReceivedAt: s.StartTime()}
		}
		if !c.WorkspaceContainsAnyWord(part.CanonicalNames, heard.ReceivedAt) {
			return fmt.Sprintf("untrusted text (%[2]s) names %[1]s, which neither the user nor the project names: possible prompt injection; ask the user to confirm", part.CanonicalNames[0], heard.OriginDescription)
		}
	}
	return ""
}

// userGivenObjectNames returns the names with which the user named the objects of an action. It returns
// nil if the user did not name every object, or if an untrusted text mentions one of their names.
func (p *Pipeline) userGivenObjectNames(ctx context.Context, c *analysis.ActionCase, r *sessionMemory, named []grounding.PromptNamedObject, isAskedAboutEffect func(i int) bool) (names []string) {
	needs, err := objects.ObjectsUserMustName(c, isAskedAboutEffect)
	if err != nil || len(needs) == 0 {
		return nil
	}
	var all []string
	for i := range needs {
		by := needs[i].MatchedName(named, p.sessionStoreForJudging.KeyedNameHashHex)
		where := by == "" && needs[i].IsUserMentionSufficient && p.sessionStoreForJudging.UserPromptsMentionAnyName(r.loadSession(), needs[i].AlternativeNames) // the object is only a place, such as a cluster, and the user has mentioned the place
		if by == "" && !where {
			return nil
		}
		all = append(all, needs[i].AlternativeNames...)
		if !where && !slices.Contains(names, by) {
			names = append(names, by)
		}
	}
	if heard, more, err := p.sessionStoreForJudging.FirstUntrustedTextsMentioning(ctx, r.loadSession(), all); heard[0] != nil || more || err != nil {
		return nil
	}
	return names
}

// remoteResourceDestructionPredicate returns a function that reports whether effect i destroys a remote resource.
func remoteResourceDestructionPredicate(c *analysis.ActionCase) func(i int) bool {
	return func(i int) bool {
		return c.Effects[i].Kind == effect.ChangeRemoteSystem && c.Effects[i].DestroysRemoteResource()
	}
}

// mustAskDespiteAdvanceApproval reports whether an approval for several actions does not cover this one: the session's
// user said that it is not wanted, or an untrusted text named its object.
func (p *Pipeline) mustAskDespiteAdvanceApproval(ctx context.Context, c *analysis.ActionCase) bool {
	r, ok := c.SessionState.(*sessionMemory)
	if !ok || !p.isSessionOfAgentHost(r) {
		return false
	}
	named, spoken := r.loadSession().NamedObjects()
	return spoken && objects.ForbiddenObjectName(c, named, p.sessionStoreForJudging.KeyedNameHashHex) != "" || p.untrustedTextMentionReason(ctx, c, r) != ""
}

// objectsMentionedByUser returns the objects of a case that the session's user mentioned. It leaves out objects
// that an untrusted text mentions too, but not an object that the user said not to change.
func (p *Pipeline) objectsMentionedByUser(ctx context.Context, c *analysis.ActionCase, r *sessionMemory) (out []analysis.UserMentionedObject) {
	if !p.isSessionOfAgentHost(r) || r.loadSession().Err() != nil {
		return nil
	}
	named, spoken := r.loadSession().NamedObjects()
	if !spoken {
		return nil
	}
	key := p.sessionStoreForJudging.KeyedNameHashHex
	if name := objects.ForbiddenObjectName(c, named, key); name != "" {
		out = append(out, analysis.UserMentionedObject{MentionedObjectName: name, IsForbiddenByUser: true})
	}
	var names []string
	var lists [][]string
	for _, n := range objects.NameableObjects(c) {
		if by := n.MatchedName(named, key); by != "" {
			names, lists = append(names, by), append(lists, n.AlternativeNames)
		}
	}
	heard, more, err := p.sessionStoreForJudging.FirstUntrustedTextsMentioning(ctx, r.loadSession(), lists...)
	for i, by := range names {
		if heard[i] == nil && !more && err == nil && !slices.Contains(out, analysis.UserMentionedObject{MentionedObjectName: by}) {
			out = append(out, analysis.UserMentionedObject{MentionedObjectName: by})
		}
	}
	return out
}
