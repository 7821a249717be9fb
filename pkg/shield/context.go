package shield

import (
	"context"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/grounding"
	"github.com/shieldcli/shield/pkg/grounding/objects"
	"github.com/shieldcli/shield/pkg/kind"
	"github.com/shieldcli/shield/pkg/verdict"
)

// softRules are the rules of the presets whose question the user has answered by naming the
// object: that data is sent, that something is destroyed or changed.
var softRules = []string{
	"force_push_main", "cannot_be_undone", "changes_elsewhere", "ask_before_sending", "ask_before_uploading", "ask_before_changing_by_request", "ask_before_deleting",
	"ask_before_moving_away", "ask_before_changing_documents", "evaluate_remote_changes", "evaluate_moves", "evaluate_external_communication", "evaluate_file_writes",
	"evaluate_destructive_file_ops", "evaluate_uploads", "evaluate_outside_deletes", "evaluate_sends",
	"XP-011", "XP-013", "XP-020", // recursive deletion, a force push to a main branch, destruction of a remote resource
	"doubt other", // what is not one of those has no name, see [objects.Needs]
	"doubt contact", "doubt outside", "doubt remote", "doubt " + string(effect.SendData), "doubt " + string(effect.ChangeRemote),
}

// inContext returns what a verdict of the lower tiers becomes by what the user of the session
// has said: an ALLOW is a question where the user has said that the action is not wanted, or
// where it destroys a remote resource that the user did not name; a question about objects
// that the user has named, with a verb of what is done to them, is answered.
func (p *Pipeline) inContext(ctx context.Context, tier int, v verdict.Verdict, c *analysis.Case, r *recall) verdict.Verdict {
	if r == nil || r.known != nil || p.host == "" || r.key.ID == "" || v.Error != "" || v.Decision == verdict.Block {
		return v
	}
	named, spoken := r.session().Named()
	if !spoken || r.session().Err() != nil {
		return v
	}
	key := p.sessions.NameKey
	if v.Decision == verdict.Allow {
		why := ""
		if name := objects.Forbidden(c, named, key); name != "" {
			why = "the user said not to change " + name
		} else if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.ChangeRemote && e.Destroys() }) && p.grounded(ctx, c, r, named, destroysOnly(c)) == nil {
			why = "destroys a remote resource that the user did not name"
		}
		if why == "" {
			return v
		}
		asked := verdict.Verdict{Decision: verdict.Escalate, Confidence: 1, NextTier: TierApprove, Fixed: true, Reasoning: why}
		return p.noted(asked, tier, c, p.now())
	}
	if tier < TierClassify || p.strict || p.deniedBefore(c) || objects.Forbidden(c, named, key) != "" {
		return v
	}
	findings, met, err := p.findings(ctx, c)
	if err != nil || slices.ContainsFunc(findings, func(f string) bool { return !slices.Contains(softRules, f) }) {
		return v
	}
	asked := func(i int) bool { return met[i] }
	if _, err := kind.Of(c, findings, asked); err != nil { // what a person sees each time
		return v
	}
	by := p.grounded(ctx, c, r, named, asked)
	if by == nil {
		return v
	}
	allowed := verdict.Verdict{Decision: verdict.Allow, Tier: TierClassify, Confidence: 1, Reasoning: "the user named " + strings.Join(by, " and ")}
	c.Trail = append(c.Trail, verdict.Step{Tier: TierClassify, Source: "context", Decision: allowed.Decision, Confidence: 1, Reasoning: allowed.Reasoning})
	return allowed
}

// grounded returns the names by which the user has named the objects of an action; nil unless
// all are named, none of them in a text that anybody may have written.
func (p *Pipeline) grounded(ctx context.Context, c *analysis.Case, r *recall, named []grounding.Named, met func(i int) bool) (names []string) {
	needs, err := objects.Needs(c, met)
	if err != nil || len(needs) == 0 {
		return nil
	}
	for i := range needs {
		by := needs[i].Met(named, p.sessions.NameKey)
		if by == "" {
			return nil
		}
		if heard, err := p.sessions.HasHeard(ctx, r.session(), needs[i].Names); heard || err != nil {
			return nil
		}
		if !slices.Contains(names, by) {
			names = append(names, by)
		}
	}
	return names
}

// destroysOnly reports of an effect whether it destroys something elsewhere.
func destroysOnly(c *analysis.Case) func(i int) bool {
	return func(i int) bool { return c.Effects[i].Kind == effect.ChangeRemote && c.Effects[i].Destroys() }
}

// forbiddenByUser reports whether the user of the session has said that an action is not
// wanted.
func (p *Pipeline) forbiddenByUser(c *analysis.Case) bool {
	r, ok := c.Memory.(*recall)
	if !ok || r == nil || r.known != nil || p.host == "" || r.key.ID == "" {
		return false
	}
	named, spoken := r.session().Named()
	return spoken && objects.Forbidden(c, named, p.sessions.NameKey) != ""
}
