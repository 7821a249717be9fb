// Package rulefile reads policy files: YAML with lists of deny, verify and allow rules. It reports every
// fault with its position, and rejects unknown keys.
package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
)

// A PolicyRuleLists value holds the three lists of rules of a policy, and its exceptions to
// heuristic rules.
type PolicyRuleLists struct {
	Deny, Verify, Allow []Rule
	HeuristicExceptions []Rule // exceptions from heuristic rules: Rule.Name is the ID of the heuristic rule, and Rule.Except lists the exceptions
}

// A File is one policy file.
type File struct {
	Extends string // name of the preset that the file extends; "" if none
	PolicyRuleLists
	ExtendsPos yamlfile.Pos // position of Extends

	// ShieldPromptRuleNames lists verify and heuristic rules whose questions shield asks itself, even if the agent host
	// could ask.
	ShieldPromptRuleNames    []string
	ShieldPromptRuleNamesPos yamlfile.Pos
}

// heuristicRuleIDPattern matches the ID of a heuristic rule.
var heuristicRuleIDPattern = prefilter.LazyRegexp(`^[A-Z]{2,4}-[0-9]{3}$`)

// IsHeuristicRuleID reports whether a name has the form of the ID of a heuristic rule.
func IsHeuristicRuleID(name string) bool { return heuristicRuleIDPattern().MatchString(name) }

// CheckShieldPromptRulesExist returns an error if [File.ShieldPromptRuleNames] contains a name that is
// neither the name of one of the given verify rules nor the ID of a heuristic rule.
func (f *File) CheckShieldPromptRulesExist(verifyRules []Rule) error {
	for _, name := range f.ShieldPromptRuleNames {
		known := func(r Rule) bool { return r.Name == name }
		if !heuristicRuleIDPattern().MatchString(name) && !slices.ContainsFunc(verifyRules, known) {
			return f.ShieldPromptRuleNamesPos.Errorf("own_channel names %s, which is no verify rule; correct the name", yamlfile.QuoteForMessage(name))
		}
	}
	return nil
}

// A Rule is one entry of a deny, verify or allow list, or of [PolicyRuleLists.HeuristicExceptions]. A criterion
// without entries matches everything.
type Rule struct {
	Name   string
	Reason string // shown to the agent: why, and an acceptable alternative
	Criteria
	Tier   int        // of verify rules: lowest tier that may decide, 1–3
	Except []Criteria // the rule does not apply to effects that match one of them

	// OnlyAddsExceptionsToPreset says that the entry only adds exceptions to the preset's rule with the same name.
	OnlyAddsExceptionsToPreset bool

	MatchingExamples, NonMatchingExamples []Example // actions that the rule must, and must not, decide
	Pos                                   yamlfile.Pos
}

// Criteria say what a rule matches. Every given criterion must match; one matching entry of a criterion is
// enough.
type Criteria struct {
	ActionTypesAndEffectKinds []string                  // types of actions and kinds of effects to which the criteria apply
	Paths                     []string                  // globs
	Hosts                     []string                  // globs and CIDR prefixes
	Commands                  []string                  // RE2
	Content                   []string                  // RE2
	RequiredTargetTrust       string                    // whether the place that receives data or is changed must be trusted: "true", "false", or "" for either
	EffectPropertyCriteria    []EffectPropertyCriterion // criteria on effect properties such as labels, programs and verbs
	ConditionJQ               string                    // jq expression over {action, effects}

	RequiredRestorability string // "true" or "false": version control can or cannot restore the removed file; "kept": shield backs it up; "": any

	Session Session // criterion on earlier actions of the session

	EntryPositionsByCriterionKey map[string][]yamlfile.Pos // position of each entry, by the key of its criterion; nil for presets
}

// An EffectPropertyCriterion is a criterion on one property of an effect: the property must equal
// one of the entries without "!", if there are any, and none of the entries after "!". The entries
// of "args" are expressions, one of which must match.
type EffectPropertyCriterion struct {
	Name                     string // the property's key in policy files: "causes", "labels", "classes", "programs", "args", "verbs" or "names"
	AcceptedOrExcludedValues []string
}

// Empty reports whether all criteria are missing.
func (c *Criteria) Empty() bool {
	return len(c.ActionTypesAndEffectKinds) == 0 && len(c.Paths) == 0 && len(c.Hosts) == 0 &&
		len(c.Commands) == 0 && len(c.Content) == 0 && c.RequiredTargetTrust == "" && c.RequiredRestorability == "" && len(c.EffectPropertyCriteria) == 0 && c.ConditionJQ == "" && c.Session.Empty()
}

// An Example is an action given with a rule, as JSON. The actions in Before ran earlier in the same session.
type Example struct {
	EarlierActions [][]byte
	Action         []byte
	Pos            yamlfile.Pos
}

// Fingerprint returns "sha256:" and the hex digest of the rules without their examples and positions.
func (s *PolicyRuleLists) Fingerprint() string {
	var b []byte
	text := func(t string) { b = strconv.AppendQuote(b, t) }
	texts := func(key byte, list []string) {
		b = append(b, key)
		for _, t := range list {
			text(t)
		}
	}
	criteria := func(c *Criteria) {
		texts('t', c.ActionTypesAndEffectKinds)
		texts('p', c.Paths)
		texts('h', c.Hosts)
		texts('c', c.Commands)
		texts('b', c.Content)
		b = append(b, 'r')
		text(c.RequiredTargetTrust)
		text(c.RequiredRestorability)
		for _, f := range c.EffectPropertyCriteria {
			text(f.Name)
			texts('f', f.AcceptedOrExcludedValues)
		}
		b = append(b, 'w')
		text(c.ConditionJQ)
		if s := &c.Session; !s.Empty() {
			texts('l', s.Labels)
			texts('a', s.EarlierActionTypesOrKinds)
			text(s.Within.String())
			b = strconv.AppendInt(b, int64(s.MaxActionsAgo), 10)
			text(s.SendsEarlierReadValue)
		}
	}
	for i, list := range [][]Rule{s.Deny, s.Verify, s.Allow, s.HeuristicExceptions} {
		if i == 3 && len(list) == 0 {
			continue
		}
		b = append(b, '\n', "dvah"[i])
		for j := range list {
			r := &list[j]
			b = append(b, '\n', 'r')
			text(r.Name)
			text(r.Reason)
			criteria(&r.Criteria)
			b = strconv.AppendInt(b, int64(r.Tier), 10)
			for k := range r.Except {
				b = append(b, 'x')
				criteria(&r.Except[k])
			}
		}
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// MergeBeforeBase returns a set in which the rules of s precede those of base in each list. Entries
// of s that amend a rule add their exceptions to that rule in base. unmatchedExceptions are errors
// for entries that amend a rule which base does not contain; these entries have no effect.
func (s *PolicyRuleLists) MergeBeforeBase(base PolicyRuleLists) (out PolicyRuleLists, unmatchedExceptions yamlfile.Errors) {
	out = PolicyRuleLists{Deny: mergeRulesBeforeBase(s.Deny, base.Deny, &unmatchedExceptions), Verify: mergeRulesBeforeBase(s.Verify, base.Verify, &unmatchedExceptions), Allow: mergeRulesBeforeBase(s.Allow, base.Allow, &unmatchedExceptions), HeuristicExceptions: s.HeuristicExceptions}
	return out, unmatchedExceptions
}

func mergeRulesBeforeBase(own, base []Rule, unmatchedExceptions *yamlfile.Errors) []Rule {
	merged := slices.Clone(base)
	out := make([]Rule, 0, len(own)+len(base))
	for _, r := range own {
		if !r.OnlyAddsExceptionsToPreset {
			out = append(out, r)
			continue
		}
		at := slices.IndexFunc(merged, func(o Rule) bool { return o.Name == r.Name })
		if at < 0 {
			unmatchedExceptions.Add(r.Pos.Errorf("rule %s only has exceptions, but the preset's list has no rule of this name that can have exceptions%s; they have no effect: correct the name",
				yamlfile.QuoteForMessage(r.Name), suggest.DidYouMeanSuffix(r.Name, ruleNames(base))))
			continue
		}
		merged[at].Except = append(slices.Clip(merged[at].Except), r.Except...)
	}
	return append(out, merged...)
}

func ruleNames(rules []Rule) []string {
	out := make([]string, len(rules))
	for i := range rules {
		out[i] = rules[i].Name
	}
	return out
}

// maxShownValuesPerRuleCriterion is the maximum number of entries in a row of [Rule.KeyValuePairs].
const maxShownValuesPerRuleCriterion = 12

// KeyValuePairs returns the content of a rule as rows of key and value.
func (r *Rule) KeyValuePairs() [][2]string {
	var out [][2]string
	add := func(key string, values ...string) {
		for _, v := range values {
			if v != "" {
				out = append(out, [2]string{key, v})
			}
		}
	}
	criteria := func(under string, c *Criteria) {
		for _, l := range append([]EffectPropertyCriterion{{"action_types", c.ActionTypesAndEffectKinds}, {"paths", c.Paths}, {"hosts", c.Hosts}}, c.EffectPropertyCriteria...) {
			text := strings.Join(l.AcceptedOrExcludedValues[:min(len(l.AcceptedOrExcludedValues), maxShownValuesPerRuleCriterion)], ", ")
			if more := len(l.AcceptedOrExcludedValues) - maxShownValuesPerRuleCriterion; more > 0 {
				text += ", and " + strconv.Itoa(more) + " more"
			}
			add(under+l.Name, text)
		}
		add(under+"commands", c.Commands...)
		add(under+"content", c.Content...)
		add(under+"trusted", c.RequiredTargetTrust)
		add(under+"restorable", c.RequiredRestorability)
		add(under+"when", c.ConditionJQ)
		add(under+"session", c.Session.String())
	}
	add("reason", r.Reason)
	if r.Tier > 0 {
		add("tier_override", strconv.Itoa(r.Tier))
	}
	criteria("", &r.Criteria)
	for i := range r.Except {
		criteria("except "+strconv.Itoa(i+1)+": ", &r.Except[i])
	}
	return out
}
