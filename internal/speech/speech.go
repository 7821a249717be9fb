// Package speech detects text that addresses a language model instead of the user (prompt
// injection). [JudgingModelPromptInjectionDetector] finds phrases in a payload that address the
// model that judges it; [FindAgentTargetedPromptInjections] finds phrases in a tool's result that address
// the agent that reads it. The phrases are data in the folder rules; many rules apply to both.
package speech

import (
	"regexp"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
)

//go:generate go run ./gen

// A Rule detects one kind of phrase that addresses a language model: the model that judges an action, or the
// agent.
type Rule struct {
	ID, Name                      string
	InstructionOrExfiltrationKind string // [InjectionKindInstruction] or [InjectionKindExfiltration]; only for rules about text to an agent
	Severity                      string // severity of rules for agents: high, medium or low
	OnlyInHiddenText              bool   // matches only in text that people do not see; only for rules about text to an agent

	matchesRawText          bool     // pattern reads the lower-case text instead of its words
	pattern                 string   // RE2
	literals                []string // every match contains one of these; empty: the rule always runs
	nearbyLiterals          []string // a match needs one of these near a literal; empty: not needed; only for rules about text to an agent
	matchesBeginWithLiteral bool     // every match begins with one of literals; only set for rules about text to an agent
	matchesBeginAtWord      bool     // the literal that begins a match begins a word; only set for rules about text to an agent
}

// Values of [Rule.InstructionOrExfiltrationKind]: what a text that addresses an agent tells the agent to do.
const (
	InjectionKindInstruction  = "instruction"  // tells the agent what to do
	InjectionKindExfiltration = "exfiltration" // tells the agent to send data to another place
)

// JudgingModelPromptInjectionDetector returns the detector of phrases that address the model that
// judges a payload. It is built when the first payload is about to be allowed, since most processes
// never need it.
var JudgingModelPromptInjectionDetector = sync.OnceValue(func() *PhraseDetector { return NewPhraseDetector(judgeRules()) })

// JudgeTargetedPromptInjectionRules returns the rules of [JudgingModelPromptInjectionDetector].
func JudgeTargetedPromptInjectionRules() []Rule { return judgeRules() }

// A PhraseDetector reads the whole of a text. Goroutines may share it.
type PhraseDetector struct {
	rules                []Rule
	literalSet           *prefilter.LiteralSet
	rulesWithoutLiterals []int                   // rules without literals
	regexps              []func() *regexp.Regexp // compiled on first need
}

// NewPhraseDetector returns a detector of some rules.
func NewPhraseDetector(rules []Rule) *PhraseDetector {
	d := &PhraseDetector{rules: rules, regexps: compileRules(rules)}
	literals := make([][]string, len(rules))
	for i, r := range rules {
		literals[i] = r.literals
		if len(r.literals) == 0 {
			d.rulesWithoutLiterals = append(d.rulesWithoutLiterals, i)
		}
	}
	set, whole := prefilter.TryNewLiteralSet(literals)
	if !whole {
		panic("speech: rules have too many literals")
	}
	d.literalSet = set
	return d
}

// compileRules returns a function for each rule that returns its regular expression, compiled on first use. If
// every match of a rule begins with a literal, the expression matches only at the beginning of a text: the
// search runs it on the text from each found literal on.
func compileRules(rules []Rule) []func() *regexp.Regexp {
	list := make([]func() *regexp.Regexp, len(rules))
	for i, r := range rules {
		if r.matchesBeginWithLiteral {
			r.pattern = `\A(?:` + r.pattern + `)`
		}
		list[i] = prefilter.LazyRegexp(r.pattern)
	}
	return list
}

// FindFirstMatchingRule returns the first rule that matches a text in one of its forms; nil if
// none does.
func (d *PhraseDetector) FindFirstMatchingRule(text string) *Rule {
	found := make([]uint64, d.literalSet.ExpressionBitsetWords())
	for n, form := range NormalizedTextVariants(text) {
		clear(found)
		prefilter.ScanForLiterals(d.literalSet, form, found)
		for _, i := range d.rulesWithoutLiterals {
			found[i>>6] |= 1 << (i & 63)
		}
		for i := range d.rules {
			if found[i>>6]&(1<<(i&63)) != 0 && d.rules[i].matchesRawText == (n == 0) && d.regexps[i]().MatchString(form) {
				return &d.rules[i]
			}
		}
	}
	return nil
}
