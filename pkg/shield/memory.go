package shield

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A turn is the place of an action among those of a stream: Tier 0 judges them one
// after the other, so that each knows what those before it left behind.
type turn struct {
	before <-chan struct{} // closed when the action before has had its turn; nil for the first
	done   chan struct{}
}

// wait waits for the turn to come.
func (t *turn) wait() {
	if t != nil && t.before != nil {
		<-t.before
		t.before = nil
	}
}

// come reports whether the turn has come, without waiting.
func (t *turn) come() bool {
	if t == nil || t.before == nil {
		return true
	}
	select {
	case <-t.before:
		t.before = nil
		return true
	default:
		return false
	}
}

// end gives the turn to the next action. It may be called again.
func (t *turn) end() {
	if t == nil || t.done == nil {
		return
	}
	t.wait()
	close(t.done)
	t.done = nil
}

// A recall is the memory of the session of one action, read when it is first
// needed: a plain read needs none. It implements [analysis.Memory].
type recall struct {
	p     *Pipeline
	ctx   context.Context
	key   session.Key
	alias string
	flows bool                      // the action carries out a value, or a part of one
	now   *session.Session          // nil until it is needed
	own   *session.Session          // which counts the denials of a connection of its own; nil until it is needed
	known map[string][]effect.Label // what the stage that judged the action was told of files; nil if none did
}

// recall returns the memory for an action, or nil if there is none.
func (p *Pipeline) recall(ctx context.Context, it *item) *recall {
	if p.sessions == nil || it.Action == nil || p.apart && it.Action.Session == "" {
		return nil
	}
	r := &recall{p: p, ctx: ctx, key: session.Key{User: p.caller.User}}
	switch id := it.Action.Session; {
	case id == "":
	case p.host != "":
		r.key.Host, r.key.ID = p.host, id
	default:
		r.alias = id // the agent's word: it adds what that session knows, and keeps nothing apart
	}
	if it.Resume != nil && it.Stages&verdict.Policy != 0 {
		r.known = map[string][]effect.Label{}
		for i := range it.Resume.Trail {
			if raw := it.Resume.Trail[i].Session; len(raw) > 0 {
				_ = json.Unmarshal(raw, &r.known) // sealed by this installation
			}
		}
	}
	return r
}

// session returns the session as it was when it was first asked for.
func (r *recall) session() *session.Session {
	if r.now == nil {
		r.now = r.p.sessions.Load(r.ctx, r.key, r.p.parent, r.alias)
		r.now.Identify(r.p.analyzer.Identifier())
	}
	return r.now
}

// denials returns the session that counts the denials.
func (r *recall) denials() *session.Session {
	if r.p.connection == "" || r.key.ID == "" {
		return r.session()
	}
	if r.own == nil {
		key := r.key
		key.ID += " " + r.p.connection
		r.own = r.p.sessions.Load(r.ctx, key, "", "")
	}
	return r.own
}

func (r *recall) Labels() []effect.Label { return r.session().Labels() }

func (r *recall) Origin(path string) []effect.Label {
	if r.known != nil {
		return r.known[path]
	}
	return r.session().Origin(path)
}

func (r *recall) Brought() *effect.Paths {
	if r.known == nil {
		return r.session().Brought()
	}
	var paths []string
	for path, labels := range r.known {
		if path != flowing && session.Brought(labels) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return effect.NewPaths(paths)
}

func (r *recall) After(kinds []string, within time.Duration, actions int) bool {
	return r.session().After(kinds, within, actions)
}

func (r *recall) Err() error {
	if r.now == nil {
		return nil
	}
	return r.now.Err()
}

// analyze returns the case of an action with a memory, which may be nil.
func (p *Pipeline) analyze(a *action.Action, r *recall) *analysis.Case {
	var c *analysis.Case
	if r == nil {
		c = p.analyzer.Case(a)
	} else {
		c = p.analyzer.Recall(a, r)
	}
	if p.trace {
		c.Evidence = &analysis.Evidence{}
	}
	if p.trace || r != nil && p.host != "" {
		c.Met = make([][]analysis.Met, len(c.Effects))
	}
	return c
}

// refresh returns the case with what the session knows now that the actions before
// have had their turn. The analysis is repeated if files are concerned.
func (r *recall) refresh(c *analysis.Case) *analysis.Case {
	if r == nil || r.known != nil || r.now == nil {
		return c
	}
	was := r.now
	r.now = nil
	if was.Agrees(r.session()) {
		return c
	}
	again := r.p.analyze(c.Action, r)
	again.Trail, again.MinTier = c.Trail, max(again.MinTier, c.MinTier)
	return again
}

// flowing is the name under which the next stage is told that a part of a value
// flows: no path is called so.
const flowing = "value flow"

// carries adds to a case that it carries out a value which the session has read.
func (r *recall) carries(c *analysis.Case) error {
	if r == nil || !c.MayTell() {
		return nil
	}
	before := len(c.Effects)
	err := r.p.sessions.Carries(r.ctx, r.session(), c)
	r.flows = len(c.Effects) > before
	r.session().Pushes(c)
	return err
}

// stricter returns what Tier 0 says of a case because of what the session
// remembers, beside its rules.
func (r *recall) stricter(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if r == nil || v.Decision == verdict.Block {
		return v
	}
	s := r.now
	if r.p.host != "" && r.known == nil {
		if s = r.session(); s.Err() == nil {
			s = r.denials()
		}
	}
	switch {
	case s == nil:
	case s.Err() != nil:
		if !c.Harmless() {
			return unknown(s.Err())
		}
	case s.Stopped():
		return refusal(TierPolicy, "stopped", "too many actions of this session were denied, so it is stopped until a person has looked: the user resumes it with 'shield session resume'")
	case v.Decision != verdict.Escalate || v.NextTier < TierApprove:
		if d := s.Around(c); d != nil {
			return verdict.Verdict{
				Decision: verdict.Escalate, Confidence: 1, Rule: v.Rule, NextTier: TierApprove, Fixed: true,
				Reasoning: "an action that does the same to the same target was denied" + ago(s.Since(d.At)) + by(d.Rule) + "; do what the denial advised, or ask the user to confirm",
			}
		}
	}
	return v
}

// unknown is the BLOCK for an action whose session cannot be read.
func unknown(err error) verdict.Verdict {
	return refusal(TierPolicy, "session", "it is not known what this session did before: "+err.Error()+"; blocked")
}

func ago(d time.Duration) string {
	if d < time.Minute {
		return " a moment ago"
	}
	return fmt.Sprintf(" %d minutes ago", int(d/time.Minute))
}

func by(rule string) string {
	if rule == "" {
		return ""
	}
	return " by " + rule
}

// told returns what the memory said of files, for the next stage of a pipe: nil if
// that is nothing.
func (r *recall) told() []byte {
	if r == nil || r.now == nil {
		return nil
	}
	told := r.now.Told()
	if r.flows {
		told[flowing] = []effect.Label{effect.LabelCredential}
	}
	if len(told) == 0 {
		return nil
	}
	raw, err := json.Marshal(told)
	if err != nil {
		return nil // texts always marshal
	}
	return raw
}

// settle adds to the session what an action did, or that it was denied, once all
// tiers have judged.
func (r *recall) settle(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if v.Decision == verdict.Block {
		return r.deny(v, c)
	}
	return r.keep(v, c)
}

// keep adds to the session what an action does that is not denied. What cannot be
// kept is blocked: the next action would not know of it.
func (r *recall) keep(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if r == nil || v.Decision == verdict.Block {
		return v
	}
	d := r.p.sessions.Learn(c, r.p.events, r.p.counts)
	if session.Keeps(c) {
		if err := r.p.sessions.Holds(r.ctx, r.session(), c, &d); err != nil {
			return unkept(v, err)
		}
	}
	if r.now == nil && d.Empty() {
		return v
	}
	return r.add(v, r.session(), &d)
}

// deny adds a denial to the session of a host.
func (r *recall) deny(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	unasked := v.Error == "unavailable"
	if r == nil || r.p.host == "" || v.Error != "" && !unasked {
		return v
	}
	d := session.Denied(c, v.Rule)
	d.Unasked = unasked
	return r.add(v, r.denials(), &session.Delta{Denial: d})
}

func (r *recall) add(v verdict.Verdict, s *session.Session, d *session.Delta) verdict.Verdict {
	if s.Err() != nil && d.Empty() {
		return v
	}
	if err := r.p.sessions.Add(context.WithoutCancel(r.ctx), s, d); err != nil && v.Decision != verdict.Block {
		return unkept(v, err)
	}
	return v
}

// unkept is the BLOCK for an action of which the next would not know.
func unkept(v verdict.Verdict, err error) verdict.Verdict {
	return refusal(v.Tier, "session", "what the action does could not be remembered: "+err.Error()+"; blocked")
}

// labelNames returns the labels of the session of a case, for bindings.
func labelNames(c *analysis.Case) string {
	if c.Memory == nil {
		return ""
	}
	return fmt.Sprint(slices.Clone(c.Memory.Labels()))
}
