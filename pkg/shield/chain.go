package shield

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/telemetry"
	"github.com/shieldcli/shield/pkg/verdict"
)

// The tiers, from the fastest to the slowest.
const (
	TierPolicy   = 0
	TierClassify = 1
	TierEvaluate = 2
	TierApprove  = 3
)

// judgeNameByTier are the names of the tiers in a trail.
var judgeNameByTier = [...]string{"policy", "classifier", "evaluator", "person"}

// A judgeRequest is one thing to judge: an action, or the sealed ESCALATE verdict of
// an earlier stage with the action that it carries.
type judgeRequest struct {
	RecordLine                      int // where the record starts, counted from 1
	Action                          *action.Action
	EarlierVerdict                  *verdict.Verdict     // nil for an action that nothing judged yet
	EarlierJudgedTiers              verdict.TierSet      // the stages that judged EarlierVerdict
	PolicyTierQueueSlot             *policyTierQueueSlot // its place in a stream; nil for an action outside a stream
	FileIdentityCache               *fileIdentityCache   // a cache of file checks for actions that wait together; nil for none
	ForwardHeldVerdictsBeforeAsking func()               // called before another process or a person is asked; may be nil
	StopsAfterClassifierTier        bool                 // leave tiers later than [TierClassify] to another process, see [Pipeline.EvaluateInProcess]
	IsOnlyActionOfStream            bool                 // the action is the only action of its stream: its session is handled as in a stream of several actions
	OmitExplanations                bool                 // leave out what agent and user are told about an ESCALATE, see [StreamOptions]
}

// A TierRange is the tiers that judge, from First to Last inclusive.
type TierRange struct{ First, Last int }

// AllTiers is the range of all tiers.
var AllTiers = TierRange{TierPolicy, TierApprove}

// mustAskLowerTierFirst reports whether a tier below the range is asked too, so that it can block.
// If a range begins with the evaluator or a person, the policy and the classifier check the action
// first, unless they already judged it. Otherwise such a range would be less strict than the range
// of all tiers.
func (r TierRange) mustAskLowerTierFirst(lowerTier int, judgedTiers verdict.TierSet) bool {
	return r.First >= TierEvaluate && lowerTier < TierEvaluate && judgedTiers&(1<<lowerTier) == 0
}

// VerdictWithLogData is a sealed verdict with the data for its log entry.
type VerdictWithLogData struct {
	Verdict                verdict.Verdict
	judgedTiers            verdict.TierSet
	tierSteps              []verdict.TierStep
	redactedPayload        any    // payload of the action, redacted
	reasoningForLog        string // reasoning for the log; "" if it is that of the verdict
	latency                time.Duration
	pendingLogEntry        *audit.PendingEntries
	persistentSessionDelta *persistentSessionDelta // what the action adds to sessions that follow its stream; nil if nothing
	action                 *action.Action          // the action; set only if persistentSessionDelta is set

	classifierEvidence *analysis.Tier1DecisionEvidence
	telemetryAction    telemetry.Action // telemetry about the verdict; see [Config]
}

// Trail returns what each tier, or each classifier of a tier, said, whatever the decision was.
func (o *VerdictWithLogData) Trail() []verdict.TierStep { return o.tierSteps }

// ClassifierEvidence returns what Tier 1 based its decision on, for a person to read. It is nil if the pipeline
// does not trace or did not ask Tier 1.
func (o *VerdictWithLogData) ClassifierEvidence() *analysis.Tier1DecisionEvidence {
	return o.classifierEvidence
}

// Latency returns how long judging took, analysis included.
func (o *VerdictWithLogData) Latency() time.Duration { return o.latency }

// estimatedBytes estimates how many bytes of memory a verdict and its log data use until they are
// written.
func (o *VerdictWithLogData) estimatedBytes() int {
	const fixed = 2 << 10 // estimated size of the verdict, its seal, its reasons and its log entry, in bytes
	n := fixed + len(o.Verdict.Action)
	for i := range o.tierSteps {
		s := &o.tierSteps[i]
		n += len(s.Reasoning) + len(s.Effects) + len(s.JudgedActionTextVariants)
	}
	if o.pendingLogEntry != nil {
		n += o.pendingLogEntry.EncodedByteCount()
	}
	return n
}

// judgeAndSealWithMAC sends a request through the tiers of a range, in order, until one decides. Before it asks
// an evaluator or a person, the rules of lower tiers that have not judged the request yet may block it or ask
// for a higher tier; they cannot allow it. It always returns a verdict: a failure is a BLOCK, unless the
// settings (fail_closed) or a person who can be asked allow another answer. The verdict must not be shown before
// its log entry and its session data are stored, because a failure to store them makes it a BLOCK.
func (p *Pipeline) judgeAndSealWithMAC(ctx context.Context, it judgeRequest, r TierRange) VerdictWithLogData {
	var o VerdictWithLogData
	start := p.now()
	o.Verdict = p.judgeTiers(ctx, it, r, &o)
	o.latency = p.now().Sub(start)
	p.fillTelemetry(&o, it.Action, start)
	v := &o.Verdict
	if v.Decision != verdict.Allow && v.Explanation == (verdict.Explanation{}) && (v.Decision != verdict.Escalate || !it.OmitExplanations) {
		v.Explanation = failureExplanation(v)
	}
	v.Line = it.RecordLine
	if a := it.Action; a != nil {
		v.ActionID, v.ActionHash = strings.Clone(a.ID), a.TypeAndPayloadHash // a.ID may be a substring of the whole record and keep it in memory
		if !p.omitsActionFromVerdicts {
			v.Action = a.Raw
		}
	}
	p.sealVerdictWithMAC(&o, it.Action)
	p.buildLogEntry(&o, it.Action)
	return o
}

// judgeTiers sends an item through the tiers and stores in o the trail, with what each tier said, and the
// redacted payload.
func (p *Pipeline) judgeTiers(ctx context.Context, it judgeRequest, in TierRange, o *VerdictWithLogData) (v verdict.Verdict) {
	tier := in.First
	defer func() {
		if x := recover(); x != nil {
			v = failureVerdict(tier, "panic", p.redactor.RedactText(fmt.Sprintf("blocked: tier %d failed with an internal error, panic: %.200q; please report this", tier, fmt.Sprint(x))))
		}
	}()
	defer it.PolicyTierQueueSlot.passToNextAction()
	if p.checkPolicyExpiry != nil {
		if err := p.checkPolicyExpiry(); err != nil {
			return failureVerdict(TierPolicy, "config", err.Error())
		}
	}
	r := p.memoryFor(ctx, &it)
	early := !it.PolicyTierQueueSlot.isPreviousActionDone()
	c := p.analyze(it.Action, r)
	if r != nil && r.earlierProcessSessionData != nil && len(r.earlierProcessSessionData.FileLabels[sendsEarlierReadValueKey]) > 0 {
		c.AddCredentialLeakEffect(true)
	}
	if it.EarlierVerdict != nil {
		c.EarlierTierSteps = append(c.EarlierTierSteps, it.EarlierVerdict.Trail...)
		c.MinAllowTier = max(c.MinAllowTier, it.EarlierVerdict.NextTier)
		o.judgedTiers = it.EarlierJudgedTiers
	}
	for tier = TierPolicy; tier <= in.Last && !(it.StopsAfterClassifierTier && tier > TierClassify); tier++ {
		if tier < in.First {
			if !in.mustAskLowerTierFirst(tier, o.judgedTiers) {
				continue
			}
			c.MinAllowTier = max(c.MinAllowTier, in.First)
		}
		if ctx.Err() != nil {
			return failureVerdict(tier, "interrupted", "shield was interrupted before it judged the action; blocked. Try again")
		}
		if tier == TierEvaluate {
			if allowed, ok := p.earlierAllowByPerson(ctx, c, in, false); ok {
				v = allowed
				o.judgedTiers |= verdict.TierBitApprove
				break
			}
			c.UserMentionedObjects = p.objectsMentionedByUser(ctx, c, r)
		}
		if it.ForwardHeldVerdictsBeforeAsking != nil && (tier >= TierEvaluate || tier == TierClassify && p.usesClassifierSidecar) {
			it.ForwardHeldVerdictsBeforeAsking()
		}
		if tier == TierPolicy {
			v, c = p.judgePolicyTier(ctx, &it, c, r, early)
			if refused, ok := p.blockForbiddenTool(ctx, c); ok && v.Decision != verdict.Block {
				v = p.enforceMinTierAndAddToTrail(refused, TierApprove, c, p.now())
				o.judgedTiers |= verdict.TierBitApprove
			}
		} else if tier == TierEvaluate && p.usesAssistedPreset {
			v = p.askEvaluatorUnderAssistedPreset(ctx, c)
		} else {
			v = p.askTier(ctx, tier, c)
		}
		o.judgedTiers |= 1 << tier
		if tier == TierApprove && v.ErrorCode == "" && !slices.Contains([]string{"", "remembered", "kind", approve.HostChannel}, v.AnswerChannel) {
			p.resetAllowCount(ctx, c)
		}
		if tier == TierClassify && in.First <= TierClassify {
			v, c = p.rejudgeAssumingFilesBackedUp(ctx, v, c, r)
		}
		if tier < TierEvaluate {
			v = p.adjustVerdictToMentionedObjects(ctx, tier, v, c, r)
		}
		if v.Decision == verdict.Allow && tier < TierEvaluate {
			v = p.backUpOrEscalate(ctx, v, c)
		}
		if v.Decision != verdict.Escalate {
			break
		}
	}
	if (v.Tier < TierEvaluate || v.AnswerChannel == answerChannelToolClass) && p.canPersonOverrideRefusal(&v, c) {
		if allowed, ok := p.earlierAllowByPerson(ctx, c, in, v.AnswerChannel == answerChannelToolClass); ok {
			v = allowed
			o.judgedTiers |= verdict.TierBitApprove
		}
	}
	if v.Decision == verdict.Allow && v.Tier >= TierEvaluate {
		v = p.backUpOrEscalate(ctx, v, c)
	}
	switch {
	case it.needsLaterTier(v, in):
	case it.PolicyTierQueueSlot == nil && !it.IsOnlyActionOfStream:
		v = r.recordOutcomeInSession(v, c)
	default:
		var err error
		if o.persistentSessionDelta, err = r.newPersistentSessionDelta(v, c); err != nil {
			v = unsavedSessionVerdict(v, err)
		}
		if o.persistentSessionDelta != nil {
			o.action = it.Action
		}
	}
	first := in.First
	if it.EarlierVerdict != nil {
		first = TierPolicy
	}
	own := v.Reasoning
	v, o.reasoningForLog = p.addReviewReason(v, c.EarlierTierSteps, first)
	if v.Decision != verdict.Allow && (v.Decision != verdict.Escalate || !it.OmitExplanations) {
		v.Explanation = p.explainVerdict(&v, c, first, own)
	}
	o.redactedPayload = p.redactVerdictAndPayload(&v, o, c, it.EarlierVerdict == nil)
	if in.Last == TierApprove && p.allowOnceDecisionStore != nil && ctx.Err() == nil {
		switch {
		case p.canPersonOverrideRefusal(&v, c):
			p.storeRefusalWithRef(ctx, &v, c)
		case v.AnswerChannel == approve.HostChannel:
			p.addHintToAllowMoreActions(ctx, &v, c)
		}
	}
	o.tierSteps = c.EarlierTierSteps
	if o.judgedTiers&verdict.TierBitClassify != 0 {
		o.classifierEvidence = c.Tier1AllowEvidence
	}
	if v.Decision == verdict.Escalate || p.verdictsIncludeTrail {
		v.Trail = c.EarlierTierSteps
	} else {
		v.Trail = nil
	}
	return v
}

// needsLaterTier reports whether a tier after the last one asked has to decide.
func (it *judgeRequest) needsLaterTier(v verdict.Verdict, in TierRange) bool {
	return it.StopsAfterClassifierTier && v.Decision == verdict.Escalate && in.Last > TierClassify
}

// judgePolicyTier asks Tier 0 when the item's turn has come. In a stream, it then adds the effects of the action
// to the session, unless the action is denied: the next action is judged before the later tiers have judged this
// one. analyzedBeforeTurn means that the case was analysed before its turn.
func (p *Pipeline) judgePolicyTier(ctx context.Context, it *judgeRequest, c *analysis.ActionCase, memory *sessionMemory, analyzedBeforeTurn bool) (verdict.Verdict, *analysis.ActionCase) {
	it.PolicyTierQueueSlot.wait()
	if analyzedBeforeTurn {
		c = memory.reanalyzeIfSessionChanged(c)
	}
	if err := memory.markEarlierReadValueSend(c); err != nil && !c.HasOnlyHarmlessEffects() {
		it.PolicyTierQueueSlot.passToNextAction()
		return p.enforceMinTierAndAddToTrail(unreadableSessionVerdict(err), TierPolicy, c, p.now()), c
	}
	said := len(c.EarlierTierSteps)
	v := p.askTier(ctx, TierPolicy, c)
	if strict := memory.tightenVerdictBySessionState(v, c); strict.Decision != v.Decision || strict.NextTier != v.NextTier {
		c.EarlierTierSteps = c.EarlierTierSteps[:said]
		v = p.enforceMinTierAndAddToTrail(strict, TierPolicy, c, p.now())
	}
	if it.PolicyTierQueueSlot != nil && v.Decision == verdict.Escalate && memory != nil {
		memory.loadSession() // read the session now, before later tiers run
	}
	if n := len(c.EarlierTierSteps); n > 0 {
		c.EarlierTierSteps[n-1].SessionDataForNextProcess = memory.encodeForNextProcess()
	}
	if it.PolicyTierQueueSlot != nil {
		v = memory.recordActionEffectsInSession(v, c)
		it.PolicyTierQueueSlot.passToNextAction()
	}
	return v, c
}

// askTier asks one tier about a case and adds its answer to the trail. If the case requires a
// higher tier, an ALLOW becomes an ESCALATE.
func (p *Pipeline) askTier(ctx context.Context, tier int, c *analysis.ActionCase) verdict.Verdict {
	start := p.now()
	v, err := p.tiers[tier].Judge(ctx, c)
	switch {
	case ctx.Err() != nil && err != nil:
		v = failureVerdict(tier, "interrupted", "shield was interrupted while it judged the action; blocked. Try again")
	case err != nil:
		v = failureVerdict(tier, "tier", fmt.Sprintf("%s error: %v", judgeNameByTier[tier], err))
		v.Confidence = 0.5
	}
	return p.enforceMinTierAndAddToTrail(v, tier, c, start)
}

// enforceMinTierAndAddToTrail adds a tier's verdict to the trail and returns it with the decision that takes effect:
// an ALLOW becomes an ESCALATE or a BLOCK if the action requires a higher tier.
func (p *Pipeline) enforceMinTierAndAddToTrail(v verdict.Verdict, tier int, c *analysis.ActionCase, tierStartedAt time.Time) verdict.Verdict {
	v.Tier = tier
	held := v.Decision == verdict.Allow && c.MinAllowTier > tier
	switch {
	case held:
		v.Decision = verdict.AuthorityOfTier(c.MinAllowTier).DecisionIfRequiredAtTier(tier)
		v.Reasoning += "; " + c.WhyHigherTierMustDecide()
		v.ReasoningCannotLeakActionText = false
	case v.Decision == verdict.Escalate && tier == TierApprove && v.AnswerChannel != approve.HostChannel, v.Decision == verdict.NoDecision:
		v.Decision = verdict.AuthorityNoneSuffices.DecisionIfRequiredAtTier(tier)
	}
	v.NextTier, v.Expires = nextTierAfter(v, c, tier), time.Time{}
	steps := p.trailSteps(v, tier, c, tierStartedAt)
	steps[0].AllowedPendingHigherTier = held
	c.EarlierTierSteps = append(c.EarlierTierSteps, steps...)
	return v
}

// nextTierAfter returns the least tier that may decide after an ESCALATE, and stores it in the case; 0
// after another decision.
func nextTierAfter(v verdict.Verdict, c *analysis.ActionCase, tier int) int {
	if v.Decision != verdict.Escalate {
		return 0
	}
	c.MinAllowTier = min(max(c.MinAllowTier, v.NextTier, tier+1), TierApprove)
	return c.MinAllowTier
}

// trailSteps returns what a verdict adds to the trail: the answers of a tier's
// classifiers, or the tier's own.
func (p *Pipeline) trailSteps(v verdict.Verdict, tier int, c *analysis.ActionCase, start time.Time) []verdict.TierStep {
	steps := v.Trail
	if len(steps) == 0 {
		steps = []verdict.TierStep{{
			JudgeName: judgeNameByTier[tier], Decision: v.Decision, Confidence: v.Confidence,
			Rule: v.Rule, Reasoning: v.Reasoning, ErrorCode: v.ErrorCode, ReasoningCannotLeakActionText: v.ReasoningCannotLeakActionText,
		}}
	}
	for i := range steps {
		steps[i].Tier = tier
	}
	if p.measuresLatency && !slices.ContainsFunc(steps, func(s verdict.TierStep) bool { return s.LatencyMicroseconds > 0 }) {
		steps[0].LatencyMicroseconds = p.now().Sub(start).Microseconds()
	}
	return steps
}

// failureVerdict returns the BLOCK for a failure in a tier.
func failureVerdict(tier int, code, reason string) verdict.Verdict {
	return verdict.Finding{RequiredAuthority: verdict.AuthorityNoneSuffices, Confidence: 1, ErrorCode: code, Reasoning: reason}.Verdict(tier)
}

// forwardVerdict returns the output for a verdict that an earlier stage decided: the same bytes or, if the
// action is to be left out, an outcome sealed again without it.
func (p *Pipeline) forwardVerdict(rec *verdict.ActionOrVerdictRecord) (out VerdictWithLogData, raw []byte) {
	out.Verdict = *rec.Verdict
	if !p.omitsActionFromVerdicts || len(out.Verdict.Action) == 0 {
		return out, rec.Raw
	}
	out.Verdict.Action = nil
	p.sealer.Seal(&out.Verdict, rec.JudgedTiers)
	return out, nil
}

// refuseRecord returns the BLOCK for a record that is not an action: line is where the record starts,
// counted from 1; code is a short code, reason is for people.
func (p *Pipeline) refuseRecord(line int, code, reason string) VerdictWithLogData {
	o := VerdictWithLogData{Verdict: failureVerdict(TierPolicy, code, p.redactor.RedactText(reason)), judgedTiers: verdict.TierBitPolicy}
	o.Verdict.Explanation.EffectAndHarm = o.Verdict.Reasoning
	o.Verdict.Line = line
	p.sealVerdictWithMAC(&o, nil)
	p.buildLogEntry(&o, nil)
	return o
}

// sealVerdictWithMAC sets the time of the verdict and seals it; a is its action, or nil.
func (p *Pipeline) sealVerdictWithMAC(o *VerdictWithLogData, a *action.Action) {
	v := &o.Verdict
	v.JudgedAt = p.now().UTC().Truncate(time.Millisecond)
	v.Expires = v.JudgedAt.Add(p.verdictLifetime)
	if p.sealer != nil {
		var known []byte
		if a != nil {
			known = a.Canonical()
		}
		p.sealer.SealWithCanonicalAction(v, o.judgedTiers, known)
	}
}
