package classify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

//go:generate go run ./gen

// A RuleOutcome is the decision of a matching rule.
type RuleOutcome string

// The outcomes.
const (
	Block       RuleOutcome = "block"        // no legitimate use
	Escalate    RuleOutcome = "escalate"     // a higher tier has to consider the context
	AlwaysBlock RuleOutcome = "always_block" // like Block, also with heuristics switched off
)

// A Severity says how likely it is that a match is really an attack of the rule's class. It does
// not decide what happens to the action.
type Severity string

// The severities.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
)

// RuleMatchConfidence returns the confidence of a match, 0.0–1.0.
func (s Severity) RuleMatchConfidence() float64 {
	switch s {
	case Critical:
		return 0.95
	case High:
		return 0.85
	case Medium:
		return 0.70
	case Low:
	}
	return 0.50
}

// A Rule is one heuristic: a class of attack, how to recognise an action of the class, and examples. Rules
// are data, see rules/README.md.
type Rule struct {
	ID                  string      `json:"id"`
	Name                string      `json:"name"`
	FormerNames         []string    `json:"former_names,omitempty"` // names of earlier versions, still accepted
	Category            string      `json:"category"`
	Severity            Severity    `json:"severity"`
	Outcome             RuleOutcome `json:"outcome"`
	Platform            string      `json:"platform"` // any, unix, macos, windows; information only: every rule runs everywhere
	Description         string      `json:"description"`
	Advice              string      `json:"advice,omitempty"` // an acceptable alternative; "" if there is none
	MatchingExamples    []string    `json:"match"`            // actions that the rule matches: commands, or actions in JSON
	NonMatchingExamples []string    `json:"pass"`             // similar actions that the rule does not match

	actionTypes             []string              // action types; empty: all
	payloadFields           []string              // fields of the payload that patterns read; empty: command, path, source, destination, url and pattern
	textTransformationNames []string              // names of the text views that patterns read; empty: all views
	matchCondition          patternMatchCondition // how a command's text must be used for a pattern match to count
	patterns                []pattern
	except                  pattern // patterns skip a text that except matches
	clauses                 []ruleClause
	requires                []ruleClause // if not empty, at least one must hold for an effect of the case
	unless                  []ruleClause // none may hold for an effect of the case
}

// A pattern is a regular expression with the literals that [prefilter.RequiredLiteralAlternatives],
// [prefilter.AdditionalRequiredLiteralSets] and [prefilter.RequiredTextFeaturesOf] found in it.
type pattern struct {
	expr                    string
	lits                    []string   // every match contains one of them
	furtherRequiredLiterals [][]string // every match contains one literal of each of these sets
	requiredByteSet         string     // every match contains all of these bytes
}

// A ruleClause holds for an effect that meets all of its conditions.
type ruleClause struct {
	kinds              []effect.Kind // the effect has one of these kinds; empty: execute
	programs           []string      // the effect has one of these programs; names in lower case
	classes            []effect.ProgramClass
	args               pattern // matches the arguments as written by [appendQuotedArgs]
	excludedArgs       pattern // must not match the arguments
	paths              []string
	notPaths           []string
	hosts              []string             // the effect's host is one of these or a subdomain of one
	causes             []effect.EffectCause // the effect has one of these causes
	harms              []effect.Harm        // the effect has one of these causes
	recursive          bool
	mustBeNonRecursive bool
	mustBeUnrestorable bool // the effect removes a file that neither version control nor shield's backup restores
}

// HasIDOrAnyName reports whether a word is the rule's ID, its name or a former name; upper and lower case
// are equal.
func (r *Rule) HasIDOrAnyName(idOrName string) bool {
	is := func(name string) bool { return strings.EqualFold(name, idOrName) }
	return is(r.ID) || is(r.Name) || slices.ContainsFunc(r.FormerNames, is)
}

// Rules returns the built-in rules in the order of their ids.
func Rules() []Rule { return slices.Clone(ruleTable[:]) }

// BuiltInRulesFingerprint identifies the built-in rules: "sha256:" and hex.
func BuiltInRulesFingerprint() string { return rulesFingerprint }

// A RuleExampleResult is one example of a rule, and whether the rule matched it.
type RuleExampleResult struct {
	RuleID              string `json:"rule"`
	CommandOrActionJSON string `json:"action"`
	WantMatch           bool   `json:"want"` // whether the rule should match
	RuleMatched         bool   `json:"got"`  // whether the rule matched
	Err                 error  `json:"-"`    // the example could not be judged
}

// MatchedAsExpected reports whether the result is the expected one.
func (e RuleExampleResult) MatchedAsExpected() bool {
	return e.Err == nil && e.RuleMatched == e.WantMatch
}

// RunRuleExamples judges the examples of all rules, or of one rule if ruleIDOrName is not empty, as
// actions of an agent that works in /work/app. No example is executed.
func RunRuleExamples(ctx context.Context, shell analysis.ShellCommandAnalyzer, ruleIDOrName string) ([]RuleExampleResult, error) {
	eng := newEngine(ruleTable[:], exampleHome, []string{exampleWorkspaceRoot})
	var out []RuleExampleResult
	for i := range ruleTable {
		r := &ruleTable[i]
		if ruleIDOrName != "" && !r.HasIDOrAnyName(ruleIDOrName) {
			continue
		}
		for _, ex := range r.MatchingExamples {
			out = append(out, eng.runExample(shell, i, ex, true))
		}
		for _, ex := range r.NonMatchingExamples {
			out = append(out, eng.runExample(shell, i, ex, false))
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
	}
	if ruleIDOrName != "" && out == nil {
		return nil, fmt.Errorf("unknown rule %q; 'shield rules list' shows all rules", ruleIDOrName)
	}
	return out, nil
}

func (eng *ruleEngine) runExample(shell analysis.ShellCommandAnalyzer, ruleIndex int, text string, wantMatch bool) RuleExampleResult {
	out := RuleExampleResult{RuleID: eng.rules[ruleIndex].ID, CommandOrActionJSON: text, WantMatch: wantMatch}
	c, err := exampleCase(shell, text)
	if err != nil {
		out.Err = err
		return out
	}
	s := newRuleMatchBuffers(eng)
	eng.run(s, c, ruleScopeAll)
	out.RuleMatched = slices.ContainsFunc(s.hits, func(h ruleHit) bool { return h.ruleIndex == ruleIndex })
	return out
}

// The home folder and the workspace root that the examples of the rules assume.
const (
	exampleHome          = "/home/me"
	exampleWorkspaceRoot = "/work/app"
)

// exampleCase returns the case of an example: an action in JSON, or the text
// of a command.
func exampleCase(shell analysis.ShellCommandAnalyzer, text string) (*analysis.ActionCase, error) {
	a := &action.Action{Type: "execute_command", Payload: map[string]any{"command": text}}
	if strings.HasPrefix(text, `{"type"`) {
		*a = action.Action{}
		if err := json.Unmarshal([]byte(text), a, json.MatchCaseInsensitiveNames(true)); err != nil {
			return nil, fmt.Errorf("example %q: %w", text, err)
		}
	}
	an := analysis.Analyzer{ShellAnalyzer: shell, DefaultExecutionContext: effect.PathContext{CWD: exampleWorkspaceRoot, Home: exampleHome, WorkspaceRoots: []string{exampleWorkspaceRoot}}}
	return an.AnalyzeAction(a), nil
}

// IsRuleID reports whether there is a rule with an ID.
func IsRuleID(id string) bool {
	return slices.ContainsFunc(ruleTable[:], func(r Rule) bool { return r.ID == id })
}

// AlwaysBlocks reports whether the rule with an ID blocks regardless of settings, because its matches have no
// legitimate use.
func AlwaysBlocks(id string) bool {
	return slices.ContainsFunc(ruleTable[:], func(r Rule) bool { return r.ID == id && r.Outcome == AlwaysBlock })
}
