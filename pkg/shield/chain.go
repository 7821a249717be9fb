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

// sources are the names of the tiers in a trail.
var sources = [...]string{"policy", "classifier", "evaluator", "person"}

// An item is one thing to judge: an action, or the sealed ESCALATE verdict of
// an earlier stage with the action that it carries.
type item struct {
	Line    int // where the record starts, counted from 1
	Action  *action.Action
	Resume  *verdict.Verdict // nil for an action that nothing judged yet
	Stages  verdict.Stages   // the tiers that judged Resume
	Turn    *streamTurn      // its place in a stream; nil for an action outside a stream
	Disk    *disk            // a cache of file checks for actions that wait together; nil for none
	Outside func()           // called before another process or a person is asked; may be nil
	Early   bool             // leave tiers later than [TierClassify] to another process, see [Pipeline.EvaluateEarly]
	Only    bool             // the only action of a stream; it is remembered as part of a stream
	Untold  bool             // leave out what agent and user are told about an ESCALATE, see [StreamOptions]
}

// A Range is the tiers that judge, from First to Last inclusive.
type Range struct{ First, Last int }

// All is the range of all tiers.
var All = Range{TierPolicy, TierApprove}

// looksBelow reports whether a tier below the range is asked first, only to block: an evaluator or a
// person asked about an action that no rule has checked must not mean less scrutiny than the whole
// chain.
func (r Range) looksBelow(tier int, judged verdict.Stages) bool {
	return r.First >= TierEvaluate && tier < TierEvaluate && judged&(1<<tier) == 0
}

// An Outcome is a sealed verdict with the data for its log entry.
type Outcome struct {
	Verdict verdict.Verdict
	stages  verdict.Stages
	trail   []verdict.Step
	payload any    // payload of the action, redacted
	forLog  string // reasoning for the log; "" if it is that of the verdict
	latency time.Duration
	ticket  *audit.Ticket
	lasting *lastingRecord // what an allowed action of a stream adds to later sessions; nil for nothing
	action  *action.Action // set if lasting is

	evidence *analysis.Evidence
	seen     telemetry.Action // telemetry about the verdict; see [Config]
}

// Trail returns what each tier, or each classifier of a tier, said, whatever the decision was.
func (o *Outcome) Trail() []verdict.Step { return o.trail }

// Evidence returns what Tier 1 based its decision on, for a person to read. It is nil if the pipeline
// does not trace or did not ask Tier 1.
func (o *Outcome) Evidence() *analysis.Evidence { return o.evidence }

// Latency returns how long judging took, analysis included.
func (o *Outcome) Latency() time.Duration { return o.latency }

// size estimates how many bytes an outcome holds until it is written.
func (o *Outcome) size() int {
	const fixed = 2 << 10 // estimated size of the verdict, its seal, its reasons and its log entry, in bytes
	n := fixed + len(o.Verdict.Action)
	for i := range o.trail {
		s := &o.trail[i]
		n += len(s.Reasoning) + len(s.Effects) + len(s.Views)
	}
	if o.ticket != nil {
		n += o.ticket.Size()
	}
	return n
}

// outcome sends an item through the tiers of a range, in order, until one decides. Before it asks an
// evaluator or a person, the rules of lower tiers that have not judged the item yet may block it or
// ask for a higher tier; they cannot allow it. It always returns a verdict: any failure is a BLOCK.
// The verdict must not be shown before it is recorded and settled.
func (p *Pipeline) outcome(ctx context.Context, it item, r Range) Outcome {
	var o Outcome
	start := p.now()
	o.Verdict = p.judge(ctx, it, r, &o)
	o.latency = p.now().Sub(start)
	p.see(&o, it.Action, start)
	v := &o.Verdict
	if v.Decision != verdict.Allow && v.Told == (verdict.Told{}) && (v.Decision != verdict.Escalate || !it.Untold) {
		v.Told = toldFailure(v)
	}
	v.Line = it.Line
	if a := it.Action; a != nil {
		v.ID, v.ActionHash = strings.Clone(a.ID), a.Hash // a.ID may be a substring of the whole record and keep it in memory
		if !p.noAction {
			v.Action = a.Raw
		}
	}
	p.finish(&o, it.Action)
	p.prepare(&o, it.Action)
	return o
}

// judge sends an item through the tiers and stores in o the trail, with what each tier said, and the
// redacted payload.
func (p *Pipeline) judge(ctx context.Context, it item, in Range, o *Outcome) (v verdict.Verdict) {
	tier := in.First
	defer func() {
		if x := recover(); x != nil {
			v = refusal(tier, "panic", p.redactor.String(fmt.Sprintf("blocked: tier %d failed with an internal error, panic: %.200q; please report this", tier, fmt.Sprint(x))))
		}
	}()
	defer it.Turn.end()
	if p.current != nil {
		if err := p.current(); err != nil {
			return refusal(TierPolicy, "config", err.Error())
		}
	}
	r := p.recall(ctx, &it)
	early := !it.Turn.hasCome()
	c := p.analyze(it.Action, r)
	if r != nil && r.known != nil && len(r.known.Files[valueFlowName]) > 0 {
		c.CarriesValue(true)
	}
	if it.Resume != nil {
		c.Trail = append(c.Trail, it.Resume.Trail...)
		c.MinTier = max(c.MinTier, it.Resume.NextTier)
		o.stages = it.Stages
	}
	for tier = TierPolicy; tier <= in.Last && !(it.Early && tier > TierClassify); tier++ {
		if tier < in.First {
			if !in.looksBelow(tier, o.stages) {
				continue
			}
			c.MinTier = max(c.MinTier, in.First)
		}
		if ctx.Err() != nil {
			return refusal(tier, "interrupted", "shield was interrupted before it judged the action; blocked. Try again")
		}
		if tier == TierEvaluate {
			if allowed, ok := p.allowed(ctx, c, in, false); ok {
				v = allowed
				o.stages |= verdict.Approve
				break
			}
			c.Said = p.userMentions(ctx, c, r)
		}
		if it.Outside != nil && (tier >= TierEvaluate || tier == TierClassify && p.sidecar) {
			it.Outside()
		}
		if tier == TierPolicy {
			v, c = p.first(ctx, &it, c, r, early)
			if refused, ok := p.never(ctx, c); ok && v.Decision != verdict.Block {
				v = p.noted(refused, TierApprove, c, p.now())
				o.stages |= verdict.Approve
			}
		} else if tier == TierEvaluate && p.assisted {
			v = p.assists(ctx, c)
		} else {
			v = p.ask(ctx, tier, c)
		}
		o.stages |= 1 << tier
		if tier == TierApprove && v.Error == "" && !slices.Contains([]string{"", "remembered", "kind", approve.HostChannel}, v.Channel) {
			p.answeredByUser(ctx, c)
		}
		if tier == TierClassify && in.First <= TierClassify {
			v, c = p.keptInstead(ctx, v, c, r)
		}
		if tier < TierEvaluate {
			v = p.inContext(ctx, tier, v, c, r)
		}
		if v.Decision == verdict.Allow && tier < TierEvaluate {
			v = p.keepLosses(ctx, v, c)
		}
		if v.Decision != verdict.Escalate {
			break
		}
	}
	if (v.Tier < TierEvaluate || v.Channel == neverChannel) && p.allowable(&v, c) {
		if allowed, ok := p.allowed(ctx, c, in, v.Channel == neverChannel); ok {
			v = allowed
			o.stages |= verdict.Approve
		}
	}
	if v.Decision == verdict.Allow && v.Tier >= TierEvaluate {
		v = p.keepLosses(ctx, v, c)
	}
	switch {
	case it.undecided(v, in):
	case it.Turn == nil && !it.Only:
		v = r.settle(v, c)
	default:
		var err error
		if o.lasting, err = r.lastingOf(v, c); err != nil {
			v = sessionNotSaved(v, err)
		}
		if o.lasting != nil {
			o.action = it.Action
		}
	}
	first := in.First
	if it.Resume != nil {
		first = TierPolicy
	}
	own := v.Reasoning
	v, o.forLog = p.withReason(v, c.Trail, first)
	if v.Decision != verdict.Allow && (v.Decision != verdict.Escalate || !it.Untold) {
		v.Told = p.tell(&v, c, first, own)
	}
	o.payload = p.clean(&v, o, c, it.Resume == nil)
	if in.Last == TierApprove && p.refusals != nil && ctx.Err() == nil {
		switch {
		case p.allowable(&v, c):
			p.refer(ctx, &v, c)
		case v.Channel == approve.HostChannel:
			p.mention(ctx, &v, c)
		}
	}
	o.trail = c.Trail
	if o.stages&verdict.Classify != 0 {
		o.evidence = c.Evidence
	}
	if v.Decision == verdict.Escalate || p.trace {
		v.Trail = c.Trail
	} else {
		v.Trail = nil
	}
	return v
}

// undecided reports whether a tier after the last one asked has to decide.
func (it *item) undecided(v verdict.Verdict, in Range) bool {
	return it.Early && v.Decision == verdict.Escalate && in.Last > TierClassify
}

// first asks Tier 0 when the item's turn has come. It then adds the effects of the action to the
// session, unless only later tiers can say whether the action runs. early means that the case was
// analysed before its turn.
func (p *Pipeline) first(ctx context.Context, it *item, c *analysis.Case, r *sessionMemory, early bool) (verdict.Verdict, *analysis.Case) {
	it.Turn.wait()
	if early {
		c = r.refresh(c)
	}
	if err := r.carries(c); err != nil && !c.Harmless() {
		it.Turn.end()
		return p.noted(unreadableSession(err), TierPolicy, c, p.now()), c
	}
	said := len(c.Trail)
	v := p.ask(ctx, TierPolicy, c)
	if strict := r.stricter(v, c); strict.Decision != v.Decision || strict.NextTier != v.NextTier {
		c.Trail = c.Trail[:said]
		v = p.noted(strict, TierPolicy, c, p.now())
	}
	if it.Turn != nil && v.Decision == verdict.Escalate && r != nil {
		r.session() // read the session now, before later tiers run
	}
	if n := len(c.Trail); n > 0 {
		c.Trail[n-1].Session = r.told()
	}
	if it.Turn != nil {
		v = r.keep(v, c)
		it.Turn.end()
	}
	return v, c
}

// ask asks one tier about a case, raises the answer to the least tier that the case needs, and adds it
// to the trail.
func (p *Pipeline) ask(ctx context.Context, tier int, c *analysis.Case) verdict.Verdict {
	start := p.now()
	v, err := p.tiers[tier].Judge(ctx, c)
	switch {
	case ctx.Err() != nil && err != nil:
		v = refusal(tier, "interrupted", "shield was interrupted while it judged the action; blocked. Try again")
	case err != nil:
		v = refusal(tier, "tier", fmt.Sprintf("%s error: %v", sources[tier], err))
		v.Confidence = 0.5
	}
	return p.noted(v, tier, c, start)
}

// noted returns the answer of a tier as it counts and adds its steps to the trail.
func (p *Pipeline) noted(v verdict.Verdict, tier int, c *analysis.Case, start time.Time) verdict.Verdict {
	v.Tier = tier
	held := v.Decision == verdict.Allow && c.MinTier > tier
	switch {
	case held:
		v.Decision = verdict.Least(c.MinTier).At(tier)
		v.Reasoning += "; " + c.WhyTier()
		v.Fixed = false
	case v.Decision == verdict.Escalate && tier == TierApprove && v.Channel != approve.HostChannel, v.Decision == verdict.None:
		v.Decision = verdict.Never.At(tier)
	}
	v.NextTier, v.Expires = nextTierAfter(v, c, tier), time.Time{}
	steps := p.steps(v, tier, c, start)
	steps[0].Allows = held
	c.Trail = append(c.Trail, steps...)
	return v
}

// nextTierAfter returns the least tier that may decide after an ESCALATE, and stores it in the case; 0
// after another decision.
func nextTierAfter(v verdict.Verdict, c *analysis.Case, tier int) int {
	if v.Decision != verdict.Escalate {
		return 0
	}
	c.MinTier = min(max(c.MinTier, v.NextTier, tier+1), TierApprove)
	return c.MinTier
}

// steps returns what a verdict adds to the trail: the answers of a tier's
// classifiers, or the tier's own.
func (p *Pipeline) steps(v verdict.Verdict, tier int, c *analysis.Case, start time.Time) []verdict.Step {
	steps := v.Trail
	if len(steps) == 0 {
		steps = []verdict.Step{{
			Source: sources[tier], Decision: v.Decision, Confidence: v.Confidence,
			Rule: v.Rule, Reasoning: v.Reasoning, Error: v.Error, Fixed: v.Fixed,
		}}
	}
	for i := range steps {
		steps[i].Tier = tier
	}
	if p.timed && !slices.ContainsFunc(steps, func(s verdict.Step) bool { return s.Latency > 0 }) {
		steps[0].Latency = p.now().Sub(start).Microseconds()
	}
	return steps
}

// refusal returns the BLOCK for a failure in a tier.
func refusal(tier int, code, reason string) verdict.Verdict {
	return verdict.Finding{Who: verdict.Never, Confidence: 1, Error: code, Reasoning: reason}.Verdict(tier)
}

// pass returns the output for a verdict that an earlier stage decided: the same bytes or, if the
// action is to be left out, an outcome sealed again without it.
func (p *Pipeline) pass(rec *verdict.Record) (out Outcome, raw []byte) {
	out.Verdict = *rec.Verdict
	if !p.noAction || len(out.Verdict.Action) == 0 {
		return out, rec.Raw
	}
	out.Verdict.Action = nil
	p.sealer.Seal(&out.Verdict, rec.Stages)
	return out, nil
}

// refuse returns the BLOCK for a record that is not an action: line is where the record starts,
// counted from 1; code is a short code, reason is for people.
func (p *Pipeline) refuse(line int, code, reason string) Outcome {
	o := Outcome{Verdict: refusal(TierPolicy, code, p.redactor.String(reason)), stages: verdict.Policy}
	o.Verdict.Told.Why = o.Verdict.Reasoning
	o.Verdict.Line = line
	p.finish(&o, nil)
	p.prepare(&o, nil)
	return o
}

// finish sets the time of the verdict and seals it; a is its action, or nil.
func (p *Pipeline) finish(o *Outcome, a *action.Action) {
	v := &o.Verdict
	v.Evaluated = p.now().UTC().Truncate(time.Millisecond)
	v.Expires = v.Evaluated.Add(p.ttl)
	if p.sealer != nil {
		var known []byte
		if a != nil {
			known = a.Canonical()
		}
		p.sealer.SealKnown(v, o.stages, known)
	}
}
