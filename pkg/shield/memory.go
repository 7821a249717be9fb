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

// A policyTierQueueSlot is the turn of an action in its stream: Tier 0 judges actions one after another, so
// that each sees the effects of earlier ones.
type policyTierQueueSlot struct {
	previousTurnDone <-chan struct{} // closed when the action before it has had its turn; nil for the first
	done             chan struct{}
}

// wait waits for the turn to come.
func (t *policyTierQueueSlot) wait() {
	if t != nil && t.previousTurnDone != nil {
		<-t.previousTurnDone
		t.previousTurnDone = nil
	}
}

// isPreviousActionDone reports whether the turn has come, without waiting.
func (t *policyTierQueueSlot) isPreviousActionDone() bool {
	if t == nil || t.previousTurnDone == nil {
		return true
	}
	select {
	case <-t.previousTurnDone:
		t.previousTurnDone = nil
		return true
	default:
		return false
	}
}

// passToNextAction gives the turn to the next action. It may be called again.
func (t *policyTierQueueSlot) passToNextAction() {
	if t == nil || t.done == nil {
		return
	}
	t.wait()
	close(t.done)
	t.done = nil
}

// A sessionMemory is the memory of the session of one action. The session is loaded when it is
// first needed, which saves the load for a simple read of a file. It implements [analysis.SessionState].
type sessionMemory struct {
	pipeline                      *Pipeline
	ctx                           context.Context
	key                           session.Key
	unverifiedSessionName         string
	fileIdentityCache             *fileIdentityCache
	sendsEarlierReadValue         bool                       // the action sends a value that an earlier action of the session has read, or a part of it
	loadedSession                 *session.Session           // loaded when needed
	sessionForDenialsOnConnection *session.Session           // counts the denials of this connection; nil until it is needed
	earlierProcessSessionData     *sessionDataForNextProcess // session data from an earlier stage of the pipe; nil if no earlier stage asked Tier 0
	sessionDeltaOfStreamAction    *session.RecordDelta       // what the action adds to the session, once known
}

// A fileIdentityCache caches file checks for actions that one goroutine judges. The cache is dropped once a verdict
// is given out: until then none of the waiting actions can have run.
type fileIdentityCache struct {
	verdictBatchesForwardedToOutput  *atomic.Uint64 // number of verdict batches passed to the output
	verdictBatchesForwardedAtCaching uint64
	cachedResolver                   *analysis.FileIdentityResolver
}

// fileIdentityResolver returns the resolver that identifies files for the next action. The cached resolver is
// replaced once verdicts were given out. With a nil cache, each call returns a new resolver.
func (d *fileIdentityCache) fileIdentityResolver(an *analysis.Analyzer) *analysis.FileIdentityResolver {
	if d == nil {
		return an.NewFileIdentityResolver()
	}
	if at := d.verdictBatchesForwardedToOutput.Load(); d.cachedResolver == nil || d.verdictBatchesForwardedAtCaching != at {
		d.cachedResolver, d.verdictBatchesForwardedAtCaching = an.NewFileIdentityResolver(), at
	}
	return d.cachedResolver
}

// sessionDataForNextProcess is the part of a stream's session that Tier 0 judged an action with. It is passed in the
// trail to the next stage of a pipe of shield processes. The next stage cannot read the session itself, which
// ends with the stream of the earlier stage.
type sessionDataForNextProcess struct {
	SessionLabels []effect.TaintLabel            `json:"labels,omitempty"`
	FileLabels    map[string][]effect.TaintLabel `json:"files,omitempty"`
	CreatedPaths  []string                       `json:"made,omitempty"`
}

// memoryFor returns what an action's session remembers; nil if there is nothing to judge, if session tracking is
// off, or if sessions are isolated and the action names no session.
func (p *Pipeline) memoryFor(ctx context.Context, it *judgeRequest) *sessionMemory {
	if p.sessionStoreForJudging == nil || it.Action == nil || p.isolatesSessionsFromEachOther && it.Action.Session == "" {
		return nil
	}
	r := &sessionMemory{pipeline: p, ctx: ctx, key: session.Key{User: p.caller.User}, fileIdentityCache: it.FileIdentityCache}
	if p.agentHostName == "" {
		r.unverifiedSessionName = it.Action.Session // an unverified name from the agent: the action is also judged with what sessions of this name know
		if p.persistentSessionStore != nil || it.IsOnlyActionOfStream {
			r.key = session.MemoryOnlySessionKey(p.caller.User)
		}
	} else if it.Action.Session != "" {
		r.key.AgentHostName, r.key.ID = p.agentHostName, it.Action.Session
	}
	if it.EarlierVerdict != nil && it.EarlierJudgedTiers&verdict.TierBitPolicy != 0 {
		r.earlierProcessSessionData = &sessionDataForNextProcess{}
		for i := range it.EarlierVerdict.Trail {
			if raw := it.EarlierVerdict.Trail[i].SessionDataForNextProcess; len(raw) > 0 {
				_ = json.Unmarshal(raw, r.earlierProcessSessionData) // sealed by this installation, so it is valid
			}
		}
	}
	return r
}

// loadSession returns the session as first read.
func (r *sessionMemory) loadSession() *session.Session {
	if r.loadedSession == nil {
		r.loadedSession = r.pipeline.sessionStoreForJudging.Load(r.ctx, r.key, r.pipeline.parentSessionAndProcesses, r.unverifiedSessionName)
		r.loadedSession.EnableFileIdentification(r.fileIdentityCache.fileIdentityResolver(r.pipeline.analyzer))
	}
	return r.loadedSession
}

// denialCountingSession returns the session that counts an action's denials: the action's own session or, with
// connectionWithOwnDenialCount, a session of that connection.
func (r *sessionMemory) denialCountingSession() *session.Session {
	if r.pipeline.connectionWithOwnDenialCount == "" || r.key.ID == "" {
		return r.loadSession()
	}
	if r.sessionForDenialsOnConnection == nil {
		key := r.key
		key.ID += " " + r.pipeline.connectionWithOwnDenialCount
		r.sessionForDenialsOnConnection = r.pipeline.sessionStoreForJudging.Load(r.ctx, key, session.Lineage{}, "")
	}
	return r.sessionForDenialsOnConnection
}

func (r *sessionMemory) Labels() []effect.TaintLabel {
	if r.earlierProcessSessionData != nil {
		return r.earlierProcessSessionData.SessionLabels
	}
	return r.loadSession().Labels()
}

func (r *sessionMemory) FileOriginLabels(path string) []effect.TaintLabel {
	if r.earlierProcessSessionData != nil {
		return r.earlierProcessSessionData.FileLabels[path]
	}
	return r.loadSession().FileOriginLabels(path)
}

func (r *sessionMemory) HasCreated(path string) bool {
	if r.earlierProcessSessionData != nil {
		return slices.Contains(r.earlierProcessSessionData.CreatedPaths, path)
	}
	return r.loadSession().HasCreated(path)
}

func (r *sessionMemory) DownloadedOrDecodedPaths() *effect.PathList {
	if r.earlierProcessSessionData == nil {
		return r.loadSession().DownloadedOrDecodedPaths()
	}
	var paths []string
	for path, labels := range r.earlierProcessSessionData.FileLabels {
		if path != sendsEarlierReadValueKey && session.IsDownloaded(labels) {
			paths = append(paths, path)
		}
	}
	sorted.SortStrings(paths)
	return effect.NewPathList(paths)
}

func (r *sessionMemory) HasRecentAction(effectOrActionTypes []string, within time.Duration, maxActionsAgo int) bool {
	return r.loadSession().HasRecentAction(effectOrActionTypes, within, maxActionsAgo)
}

func (r *sessionMemory) Err() error {
	if r.loadedSession == nil {
		return nil
	}
	return r.loadedSession.Err()
}

// analyze returns the case of an action, which the tiers judge. r is the memory of the action's session; nil for
// none.
func (p *Pipeline) analyze(a *action.Action, r *sessionMemory) *analysis.ActionCase {
	var c *analysis.ActionCase
	if r == nil {
		c = p.analyzer.AnalyzeAction(a)
	} else {
		c = p.analyzer.CaseWithSessionState(a, r)
	}
	p.assignToolClassToUnknownTool(c)
	if p.verdictsIncludeTrail {
		c.Tier1AllowEvidence = &analysis.Tier1DecisionEvidence{}
	}
	if p.verdictsIncludeTrail || r != nil && p.agentHostName != "" {
		c.MatchedRulesByEffectIndex = make([][]analysis.RuleMatch, len(c.Effects))
	}
	return c
}

// reanalyzeIfSessionChanged loads the session again after the earlier actions of the stream were judged. If they
// changed what the case uses of the session's labelled or created files, it analyzes the action again and
// returns the new case. Otherwise it returns c.
func (r *sessionMemory) reanalyzeIfSessionChanged(c *analysis.ActionCase) *analysis.ActionCase {
	if r == nil || r.earlierProcessSessionData != nil || r.loadedSession == nil {
		return c
	}
	was := r.loadedSession
	r.loadedSession = nil
	if was.HasSameQueriedFileState(r.loadSession()) {
		return c
	}
	again := r.pipeline.analyze(c.Action, r)
	again.EarlierTierSteps, again.MinAllowTier = c.EarlierTierSteps, max(again.MinAllowTier, c.MinAllowTier)
	return again
}

// sendsEarlierReadValueKey is a reserved name instead of a path, with which one pipeline stage tells the next
// that the action may send a part of a value that the session has read. No path has this name.
const sendsEarlierReadValueKey = "value flow"

// markEarlierReadValueSend marks in a case that the action sends a value which the session has read.
func (r *sessionMemory) markEarlierReadValueSend(c *analysis.ActionCase) error {
	if r == nil || !c.MayHaveOutgoingText() {
		return nil
	}
	before := len(c.Effects)
	err := r.pipeline.sessionStoreForJudging.AddSensitiveValueSendEffect(r.ctx, r.loadSession(), c)
	r.sendsEarlierReadValue = len(c.Effects) > before
	r.loadSession().MarkPushToChangedRemote(c)
	return err
}

// tightenVerdictBySessionState returns the verdict of Tier 0, made stricter if the session's memory requires
// that: for example, every action of a stopped session is blocked.
func (r *sessionMemory) tightenVerdictBySessionState(v verdict.Verdict, c *analysis.ActionCase) verdict.Verdict {
	if r == nil || v.Decision == verdict.Block {
		return v
	}
	s := r.loadedSession
	if r.pipeline.agentHostName != "" && r.earlierProcessSessionData == nil {
		if s = r.loadSession(); s.Err() == nil {
			s = r.denialCountingSession()
		}
	}
	switch {
	case s == nil:
	case s.Err() != nil:
		if !c.HasOnlyHarmlessEffects() {
			return unreadableSessionVerdict(s.Err())
		}
	case s.IsStoppedAfterDenials():
		return stoppedSessionVerdict(r.key)
	case v.Decision != verdict.Escalate || v.NextTier < TierApprove:
		if d := s.DenialOfSameTarget(c); d != nil {
			return verdict.Finding{
				RequiredAuthority: verdict.AuthorityPerson, Confidence: 1, Rule: v.Rule, ReasoningCannotLeakActionText: true,
				Reasoning: "an action that does the same to the same target was denied" + formatTimeAgo(s.Since(d.DeniedUnixSeconds)) + deniedByRuleSuffix(d.Rule) + "; do what the denial advised, or ask the user to confirm",
			}.Verdict(TierPolicy)
		}
	}
	return v
}

// unreadableSessionVerdict returns the BLOCK for an action whose session cannot be read.
func unreadableSessionVerdict(err error) verdict.Verdict {
	return failureVerdict(TierPolicy, "session", "shield cannot read the record of this session, so the action is blocked; tell the user: "+err.Error())
}

func formatTimeAgo(d time.Duration) string {
	if d < time.Minute {
		return " a moment ago"
	}
	return fmt.Sprintf(" %d minutes ago", int(d/time.Minute))
}

func deniedByRuleSuffix(rule string) string {
	if rule == "" {
		return ""
	}
	return " by " + rule
}

// encodeForNextProcess returns the session's memory for the next stage of a pipe: nil if it is empty.
func (r *sessionMemory) encodeForNextProcess() []byte {
	if r == nil || r.loadedSession == nil {
		return nil
	}
	t := sessionDataForNextProcess{r.loadedSession.Labels(), r.loadedSession.LabelledFiles(), r.loadedSession.CreatedPaths()}
	if r.sendsEarlierReadValue {
		t.FileLabels[sendsEarlierReadValueKey] = []effect.TaintLabel{effect.LabelCredential}
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

// recordOutcomeInSession adds to the session the effects of an action, or its denial, after all tiers have judged.
func (r *sessionMemory) recordOutcomeInSession(v verdict.Verdict, c *analysis.ActionCase) verdict.Verdict {
	if v.Decision == verdict.Block {
		return r.addDenial(v, c)
	}
	return r.recordActionEffectsInSession(v, c)
}

// recordActionEffectsInSession stores the effects of an action in the session, unless the action is
// denied. If storing fails, the action is blocked, because later actions would be judged without
// its effects.
func (r *sessionMemory) recordActionEffectsInSession(v verdict.Verdict, c *analysis.ActionCase) verdict.Verdict {
	if r == nil || v.Decision == verdict.Block {
		return v
	}
	d, err := r.sessionDeltaOfAction(c)
	if err != nil {
		return unsavedSessionVerdict(v, err)
	}
	if r.loadedSession == nil && d.Empty() {
		return v
	}
	if r.pipeline.persistentSessionStore != nil && v.Decision == verdict.Escalate && r.loadSession().DeltaAddsNewData(&d) && r.pipeline.isBlockedByRule(c) {
		return v
	}
	return r.addDelta(v, r.loadSession(), &d)
}

// isBlockedByRule reports whether a rule of Tier 1 blocks an action. The next action of a stream is judged
// before the later tiers have judged this action, and must not see the effects of this action if a rule blocks
// it. Only rules count here: all stages of a pipe know them, but an early stage does not know the answer that a
// model or a person gives in a later stage.
func (p *Pipeline) isBlockedByRule(c *analysis.ActionCase) bool {
	k, ok := p.tiers[TierClassify].(*classify.Classifier)
	return ok && k.IsBlockedByRule(c)
}

// sessionDeltaOfAction returns what an action adds to its session.
func (r *sessionMemory) sessionDeltaOfAction(c *analysis.ActionCase) (session.RecordDelta, error) {
	d := r.pipeline.sessionStoreForJudging.DeltaOfAction(c, r.pipeline.sessionEventTypesInPolicy, r.pipeline.policyCountsSessionActions)
	if session.WritesFile(c) {
		if err := r.pipeline.sessionStoreForJudging.AddSecretFiles(r.ctx, r.loadSession(), c, &d); err != nil {
			return d, err
		}
	}
	if r.pipeline.agentHostName == "" {
		left := d
		r.sessionDeltaOfStreamAction = &left
	}
	return d, nil
}

// A persistentSessionDelta holds what an allowed action of a stream adds to the stored sessions, so
// that actions after the stream are judged with it.
type persistentSessionDelta struct {
	unverifiedSessionName string
	delta                 session.RecordDelta
}

// newPersistentSessionDelta returns what an action of a stream adds to later sessions, nil if nothing. Only an action
// that is allowed in the end adds anything, so that the stages of a pipe agree.
func (r *sessionMemory) newPersistentSessionDelta(v verdict.Verdict, c *analysis.ActionCase) (*persistentSessionDelta, error) {
	if r == nil || r.pipeline.agentHostName != "" || v.Decision != verdict.Allow {
		return nil, nil
	}
	if r.sessionDeltaOfStreamAction == nil {
		if _, err := r.sessionDeltaOfAction(c); err != nil {
			return nil, err
		}
	}
	if r.sessionDeltaOfStreamAction.Empty() && len(r.sessionDeltaOfStreamAction.PrintedFiles) == 0 && !r.sessionDeltaOfStreamAction.MayMoveFiles {
		return nil, nil
	}
	return &persistentSessionDelta{r.unverifiedSessionName, *r.sessionDeltaOfStreamAction}, nil
}

// storePersistentSessionDelta stores what an action of a stream adds: labels of files and credentials for all sessions
// of the user, the rest for the session that the action names.
func (p *Pipeline) storePersistentSessionDelta(ctx context.Context, l *persistentSessionDelta) error {
	kept := p.persistentSessionStore
	if kept == nil {
		kept = p.sessionStoreForJudging
	}
	key, add := session.Key{ID: l.unverifiedSessionName, User: p.caller.User}, kept.Add
	if l.unverifiedSessionName == "" {
		add = kept.AddDataSharedBySessions
	}
	s := kept.Load(ctx, key, session.Lineage{}, "")
	if s.Err() != nil && l.delta.Empty() {
		return nil
	}
	s.EnableFileIdentification(p.analyzer.NewFileIdentityResolver())
	return add(ctx, s, &l.delta)
}

// addDenial adds a denial to the session of a host.
func (r *sessionMemory) addDenial(v verdict.Verdict, c *analysis.ActionCase) verdict.Verdict {
	unasked := v.ErrorCode == "unavailable"
	if r == nil || r.pipeline.agentHostName == "" || r.pipeline.judgesExecutedActions || v.ErrorCode != "" && !unasked || r.pipeline.isHookStatusTestAction(c.Action) {
		return v
	}
	d := session.NewDenial(c, v.Rule)
	d.HasNoPersonToAsk = unasked
	return r.addDelta(v, r.denialCountingSession(), &session.RecordDelta{Denial: d})
}

func (r *sessionMemory) addDelta(v verdict.Verdict, s *session.Session, d *session.RecordDelta) verdict.Verdict {
	if s.Err() != nil && d.Empty() {
		return v
	}
	if err := r.pipeline.sessionStoreForJudging.Add(context.WithoutCancel(r.ctx), s, d); err != nil && v.Decision != verdict.Block {
		return unsavedSessionVerdict(v, err)
	}
	return v
}

// unsavedSessionVerdict is the BLOCK for an action whose effects could not be saved for the next action.
func unsavedSessionVerdict(v verdict.Verdict, err error) verdict.Verdict {
	return failureVerdict(v.Tier, "session", "shield cannot record the action in this session, so the action is blocked; tell the user: "+err.Error())
}

// storeSessionDeltaOrBlock stores what an allowed action of a stream adds to the sessions that follow the
// stream, such as labels of files. If storing fails, the verdict in o becomes a BLOCK.
func (p *Pipeline) storeSessionDeltaOrBlock(ctx context.Context, o *VerdictWithLogData) {
	if o.persistentSessionDelta == nil {
		return
	}
	if err := p.storePersistentSessionDelta(context.WithoutCancel(ctx), o.persistentSessionDelta); err != nil {
		p.replaceVerdict(o, unsavedSessionVerdict(o.Verdict, err))
		p.buildLogEntry(o, o.action)
	}
	o.persistentSessionDelta, o.action = nil, nil
}

// sessionTaintLabelsText returns the taint labels of a case's session as one text, for keys of reusable
// answers; "" without a session.
func sessionTaintLabelsText(c *analysis.ActionCase) string {
	if c.SessionState == nil {
		return ""
	}
	return fmt.Sprint(slices.Clone(c.SessionState.Labels()))
}
