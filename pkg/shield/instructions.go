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

// asksForInstructions are the findings about an edit of an agent instruction file.
var asksForInstructions = []string{"agent_identity", "doubt later"}

// ownInstructions answers the question about an edit of the project's own agent instruction file that
// the user saw in this session: the added and removed lines only describe facts, and no untrusted text
// has come in since.
func (p *Pipeline) ownInstructions(ctx context.Context, v verdict.Verdict, c *analysis.Case, r *sessionMemory) (verdict.Verdict, bool) {
	edit, ok := c.Edits()
	if !ok || !c.Tracked(edit.Path) {
		return v, false
	}
	s := r.session()
	i, now := s.Instruction(p.sessions, edit.Path)
	committed := c.Committed(edit.Path)
	next := p.sessions.NewInstruction(edit.Path)
	if i != nil {
		next = *i
		next.OthersChanged = !committed && (i.OthersChanged || i.Sum != now)
	} else {
		next.OthersChanged = !committed
	}
	if i == nil || *i != next {
		if p.sessions.Add(context.WithoutCancel(ctx), s, &session.Delta{Instruction: &next}) != nil {
			return v, false
		}
	}
	if i == nil || next.OthersChanged || i.Sum == "" || now == "" || i.Texts != s.UntrustedTexts() || !p.trustsProject || c.Action.MinTier > TierClassify || p.deniedBefore(c) {
		return v, false
	}
	if named, _ := s.Named(); objects.Forbidden(c, named, p.sessions.NameKey) != "" {
		return v, false
	}
	unplain := func(line string) bool { return !grounding.Plain(line) }
	if slices.ContainsFunc(edit.Come, unplain) || slices.ContainsFunc(edit.Gone, unplain) {
		return v, false
	}
	findings, _, err := p.findings(ctx, c)
	if err != nil || slices.ContainsFunc(findings, func(f string) bool { return !slices.Contains(asksForInstructions, f) }) {
		return v, false
	}
	return addFinding(c, TierClassify, verdict.Finding{Who: verdict.NoApproval, Source: byContext, Confidence: 1,
		Reasoning: "the user already approved this session's change of " + path.Base(edit.Path)}), true
}

// noteInstructionEdit records the content of an agent instruction file after an edit.
func (p *Pipeline) noteInstructionEdit(ctx context.Context, c *analysis.Case, r *sessionMemory) error {
	edit, ok := c.Edits()
	if !ok {
		return nil
	}
	i, now := r.session().Instruction(p.sessions, edit.Path)
	if i == nil || now == "" {
		return nil
	}
	i.Sum, i.Texts = now, r.session().UntrustedTexts()
	return p.sessions.Add(context.WithoutCancel(ctx), r.session(), &session.Delta{Instruction: i})
}
