package shield

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

// newEvaluator returns Tier 2. An evaluator that is not configured, or cannot be set up, returns
// verdicts that say so.
func (p *Pipeline) newEvaluator(cfg Config, person func() bool) (*evaluate.Evaluator, error) {
	s := cfg.settings()
	opts := evaluate.Options{
		Provider: cfg.Provider, FailOpen: !s.FailClosed, ApprovalUsable: person,
		CanaryToken: s.Evaluator.CanaryToken, Timeout: s.Evaluator.Timeout.Std(), Redactor: p.redactor, Why: shippedWhy, BudgetAsks: p.assisted,
	}
	if cfg.Provider == nil && s.Evaluator.Provider != "" {
		opts.Provider, opts.Cause = evaluate.NewProvider(endpoint(cfg, p.store, p.now))
	}
	if opts.Provider == nil && opts.Cause == nil {
		p.unreviewed = noModelNoChannel
		if len(s.Approval.Channels) == 0 {
			p.unreviewed = noModelNoPerson
		}
	}
	if opts.Provider != nil && p.store == nil {
		return nil, errors.New("the evaluator needs a state folder for its budget; set HOME or --state")
	}
	if p.store != nil {
		opts.Limits = limits{p}
		opts.Cache = cache{p}
	}
	p.asked, p.judgeName = opts, judgeName(cfg)
	if opts.CanaryToken != "" && opts.Provider != nil {
		_, _ = CanarySince(context.Background(), cfg, p.store) // an error shows when the state is next used
	}
	if opts.Provider != nil {
		opts.Unlicensed, opts.Asks = p.unlicensed, p.asksOffline
	}
	return evaluate.New(opts)
}

// A Named is a provider, supplied by a program, that names the model it asks. An exam of that model
// stays valid until the name changes.
type Named interface {
	evaluate.Provider
	Identity() string
}

// judgeName returns the name of the evaluator's model to which an exam result is bound.
func judgeName(cfg Config) string {
	if cfg.Provider == nil {
		ep := cfg.Endpoint()
		return ep.Identity()
	}
	if n, ok := cfg.Provider.(Named); ok {
		return n.Identity()
	}
	return ""
}

// endpoint returns the address of a configuration's language model; facts learned about it are kept in
// the state file.
func endpoint(cfg Config, store *state.Store, now func() time.Time) evaluate.Endpoint {
	ep := cfg.Endpoint()
	if store != nil {
		ep.Memory = memory{store, now}
	}
	return ep
}

// LearnedForm returns the answer format that the configuration's language model turned out to need,
// see [evaluate.LearnedForm].
func LearnedForm(ctx context.Context, cfg Config, store *state.Store) string {
	return evaluate.LearnedForm(ctx, endpoint(cfg, store, cfg.Clock))
}

// memory keeps facts learned about model services in the cache of the state file.
type memory struct {
	store *state.Store
	now   func() time.Time
}

func (m memory) Recall(ctx context.Context, key string) (string, bool) {
	text, ok, err := m.store.Get(ctx, key)
	return string(text), ok && err == nil
}

func (m memory) Remember(ctx context.Context, key, text string, keep time.Duration) {
	_ = m.store.Put(ctx, key, []byte(text), m.now().Add(keep)) // if it cannot be kept it is learned again
}

// leastWarned is the smallest daily budget near whose end shield warns.
const leastWarned = 10

// limits counts evaluations in the state file.
type limits struct{ p *Pipeline }

func (l limits) Admit(ctx context.Context) error {
	used, rise, err := l.p.store.Admit(ctx, l.p.limits.PerMinute, l.p.limits.PerDay)
	if err == nil && rise != nil {
		l.p.Tell(audit.KindBudget, "evaluations are rising: "+rise.String())
	}
	if budget := l.p.limits.PerDay; err == nil && budget >= leastWarned && used == budget-budget/5 {
		l.p.Tell(audit.KindBudget, fmt.Sprintf("%d of %d evaluations used today; when none is left, actions that need one are blocked; raise daily_budget, or use the preset assisted or offline", used, budget))
	}
	return refused(err)
}

func (l limits) TakeRate(ctx context.Context) error {
	return refused(l.p.store.TakeRate(ctx, l.p.limits.PerMinute))
}

// refused converts errors of the state file to those of package evaluate.
func refused(err error) error {
	switch {
	case errors.Is(err, state.ErrRateExceeded):
		return evaluate.ErrRateLimited
	case errors.Is(err, state.ErrBudgetExhausted):
		return evaluate.ErrBudgetExhausted
	default:
		return err
	}
}

// cache keeps verdicts of Tier 2 in the state file until they expire.
type cache struct{ p *Pipeline }

// kept is the stored part of a verdict.
type kept struct {
	Decision   verdict.Decision `json:"decision"`
	Confidence float64          `json:"confidence"`
	Reasoning  string           `json:"reasoning"`
	NextTier   int              `json:"next_tier,omitempty"`
}

// key returns the key of a cached verdict. It includes the user's mentions and the prompt's hash, so a
// new prompt version asks again.
func (c cache) key(cs *analysis.Case) string {
	return c.p.binding("evaluate", cs, fmt.Sprint(cs.Said), evaluate.PromptHash())
}

func (c cache) Lookup(ctx context.Context, cs *analysis.Case) (verdict.Verdict, bool) {
	key := c.key(cs)
	if key == "" {
		return verdict.Verdict{}, false
	}
	data, ok, err := c.p.store.Get(ctx, key)
	var k kept
	if err != nil || !ok || json.Unmarshal(data, &k) != nil {
		return verdict.Verdict{}, false
	}
	return verdict.Verdict{Decision: k.Decision, Confidence: k.Confidence, Reasoning: k.Reasoning, NextTier: k.NextTier}, true
}

func (c cache) Store(ctx context.Context, cs *analysis.Case, v verdict.Verdict) {
	data, err := json.Marshal(kept{v.Decision, v.Confidence, v.Reasoning, v.NextTier})
	key := c.key(cs)
	if err != nil || key == "" {
		return
	}
	// A verdict that cannot be cached only costs another evaluation.
	_ = c.p.store.Put(ctx, key, data, c.p.now().Add(c.p.ttl))
}

// binding returns the key of an answer that may be used again: only for the same action in the same
// place, with the same effects and the same content of the files that it uses, under the same policy,
// rules, model and configuration. "" means that no answer may be used again.
func (p *Pipeline) binding(use string, c *analysis.Case, also ...string) string {
	inputs, err := c.Inputs()
	if err != nil {
		return ""
	}
	h := sha256.New()
	parts := []string{use, p.caller.User, c.Action.Hash, c.At().CWD, c.Action.Session, c.Digest(), inputs, p.prints.Policy, p.prints.Rules, p.prints.Model, p.prints.Config, labelNames(c)}
	for _, part := range append(parts, also...) {
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = io.WriteString(h, part) // writing to a hash does not fail
	}
	return use + ":" + hex.EncodeToString(h.Sum(nil))
}

// Endpoint returns the address of a configuration's evaluator and how to reach it.
func (cfg *Config) Endpoint() evaluate.Endpoint {
	return evaluate.Endpoint{Evaluator: cfg.settings().Evaluator, LookupEnv: cfg.Lookup}
}

// auditFingerprints converts the fingerprints of a verdict for its log entry.
func auditFingerprints(f verdict.Fingerprints) audit.Fingerprints {
	return audit.Fingerprints{Policy: f.Policy, Rules: f.Rules, Model: f.Model, Config: f.Config}
}
