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

// inContext returns what a verdict of the lower tiers becomes by what is known of the words of
// the user of the session, and of others: what the user has said decides, and what else they
// allow, or the evaluator might, is a question for the user if a text of others named it.
func (p *Pipeline) inContext(ctx context.Context, tier int, v verdict.Verdict, c *analysis.Case, r *sessionMemory) verdict.Verdict {
	if !p.inSession(r) || v.Error != "" || v.Decision == verdict.Block || r.session().Err() != nil {
		return v
	}
	if named, spoken := r.session().Named(); spoken {
		v = p.asSaid(ctx, tier, v, c, r, named)
	}
	if tier == TierClassify && v.Decision == verdict.Escalate {
		if own, ok := p.ownInstructions(ctx, v, c, r); ok {
			return own
		}
	}
	if v.Decision == verdict.Allow || tier == TierClassify && v.NextTier < TierApprove {
		if why := p.suggested(ctx, c, r); why != "" {
			return p.askUser(why, tier, c)
		}
	}
	return v
}

// addFinding notes a finding that a tier goes by in the trail, and returns what it decides.
func addFinding(c *analysis.Case, tier int, f verdict.Finding) verdict.Verdict {
	c.Trail = append(c.Trail, f.Step(tier))
	return f.Verdict(tier)
}

// byContext is the source of a step in the trail.
const byContext = "context"

// inSession reports whether a memory is that of a session of a host.
func (p *Pipeline) inSession(r *sessionMemory) bool {
	return r != nil && r.known == nil && p.host != "" && r.key.ID != ""
}

// askUser returns the question for the user that the words of others, or the user's own, make
// of a verdict.
func (p *Pipeline) askUser(why string, tier int, c *analysis.Case) verdict.Verdict {
	return p.noted(verdict.Finding{Who: verdict.Person, Confidence: 1, Fixed: true, Reasoning: why}.Verdict(tier), tier, c, p.now())
}

// asSaid returns what a verdict of the lower tiers becomes by what the user of the session has
// said: an ALLOW is a question where the user has said that the action is not wanted, or
// where it deletes or overwrites a remote resource that the user did not name; a question about objects
// that the user has named, with a verb of what is done to them, is answered.
func (p *Pipeline) asSaid(ctx context.Context, tier int, v verdict.Verdict, c *analysis.Case, r *sessionMemory, named []grounding.Named) verdict.Verdict {
	key := p.sessions.NameKey
	if v.Decision == verdict.Allow {
		why := ""
		if name := objects.Forbidden(c, named, key); name != "" {
			why = "the user said not to change " + name
		} else if slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.ChangeRemote && e.Destroys() }) && p.userNamesFor(ctx, c, r, named, destroysOnly(c)) == nil {
			why = "deletes or overwrites a remote resource that the user did not name"
		}
		if why == "" {
			return v
		}
		return p.askUser(why, tier, c)
	}
	if tier < TierClassify || p.strict || c.Action.MinTier > TierClassify || p.deniedBefore(c) || objects.Forbidden(c, named, key) != "" {
		return v
	}
	findings, met, err := p.findings(ctx, c)
	if err != nil || slices.ContainsFunc(findings, func(f string) bool { return !slices.Contains(softRules, f) }) {
		return v
	}
	if kind.Personal(c, findings) != nil { // what a person sees each time
		return v
	}
	asked := func(i int) bool { return met[i] }
	by := p.userNamesFor(ctx, c, r, named, asked)
	if by == nil {
		return v
	}
	return addFinding(c, TierClassify, verdict.Finding{Who: verdict.NoApproval, Source: byContext, Confidence: 1, Reasoning: "the user named " + strings.Join(by, " and ")})
}

// suggested says which text that anybody may have written named what an action fetches,
// installs or sends to, where neither the user nor the project did; "" if none has.
func (p *Pipeline) suggested(ctx context.Context, c *analysis.Case, r *sessionMemory) string {
	s := r.session()
	if s.UntrustedTexts() == 0 {
		return ""
	}
	parts := objects.Parts(c)
	lists := make([][]string, len(parts))
	for i := range parts {
		lists[i] = parts[i].Names
	}
	all, more, err := p.sessions.HasHeard(ctx, s, lists...)
	for i, part := range parts {
		heard := all[i]
		switch {
		case heard != nil && part.Host != "" && part.Host == heard.Host: // a page names its own host
			continue
		case heard == nil && !more && err == nil || p.sessions.UserWrote(s, part.Names):
			continue
		case heard == nil:
			heard = &session.Heard{In: "source unknown", At: s.Start()}
		}
		if !c.Holds(part.Names, heard.At) {
			return fmt.Sprintf("untrusted text (%[2]s) names %[1]s, which neither the user nor the project names: possible prompt injection", part.Names[0], heard.In)
		}
	}
	return ""
}

// userNamesFor returns the names by which the user has named the objects of an action; nil unless
// all are named, none of them in a text that anybody may have written.
func (p *Pipeline) userNamesFor(ctx context.Context, c *analysis.Case, r *sessionMemory, named []grounding.Named, met func(i int) bool) (names []string) {
	needs, err := objects.Needs(c, met)
	if err != nil || len(needs) == 0 {
		return nil
	}
	var all []string
	for i := range needs {
		by := needs[i].Met(named, p.sessions.NameKey)
		where := by == "" && needs[i].Place && p.sessions.UserWrote(r.session(), needs[i].Names) // the user has spoken of it
		if by == "" && !where {
			return nil
		}
		all = append(all, needs[i].Names...)
		if !where && !slices.Contains(names, by) {
			names = append(names, by)
		}
	}
	if heard, more, err := p.sessions.HasHeard(ctx, r.session(), all); heard[0] != nil || more || err != nil {
		return nil
	}
	return names
}

// destroysOnly reports of an effect whether it destroys something elsewhere.
func destroysOnly(c *analysis.Case) func(i int) bool {
	return func(i int) bool { return c.Effects[i].Kind == effect.ChangeRemote && c.Effects[i].Destroys() }
}

// keepsAsking reports whether an answer for more than one action does not hold for one: the
// user of the session has said that it is not wanted, or others have named what it is about.
func (p *Pipeline) keepsAsking(ctx context.Context, c *analysis.Case) bool {
	r, ok := c.Memory.(*sessionMemory)
	if !ok || !p.inSession(r) {
		return false
	}
	named, spoken := r.session().Named()
	return spoken && objects.Forbidden(c, named, p.sessions.NameKey) != "" || p.suggested(ctx, c, r) != ""
}

// userMentions returns the objects of a case of which the user of the session has spoken. One that
// stands in a text of others too is not the user's alone.
func (p *Pipeline) userMentions(ctx context.Context, c *analysis.Case, r *sessionMemory) (out []analysis.Said) {
	if !p.inSession(r) || r.session().Err() != nil {
		return nil
	}
	named, spoken := r.session().Named()
	if !spoken {
		return nil
	}
	key := p.sessions.NameKey
	if name := objects.Forbidden(c, named, key); name != "" {
		out = append(out, analysis.Said{Name: name, Not: true})
	}
	var names []string
	var lists [][]string
	for _, n := range objects.Each(c) {
		if by := n.Met(named, key); by != "" {
			names, lists = append(names, by), append(lists, n.Names)
		}
	}
	heard, more, err := p.sessions.HasHeard(ctx, r.session(), lists...)
	for i, by := range names {
		if heard[i] == nil && !more && err == nil && !slices.Contains(out, analysis.Said{Name: by}) {
			out = append(out, analysis.Said{Name: by})
		}
	}
	return out
}
