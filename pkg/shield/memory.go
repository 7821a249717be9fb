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
	previousDone <-chan struct{} // closed when the action before it has had its turn; nil for the first
	done         chan struct{}
}

// wait waits for the turn to come.
func (t *streamTurn) wait() {
	if t != nil && t.previousDone != nil {
		<-t.previousDone
		t.previousDone = nil
	}
}

// hasCome reports whether the turn has come, without waiting.
func (t *streamTurn) hasCome() bool {
	if t == nil || t.previousDone == nil {
		return true
	}
	select {
	case <-t.previousDone:
		t.previousDone = nil
		return true
	default:
		return false
	}
}

// passTurn gives the turn to the next action. It may be called again.
func (t *streamTurn) passTurn() {
	if t == nil || t.done == nil {
		return
	}
	t.wait()
	close(t.done)
	t.done = nil
}

// A sessionMemory is the memory of the session of one action. The session is loaded when it is
// first needed, which saves the load for a simple read of a file. It implements [analysis.Memory].
type sessionMemory struct {
	pipeline          *Pipeline
	ctx               context.Context
	key               session.Key
	claimedSession    string
	fileChecks        *fileCheckCache
	sendsValue        bool                // the action sends a session value, or a part of one
	loaded            *session.Session    // loaded when needed
	connectionDenials *session.Session    // counts the denials of this connection; nil until it is needed
	priorStageMemory  *memoryForNextStage // what an earlier stage was told; nil if there was none
	streamDelta       *session.Delta      // what the action adds to the session, once known
}

// A fileCheckCache caches file checks for actions that one goroutine judges. The cache is dropped once a verdict
// is given out: until then none of the waiting actions can have run.
type fileCheckCache struct {
	forwardCount       *atomic.Uint64 // how often verdicts were given out
	cachedForwardCount uint64
	cachedIdentifier   *analysis.Identifier
}

// identifier returns the file checker for the next action. A nil cache returns a new file checker
// each time.
func (d *fileCheckCache) identifier(an *analysis.Analyzer) *analysis.Identifier {
	if d == nil {
		return an.Identifier()
	}
	if at := d.forwardCount.Load(); d.cachedIdentifier == nil || d.cachedForwardCount != at {
		d.cachedIdentifier, d.cachedForwardCount = an.Identifier(), at
	}
	return d.cachedIdentifier
}

// memoryForNextStage is what Tier 0 was told of a session, for the next stage of a pipe, which cannot
// read it: the session of a stream ends with its stage.
type memoryForNextStage struct {
	SessionLabels []effect.Label            `json:"labels,omitempty"`
	FileLabels    map[string][]effect.Label `json:"files,omitempty"`
	CreatedPaths  []string                  `json:"made,omitempty"`
}

// memoryFor returns the memory for an action, or nil if there is none.
func (p *Pipeline) memoryFor(ctx context.Context, it *judgeRequest) *sessionMemory {
	if p.sessions == nil || it.Action == nil || p.isolatesSessions && it.Action.Session == "" {
		return nil
	}
	r := &sessionMemory{pipeline: p, ctx: ctx, key: session.Key{User: p.caller.User}, fileChecks: it.FileChecks}
	if p.host == "" {
		r.claimedSession = it.Action.Session // the session name is the agent's claim: the action sees what that session knows, without a memory of its own
		if p.persistentSessions != nil || it.OnlyInStream {
			r.key = session.StreamKey(p.caller.User)
		}
	} else if it.Action.Session != "" {
		r.key.Host, r.key.ID = p.host, it.Action.Session
	}
	if it.EarlierVerdict != nil && it.EarlierStages&verdict.Policy != 0 {
		r.priorStageMemory = &memoryForNextStage{}
		for i := range it.EarlierVerdict.Trail {
			if raw := it.EarlierVerdict.Trail[i].Session; len(raw) > 0 {
				_ = json.Unmarshal(raw, r.priorStageMemory) // sealed by this installation, so it is valid
			}
		}
	}
	return r
}

// loadSession returns the session as first read.
func (r *sessionMemory) loadSession() *session.Session {
	if r.loaded == nil {
		r.loaded = r.pipeline.sessions.Load(r.ctx, r.key, r.pipeline.lineage, r.claimedSession)
		r.loaded.Identify(r.fileChecks.identifier(r.pipeline.analyzer))
	}
	return r.loaded
}

// denialSession returns the session whose denials are counted.
func (r *sessionMemory) denialSession() *session.Session {
	if r.pipeline.denialConnection == "" || r.key.ID == "" {
		return r.loadSession()
	}
	if r.connectionDenials == nil {
		key := r.key
		key.ID += " " + r.pipeline.denialConnection
		r.connectionDenials = r.pipeline.sessions.Load(r.ctx, key, session.Lineage{}, "")
	}
	return r.connectionDenials
}

func (r *sessionMemory) Labels() []effect.Label {
	if r.priorStageMemory != nil {
		return r.priorStageMemory.SessionLabels
	}
	return r.loadSession().Labels()
}

func (r *sessionMemory) Origin(path string) []effect.Label {
	if r.priorStageMemory != nil {
		return r.priorStageMemory.FileLabels[path]
	}
	return r.loadSession().Origin(path)
}

func (r *sessionMemory) HasCreated(path string) bool {
	if r.priorStageMemory != nil {
		return slices.Contains(r.priorStageMemory.CreatedPaths, path)
	}
	return r.loadSession().HasCreated(path)
}

func (r *sessionMemory) ImportedPaths() *effect.PathList {
	if r.priorStageMemory == nil {
		return r.loadSession().ImportedPaths()
	}
	var paths []string
	for path, labels := range r.priorStageMemory.FileLabels {
		if path != valueFlowName && session.IsDownloaded(labels) {
			paths = append(paths, path)
		}
	}
	sorted.Strings(paths)
	return effect.NewPathList(paths)
}

func (r *sessionMemory) HasRecentAction(kinds []string, within time.Duration, actions int) bool {
	return r.loadSession().HasRecentAction(kinds, within, actions)
}

func (r *sessionMemory) Err() error {
	if r.loaded == nil {
		return nil
	}
	return r.loaded.Err()
}

// analyze returns the case of an action with a memory, which may be nil.
func (p *Pipeline) analyze(a *action.Action, r *sessionMemory) *analysis.Case {
	var c *analysis.Case
	if r == nil {
		c = p.analyzer.Case(a)
	} else {
		c = p.analyzer.CaseWithMemory(a, r)
	}
	p.classifyTool(c)
	if p.tracesVerdicts {
		c.Evidence = &analysis.Evidence{}
	}
	if p.tracesVerdicts || r != nil && p.host != "" {
		c.MatchedRules = make([][]analysis.RuleMatch, len(c.Effects))
	}
	return c
}

// refresh returns the case with what the session knows after the turns of earlier actions. It repeats
// the analysis if that concerns files.
func (r *sessionMemory) refresh(c *analysis.Case) *analysis.Case {
	if r == nil || r.priorStageMemory != nil || r.loaded == nil {
		return c
	}
	was := r.loaded
	r.loaded = nil
	if was.SameAnswers(r.loadSession()) {
		return c
	}
	again := r.pipeline.analyze(c.Action, r)
	again.EarlierSteps, again.MinTier = c.EarlierSteps, max(again.MinTier, c.MinTier)
	return again
}

// valueFlowName is a reserved name instead of a path, with which one pipeline stage tells the next
// that the action may send a part of a value that the session has read. No path has this name.
const valueFlowName = "value flow"

// markSentValues marks in a case that the action sends a value which the session has read.
func (r *sessionMemory) markSentValues(c *analysis.Case) error {
	if r == nil || !c.MayHaveOutgoing() {
		return nil
	}
	before := len(c.Effects)
	err := r.pipeline.sessions.MarkSentValues(r.ctx, r.loadSession(), c)
	r.sendsValue = len(c.Effects) > before
	r.loadSession().MarkForeignPush(c)
	return err
}

// tightenVerdict returns the verdict of Tier 0, made stricter if the session's memory requires
// that: for example, every action of a stopped session is blocked.
func (r *sessionMemory) tightenVerdict(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if r == nil || v.Decision == verdict.Block {
		return v
	}
	s := r.loaded
	if r.pipeline.host != "" && r.priorStageMemory == nil {
		if s = r.loadSession(); s.Err() == nil {
			s = r.denialSession()
		}
	}
	switch {
	case s == nil:
	case s.Err() != nil:
		if !c.HasOnlyHarmlessEffects() {
			return unreadableSession(s.Err())
		}
	case s.Stopped():
		return stoppedVerdict(r.key)
	case v.Decision != verdict.Escalate || v.NextTier < TierApprove:
		if d := s.DenialOfSameTarget(c); d != nil {
			return verdict.Finding{
				Authority: verdict.Person, Confidence: 1, Rule: v.Rule, FixedReasoning: true,
				Reasoning: "an action that does the same to the same target was denied" + agoText(s.Since(d.At)) + byRuleText(d.Rule) + "; do what the denial advised, or ask the user to confirm",
			}.Verdict(TierPolicy)
		}
	}
	return v
}

// unreadableSession returns the BLOCK for an action whose session cannot be read.
func unreadableSession(err error) verdict.Verdict {
	return failureVerdict(TierPolicy, "session", "shield cannot read the record of this session, so the action is blocked; tell the user: "+err.Error())
}

func agoText(d time.Duration) string {
	if d < time.Minute {
		return " a moment ago"
	}
	return fmt.Sprintf(" %d minutes ago", int(d/time.Minute))
}

func byRuleText(rule string) string {
	if rule == "" {
		return ""
	}
	return " by " + rule
}

// encodeForNextStage returns the session's memory for the next stage of a pipe: nil if it is empty.
func (r *sessionMemory) encodeForNextStage() []byte {
	if r == nil || r.loaded == nil {
		return nil
	}
	t := memoryForNextStage{r.loaded.Labels(), r.loaded.LabelledFiles(), r.loaded.CreatedPaths()}
	if r.sendsValue {
		t.FileLabels[valueFlowName] = []effect.Label{effect.LabelCredential}
	}
	if len(t.SessionLabels)+len(t.FileLabels)+len(t.CreatedPaths) == 0 {
		return nil
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return nil // strings always marshal
	}
	return raw
}

// addEffectsOrDenial adds to the session the effects of an action, or its denial, after all tiers have judged.
func (r *sessionMemory) addEffectsOrDenial(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if v.Decision == verdict.Block {
		return r.addDenial(v, c)
	}
	return r.addEffects(v, c)
}

// addEffects adds the effects of an action that is not denied to the session. If that fails the action is
// blocked, because the next action would not know of it.
func (r *sessionMemory) addEffects(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	if r == nil || v.Decision == verdict.Block {
		return v
	}
	d, err := r.learnDelta(c)
	if err != nil {
		return sessionNotSaved(v, err)
	}
	if r.loaded == nil && d.Empty() {
		return v
	}
	if r.pipeline.persistentSessions != nil && v.Decision == verdict.Escalate && r.loadSession().IsNew(&d) && r.pipeline.isBlockedByRule(c) {
		return v
	}
	return r.addDelta(v, r.loadSession(), &d)
}

// isBlockedByRule reports whether a rule of Tier 1 blocks an action. The next action of a stream is judged
// before later tiers have judged this one, and must not see effects of an action that is then refused.
// All stages of a pipe know the rules, but not the answers of a model or a person.
func (p *Pipeline) isBlockedByRule(c *analysis.Case) bool {
	k, ok := p.tiers[TierClassify].(*classify.Classifier)
	return ok && k.Blocks(c)
}

// learnDelta returns what an action adds to its session.
func (r *sessionMemory) learnDelta(c *analysis.Case) (session.Delta, error) {
	d := r.pipeline.sessions.Learn(c, r.pipeline.policyEvents, r.pipeline.countsActions)
	if session.WritesFile(c) {
		if err := r.pipeline.sessions.AddSecretFiles(r.ctx, r.loadSession(), c, &d); err != nil {
			return d, err
		}
	}
	if r.pipeline.host == "" {
		left := d
		r.streamDelta = &left
	}
	return d, nil
}

// A laterSessionDelta is what an allowed action of a stream adds to sessions after the stream.
type laterSessionDelta struct {
	claimedSession string
	delta          session.Delta
}

// laterSessionDelta returns what an action of a stream adds to later sessions, nil if nothing. Only an action
// that is allowed in the end adds anything, so that the stages of a pipe agree.
func (r *sessionMemory) laterSessionDelta(v verdict.Verdict, c *analysis.Case) (*laterSessionDelta, error) {
	if r == nil || r.pipeline.host != "" || v.Decision != verdict.Allow {
		return nil, nil
	}
	if r.streamDelta == nil {
		if _, err := r.learnDelta(c); err != nil {
			return nil, err
		}
	}
	if r.streamDelta.Empty() && len(r.streamDelta.PrintedFiles) == 0 && !r.streamDelta.MayMoveFiles {
		return nil, nil
	}
	return &laterSessionDelta{r.claimedSession, *r.streamDelta}, nil
}

// storeLaterDelta stores what an action of a stream adds: labels of files and credentials for all sessions
// of the user, the rest for the session that the action names.
func (p *Pipeline) storeLaterDelta(ctx context.Context, l *laterSessionDelta) error {
	kept := p.persistentSessions
	if kept == nil {
		kept = p.sessions
	}
	key, add := session.Key{ID: l.claimedSession, User: p.caller.User}, kept.Add
	if l.claimedSession == "" {
		add = kept.AddShared
	}
	s := kept.Load(ctx, key, session.Lineage{}, "")
	if s.Err() != nil && l.delta.Empty() {
		return nil
	}
	s.Identify(p.analyzer.Identifier())
	return add(ctx, s, &l.delta)
}

// addDenial adds a denial to the session of a host.
func (r *sessionMemory) addDenial(v verdict.Verdict, c *analysis.Case) verdict.Verdict {
	unasked := v.Error == "unavailable"
	if r == nil || r.pipeline.host == "" || r.pipeline.judgesPastActions || v.Error != "" && !unasked || r.pipeline.isProbeAction(c.Action) {
		return v
	}
	d := session.NewDenial(c, v.Rule)
	d.NoPerson = unasked
	return r.addDelta(v, r.denialSession(), &session.Delta{Denial: d})
}

func (r *sessionMemory) addDelta(v verdict.Verdict, s *session.Session, d *session.Delta) verdict.Verdict {
	if s.Err() != nil && d.Empty() {
		return v
	}
	if err := r.pipeline.sessions.Add(context.WithoutCancel(r.ctx), s, d); err != nil && v.Decision != verdict.Block {
		return sessionNotSaved(v, err)
	}
	return v
}

// sessionNotSaved is the BLOCK for an action whose effects could not be saved for the next action.
func sessionNotSaved(v verdict.Verdict, err error) verdict.Verdict {
	return failureVerdict(v.Tier, "session", "shield cannot record the action in this session, so the action is blocked; tell the user: "+err.Error())
}

// storeStreamEffects stores what the action of an outcome adds, if it is one of a stream. A failure makes the
// verdict a BLOCK.
func (p *Pipeline) storeStreamEffects(ctx context.Context, o *Outcome) {
	if o.laterDelta == nil {
		return
	}
	if err := p.storeLaterDelta(context.WithoutCancel(ctx), o.laterDelta); err != nil {
		p.replaceVerdict(o, sessionNotSaved(o.Verdict, err))
		p.buildLogEntry(o, o.action)
	}
	o.laterDelta, o.action = nil, nil
}

// labelNames returns the labels of the session of a case, for bindings.
func labelNames(c *analysis.Case) string {
	if c.Memory == nil {
		return ""
	}
	return fmt.Sprint(slices.Clone(c.Memory.Labels()))
}
