// Package classify is Tier 1: it judges an action by rules for known attacks and by a model that generalises
// from examples. Both run at the same time, and the more severe answer wins. A model that can estimate its
// answer is only run if the answer could change the decision.
//
// The rules are data, in rules/*.yaml, and go generate compiles them into tables. They match the effects that
// package analysis found, and text. Text in a command counts only where it is run or read, if the rule says so:
// quoting an attack is not an attack.
package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/stack"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

const classifierErrorCode = "classifier"

// An InjectionScorer is a model that judges whether a text contains an injection. Goroutines share
// it.
type InjectionScorer interface {
	// Score judges a text of the form "type: payload", with the payload as canonical JSON. An error never
	// counts as "safe": [ErrTooLong] makes the action ESCALATE, any other error is a failure of the
	// classifier.
	Score(ctx context.Context, text string) (InjectionScore, error)
}

// ErrTooLong means that a text is longer than the model reads.
var ErrTooLong = errors.New("the text is too long for the classifier model; split the action into smaller steps")

// An InjectionScore is a model's answer.
type InjectionScore struct {
	HasInjectionLabel bool    // true: the label is INJECTION; false: the label is SAFE
	LabelConfidence   float64 // confidence of the model in the label, 0.0–1.0
}

// Options say which classifiers run. The zero value runs only the rules and fails closed.
type Options struct {
	RunsOnlyAlwaysBlockRules     bool               // run only the rules whose outcome is AlwaysBlock
	Model                        InjectionScorer    // nil: no model
	BlockThreshold               float64            // least confidence at which the model blocks, 0.0–1.0; 0 means 0.85
	BlockThresholdByActionType   map[string]float64 // overrides BlockThreshold, by type of action
	SafeThresholdByActionType    map[string]float64 // by type of action: least confidence at which the model's SAFE counts; below it the action ESCALATEs
	SafeThresholdByDoubtCause    map[string]float64 // by [analysis.EffectSafetyDoubt.CauseName]: least confidence at which the model's SAFE removes a doubt; SAFE removes no doubt whose name is absent; a nil map means the values of policies/dangers.yaml
	OrdinaryEffectsOverrideModel bool               // the model has no influence if every effect is known and ordinary and no rule matches
	ModelSkippedActionTypes      []string           // action types that the model does not judge: they ESCALATE unless a rule blocks them
	Home                         string             // the canonical home folder; "~" in rules means it and the usual home folders
	WorkspaceRoots               []string           // the canonical workspace folders
	FailOpen                     bool               // on a classifier failure ESCALATE instead of BLOCK; without any classifier, allow actions with known effects
	Clock                        func() time.Time   // clock for the latency of each classifier; nil: not measured

	// PolicyExemptsFromRule reports whether the policy exempts a case from a rule; nil: no exemptions.
	PolicyExemptsFromRule func(ctx context.Context, c *analysis.ActionCase, rule string) (bool, error)

	MissingModelNote string // why a configured model is missing; repeated in reasonings
}

// A Classifier is Tier 1. Goroutines may share it.
type Classifier struct {
	opts   Options
	engine func() *ruleEngine
}

// New returns a Classifier. Its tables are built when it judges the first action.
func New(opts Options) *Classifier {
	if opts.BlockThreshold == 0 {
		opts.BlockThreshold = 0.85
	}
	return &Classifier{opts: opts, engine: sync.OnceValue(func() *ruleEngine { return newEngine(ruleTable[:], opts.Home, opts.WorkspaceRoots) })}
}

// PrebuildRuleTables builds the tables for the first action, which takes about a millisecond.
func (k *Classifier) PrebuildRuleTables() {
	stack.GrowToReservedBytes()
	k.engine()
}

// Judge returns the verdict of Tier 1. The failure of a classifier is reported
// in the verdict; an error is returned only if the context ended.
func (k *Classifier) Judge(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return verdict.Verdict{}, err
	}
	w := k.gatherInputs(c)
	if w.needsHigherTier || k.opts.Model == nil || w.hasOnlyHarmlessEffects || w.modelSkipsType || w.decidesByEffectsAlone {
		w.rulesResult = k.runRules(c, w.scopeOfRulesToRun())
		if w.decidesByEffectsAlone && w.noRuleMatched() {
			if r := k.firstRuleMatchInExecutedFiles(c); r.Rule != "" {
				w.rulesResult = r
			}
		}
		if w.needsHigherTier || k.opts.Model == nil || w.hasOnlyHarmlessEffects || w.modelSkipsType || w.noRuleMatched() {
			k.recordTier1Evidence(c, &w, nil)
			return w.verdict(c, nil), nil
		}
	}
	v := k.runRulesAndModelInParallel(ctx, c, &w)
	if v.ErrorCode != "" && ctx.Err() != nil {
		return verdict.Verdict{}, ctx.Err() // the caller cancelled; the model did not fail
	}
	return v, nil
}

// IsBlockedByRule reports whether a rule alone blocks an action, regardless of other findings.
func (k *Classifier) IsBlockedByRule(c *analysis.ActionCase) bool {
	r := k.runRules(c, ruleScopeBlocking)
	return r.decision() == verdict.Block
}

// runRulesAndModelInParallel runs the rules and the model at the same time. If possible, the range of the
// model's answers is estimated first. If every answer in this range leads to the same decision, the most likely
// answer is used, and the model is not run.
func (k *Classifier) runRulesAndModelInParallel(ctx context.Context, c *analysis.ActionCase, w *decisionInputs) verdict.Verdict {
	text, err := "", errNoAction
	if c.Action != nil {
		text, err = ModelInputText(c.Action)
	}
	ask := func() ruleOrModelResult {
		if err != nil {
			return failureResult("model", err, k.opts.FailOpen)
		}
		return k.runModel(ctx, c.Action.Type, text)
	}
	estimated := make(chan [3]ruleOrModelResult, 1)
	scored := make(chan ruleOrModelResult, 1)
	go func() {
		if err == nil {
			if e, ok := k.estimatePossibleModelAnswers(ctx, c.Action.Type, text); ok {
				estimated <- e
				return
			}
		}
		close(estimated)
		scored <- ask()
	}()
	if w.rulesResult.JudgeName == "" {
		w.rulesResult = k.runRules(c, w.scopeOfRulesToRun())
	}
	e, ok := <-estimated
	m := e[1]
	switch {
	case !ok:
		m = <-scored
	case !w.isDecisionIndependentOfModel(e):
		m = ask()
	}
	if r, _ := w.selectDecidingResult(&m); r.decision() != verdict.Allow && w.noRuleMatched() && m.err == nil {
		m = k.reaskModelWithoutFreeText(ctx, c, w, m)
	}
	if r, _ := w.selectDecidingResult(&m); r.decision() == verdict.Allow && k.opts.OrdinaryEffectsOverrideModel {
		m = k.classifyExecutedFiles(ctx, c, m)
	}
	k.recordTier1Evidence(c, w, &m)
	return w.verdict(c, &m)
}

// isDecisionIndependentOfModel reports whether the decision is the same for each of the model's possible
// answers.
func (w *decisionInputs) isDecisionIndependentOfModel(possibleModelAnswers [3]ruleOrModelResult) bool {
	var d [3]verdict.Decision
	for i := range possibleModelAnswers {
		r, _ := w.selectDecidingResult(&possibleModelAnswers[i])
		d[i] = r.decision()
	}
	return d[0] == d[1] && d[1] == d[2]
}

// reaskModelWithoutFreeText asks the model again about an action that it suspects, without the argument values that are
// plain data. The new answer counts only if it allows the action.
func (k *Classifier) reaskModelWithoutFreeText(ctx context.Context, c *analysis.ActionCase, w *decisionInputs, firstAnswer ruleOrModelResult) ruleOrModelResult {
	text, ok := textWithoutProseOptionValues(c)
	if !ok {
		return firstAnswer
	}
	e, ok := k.estimatePossibleModelAnswers(ctx, c.Action.Type, text)
	second := e[1]
	if !ok || !w.isDecisionIndependentOfModel(e) {
		second = k.runModel(ctx, c.Action.Type, text)
	}
	if r, _ := w.selectDecidingResult(&second); r.decision() == verdict.Allow {
		return second
	}
	return firstAnswer
}

// classifyExecutedFiles judges the code in the files that an action runs, by the rules and the model, as if the
// action wrote these files. It returns earlierModelAnswer unless a rule matches, the model fails, or the model
// suspects one of the files.
func (k *Classifier) classifyExecutedFiles(ctx context.Context, c *analysis.ActionCase, earlierModelAnswer ruleOrModelResult) ruleOrModelResult {
	if r := k.firstRuleMatchInExecutedFiles(c); r.Rule != "" {
		return r
	}
	for _, f := range c.FilesExecutedByAction() {
		text, err := ModelInputText(newFileWriteAction(f))
		if err != nil {
			return failureResult("model", err, k.opts.FailOpen)
		}
		e, ok := k.estimatePossibleModelAnswers(ctx, "write_file", text)
		said := e[1]
		if !ok || e[0].RequiredAuthority != e[2].RequiredAuthority {
			said = k.runModel(ctx, "write_file", text)
		}
		switch {
		case said.err != nil:
			return said
		case said.isTextTooLongForModel:
			said.Reasoning = "model: the code of " + redact.TruncateAndReplaceControlChars(f.Path, 80) + " is too long for the model; read it first, then ask the user"
			return said
		case !said.isModelLabelSafe:
			said.RequiredAuthority = verdict.AuthorityEvaluator
			said.Reasoning = "model: the code of " + redact.TruncateAndReplaceControlChars(f.Path, 80) + " might be an attack; read it first, then ask the user"
			return said
		}
	}
	return earlierModelAnswer
}

// firstRuleMatchInExecutedFiles returns the first finding of the rules in the code that an action runs, always as an
// ESCALATE to the evaluator. The result is empty if no rule matches.
func (k *Classifier) firstRuleMatchInExecutedFiles(c *analysis.ActionCase) ruleOrModelResult {
	for _, f := range c.FilesExecutedByAction() {
		if r := k.runRules(&analysis.ActionCase{Action: newFileWriteAction(f)}, ruleScopeAll); r.Rule != "" {
			r.RequiredAuthority = verdict.AuthorityEvaluator
			r.Reasoning += "; in the code of " + redact.TruncateAndReplaceControlChars(f.Path, 80)
			return r
		}
	}
	return ruleOrModelResult{}
}

// newFileWriteAction returns an action that writes a file.
func newFileWriteAction(f effect.WrittenFileText) *action.Action {
	return &action.Action{Type: "write_file", Payload: map[string]any{"content": f.NewText, "path": f.Path}}
}

// estimatePossibleModelAnswers returns the lowest, the most likely and the most severe answer that the model could give. ok is
// false if the model has to be run.
func (k *Classifier) estimatePossibleModelAnswers(ctx context.Context, actionType, modelInputText string) (lowestLikelySeverest [3]ruleOrModelResult, ok bool) {
	m, isEstimator := k.opts.Model.(InjectionScoreEstimator)
	if !isEstimator {
		return lowestLikelySeverest, false
	}
	var r ruleOrModelResult
	stop := k.startTimer(&r)
	defer func() {
		if recover() != nil {
			ok = false // the error is reported when the model is asked
		}
	}()
	e, ok := m.Estimate(ctx, modelInputText)
	stop()
	for i, s := range [...]InjectionScore{e.Low, e.Likely, e.High} {
		ok = ok && s.LabelConfidence >= 0 && s.LabelConfidence <= 1
		lowestLikelySeverest[i] = s.toModelResult(k.blockThresholdForActionType(actionType), k.opts.SafeThresholdByActionType[actionType])
		lowestLikelySeverest[i].latency = r.latency
	}
	return lowestLikelySeverest, ok
}

// verdict returns the verdict of Tier 1 with its trail.
func (w *decisionInputs) verdict(c *analysis.ActionCase, m *ruleOrModelResult) verdict.Verdict {
	r, steps := w.selectDecidingResult(m)
	v := r.Verdict(1)
	if v.Decision == verdict.Escalate {
		v.NextTier = max(2, c.MinAllowTier)
	}
	v.IsAllowedDespiteFailure = r.JudgeName == "none" && v.Decision == verdict.Allow
	for i := range steps {
		v.Trail = append(v.Trail, steps[i].step())
	}
	return v
}

// startTimer returns a function that stores the time since the call of startTimer in a result.
func (k *Classifier) startTimer(r *ruleOrModelResult) func() {
	if k.opts.Clock == nil {
		return func() {}
	}
	start := k.opts.Clock()
	return func() { r.latency = k.opts.Clock().Sub(start) }
}

// runRules returns the findings of the rules that match, and the deciding finding among them. Only the rules
// that sc selects are run; with the option RunsOnlyAlwaysBlockRules, only those that always block.
func (k *Classifier) runRules(c *analysis.ActionCase, sc ruleScope) (r ruleOrModelResult) {
	defer k.startTimer(&r)()
	defer func() {
		if p := recover(); p != nil {
			r = failureResult("heuristic", fmt.Errorf("heuristic engine: %v", p), k.opts.FailOpen)
		}
	}()
	if k.opts.RunsOnlyAlwaysBlockRules {
		sc = ruleScopeAlwaysBlocking
	}
	eng := k.engine()
	s := eng.ruleMatchBuffersPool.Get().(*ruleMatchBuffers)
	defer eng.ruleMatchBuffersPool.Put(s)
	eng.run(s, c, sc)
	if err := k.dropExemptHits(eng, s, c); err != nil {
		return failureResult("heuristic", err, false)
	}
	found := s.findings(eng)
	r = ruleOrModelResult{matchedRuleFindings: found, Finding: found[verdict.DecidingFindingIndex(found...)]}
	return r
}

// findings returns the findings of the rules that matched, in the order of their IDs; if none matched, a
// finding that says so.
func (s *ruleMatchBuffers) findings(eng *ruleEngine) []verdict.Finding {
	slices.SortFunc(s.hits, func(a, b ruleHit) int { return cmp.Compare(a.ruleIndex, b.ruleIndex) })
	var list []verdict.Finding
	for _, h := range s.hits {
		rule := &eng.rules[h.ruleIndex]
		list = append(list, verdict.Finding{RequiredAuthority: h.requiredApprovalAuthority(rule), JudgeName: "heuristic", Confidence: rule.Severity.RuleMatchConfidence(), Rule: rule.ID, Reasoning: reasoning(rule, h), ReasoningCannotLeakActionText: h.matchLocationDescription == ""})
	}
	if s.isScanBudgetExceeded {
		return append(list, verdict.Finding{RequiredAuthority: verdict.AuthorityEvaluator, JudgeName: "heuristic", Confidence: errorConfidence,
			Reasoning: "unexamined: too long for the rules; split the action into smaller steps"})
	}
	return append(list, verdict.Finding{JudgeName: "heuristic", Confidence: noMatchConfidence, Reasoning: "no heuristic rule matched", ReasoningCannotLeakActionText: true})
}

// dropExemptHits drops matches of rules from which the policy exempts the case. Matches of rules that always block
// stay.
func (k *Classifier) dropExemptHits(eng *ruleEngine, s *ruleMatchBuffers, c *analysis.ActionCase) (err error) {
	if k.opts.PolicyExemptsFromRule == nil {
		return nil
	}
	s.hits = slices.DeleteFunc(s.hits, func(h ruleHit) bool {
		rule := &eng.rules[h.ruleIndex]
		if err != nil || rule.Outcome == AlwaysBlock {
			return false
		}
		var out bool
		if out, err = k.opts.PolicyExemptsFromRule(context.Background(), c, rule.ID); err != nil {
			err = fmt.Errorf("an exception to rule %s could not be evaluated: %w; correct the exception", rule.ID, err)
		}
		return out
	})
	return err
}

// reasoning says which rule matched and what to do instead. It does not show the rule's expressions, because
// they would show how to evade them.
func reasoning(r *Rule, h ruleHit) string {
	text := fmt.Sprintf("heuristic [%s, %s]: %s", r.Name, r.Severity, firstSentence(r.Description))
	if h.matchLocationDescription != "" {
		text += "; in " + redact.TruncateAndReplaceControlChars(h.matchLocationDescription, 80)
	}
	if r.Advice != "" {
		text += "; instead: " + r.Advice
	}
	return text
}

// runModel runs the model. A panic in it counts as an error.
func (k *Classifier) runModel(ctx context.Context, actionType, text string) (r ruleOrModelResult) {
	defer k.startTimer(&r)()
	defer func() {
		if p := recover(); p != nil {
			r = failureResult("model", fmt.Errorf("model: %v", p), k.opts.FailOpen)
		}
	}()
	s, err := k.opts.Model.Score(ctx, text)
	if errors.Is(err, ErrTooLong) {
		return ruleOrModelResult{isTextTooLongForModel: true, Finding: verdict.Finding{RequiredAuthority: verdict.AuthorityEvaluator, JudgeName: "model", Confidence: errorConfidence,
			Reasoning: "unexamined: too long for the model; split the action into smaller steps"}}
	}
	if err == nil && (math.IsNaN(s.LabelConfidence) || s.LabelConfidence < 0 || s.LabelConfidence > 1) {
		err = errors.New("the classifier model's confidence is not between 0 and 1; choose another model")
	}
	if err != nil {
		return failureResult("model", err, k.opts.FailOpen)
	}
	return s.toModelResult(k.blockThresholdForActionType(actionType), k.opts.SafeThresholdByActionType[actionType])
}

func (k *Classifier) blockThresholdForActionType(actionType string) float64 {
	if t, ok := k.opts.BlockThresholdByActionType[actionType]; ok {
		return t
	}
	return k.opts.BlockThreshold
}

// firstSentence returns a description up to its first full stop.
func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i]
	}
	return strings.TrimSuffix(s, ".")
}
