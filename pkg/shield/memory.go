package shield

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A streamTurn is the turn of an action in its stream: Tier 0 judges actions one after another, so
// that each sees the effects of earlier ones.
type streamTurn struct {
	before <-chan struct{} // closed when the action before it has had its turn; nil for the first
	done   chan struct{}
}

// wait waits for the turn to come.
func (t *streamTurn) wait() {
	if t != nil && t.before != nil {
		<-t.before
		t.before = nil
	}
}

// hasCome reports whether the turn has come, without waiting.
func (t *streamTurn) hasCome() bool {
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
func (t *streamTurn) end() {
	if t == nil || t.done == nil {
		return
	}
	t.wait()
	close(t.done)
	t.done = nil
}

// A sessionMemory is the memory of the session of one action, read when it is first
// needed: a plain read needs none. It implements [analysis.Memory].
type sessionMemory struct {
	p     *Pipeline
	ctx   context.Context
	key   session.Key
	alias string
	disk  *disk
	flows bool                // the action sends a session value, or a part of one
	now   *session.Session    // loaded when needed
	own   *session.Session    // counts the denials of this connection; nil until it is needed
	known *memoryForNextStage // what an earlier stage was told; nil if there was none
	left  *session.Delta      // what the action adds to the session, once known
}

// A disk caches file checks for actions that one goroutine judges. The cache is dropped once a verdict
// is given out: until then none of the waiting actions can have run.
type disk struct {
	handed *atomic.Uint64 // how often verdicts were given out
	at     uint64
	looked *analysis.Identifier
}

// identifier returns the file checker for the next action. A nil disk caches nothing.
func (d *disk) identifier(an *analysis.Analyzer) *analysis.Identifier {
	if d == nil {
		return an.Identifier()
	}
	if at := d.handed.Load(); d.looked == nil || d.at != at {
		d.looked, d.at = an.Identifier(), at
	}
	return d.looked
}

// memoryForNextStage is what Tier 0 was told of a session, for the next stage of a pipe, which cannot
// read it: the session of a stream ends with its stage.
type memoryForNextStage struct {
	Labels []effect.Label            `json:"labels,omitempty"`
	Files  map[string][]effect.Label `json:"files,omitempty"`
	Made   []string                  `json:"made,omitempty"`
}

// recall returns the memory for an action, or nil if there is none.
func (p *Pipeline) recall(ctx context.Context, it *item) *sessionMemory {
	if p.sessions == nil || it.Action == nil || p.apart && it.Action.Session == "" {
		return nil
	}
	r := &sessionMemory{p: p, ctx: ctx, key: session.Key{User: p.caller.User}, disk: it.Disk}
	if p.host == "" {
		r.alias = it.Action.Session // the session name is the agent's claim: the action sees what that session knows, without a memory of its own
		if p.kept != nil || it.Only {
			r.key = session.Stream(p.caller.User)
		}
	} else if it.Action.Session != "" {
		r.key.Host, r.key.ID = p.host, it.Action.Session
	}
	if it.Resume != nil && it.Stages&verdict.Policy != 0 {
		r.known = &memoryForNextStage{}
		for i := range it.Resume.Trail {
			if raw := it.Resume.Trail[i].Session; len(raw) > 0 {
				_ = json.Unmarshal(raw, r.known) // sealed by this installation, so it is valid
			}
		}
	}
	return r
}

// session returns the session as first read.
func (r *sessionMemory) session() *session.Session {
	if r.now == nil {
		r.now = r.p.sessions.Load(r.ctx, r.key, r.p.lineage, r.alias)
		r.now.Identify(r.disk.identifier(r.p.analyzer))
	}
	return r.now
}

// denials returns the session whose denials are counted.
func (r *sessionMemory) denials() *session.Session {
	if r.p.connection == "" || r.key.ID == "" {
		return r.session()
	}
	if r.own == nil {
		key := r.key
		key.ID += " " + r.p.connection
		r.own = r.p.sessions.Load(r.ctx, key, session.Lineage{}, "")
	}
	return r.own
}

func (r *sessionMemory) Labels() []effect.Label {
	if r.known != nil {
		return r.known.Labels
	}
	return r.session().Labels()
}

func (r *sessionMemory) Origin(path string) []effect.Label {
	if r.known != nil {
		return r.known.Files[path]
	}
	return r.session().Origin(path)
}

func (r *sessionMemory) Made(path string) bool {
	if r.known != nil {
		return slices.Contains(r.known.Made, path)
	}
	return r.session().Made(path)
}

func (r *sessionMemory) Brought() *effect.Paths {
	if r.known == nil {
		return r.session().Brought()
	}
	var paths []string
	for path, labels := range r.known.Files {
		if path != valueFlowName && session.Downloaded(labels) {
			paths = append(paths, path)
		}
	}
	sorted.Strings(paths)
	return effect.NewPaths(paths)
}

func (r *sessionMemory) After(kinds []string, within time.Duration, actions int) bool {
	return r.session().After(kinds, within, actions)
}

func (r *sessionMemory) Err() error {
	if r.now == nil {
		return nil
	}
	return r.now.Err()
}

// analyze returns the case of an action with a memory, which may be nil.
func (p *Pipeline) analyze(a *action.Action, r *sessionMemory) *analysis.Case {
	var c *analysis.Case
	if r == nil {
		c = p.analyzer.Case(a)
	} else {
		c = p.analyzer.Recall(a, r)
	}
	p.classify(c)
	if p.trace {
		c.Evidence = &analysis.Evidence{}
	}
	if p.trace || r != nil && p.host != "" {
		c.Met = make([][]analysis.RuleMatch, len(c.Effects))
	}
	return c
}

// refresh returns the case with what the session knows after the turns of earlier actions. It repeats
// the analysis if that concerns files.
func (r *sessionMemory) refresh(c *analysis.Case) *analysis.Case {
	if r == nil || r.known != nil || r.now == nil {
		return c
	}
	was := r.now
	r.now = nil
	if was.SameAnswers(r.session()) {
		return c
	}
	again := r.p.analyze(c.Action, r)
	again.Trail, again.MinTier = c.Trail, max(again.MinTier, c.MinTier)
	return again
}

// valueFlowName is the name under which the next stage learns that a part of a value flows; no path
// has this name.
const valueFlowName = "value flow"

// carries marks in a case that the action sends a value which the session has read.
func (r *sessionMemory) carries(c *analysis.Case) error {
	if r == nil || !c.MayTell() {
		return nil
	}
	before := len(c.Effects)
	err := r.p.sessions.Carries(r.ctx, r.session(), c)
	r.flows = len(c.Effects) > before
	r.session().Pushes(c)
	return err
}

// stricter returns the verdict of Tier 0 with what the session's memory adds to its rules.
func (r *sessionMemory) stricter(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
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
			return unreadableSession(s.Err())
		}
	case s.Stopped():
		return stoppedVerdict(r.key)
	case v.Decision != verdict.Escalate || v.NextTier < TierApprove:
		if d := s.DenialOfSame(c); d != nil {
			return verdict.Finding{
				Who: verdict.Person, Confidence: 1, Rule: v.Rule, Fixed: true,
				Reasoning: "an action that does the same to the same target was denied" + ago(s.Since(d.At)) + byRule(d.Rule) + "; do what the denial advised, or ask the user to confirm",
			}.Verdict(TierPolicy)
		}
	}
	return v
}

// unreadableSession returns the BLOCK for an action whose session cannot be read.
func unreadableSession(err error) verdict.Verdict {
	return refusal(TierPolicy, "session", "blocked: the record of this session cannot be read: "+err.Error())
}

func ago(d time.Duration) string {
	if d < time.Minute {
		return " a moment ago"
	}
	return fmt.Sprintf(" %d minutes ago", int(d/time.Minute))
}

func byRule(rule string) string {
	if rule == "" {
		return ""
	}
	return " by " + rule
}

// told returns the session's memory for the next stage of a pipe: nil if it is empty.
func (r *sessionMemory) told() []byte {
	if r == nil || r.now == nil {
		return nil
	}
	t := memoryForNextStage{r.now.Labels(), r.now.LabelledFiles(), r.now.MadePaths()}
	if r.flows {
		t.Files[valueFlowName] = []effect.Label{effect.LabelCredential}
	}
	if len(t.Labels)+len(t.Files)+len(t.Made) == 0 {
		return nil
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return nil // strings always marshal
	}
	return raw
}

// settle adds to the session the effects of an action, or its denial, after all tiers have judged.
func (r *sessionMemory) settle(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if v.Decision == verdict.Block {
		return r.deny(v, c)
	}
	return r.keep(v, c)
}

// keep adds the effects of an action that is not denied to the session. If that fails the action is
// blocked, because the next action would not know of it.
func (r *sessionMemory) keep(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if r == nil || v.Decision == verdict.Block {
		return v
	}
	d, err := r.learn(c)
	if err != nil {
		return sessionNotSaved(v, err)
	}
	if r.now == nil && d.Empty() {
		return v
	}
	if r.p.kept != nil && v.Decision == verdict.Escalate && r.session().IsNew(&d) && r.p.blocks(c) {
		return v
	}
	return r.add(v, r.session(), &d)
}

// blocks reports whether a rule of Tier 1 blocks an action. The next action of a stream is judged
// before later tiers have judged this one, and must not see effects of an action that is then refused.
// All stages of a pipe know the rules, but not the answers of a model or a person.
func (p *Pipeline) blocks(c *analysis.Case) bool {
	k, ok := p.tiers[TierClassify].(*classify.Classifier)
	return ok && k.Blocks(c)
}

// learn returns what an action adds to its session.
func (r *sessionMemory) learn(c *analysis.Case) (session.Delta, error) {
	d := r.p.sessions.Learn(c, r.p.events, r.p.counts)
	if session.WritesFile(c) {
		if err := r.p.sessions.AddSecretFiles(r.ctx, r.session(), c, &d); err != nil {
			return d, err
		}
	}
	if r.p.host == "" {
		left := d
		r.left = &left
	}
	return d, nil
}

// A lastingRecord is what an allowed action of a stream adds to sessions after the stream.
type lastingRecord struct {
	alias string
	delta session.Delta
}

// lastingOf returns what an action of a stream adds to later sessions, nil if nothing. Only an action
// that is allowed in the end adds anything, so that the stages of a pipe agree.
func (r *sessionMemory) lastingOf(v verdict.Verdict, c *analysis.Case) (*lastingRecord, error) {
	if r == nil || r.p.host != "" || v.Decision != verdict.Allow {
		return nil, nil
	}
	if r.left == nil {
		if _, err := r.learn(c); err != nil {
			return nil, err
		}
	}
	if r.left.Empty() && len(r.left.Shown) == 0 && !r.left.MovesFiles {
		return nil, nil
	}
	return &lastingRecord{r.alias, *r.left}, nil
}

// keepLasting stores what an action of a stream adds: labels of files and credentials for all sessions
// of the user, the rest for the session that the action names.
func (p *Pipeline) keepLasting(ctx context.Context, l *lastingRecord) error {
	kept := p.kept
	if kept == nil {
		kept = p.sessions
	}
	key, add := session.Key{ID: l.alias, User: p.caller.User}, kept.Add
	if l.alias == "" {
		add = kept.AddShared
	}
	s := kept.Load(ctx, key, session.Lineage{}, "")
	if s.Err() != nil && l.delta.Empty() {
		return nil
	}
	s.Identify(p.analyzer.Identifier())
	return add(ctx, s, &l.delta)
}

// deny adds a denial to the session of a host.
func (r *sessionMemory) deny(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	unasked := v.Error == "unavailable"
	if r == nil || r.p.host == "" || r.p.lookBack || v.Error != "" && !unasked || r.p.probes(c.Action) {
		return v
	}
	d := session.Denied(c, v.Rule)
	d.NoPerson = unasked
	return r.add(v, r.denials(), &session.Delta{Denial: d})
}

func (r *sessionMemory) add(v verdict.Verdict, s *session.Session, d *session.Delta) verdict.Verdict {
	if s.Err() != nil && d.Empty() {
		return v
	}
	if err := r.p.sessions.Add(context.WithoutCancel(r.ctx), s, d); err != nil && v.Decision != verdict.Block {
		return sessionNotSaved(v, err)
	}
	return v
}

// sessionNotSaved is the BLOCK for an action whose effects could not be saved for the next action.
func sessionNotSaved(v verdict.Verdict, err error) verdict.Verdict {
	return refusal(v.Tier, "session", "blocked: the action could not be recorded in its session: "+err.Error())
}

// remember stores what the action of an outcome adds, if it is one of a stream. A failure makes the
// verdict a BLOCK.
func (p *Pipeline) remember(ctx context.Context, o *Outcome) {
	if o.lasting == nil {
		return
	}
	if err := p.keepLasting(context.WithoutCancel(ctx), o.lasting); err != nil {
		p.replace(o, sessionNotSaved(o.Verdict, err))
		p.prepare(o, o.action)
	}
	o.lasting, o.action = nil, nil
}

// labelNames returns the labels of the session of a case, for bindings.
func labelNames(c *analysis.Case) string {
	if c.Memory == nil {
		return ""
	}
	return fmt.Sprint(slices.Clone(c.Memory.Labels()))
}
