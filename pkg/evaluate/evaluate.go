// Package evaluate is Tier 2: it asks a language model, which does not know the agent's conversation, whether an
// action is safe.
//
// The model is not trusted either. It reads text that an attacker may have written (prompt injection), so an
// [Evaluator]
//
//   - quotes the action as inert data (quote.go) under a compiled-in prompt
//     (prompt.txt), whose digest is in every verdict;
//   - requires a canary in the reply, which is only in the instructions, and
//     fresh and random unless the settings name one; it rejects a reply without it, or with it in another place
//     (canary.go, parse.go);
//   - accepts an answer only if every parser would read the same one from
//     the response (envelope.go);
//   - never lets the model allow a payload that addresses its reviewer, since
//     a model that obeys the payload would also copy the canary (speech.go);
//   - limits the size of requests and replies, the waiting time and the cost.
//
// A failure is a BLOCK. It is an ESCALATE if only a person can still decide: there is no provider, the payload
// is too long, or the daily budget is spent and the settings say to ask then. With fail-open configured, a few
// kinds of failure are an ALLOW with confidence 0.5, marked as degraded.
package evaluate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// DefaultTimeout limits one evaluation, including retries and waits.
const DefaultTimeout = 30 * time.Second

// Options configure an [Evaluator]. The zero value has no provider and blocks every action.
type Options struct {
	Provider           ModelProvider // nil: Tier 2 is not configured, or its setup failed
	ProviderSetupError error         // why a configured provider is nil; shown in the reasoning

	FailOpen     bool        // allow, marked as degraded, if the evaluator cannot be reached or the budget is spent
	CanAskPerson func() bool // reports whether Tier 3 can ask a person; nil: it cannot

	AskUserWhenBudgetSpent bool // when the budget is exhausted, only a person may decide

	FixedCanaryToken  string        // "" generates a new one for each attempt
	EvaluationTimeout time.Duration // 0 means DefaultTimeout

	Limits EvaluationLimits // nil: neither rate nor budget is limited
	Cache  VerdictCache     // nil: no verdicts are cached

	// StepEscalationReason returns the reason for which a tier did not allow an action and asked the next tier, in
	// fixed words that contain no text of an action, file or third-party policy; "" if unknown.
	StepEscalationReason func(*verdict.TierStep) string

	// ModelAllowInsufficientReason returns why an ALLOW of the model cannot replace a person's approval; "" if it can. nil: it
	// always can.
	ModelAllowInsufficientReason func(ctx context.Context) string

	// FindStepAskingUserWithoutModel returns the step that would ask a person about a case if there were no model; nil if none would. A
	// nil function means that a person would always be asked.
	FindStepAskingUserWithoutModel func(ctx context.Context, c *analysis.ActionCase) (*verdict.TierStep, error)

	// Redactor removes credentials from texts that are sent and shown; nil recognises them only by their
	// form.
	Redactor *redact.Redactor

	// OnModelReply is called with each answer of the model, whatever the verdict; may be nil.
	OnModelReply func(r Reply)

	Rand io.Reader // source of canaries and boundaries; nil means crypto/rand

	// Sleep waits for a duration or until the context ends; nil means a timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

// An Evaluator judges cases in Tier 2. Goroutines may share it.
type Evaluator struct {
	o Options
}

// New returns an evaluator. It returns an error for a canary that could be guessed.
func New(o Options) (*Evaluator, error) {
	if o.FixedCanaryToken != "" {
		if err := checkConfiguredCanaryFormat(o.FixedCanaryToken); err != nil {
			return nil, fmt.Errorf("evaluator: %w", err)
		}
	}
	if o.EvaluationTimeout <= 0 {
		o.EvaluationTimeout = DefaultTimeout
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &Evaluator{o: o}, nil
}

// ActionPromptHash returns "sha256:" and the hex digest of the compiled-in prompt.
func ActionPromptHash() string { return actionPromptHash() }

var actionPromptHash = sync.OnceValue(func() string { return promptHash(systemPrompt) })

// ActionPromptHash returns the hash of the compiled-in prompt, as the function [ActionPromptHash] does.
func (e *Evaluator) ActionPromptHash() string { return ActionPromptHash() }

// Judge asks the model about one case. Failures are reported in the verdict; the error is always nil.
func (e *Evaluator) Judge(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, error) {
	v, oneMessage := e.judgeWithoutAllowChecks(ctx, c)
	v = e.escalateAllowRequiringUserApproval(ctx, c, e.escalateUnreliableAllow(c, v), oneMessage)
	v.Tier = 2
	v.EvaluatorPromptHash = e.ActionPromptHash()
	return v, nil
}

// judgeWithoutAllowChecks returns the evaluator's verdict on a case before [Evaluator.escalateUnreliableAllow], and whether instructions
// and action were sent to the model as one message.
func (e *Evaluator) judgeWithoutAllowChecks(ctx context.Context, c *analysis.ActionCase) (v verdict.Verdict, sentWithoutSystemRole bool) {
	if e.o.Provider == nil {
		return e.verdictWithoutProvider(), false
	}
	if e.o.FixedCanaryToken != "" && payloadOrTextVariantsContain(c, e.o.FixedCanaryToken) {
		return finalBlock("canary", "the payload contains the configured canary token, which only the evaluator should know; ask the user to change evaluator.canary_token"), false
	}
	if e.o.Cache != nil {
		if v, ok := e.o.Cache.Lookup(ctx, c); ok {
			return v, false
		}
	}
	q, err := newQuestion(c, e.o.Redactor, e.o.StepEscalationReason)
	if err != nil {
		return leaveToPerson("unexamined", fmt.Sprintf("the payload is longer than the %d bytes that the evaluator reads; split the action, or ask the user", MaxPayloadBytes)), false
	}
	asking, cancel := context.WithTimeout(ctx, e.o.EvaluationTimeout)
	defer cancel()
	x := &modelExchange{question: q}
	if err := e.askModelWithRetries(asking, x); err != nil {
		return e.failureVerdictFor(ctx, err, x.canaries), false
	}
	v = e.verdictFromReply(x)
	if q.hasRedactionOutsideSecretFields && v.Decision == verdict.Allow {
		v = escalateAllow(v, "the evaluator did not see all of the action, because secrets in it were redacted; ask the user")
	}
	if e.o.Cache != nil && v.ErrorCode == "" && !x.reply.SentWithoutSystemRole {
		e.o.Cache.Store(ctx, c, v)
	}
	return v, x.reply.SentWithoutSystemRole
}

// authorityByModelDecision maps the model's decision to who may then allow the action.
var authorityByModelDecision = [...]verdict.ApprovalAuthority{verdict.NoDecision: verdict.AuthorityNoneSuffices, verdict.Allow: verdict.AuthorityNotNeeded, verdict.Escalate: verdict.AuthorityPerson, verdict.Block: verdict.AuthorityNoneSuffices}

// verdictFromReply turns the model's reply into a verdict.
func (e *Evaluator) verdictFromReply(x *modelExchange) verdict.Verdict {
	last := len(x.canaries) - 1
	a, err := parseReply(x.reply.Text, x.canaries[last], x.canaries[:last]...)
	var unknown unknownDecisionError
	switch {
	case errors.Is(err, errCanaryMissing), errors.Is(err, errCanaryLeaked):
		return finalBlock("canary", err.Error())
	case errors.As(err, &unknown):
		return e.allowFailureIfFailOpen(e.unparseableReplyVerdict(err, x.canaries))
	case err != nil:
		return e.unparseableReplyVerdict(err, x.canaries)
	}
	reason := cmp.Or(e.redactTextForDisplay(a.reasoning, x.canaries), "the evaluator gave no reason; ask the user")
	return verdict.Finding{RequiredAuthority: authorityByModelDecision[a.decision], Confidence: a.confidence, Reasoning: reason}.Verdict(2)
}

func (e *Evaluator) canAskPerson() bool { return e.o.CanAskPerson != nil && e.o.CanAskPerson() }

// verdictWithoutProvider returns the verdict if no provider is configured: ESCALATE if a person can be asked.
func (e *Evaluator) verdictWithoutProvider() verdict.Verdict {
	reason := "the action needs review, and neither a model nor an approval channel is configured; tell the user to run 'shield doctor'"
	switch {
	case e.o.ProviderSetupError != nil:
		reason = "the action needs review, and the model cannot be used: " + e.redactTextForDisplay(e.o.ProviderSetupError.Error(), nil) + "; tell the user to run 'shield doctor'"
	case e.canAskPerson():
		reason = "the action needs review, and no model is configured"
	}
	switch {
	case e.canAskPerson():
		return leaveToPerson("unavailable", reason)
	case e.o.FailOpen:
		reason = "the action needs review, and no model can be used"
	}
	return e.allowFailureIfFailOpen(failureVerdict("unavailable", reason))
}

// failureVerdictFor returns the verdict if the evaluator could not be asked. ctx is the caller's: a cancelled
// evaluation never fails open. canaries are those that were sent to the service.
func (e *Evaluator) failureVerdictFor(ctx context.Context, err error, canaries []string) verdict.Verdict {
	var state limitCounterError
	var random randomSourceError
	var form answerFormatError
	switch {
	case errors.Is(err, ErrRateLimited):
		return finalBlock("rate_limit", ErrRateLimited.Error())
	case errors.Is(err, ErrBudgetExhausted) && e.o.AskUserWhenBudgetSpent && e.canAskPerson():
		return leaveToPerson("budget", ErrBudgetExhausted.Error())
	case errors.Is(err, ErrBudgetExhausted) && e.o.AskUserWhenBudgetSpent:
		return failureVerdict("budget", ErrBudgetExhausted.Error())
	case errors.Is(err, ErrBudgetExhausted):
		return e.allowFailureIfFailOpen(failureVerdict("budget", ErrBudgetExhausted.Error()))
	case errors.Is(ctx.Err(), context.Canceled):
		return failureVerdict("interrupted", "evaluator error: interrupted; try again")
	case errors.As(err, &state):
		return failureVerdict("state", "evaluator error: "+e.redactTextForDisplay(err.Error(), canaries))
	case errors.As(err, &random):
		return failureVerdict("random", err.Error())
	case errors.As(err, &form):
		return e.unparseableReplyVerdict(err, canaries)
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("no answer within %s; try again, or raise evaluator.timeout", e.o.EvaluationTimeout)
	}
	v := failureVerdict("evaluator", "evaluator error: "+e.redactTextForDisplay(text, canaries))
	if isUnreachable(err) {
		return e.allowFailureIfFailOpen(v)
	}
	return v
}

// unparseableReplyVerdict returns the BLOCK for an answer that cannot be parsed. This BLOCK does not fail open:
// a payload could make the model answer nonsense on purpose. Only for an unknown decision does verdictFromReply
// let it fail open.
func (e *Evaluator) unparseableReplyVerdict(err error, canaries []string) verdict.Verdict {
	text := e.redactTextForDisplay(err.Error(), canaries)
	if !strings.Contains(text, "; ") {
		text += "; try again, or use another model (evaluator.model)"
	}
	return failureVerdict("evaluator", "failed to parse evaluator response: "+text)
}

// failureVerdict returns the BLOCK of a failure.
func failureVerdict(code, reason string) verdict.Verdict {
	return verdict.Finding{RequiredAuthority: verdict.AuthorityNoneSuffices, Confidence: 0.5, ErrorCode: code, Reasoning: reason}.Verdict(2)
}

// finalBlock returns a BLOCK with confidence 1 that never fails open.
func finalBlock(code, reason string) verdict.Verdict {
	return verdict.Finding{RequiredAuthority: verdict.AuthorityNoneSuffices, Confidence: 1, ErrorCode: code, Reasoning: reason}.Verdict(2)
}

// leaveToPerson returns an ESCALATE to a person.
func leaveToPerson(code, reason string) verdict.Verdict {
	return verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, Confidence: 0.5, ErrorCode: code, Reasoning: reason}.Verdict(2)
}

// allowFailureIfFailOpen turns the BLOCK of a failure into a degraded ALLOW if fail-open is configured.
func (e *Evaluator) allowFailureIfFailOpen(v verdict.Verdict) verdict.Verdict {
	if e.o.FailOpen {
		v = verdict.Finding{RequiredAuthority: verdict.AuthorityNotNeeded, Confidence: v.Confidence, ErrorCode: v.ErrorCode, Reasoning: v.Reasoning + "; allowed with reduced confidence, since fail_closed is false"}.Verdict(2)
		v.IsAllowedDespiteFailure = true
	}
	return v
}

// escalateAllow returns an ESCALATE that replaces an ALLOW, with a reason; the ALLOW stays in the trail.
func escalateAllow(v verdict.Verdict, reason string) verdict.Verdict {
	return escalationWithAllowInTrail(leaveToPerson(v.ErrorCode, reason), v)
}

// escalationWithAllowInTrail returns an ESCALATE whose trail has the replaced ALLOW and the ESCALATE itself, so that a person
// sees both.
func escalationWithAllowInTrail(escalation, replacedAllow verdict.Verdict) verdict.Verdict {
	escalation.Trail = nil
	for _, s := range [...]verdict.Verdict{replacedAllow, escalation} {
		escalation.Trail = append(escalation.Trail, verdict.TierStep{
			Tier: 2, JudgeName: "evaluator", Decision: s.Decision, Confidence: s.Confidence, Rule: s.Rule, Reasoning: s.Reasoning, ErrorCode: s.ErrorCode,
		})
	}
	return escalation
}

// escalateUnreliableAllow replaces an ALLOW that Tier 2 may not give; other verdicts are returned unchanged.
func (e *Evaluator) escalateUnreliableAllow(c *analysis.ActionCase, v verdict.Verdict) verdict.Verdict {
	if v.Decision != verdict.Allow {
		return v
	}
	instead := escalateAllow(v, "")
	text := payloadText(c)
	if len(text) > MaxPayloadBytes {
		// The ALLOW is cached, or given although the evaluator failed: no evaluator read the
		// payload, and the payload was not searched for text that addresses the evaluator.
		return escalateAllow(v, fmt.Sprintf("the payload is longer than the %d bytes that shield reads; split the action, or ask the user", MaxPayloadBytes))
	}
	switch said := findTextAddressingEvaluator(c, text); {
	case said != nil:
		instead.Confidence = 0.85
		instead.Rule = said.rule.ID
		instead.Reasoning = fmt.Sprintf("prompt injection: the payload contains text addressed to its reviewer (%s, in %s); ask the user", said.rule.Name, said.textVariantDescription)
	case v.IsAllowedDespiteFailure && c.UnexaminedReason != "":
		instead.Reasoning = "part of the action was not read (" + c.UnexaminedReason + "), and the evaluator could not be asked; ask the user"
	case c.MinAllowTier > 2:
		instead.Confidence = v.Confidence
		instead.Reasoning = "the user must decide; the evaluator said: " + v.Reasoning
		instead.Trail = instead.Trail[:1] // drop the ESCALATE from the evaluator's trail: c.MinAllowTier requires it, not the evaluator
		return instead
	case !v.IsAllowedDespiteFailure && v.Confidence < 0.5:
		// An ALLOW with a confidence below 0.5 contradicts itself, so the user must decide.
		instead.Confidence = v.Confidence
		instead.Reasoning = "the evaluator is not sure that the action is safe: " + v.Reasoning + "; ask the user"
	default:
		return v
	}
	return escalationWithAllowInTrail(instead, v)
}

// escalateAllowRequiringUserApproval replaces an ALLOW of a model that may not answer for a person, if a person would be asked
// without the model. BLOCK and ESCALATE count from any model.
func (e *Evaluator) escalateAllowRequiringUserApproval(ctx context.Context, c *analysis.ActionCase, v verdict.Verdict, withoutSystemRole bool) verdict.Verdict {
	if v.Decision != verdict.Allow || v.IsAllowedDespiteFailure {
		return v
	}
	why := ""
	switch {
	case withoutSystemRole:
		why = "the model's API has no system role, so text in the action could pose as shield's instructions; use a provider whose API has one"
	case e.o.ModelAllowInsufficientReason != nil:
		why = e.o.ModelAllowInsufficientReason(ctx)
	}
	if why == "" {
		return v
	}
	by := &verdict.TierStep{JudgeName: "evaluator", Reasoning: "the model alone may not allow this action; ask the user"}
	if e.o.FindStepAskingUserWithoutModel != nil {
		asks, err := e.o.FindStepAskingUserWithoutModel(ctx, c)
		switch {
		case err != nil:
			by.Reasoning = "shield cannot tell whether the action needs the user's approval: " + e.redactTextForDisplay(err.Error(), nil) + "; ask the user"
		case asks == nil:
			return v
		default:
			by = asks
		}
	}
	v.Reasoning += "; this ALLOW does not replace your approval: " + why
	out := escalateAllow(v, by.Reasoning)
	out.Rule = by.Rule
	last := &out.Trail[len(out.Trail)-1]
	last.JudgeName, last.Rule = by.JudgeName, by.Rule
	return out
}

// maxReasonRunes is the maximum length of external text in a reasoning, in runes.
const maxReasonRunes = 500

// redactTextForDisplay prepares external text for display: credentials are removed, control characters become spaces, and
// the text is truncated. A text that reveals a canary is dropped.
func (e *Evaluator) redactTextForDisplay(s string, canaries []string) string {
	if e.o.FixedCanaryToken != "" {
		canaries = []string{e.o.FixedCanaryToken} // the same in every attempt
	}
	for _, canary := range canaries {
		if containsCanaryInAnyForm(s, canary) {
			return "(left out: it contains the canary)"
		}
	}
	return toPrintableLine(e.o.Redactor.RedactText(s), maxReasonRunes)
}
