// Package policy is Tier 0: it judges actions by rules that people write. [Load]
// and [Preset] return a [Policy].
//
// A policy has three lists, tried in the order deny, verify, allow. In each list the first rule that matches
// an effect counts for that effect. One effect that matches a deny rule blocks the action. If effects match
// verify rules, the strictest of these rules decides which tier must judge the action. An allow rule must
// cover every effect. So an action cannot hide one effect behind others, and the order of its parts does not
// matter.
package policy

import (
	"context"
	"errors"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Options are the parts of a policy that come from the machine and not from its file.
type Options struct {
	// FoldersByGlobVariable are the folders that $NAME stands for at the start of a glob, as canonical paths. A
	// name without folders matches nothing, except HOME.
	//
	//	HOME                 the user's home folder; $HOME and ~ also mean the usual
	//	                     home folders, such as /home/*
	//	WORKSPACE            the workspace roots
	//	SHIELD               shield's configuration, seal key, state and audit log:
	//	                     must not be read or changed
	//	SHIELD_PROGRAM       the program, and what it runs or trusts: must not be changed
	//	SHIELD_POLICY        policy files: must not be read by name or changed
	//	SHIELD_WAY           parent folders of the files in the three rows before, if
	//	                     they are links or missing: must not be deleted or moved, and
	//	                     nothing but a folder may be created there
	//	SHIELD_ABOVE         parent folders of the files in these three rows and of the
	//	                     cache: nothing may be mounted over them
	//	SHIELD_CACHE         shield's cache: must not be changed, but may be deleted
	//	SHIELD_CACHE_PARENT  parent folders of the cache that agents may delete, or that
	//	                     are links or missing: nothing else may be created there
	FoldersByGlobVariable map[string][]string

	// HeuristicExistsAndAlwaysBlocks reports whether a heuristic rule with an ID exists, and whether it blocks regardless of
	// settings. nil: no rule exists.
	HeuristicExistsAndAlwaysBlocks func(id string) (exists, always bool)
}

// A Policy is a compiled policy. Goroutines may share it.
type Policy struct {
	shieldPromptRuleNames       []string // rules for which shield itself, and not the agent host, must ask the user
	name                        string
	fingerprint                 string
	rules                       rulefile.PolicyRuleLists
	denyAndVerifyRules          ruleList // deny rules followed by verify rules; a rule applies if any effect touches a place that it names
	allow                       ruleList
	exceptionsByHeuristicRuleID map[string][]ruleException // exceptions from heuristic rules, by the rule's ID
	missingPresetRulesError     error                      // error that lists the policy file's entries for rules that the preset does not have; nil if there are none

	layerName   string    // name of the layer; "" for the highest
	lowerLayers []*Policy // layers below, which can only make the policy stricter; see [Policy.WithLowerLayers]
}

func newPolicy(name, fingerprint string, set rulefile.PolicyRuleLists, opts Options) *Policy {
	return &Policy{
		name:                  name,
		fingerprint:           fingerprint,
		rules:                 set,
		denyAndVerifyRules:    newRuleList(slices.Concat(set.Deny, set.Verify), opts.FoldersByGlobVariable, false),
		allow:                 newRuleList(set.Allow, opts.FoldersByGlobVariable, true),
		shieldPromptRuleNames: presetOwnChannel,
	}
}

// MustPromptThroughShield reports whether shield itself must ask the user about a case, even if the agent
// host could ask: a rule that asks is listed under own_channel in a policy file.
func (p *Policy) MustPromptThroughShield(c *analysis.ActionCase) bool {
	for i := range c.EarlierTierSteps {
		s := &c.EarlierTierSteps[i]
		named := func(l *Policy) bool { return slices.Contains(l.shieldPromptRuleNames, s.Rule) }
		if s.Decision == verdict.Escalate && s.Rule != "" && (named(p) || slices.ContainsFunc(p.lowerLayers, named)) {
			return true
		}
	}
	return false
}

// HasBackedUpFileCriterion reports whether a deny or verify rule, or an exception from one,
// requires that shield backs up the removed file. Only the highest layer counts: with such a rule shield may
// allow what it backs up, and a lower layer must not loosen the policy.
func (p *Policy) HasBackedUpFileCriterion() bool {
	return slices.ContainsFunc(slices.Concat(p.rules.Verify, p.rules.Deny), func(r rulefile.Rule) bool {
		return r.RequiredRestorability == "kept" || slices.ContainsFunc(r.Except, func(c rulefile.Criteria) bool { return c.RequiredRestorability == "kept" })
	})
}

// HasVerifyRuleExceptingCause reports whether a verify rule of the policy has an exception for a cause. Lower
// layers have no exceptions.
func (p *Policy) HasVerifyRuleExceptingCause(cause string) bool {
	return slices.ContainsFunc(p.rules.Verify, func(r rulefile.Rule) bool {
		return slices.ContainsFunc(r.Except, func(c rulefile.Criteria) bool {
			return slices.ContainsFunc(c.EffectPropertyCriteria, func(f rulefile.EffectPropertyCriterion) bool {
				return f.Name == "causes" && slices.Contains(f.AcceptedOrExcludedValues, cause)
			})
		})
	})
}

// Name returns the preset's or the file's name.
func (p *Policy) Name() string { return p.name }

// MissingPresetRulesError returns an error that lists the policy file's entries without effect, since they name
// rules that do not exist, and its rules that have the name of a preset rule, which apply. It returns nil if
// there are none. The rest of the policy applies.
func (p *Policy) MissingPresetRulesError() error { return p.missingPresetRulesError }

// Fingerprint returns "sha256:" and the hex digest of the effective rules. It
// does not include the folders of [Options.FoldersByGlobVariable], which are configuration.
func (p *Policy) Fingerprint() string { return p.fingerprint }

// noEffect is the effect that rules match for an action without effects.
var noEffect effect.Effect

// Judge decides a case: BLOCK by a deny rule, ESCALATE by a verify rule or if no rule matches, ALLOW by an
// allow rule. If the condition of a rule fails, the verdict is BLOCK with error "policy". Of several layers
// the strictest verdict counts.
func (p *Policy) Judge(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, error) {
	v, err := p.judgeLayer(ctx, c)
	for _, l := range p.lowerLayers {
		if err != nil || v.Decision == verdict.Block {
			break
		}
		var below verdict.Verdict
		if below, err = l.judgeLayer(ctx, c); isLowerLayerStricter(&below, &v) {
			v = below
		}
	}
	return v, err
}

// judgeLayer decides a case by the rules of one layer.
func (p *Policy) judgeLayer(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, error) {
	s := searchPool.Get().(*ruleSearch)
	s.ctx, s.judgedCase = ctx, c
	defer func() {
		*s = ruleSearch{}
		searchPool.Put(s)
	}()
	var f policyLayerMatches
	var err error
	if f.denyRuleMatches, f.verifyRuleMatches, err = p.matchDenyAndVerifyRules(s); err != nil {
		return f.failedVerdict(c, err, p.denyAndVerifyRules.rules)
	}
	if list := f.verdictFindings(c); len(list) > 0 || p.layerName != "" {
		return verdictFromFindings(c, list), nil
	}
	if f.matchedAllowRule, err = p.allow.firstRuleMatchingAllEffects(s); err != nil {
		return f.failedVerdict(c, err, p.allow.rules)
	}
	f.hasTriedAllowRules = true
	return verdictFromFindings(c, f.verdictFindings(c)), nil // matching the allow rules may have set c.UnexaminedReason, so the findings are determined again
}

// policyLayerMatches are the matching rules of a layer for a case.
type policyLayerMatches struct {
	denyRuleMatches, verifyRuleMatches ruleListMatches
	matchedAllowRule                   *rulefile.Rule // the allow rule that covers all effects
	hasTriedAllowRules                 bool           // the allow rules were matched
	ruleWithEvaluationError            *rulefile.Rule // a rule whose evaluation failed
	failure                            error
}

// verdictFindings returns the findings that Tier 0 weighs, in the order of deny, verify and allow rules; deny
// rules that only possibly match come after the verify rules. It is empty if the allow rules must be matched
// first.
func (f *policyLayerMatches) verdictFindings(c *analysis.ActionCase) (list []verdict.Finding) {
	if f.ruleWithEvaluationError != nil {
		return []verdict.Finding{{RequiredAuthority: verdict.AuthorityNoneSuffices, Confidence: 1, Rule: f.ruleWithEvaluationError.Name, ErrorCode: "policy",
			Reasoning: "policy: rule " + f.ruleWithEvaluationError.Name + " could not be evaluated, so the action is blocked: " + shortenAndEscapeForMessage(f.failure.Error()) + "; ask the user to correct the rule"}}
	}
	add := func(how string, ch matchedRule, who verdict.ApprovalAuthority, confidence float64, more string) {
		if ch.rule != nil && who > verdict.AuthorityNotNeeded {
			list = append(list, verdict.Finding{RequiredAuthority: who, Confidence: confidence, Rule: ch.rule.Name, Reasoning: explainRule(how, ch.rule, ch.effect) + more})
		}
	}
	add("deny", f.denyRuleMatches.certain, verdict.AuthorityNoneSuffices, 1, "")
	add("verify", f.verifyRuleMatches.certain, verdict.AuthorityOfTier(f.verifyRuleMatches.certain.tier()), 1, "")
	add("verify", f.verifyRuleMatches.possible, verdict.AuthorityOfTier(f.verifyRuleMatches.possible.tier()), 0.7, agentAdviceOnPossibleMatch(f.verifyRuleMatches.possible.effect))
	add("verify", f.denyRuleMatches.possible, verdict.AuthorityEvaluator, 0.7, agentAdviceOnPossibleMatch(f.denyRuleMatches.possible.effect))
	higher := func(f verdict.Finding) bool { return f.RequiredAuthority >= verdict.AuthorityEvaluator }
	switch {
	case c.UnexaminedReason != "" && !slices.ContainsFunc(list, higher):
		return []verdict.Finding{{RequiredAuthority: verdict.AuthorityEvaluator, Confidence: 1, Reasoning: "policy: shield could not examine part of the action: " + shortenAndEscapeForMessage(c.UnexaminedReason) + "; split the action into smaller steps"}}
	case len(list) > 0 || !f.hasTriedAllowRules:
	case f.matchedAllowRule != nil:
		return []verdict.Finding{{RequiredAuthority: verdict.AuthorityNotNeeded, Confidence: 1, Rule: f.matchedAllowRule.Name, Reasoning: explainRule("allow", f.matchedAllowRule, nil), ReasoningCannotLeakActionText: true}}
	default:
		return []verdict.Finding{{RequiredAuthority: verdict.AuthorityClassifier, Confidence: 0.7, Reasoning: "policy: no rule matches", ReasoningCannotLeakActionText: true}}
	}
	return list
}

// verdictFromFindings returns the decision of Tier 0 on the findings of a layer; without findings the verdict has no
// decision.
func verdictFromFindings(c *analysis.ActionCase, list []verdict.Finding) verdict.Verdict {
	c.Tier1AllowEvidence.AddFindings(list...)
	if at := verdict.DecidingFindingIndex(list...); at >= 0 {
		return list[at].Verdict(0)
	}
	return verdict.Verdict{Confidence: 1}
}

// failedVerdict returns the verdict for a rule whose evaluation failed, or the error itself if it does not come from
// a rule.
func (f *policyLayerMatches) failedVerdict(c *analysis.ActionCase, err error, rules []rulefile.Rule) (verdict.Verdict, error) {
	var re *ruleError
	if !errors.As(err, &re) {
		return verdict.Verdict{}, err
	}
	f.ruleWithEvaluationError, f.failure = &rules[re.ruleIndexInList], re.err
	return verdictFromFindings(c, f.verdictFindings(c)), nil
}
