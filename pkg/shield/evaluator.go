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
func (p *Pipeline) newEvaluator(cfg Config, canAskPerson func() bool) (*evaluate.Evaluator, error) {
	s := cfg.effectiveSettings()
	opts := evaluate.Options{
		Provider: cfg.Provider, FailOpen: !s.FailClosed, CanAskPerson: canAskPerson,
		FixedCanaryToken: s.Evaluator.FixedCanaryToken, EvaluationTimeout: s.Evaluator.Timeout.AsTimeDuration(), Redactor: p.redactor, StepEscalationReason: builtInEscalationReason, AskUserWhenBudgetSpent: p.usesAssistedPreset,
	}
	if cfg.Provider == nil && s.Evaluator.Provider != "" {
		opts.Provider, opts.ProviderSetupError = evaluate.NewProvider(evaluatorEndpoint(cfg, p.store, p.now))
	}
	if opts.Provider == nil && opts.ProviderSetupError == nil {
		p.noReviewerDenialText = noModelNoChannelDenialText
		if len(s.Approval.Channels) == 0 {
			p.noReviewerDenialText = noModelNoPersonDenialText
		}
	}
	if opts.Provider != nil && p.store == nil {
		return nil, errors.New("the evaluator needs a state folder for its budget; set HOME or --state")
	}
	if p.store != nil {
		opts.Limits = evaluationLimits{p}
		opts.Cache = evaluatorVerdictCache{p}
	}
	p.evaluatorOptions, p.evaluatorModelName = opts, evaluatorModelName(cfg)
	if opts.FixedCanaryToken != "" && opts.Provider != nil {
		_, _ = EvaluatorCanaryFirstUseTime(context.Background(), cfg, p.store) // an error shows when the state is next used
	}
	if opts.Provider != nil {
		opts.ModelAllowInsufficientReason, opts.FindStepAskingUserWithoutModel = p.reasonModelCannotApprove, p.stepAskingPersonWithoutModel
	}
	return evaluate.New(opts)
}

// A NamedModelProvider is a provider, supplied by a program, that names the model it asks. An exam of that model
// does not count for a model with another name.
type NamedModelProvider interface {
	evaluate.ModelProvider
	Identity() string
}

// evaluatorModelName returns the name under which exam results of the evaluator's model are stored: provider,
// model and address, or the name that the provider gives; "" if there is none.
func evaluatorModelName(cfg Config) string {
	if cfg.Provider == nil {
		ep := cfg.EvaluatorEndpoint()
		return ep.ProviderModelAndURL()
	}
	if n, ok := cfg.Provider.(NamedModelProvider); ok {
		return n.Identity()
	}
	return ""
}

// evaluatorEndpoint returns the address of a configuration's language model; facts learned about it are kept in
// the state file.
func evaluatorEndpoint(cfg Config, store *state.Store, now func() time.Time) evaluate.Endpoint {
	ep := cfg.EvaluatorEndpoint()
	if store != nil {
		ep.CapabilityStore = modelServiceCapabilityCache{store, now}
	}
	return ep
}

// LearnedModelReplyFormat returns the format of answers that the configuration's language model turned out to need,
// see [evaluate.StoredReplyFormatName].
func LearnedModelReplyFormat(ctx context.Context, cfg Config, store *state.Store) string {
	return evaluate.StoredReplyFormatName(ctx, evaluatorEndpoint(cfg, store, cfg.Clock))
}

// modelServiceCapabilityCache keeps facts learned about model services in the cache of the state file.
type modelServiceCapabilityCache struct {
	store *state.Store
	now   func() time.Time
}

func (m modelServiceCapabilityCache) Recall(ctx context.Context, key string) (string, bool) {
	text, ok, err := m.store.Get(ctx, key)
	return string(text), ok && err == nil
}

func (m modelServiceCapabilityCache) Remember(ctx context.Context, key, text string, keep time.Duration) {
	_ = m.store.Put(ctx, key, []byte(text), m.now().Add(keep)) // if the fact about the model service is not stored, it is determined again later
}

// minDailyEvaluationsForExhaustionWarning is the smallest daily limit of evaluations for which shield warns when
// 80 % of the limit are used.
const minDailyEvaluationsForExhaustionWarning = 10

// evaluationLimits counts evaluations in the state file.
type evaluationLimits struct{ pipeline *Pipeline }

func (l evaluationLimits) ChargeRateTokenAndEvaluation(ctx context.Context) error {
	used, rise, err := l.pipeline.store.ChargeRateTokenAndEvaluation(ctx, l.pipeline.limits.MaxEvaluatorCallsPerMinute, l.pipeline.limits.MaxEvaluationsPerDay)
	if err == nil && rise != nil {
		l.pipeline.LogAndNotify(audit.EntryKindEvaluationBudgetWarning, "evaluations are rising: "+rise.String())
	}
	if budget := l.pipeline.limits.MaxEvaluationsPerDay; err == nil && budget >= minDailyEvaluationsForExhaustionWarning && used == budget-budget/5 {
		l.pipeline.LogAndNotify(audit.EntryKindEvaluationBudgetWarning, fmt.Sprintf("%d of %d evaluations used today; when none is left, actions that need one are blocked; raise daily_budget, or use the preset assisted or offline", used, budget))
	}
	return toEvaluateError(err)
}

func (l evaluationLimits) TakeRateToken(ctx context.Context) error {
	return toEvaluateError(l.pipeline.store.TakeRateToken(ctx, l.pipeline.limits.MaxEvaluatorCallsPerMinute))
}

// toEvaluateError converts errors of the state file to those of package evaluate.
func toEvaluateError(err error) error {
	switch {
	case errors.Is(err, state.ErrEvaluatorRateExceeded):
		return evaluate.ErrRateLimited
	case errors.Is(err, state.ErrBudgetExhausted):
		return evaluate.ErrBudgetExhausted
	default:
		return err
	}
}

// evaluatorVerdictCache keeps verdicts of Tier 2 in the state file until they expire.
type evaluatorVerdictCache struct{ pipeline *Pipeline }

// cachedVerdict is the stored part of a verdict.
type cachedVerdict struct {
	Decision   verdict.Decision `json:"decision"`
	Confidence float64          `json:"confidence"`
	Reasoning  string           `json:"reasoning"`
	NextTier   int              `json:"next_tier,omitempty"`
}

// cacheKey returns the key under which the evaluator's verdict on a case is cached; "" if the verdict cannot be
// reused. The key includes the hash of the prompt and what the user said about the action's objects: if either
// changes, the evaluator is asked again.
func (c evaluatorVerdictCache) cacheKey(cs *analysis.ActionCase) string {
	return c.pipeline.reusableAnswerKey("evaluate", cs, fmt.Sprint(cs.UserMentionedObjects), evaluate.ActionPromptHash())
}

func (c evaluatorVerdictCache) Lookup(ctx context.Context, cs *analysis.ActionCase) (verdict.Verdict, bool) {
	key := c.cacheKey(cs)
	if key == "" {
		return verdict.Verdict{}, false
	}
	data, ok, err := c.pipeline.store.Get(ctx, key)
	var k cachedVerdict
	if err != nil || !ok || json.Unmarshal(data, &k) != nil {
		return verdict.Verdict{}, false
	}
	return verdict.Verdict{Decision: k.Decision, Confidence: k.Confidence, Reasoning: k.Reasoning, NextTier: k.NextTier}, true
}

func (c evaluatorVerdictCache) Store(ctx context.Context, cs *analysis.ActionCase, v verdict.Verdict) {
	data, err := json.Marshal(cachedVerdict{v.Decision, v.Confidence, v.Reasoning, v.NextTier})
	key := c.cacheKey(cs)
	if err != nil || key == "" {
		return
	}
	// A verdict that cannot be cached only costs another evaluation.
	_ = c.pipeline.store.Put(ctx, key, data, c.pipeline.now().Add(c.pipeline.verdictLifetime))
}

// reusableAnswerKey returns the key of an answer that may be used again: only for the same action in the same
// place, with the same effects and the same content of the files that it uses, under the same policy,
// rules, model and configuration. "" means that no answer may be used again.
func (p *Pipeline) reusableAnswerKey(purpose string, c *analysis.ActionCase, extraInputs ...string) string {
	inputs, err := c.InputFilesDigest()
	if err != nil {
		return ""
	}
	h := sha256.New()
	parts := []string{purpose, p.caller.User, c.Action.TypeAndPayloadHash, c.ExecutionContext().CWD, c.Action.Session, c.EffectsDigest(), inputs, p.fingerprints.Policy, p.fingerprints.Rules, p.fingerprints.Model, p.fingerprints.Config, sessionTaintLabelsText(c)}
	for _, part := range append(parts, extraInputs...) {
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = io.WriteString(h, part) // writing to a hash does not fail
	}
	return purpose + ":" + hex.EncodeToString(h.Sum(nil))
}

// EvaluatorEndpoint returns the address of a configuration's evaluator and how to reach it.
func (cfg *Config) EvaluatorEndpoint() evaluate.Endpoint {
	return evaluate.Endpoint{Evaluator: cfg.effectiveSettings().Evaluator, LookupEnv: cfg.LookupEnvironmentVariable}
}

// auditFingerprints converts the fingerprints of a verdict for its log entry.
func auditFingerprints(f verdict.Fingerprints) audit.PolicyAndModelFingerprints {
	return audit.PolicyAndModelFingerprints{Policy: f.Policy, Rules: f.ClassifierRules, Model: f.ClassifierModel, Config: f.Config}
}
