package shield

import (
	"context"
	"path"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/grounding"
	"github.com/shieldcli/shield/pkg/grounding/objects"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/verdict"
)

// allowedInstructionFileEditFindings are the findings with which [Pipeline.allowAgentInstructionFileEdit] may
// allow an edit: they are about the kind of file, not about the text that the edit writes.
var allowedInstructionFileEditFindings = []string{"agent_identity", "doubt later"}

// allowAgentInstructionFileEdit returns an ALLOW and true for a further edit of the project's own agent
// instruction file, after the user has approved an edit of the file in this session. The added and removed lines
// must be plain statements without instructions, and no untrusted text may have come into the session since the
// last edit. Otherwise it returns v and false.
func (p *Pipeline) allowAgentInstructionFileEdit(ctx context.Context, v verdict.Verdict, c *analysis.ActionCase, r *sessionMemory) (verdict.Verdict, bool) {
	edit, ok := c.FindAgentInstructionsEdit()
	if !ok || !c.IsTracked(edit.Path) {
		return v, false
	}
	s := r.loadSession()
	i, now := s.FindInstructionFile(p.sessionStoreForJudging, edit.Path)
	committed := c.IsUnchangedSinceLastCommit(edit.Path)
	next := p.sessionStoreForJudging.NewChangedInstructionFile(edit.Path)
	if i != nil {
		next = *i
		next.HasChangesOutsideSession = !committed && (i.HasChangesOutsideSession || i.ContentHash != now)
	} else {
		next.HasChangesOutsideSession = !committed
	}
	if i == nil || *i != next {
		if p.sessionStoreForJudging.Add(context.WithoutCancel(ctx), s, &session.RecordDelta{ChangedInstructionFile: &next}) != nil {
			return v, false
		}
	}
	if i == nil || next.HasChangesOutsideSession || i.ContentHash == "" || now == "" || i.UntrustedTextCountAtLastChange != s.UntrustedTextCount() || !p.asksOncePerEditedInstructionFile || c.Action.MinAllowTier > TierClassify || p.wasSameTargetDeniedInSession(c) {
		return v, false
	}
	if named, _ := s.NamedObjects(); objects.ForbiddenObjectName(c, named, p.sessionStoreForJudging.KeyedNameHashHex) != "" {
		return v, false
	}
	unplain := func(line string) bool { return !grounding.IsInstructionFreeStatement(line) }
	if slices.ContainsFunc(edit.AddedLines, unplain) || slices.ContainsFunc(edit.RemovedLines, unplain) {
		return v, false
	}
	findings, _, err := p.ruleFindings(ctx, c)
	if err != nil || slices.ContainsFunc(findings, func(f string) bool { return !slices.Contains(allowedInstructionFileEditFindings, f) }) {
		return v, false
	}
	return addFinding(c, TierClassify, verdict.Finding{RequiredAuthority: verdict.AuthorityNotNeeded, JudgeName: judgeNameSessionContext, Confidence: 1,
		Reasoning: "the user already approved this session's change of " + path.Base(edit.Path)}), true
}

// recordAgentInstructionFileEdit records the content of an agent instruction file after an edit.
func (p *Pipeline) recordAgentInstructionFileEdit(ctx context.Context, c *analysis.ActionCase, r *sessionMemory) error {
	edit, ok := c.FindAgentInstructionsEdit()
	if !ok {
		return nil
	}
	i, now := r.loadSession().FindInstructionFile(p.sessionStoreForJudging, edit.Path)
	if i == nil || now == "" {
		return nil
	}
	i.ContentHash, i.UntrustedTextCountAtLastChange = now, r.loadSession().UntrustedTextCount()
	return p.sessionStoreForJudging.Add(context.WithoutCancel(ctx), r.loadSession(), &session.RecordDelta{ChangedInstructionFile: i})
}
