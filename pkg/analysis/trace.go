package analysis

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// EffectsDigest returns the digest of the resolved effects, "sha256:" and hex. Cached verdicts and approvals are
// bound to it and to the hash of the action: it does not cover the verbs, services and targets of remote
// effects.
func (c *ActionCase) EffectsDigest() string {
	h := sha256.New()
	var n [8]byte
	text := func(s string) {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		_, _ = h.Write(n[:]) // writing to a hash never fails
		_, _ = h.Write([]byte(s))
	}
	text(c.executionContext.CWD)
	for i := range c.Effects {
		e := &c.Effects[i]
		for _, s := range [...]string{string(e.KindForPolicies()), e.Path, fmt.Sprint(e.PathIsPattern, e.Recursive), e.URL, e.Host, e.Program, string(e.Class), e.CauseOrFirstHarm(), e.Reason} {
			text(s)
		}
		binary.BigEndian.PutUint64(n[:], uint64(len(e.Args)))
		_, _ = h.Write(n[:])
		for _, arg := range e.Args {
			text(arg)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// A RuleMatch is a rule of a tier that matches an effect.
type RuleMatch struct {
	Tier         int    `json:"tier"`
	RuleNameOrID string `json:"rule"`              // name or id of the rule
	Uncertain    bool   `json:"perhaps,omitempty"` // part of the path is unknown, or it is unknown whether the text is read
}

// maxRuleMatches is the maximum number of rules that are recorded for one effect.
const maxRuleMatches = 16

// RecordMatch records that a rule matches the effect with an index, if [ActionCase.MatchedRulesByEffectIndex] is
// not nil. A negative index is ignored.
func (c *ActionCase) RecordMatch(effect int, m RuleMatch) {
	if effect < 0 || effect >= len(c.MatchedRulesByEffectIndex) || len(c.MatchedRulesByEffectIndex[effect]) == maxRuleMatches || slices.Contains(c.MatchedRulesByEffectIndex[effect], m) {
		return
	}
	c.MatchedRulesByEffectIndex[effect] = append(c.MatchedRulesByEffectIndex[effect], m)
}

// Tier1DecisionEvidence is what Tier 1 weighs before it allows a case. It shows how confident the model has to be, so it
// is for people and never part of a verdict.
type Tier1DecisionEvidence struct {
	AllowReason            string              // reason to ALLOW that does not depend on the model; "" if none
	Doubts                 []EffectSafetyDoubt // reasons against ALLOW, without duplicates
	MinAllowTier           int                 // lowest tier that may allow, 0–3; above 1, Tier 1 cannot allow whatever the evidence
	RequiredSafeConfidence float64             // confidence of the model's SAFE required for this type of action, 0.0–1.0
	Answer                 *ModelAnswer        // the model's answer; nil if it was not asked

	Findings []verdict.Finding // findings of the policy (Tier 0) and of Tier 1's rules

	TextsCoveredByNoEffect []string // words, inputs and fields without a known effect that shield does not know to be harmless
}

// A ModelAnswer is a model's answer about a case.
type ModelAnswer struct {
	InjectionDetected bool
	Confidence        float64 // 0.0–1.0
	Failed            bool    // the model gave no answer
}

// maxRecordedSafetyDoubts is the maximum number of doubts (reasons not to allow a case) that are recorded for one case.
const maxRecordedSafetyDoubts = 50

// IsDoubtLimitReached reports whether the limit of doubts is reached, so that some may be missing.
func (e *Tier1DecisionEvidence) IsDoubtLimitReached() bool {
	return len(e.Doubts) == maxRecordedSafetyDoubts
}

// AddDoubt records a doubt. It does nothing if e is nil or the doubt is none.
func (e *Tier1DecisionEvidence) AddDoubt(d EffectSafetyDoubt) {
	if e == nil || d.Reason == "" || len(e.Doubts) == maxRecordedSafetyDoubts || slices.Contains(e.Doubts, d) {
		return
	}
	e.Doubts = append(e.Doubts, d)
}

// AddFindings records findings that a tier has weighed. It does nothing if e is nil.
func (e *Tier1DecisionEvidence) AddFindings(list ...verdict.Finding) {
	if e != nil {
		e.Findings = append(e.Findings, list...)
	}
}

// A traceEffectJSON is an effect as a trace shows it: with the names that policies use for its kind
// and cause, and with the rules that match it.
type traceEffectJSON struct {
	Kind                   effect.Kind `json:"kind"`
	IsUncertain            bool        `json:"possible,omitempty"`
	CauseElseFirstHarmName string      `json:"cause,omitempty"`
	*effect.Effect
	MatchedRules []RuleMatch `json:"rules,omitempty"`
}

// EffectsJSON returns the effects as a JSON array, for traces, with secrets removed by r. The
// member "rules" of an effect is its entry of [ActionCase.MatchedRulesByEffectIndex].
func (c *ActionCase) EffectsJSON(r *redact.Redactor) (jsontext.Value, error) {
	traced := make([]traceEffectJSON, len(c.Effects))
	for i := range c.Effects {
		e := Redacted(c.Effects[i], r)
		traced[i] = traceEffectJSON{Kind: e.KindForPolicies(), IsUncertain: e.Certainty == effect.Possible, CauseElseFirstHarmName: e.CauseOrFirstHarm(), Effect: &e}
		if i < len(c.MatchedRulesByEffectIndex) {
			traced[i].MatchedRules = c.MatchedRulesByEffectIndex[i]
		}
	}
	return encodeTraceArray(traced, len(traced))
}

// Redacted returns an effect whose secrets r has removed.
func Redacted(e effect.Effect, r *redact.Redactor) effect.Effect {
	e.Args = r.RedactArgs(e.Program, e.Args)
	for _, s := range [...]*string{&e.Path, &e.URL, &e.Host, &e.Program, &e.Reason} {
		*s = r.RedactText(*s)
	}
	return e
}

// TextVariantsJSON returns the text variants of the action as a JSON array, for traces, with
// secrets redacted by r.
func (c *ActionCase) TextVariantsJSON(r *redact.Redactor) (jsontext.Value, error) {
	views := slices.Clone(c.TextVariants())
	for i := range views {
		views[i].Text = r.RedactNamedValue(views[i].Field, views[i].Text)
	}
	return encodeTraceArray(views, len(views))
}

func encodeTraceArray(list any, listLength int) (jsontext.Value, error) {
	if listLength == 0 {
		return jsontext.Value("[]"), nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode trace: %w", err)
	}
	return jsontext.Value(b), nil
}
