// Package classify is Tier 1: it judges an action by rules for known attacks
// and by a model that generalises from examples. Both run at the same time, and
// the more severe answer wins. A model that can estimate its answer is asked only
// where the answer could change the decision.
//
// The rules are data, in rules/*.yaml, and are compiled into tables by go
// generate. They look at what an action does, as pkg/analysis found it, rather
// than at its text: data is not an attack.
package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

const errorCode = "classifier"

// A Scorer is a model. Goroutines share it.
type Scorer interface {
	// Score judges a text of the form "type: payload", payload being canonical
	// JSON. An error never counts as "safe": [ErrTooLong] makes the action
	// ESCALATE, any other error is a failure of the classifier.
	Score(ctx context.Context, text string) (Score, error)
}

// ErrTooLong means that a text is longer than the model reads.
var ErrTooLong = errors.New("text is too long for the model")

// A Score is a model's answer.
type Score struct {
	Injection  bool    // the label: INJECTION or SAFE
	Confidence float64 // of the label, 0.0–1.0
}

// Options say which classifiers run. The zero value runs the rules alone and
// fails closed.
type Options struct {
	NoHeuristic bool               // only rules that always block run
	Model       Scorer             // nil: no model
	Threshold   float64            // least confidence at which the model blocks; 0 means 0.85
	Thresholds  map[string]float64 // the same by type of action
	Safe        map[string]float64 // by type of action: least confidence at which the model's SAFE counts; below it the action ESCALATEs
	Doubts      map[string]float64 // by cause of doubt: least confidence at which the model's SAFE clears it; nil: what suits most models
	SkipTypes   []string           // action types that the model does not judge: they ESCALATE unless a rule blocks them
	Home        string             // the canonical home folder; "~" in rules means it and the usual home folders
	Roots       []string           // the canonical workspace folders
	FailOpen    bool               // if a classifier fails, the action ESCALATEs instead of being blocked
	Clock       func() time.Time   // measures how long each classifier takes; nil: not measured
	Note        string             // why a configured model is missing; repeated in reasonings
}

// A Classifier is Tier 1. Goroutines may share it.
type Classifier struct {
	opts   Options
	engine func() *engine
}

// New returns a Classifier. Its tables are built when it judges the first action.
func New(opts Options) *Classifier {
	if opts.Threshold == 0 {
		opts.Threshold = 0.85
	}
	if opts.Doubts == nil {
		opts.Doubts = clearable
	}
	return &Classifier{opts: opts, engine: sync.OnceValue(func() *engine { return newEngine(ruleTable[:], opts.Home, opts.Roots) })}
}

// Warm builds the tables for the first action, which takes a millisecond.
func (k *Classifier) Warm() { k.engine() }

// Judge returns the verdict of Tier 1. The failure of a classifier is reported
// in the verdict; an error is returned only if the context ended.
func (k *Classifier) Judge(ctx context.Context, c *analysis.Case) (verdict.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return verdict.Verdict{}, err
	}
	harmless := c.Unexamined == "" && c.Harmless()
	k.note(c, harmless, nil)
	if c.MinTier >= 2 {
		return k.below(c), nil
	}
	if k.opts.Model == nil || harmless || k.skips(c) {
		return k.alone(c, harmless), nil
	}
	v := k.both(ctx, c)
	if v.Error != "" && ctx.Err() != nil {
		return verdict.Verdict{}, ctx.Err() // the model did not fail, the caller stopped it
	}
	return v, nil
}

// below judges an action that has to go to a higher tier. A request for more
// scrutiny must not weaken it: rules that block still block.
func (k *Classifier) below(c *analysis.Case) verdict.Verdict {
	r := k.heuristic(c, scopeBlock)
	if r.decision == verdict.Block {
		return finish(c, r, r)
	}
	r.decision, r.confidence, r.rule = verdict.Escalate, min(r.confidence, noMatchConfidence), ""
	// Why a higher tier is asked.
	asked := slices.IndexFunc(c.Trail, func(s verdict.Step) bool {
		return s.Tier == 0 && s.Decision == verdict.Escalate && !s.Allows && s.Rule != ""
	})
	switch {
	case r.err != nil:
		return finish(c, r, r)
	case asked < 0:
		r.reasoning, r.fixed = c.WhyTier(), false
		return finish(c, r, r)
	}
	r.reasoning, r.fixed = "no blocking rule matched", true
	v := finish(c, r, r)
	v.Rule, v.Reasoning, v.Fixed = c.Trail[asked].Rule, c.Trail[asked].Reasoning, c.Trail[asked].Fixed
	return v
}

// Blocks reports whether a rule alone blocks an action, whatever else is said of it.
func (k *Classifier) Blocks(c *analysis.Case) bool {
	return k.heuristic(c, scopeBlock).decision == verdict.Block
}

// alone judges an action without the model.
func (k *Classifier) alone(c *analysis.Case, harmless bool) verdict.Verdict {
	r := k.heuristic(c, scopeAll)
	if r.decision != verdict.Allow {
		return finish(c, r, r)
	}
	switch d := doubts(c, k.opts.Doubts); {
	case harmless:
		r.confidence, r.reasoning = harmlessConfidence, harmlessReason
	case permitted(c):
		r.confidence, r.reasoning = ordinaryConfidence, permittedReason
	case d.Reason != "" && !d.Unusual:
		r.decision, r.reasoning, r.fixed = verdict.Escalate, d.Reason, false
	case k.opts.Model != nil:
		r.decision, r.reasoning = verdict.Escalate, "the model does not judge this type of action"
	case k.opts.NoHeuristic:
		r = k.noClassifier()
	case c.Ordinary():
		r.confidence, r.reasoning = ordinaryConfidence, becauseOrdinary(c)
	default:
		r.decision, r.reasoning, r.fixed = verdict.Escalate, cmp.Or(d.Reason, "no rule matched, and nothing shows that this is ordinary work"), false
	}
	if k.opts.Note != "" && !harmless {
		r.reasoning += "; " + k.opts.Note
	}
	return finish(c, r, r)
}

// noClassifier is the result where neither rules nor a model are switched on.
func (k *Classifier) noClassifier() result {
	r := result{source: "none", decision: verdict.Escalate, confidence: errorConfidence,
		reasoning: "no classifier is available: heuristics are switched off and no model is loaded"}
	if k.opts.FailOpen {
		r.decision = verdict.Allow
	}
	return r
}

// both runs rules and model at the same time. Where the decision is the same
// whatever the model could answer, its estimate is the answer.
func (k *Classifier) both(ctx context.Context, c *analysis.Case) verdict.Verdict {
	text, err := "", errNoAction
	if c.Action != nil {
		text, err = Text(c.Action)
	}
	ask := func() result {
		if err != nil {
			return failed("model", err, k.opts.FailOpen)
		}
		return k.score(ctx, c.Action.Type, text)
	}
	estimated := make(chan [3]result, 1)
	scored := make(chan result, 1)
	go func() {
		if err == nil {
			if e, ok := k.estimate(ctx, c.Action.Type, text); ok {
				estimated <- e
				return
			}
		}
		close(estimated)
		scored <- ask()
	}()
	h := k.heuristic(c, scopeAll)
	known := k.evidence(c, h.decision == verdict.Allow && !k.opts.NoHeuristic)
	decide := func(m result) verdict.Verdict {
		m = known.weigh(m)
		if k.opts.NoHeuristic && h.decision == verdict.Allow {
			return finish(c, m, m)
		}
		return finish(c, combine(h, m), h, m)
	}
	e, ok := <-estimated
	m := e[1]
	if !ok {
		m = <-scored
	}
	v := decide(m)
	if ok && !settled(e, decide) {
		m = ask()
		v = decide(m)
	}
	if v.Decision != verdict.Allow && known.unmatched && m.err == nil {
		m, v = k.again(ctx, c, m, v, decide)
	}
	k.note(c, false, &m)
	return v
}

// settled reports whether the decision is the same whatever the model could answer.
func settled(e [3]result, decide func(result) verdict.Verdict) bool {
	d := decide(e[1]).Decision
	return decide(e[0]).Decision == d && decide(e[2]).Decision == d
}

// again asks the model about an action that it suspects without the words in it that are
// data. What it then says counts if it allows the action.
func (k *Classifier) again(ctx context.Context, c *analysis.Case, m result, v verdict.Verdict, decide func(result) verdict.Verdict) (result, verdict.Verdict) {
	text, ok := withoutProse(c)
	if !ok {
		return m, v
	}
	e, ok := k.estimate(ctx, c.Action.Type, text)
	second := e[1]
	if !ok || !settled(e, decide) {
		second = k.score(ctx, c.Action.Type, text)
	}
	if w := decide(second); w.Decision == verdict.Allow {
		return second, w
	}
	return m, v
}

// estimate returns the least, the likely and the gravest answer that the model
// could give. ok is false if it has to be asked.
func (k *Classifier) estimate(ctx context.Context, kind, text string) (out [3]result, ok bool) {
	m, isEstimator := k.opts.Model.(Estimator)
	if !isEstimator {
		return out, false
	}
	var r result
	stop := k.timed(&r)
	defer func() {
		if recover() != nil {
			ok = false // asking it says what is wrong
		}
	}()
	e, ok := m.Estimate(ctx, text)
	stop()
	for i, s := range [...]Score{e.Low, e.Likely, e.High} {
		ok = ok && s.Confidence >= 0 && s.Confidence <= 1
		out[i] = s.result(k.threshold(kind), k.opts.Safe[kind])
		out[i].latency = r.latency
	}
	return out, ok
}

// finish turns the deciding result into a verdict with a trail.
func finish(c *analysis.Case, r result, all ...result) verdict.Verdict {
	v := verdict.Verdict{Tier: 1, Decision: r.decision, Confidence: r.confidence, Reasoning: r.reasoning, Rule: r.rule, Fixed: r.fixed}
	if r.err != nil {
		v.Error = errorCode
	}
	if r.decision == verdict.Escalate {
		v.NextTier = max(2, c.MinTier)
	}
	v.Degraded = r.source == "none" && r.decision == verdict.Allow
	for _, one := range all {
		v.Trail = append(v.Trail, one.step())
	}
	return v
}

// timed returns a function that records in a result the time since this call.
func (k *Classifier) timed(r *result) func() {
	if k.opts.Clock == nil {
		return func() {}
	}
	start := k.opts.Clock()
	return func() { r.latency = k.opts.Clock().Sub(start) }
}

// heuristic runs the rules of a scope.
func (k *Classifier) heuristic(c *analysis.Case, sc scope) (r result) {
	defer k.timed(&r)()
	defer func() {
		if p := recover(); p != nil {
			r = failed("heuristic", fmt.Errorf("heuristic engine: %v", p), k.opts.FailOpen)
		}
	}()
	if k.opts.NoHeuristic {
		sc = scopeAlways
	}
	eng := k.engine()
	s := eng.pool.Get().(*scratch)
	defer eng.pool.Put(s)
	eng.run(s, c, sc)
	if len(s.hits) > 0 {
		h := eng.worst(s.hits)
		rule := &eng.rules[h.rule]
		if d := h.decision(rule); d == verdict.Block || !s.over {
			return result{source: "heuristic", decision: d, confidence: rule.Severity.Confidence(), rule: rule.ID, reasoning: reasoning(rule, h), fixed: h.where == ""}
		}
	}
	if s.over {
		return result{source: "heuristic", decision: verdict.Escalate, confidence: errorConfidence,
			reasoning: "unexamined: too long for the rules; split it into smaller steps"}
	}
	return result{source: "heuristic", decision: verdict.Allow, confidence: noMatchConfidence, reasoning: "no rule matched", fixed: true}
}

// reasoning says which rule matched and what to do instead. It never shows the
// rule's expressions, because they would show how to get around them.
func reasoning(r *Rule, h hit) string {
	text := fmt.Sprintf("heuristic [%s, %s]: %s", r.Name, r.Severity, firstSentence(r.Description))
	if h.where != "" {
		text += "; in " + clip(h.where, 80)
	}
	if r.Advice != "" {
		text += "; instead: " + r.Advice
	}
	return text
}

// score asks the model. A panic in it counts as an error.
func (k *Classifier) score(ctx context.Context, kind, text string) (r result) {
	defer k.timed(&r)()
	defer func() {
		if p := recover(); p != nil {
			r = failed("model", fmt.Errorf("model: %v", p), k.opts.FailOpen)
		}
	}()
	s, err := k.opts.Model.Score(ctx, text)
	if errors.Is(err, ErrTooLong) {
		return result{source: "model", decision: verdict.Escalate, confidence: errorConfidence,
			reasoning: "unexamined: too long for the model; split it into smaller steps"}
	}
	if err == nil && (math.IsNaN(s.Confidence) || s.Confidence < 0 || s.Confidence > 1) {
		err = errors.New("model: confidence is not between 0 and 1")
	}
	if err != nil {
		return failed("model", err, k.opts.FailOpen)
	}
	return s.result(k.threshold(kind), k.opts.Safe[kind])
}

func (k *Classifier) threshold(kind string) float64 {
	if t, ok := k.opts.Thresholds[kind]; ok {
		return t
	}
	return k.opts.Threshold
}

func (k *Classifier) skips(c *analysis.Case) bool {
	return c.Action != nil && slices.Contains(k.opts.SkipTypes, c.Action.Type)
}
