// Package classify is Tier 1: it judges an action by rules for known attacks
// and by a model that generalises from examples, both at once, and the more
// severe answer wins.
//
// The rules are data, in rules/*.yaml, and are compiled into tables by go
// generate. They look at what an action does, as pkg/analysis found it, rather
// than at its text: data is not an attack.
package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

const errorCode = "classifier"

// A Scorer is a model. Goroutines share it.
type Scorer interface {
	// Score judges a text of the form "type: payload", payload being canonical
	// JSON. An error is never taken for "safe"; [ErrTooLong] makes the action
	// ESCALATE, any other is a classifier that fails.
	Score(ctx context.Context, text string) (Score, error)
}

// ErrTooLong says that a text is longer than a model reads.
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
	Threshold   float64            // least confidence at which the model blocks; 0: 0.85
	Thresholds  map[string]float64 // the same for types of action
	Safe        map[string]float64 // least confidence at which the model's SAFE counts, for types of action; else they ESCALATE
	SkipTypes   []string           // action types that the model does not judge: they ESCALATE unless a rule blocks them
	Home        string             // the canonical home folder that "~" in rules means beside the usual ones
	Roots       []string           // the canonical workspace folders
	FailOpen    bool               // a classifier that fails ESCALATEs instead of blocking
	Clock       func() time.Time   // times each classifier; nil: none is timed
	Note        string             // why there is no model where one was asked for; reasonings repeat it
}

// A Classifier is Tier 1. Goroutines may share it.
type Classifier struct {
	opts   Options
	engine func() *engine
}

// New returns a Classifier. Its tables are built when the first action comes.
func New(opts Options) *Classifier {
	if opts.Threshold == 0 {
		opts.Threshold = 0.85
	}
	return &Classifier{opts: opts, engine: sync.OnceValue(func() *engine { return newEngine(ruleTable[:], opts.Home, opts.Roots) })}
}

// Judge returns the verdict of Tier 1. A classifier that fails is part of the
// verdict; the error is for a context that ended.
func (k *Classifier) Judge(ctx context.Context, c *analysis.Case) (verdict.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return verdict.Verdict{}, err
	}
	if c.MinTier >= 2 {
		return k.below(c), nil
	}
	harmless := c.Unexamined == "" && c.Harmless()
	if k.opts.Model == nil || harmless || k.skips(c) {
		return k.alone(c, harmless), nil
	}
	v := k.both(ctx, c)
	if v.Error != "" && ctx.Err() != nil {
		return verdict.Verdict{}, ctx.Err() // the model did not fail, it was stopped
	}
	return v, nil
}

// below judges an action on its way to a higher tier. Asking for more scrutiny
// must not give less: what would block here still does.
func (k *Classifier) below(c *analysis.Case) verdict.Verdict {
	r := k.heuristic(c, scopeBlock)
	if r.decision != verdict.Block {
		why := fmt.Sprintf("no blocking rule matched; tier %d has to decide", c.MinTier)
		if r.err != nil {
			why = r.reasoning
		}
		r = result{source: r.source, decision: verdict.Escalate, confidence: min(r.confidence, noMatchConfidence), reasoning: why, err: r.err}
	}
	return finish(c, r, r)
}

// alone judges an action without the model.
func (k *Classifier) alone(c *analysis.Case, harmless bool) verdict.Verdict {
	r := k.heuristic(c, scopeAll)
	if r.decision != verdict.Allow {
		return finish(c, r, r)
	}
	switch d := doubts(c); {
	case harmless:
		r.confidence, r.reasoning = harmlessConfidence, "harmless: every effect is known, and none does more than read in the workspace"
	case d.reason != "":
		r.decision, r.reasoning = verdict.Escalate, d.reason
	case k.opts.Model != nil:
		r.decision, r.reasoning = verdict.Escalate, "the model does not judge this type of action"
	case k.opts.NoHeuristic:
		r = k.nobody()
	case c.Ordinary():
		r.confidence, r.reasoning = ordinaryConfidence, ordinaryReason
	default:
		r.decision, r.reasoning = verdict.Escalate, "no rule matched, and without a model nothing says that this is ordinary work"
	}
	if k.opts.Note != "" && !harmless {
		r.reasoning += "; " + k.opts.Note
	}
	return finish(c, r, r)
}

// nobody is the answer of a Tier 1 that has no classifier.
func (k *Classifier) nobody() result {
	r := result{source: "none", decision: verdict.Escalate, confidence: errorConfidence,
		reasoning: "no classifier is available: heuristics are switched off and no model is loaded"}
	if k.opts.FailOpen {
		r.decision = verdict.Allow
	}
	return r
}

// both runs rules and model at the same time.
func (k *Classifier) both(ctx context.Context, c *analysis.Case) verdict.Verdict {
	text, err := "", errNoAction
	if c.Action != nil {
		text, err = Text(c.Action)
	}
	scored := make(chan result, 1)
	go func() {
		if err != nil {
			scored <- failed("model", err, k.opts.FailOpen)
			return
		}
		scored <- k.score(ctx, c.Action.Type, text)
	}()
	h := k.heuristic(c, scopeAll)
	m := <-scored
	m = weigh(c, m, h.decision == verdict.Allow && !k.opts.NoHeuristic && c.Ordinary())
	if k.opts.NoHeuristic && h.decision == verdict.Allow {
		return finish(c, m, m)
	}
	return finish(c, combine(h, m), h, m)
}

// finish turns the deciding result into a verdict with a trail.
func finish(c *analysis.Case, r result, all ...result) verdict.Verdict {
	v := verdict.Verdict{Tier: 1, Decision: r.decision, Confidence: r.confidence, Reasoning: r.reasoning, Rule: r.rule}
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

// timed returns a function that notes in a result how long it took since.
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
			return result{source: "heuristic", decision: d, confidence: rule.Severity.Confidence(), rule: rule.ID, reasoning: reasoning(rule, h)}
		}
	}
	if s.over {
		return result{source: "heuristic", decision: verdict.Escalate, confidence: errorConfidence,
			reasoning: "unexamined: too much for the rules to read; propose it in smaller steps"}
	}
	return result{source: "heuristic", decision: verdict.Allow, confidence: noMatchConfidence, reasoning: "no rule matched"}
}

// reasoning says which rule matched and what to do instead. It never shows the
// rule's expressions: that would be a map of the way around them.
func reasoning(r *Rule, h hit) string {
	text := fmt.Sprintf("heuristic [%s, %s]: %s; in %s", r.Name, r.Severity, firstSentence(r.Description), clip(h.where, 80))
	advice := r.Advice
	if rest, none := strings.CutPrefix(advice, "none"); none {
		_, advice, _ = strings.Cut(rest, "; ")
	}
	if advice == "" {
		return text
	}
	return text + "; instead: " + advice
}

// score asks the model. A panic in it is an error.
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
			reasoning: "unexamined: too long for the model to read; propose it in smaller steps"}
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
