package main

import (
	"bytes"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"github.com/shieldcli/shield/internal/prefilter"
)

var outcomeConstants = map[string]string{"block": "Block", "escalate": "Escalate", "always_block": "AlwaysBlock"}
var severityConstants = map[string]string{"critical": "Critical", "high": "High", "medium": "Medium", "low": "Low"}
var matchConditionConstants = map[string]string{"code": "matchConditionTextIsExecuted", "reader": "matchConditionTextReachesReader", "request": "matchConditionTextInRequest"}

func writeRuleTableSource(b *bytes.Buffer, rules []rule) error {
	fmt.Fprintf(b, "var ruleTable = [...]Rule{\n")
	for _, r := range rules {
		fmt.Fprintf(b, "{\nID: %q, Name: %q, Category: %q, Severity: %s, Outcome: %s, Platform: %q,\n",
			r.ID, r.Name, r.Category, severityConstants[r.Severity], outcomeConstants[r.Outcome], r.Platform)
		fmt.Fprintf(b, "Description: %q,\nAdvice: %q,\n", r.Description, r.Advice)
		writeList(b, "FormerNames", r.FormerNames)
		writeList(b, "MatchingExamples", r.MatchingExamples)
		writeList(b, "NonMatchingExamples", r.NonMatchingExamples)
		writeList(b, "actionTypes", r.ActionTypes)
		writeList(b, "payloadFields", r.PayloadFields)
		writeList(b, "textTransformationNames", r.TextTransformationNames)
		if r.MatchCondition != "" {
			fmt.Fprintf(b, "matchCondition: %s,\n", matchConditionConstants[r.MatchCondition])
		}
		if len(r.Patterns) > 0 {
			fmt.Fprintf(b, "patterns: []pattern{\n")
			for _, p := range r.Patterns {
				for _, one := range splitRegexpAlternatives(p) {
					fmt.Fprintf(b, "%s,\n", patternGoSource(one, true))
				}
			}
			fmt.Fprintf(b, "},\n")
		}
		writePattern(b, "except", r.ExcludedTextPattern)
		writeClauses(b, "clauses", r.TriggerClauses)
		writeClauses(b, "requires", r.RequiredClauses)
		writeClauses(b, "unless", r.ForbiddenClauses)
		fmt.Fprintf(b, "},\n")
	}
	fmt.Fprintf(b, "}\n")
	return nil
}

func writeClauses(b *bytes.Buffer, name string, clauses []clause) {
	if len(clauses) == 0 {
		return
	}
	fmt.Fprintf(b, "%s: []ruleClause{\n", name)
	for _, c := range clauses {
		fmt.Fprintf(b, "{\n")
		if len(c.EffectKinds) > 0 {
			fmt.Fprintf(b, "kinds: []effect.Kind{")
			for _, k := range c.EffectKinds {
				fmt.Fprintf(b, "%q, ", k)
			}
			fmt.Fprintf(b, "},\n")
		}
		programs := slices.Clone([]string(c.Program))
		slices.Sort(programs)
		writeList(b, "programs", programs)
		if len(c.ProgramClasses) > 0 {
			fmt.Fprintf(b, "classes: []effect.ProgramClass{")
			for _, k := range c.ProgramClasses {
				fmt.Fprintf(b, "%q, ", k)
			}
			fmt.Fprintf(b, "},\n")
		}
		writePattern(b, "args", c.Args)
		writePattern(b, "excludedArgs", c.ExcludedArgsPattern)
		writeList(b, "paths", c.Path)
		writeList(b, "notPaths", c.NotPath)
		writeList(b, "hosts", c.Host)
		if len(c.EffectCauses) > 0 {
			fmt.Fprintf(b, "causes: []effect.EffectCause{")
			for _, k := range c.EffectCauses {
				fmt.Fprintf(b, "%q, ", k)
			}
			fmt.Fprintf(b, "},\n")
		}
		if len(c.Harm) > 0 {
			fmt.Fprintf(b, "harms: []effect.Harm{")
			for _, k := range c.Harm {
				fmt.Fprintf(b, "%q, ", k)
			}
			fmt.Fprintf(b, "},\n")
		}
		if c.MustBeNonRecursive {
			fmt.Fprintf(b, "mustBeNonRecursive: true,\n")
		}
		if c.Recursive {
			fmt.Fprintf(b, "recursive: true,\n")
		}
		if c.Unrestorable {
			fmt.Fprintf(b, "mustBeUnrestorable: true,\n")
		}
		fmt.Fprintf(b, "},\n")
	}
	fmt.Fprintf(b, "},\n")
}

func writePattern(b *bytes.Buffer, name, expr string) {
	if expr != "" {
		fmt.Fprintf(b, "%s: pattern%s,\n", name, patternGoSource(expr, false))
	}
}

// negativeIfLetterOrSpace drops letters and spaces, which are in most texts.
func negativeIfLetterOrSpace(r rune) rune {
	if r == ' ' || unicode.IsLetter(r) {
		return -1
	}
	return r
}

// splitRegexpAlternatives splits an expression that consists of alternatives, so that each is selected by its own
// literals. It does not split if an alternative without literals would be tried on every text.
func splitRegexpAlternatives(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err) // cannot fail: the expression was compiled when the rule was validated
	}
	var before string // common prefix of all alternatives
	if re.Op == syntax.OpConcat && len(re.Sub) == 2 {
		before, re = re.Sub[0].String(), re.Sub[1]
	}
	if re.Op != syntax.OpAlternate {
		return []string{expr}
	}
	var out []string
	for _, sub := range re.Sub {
		one := before + "(?:" + sub.String() + ")"
		if lits, err := prefilter.RequiredLiteralAlternatives(one); err != nil || lits == nil {
			return []string{expr}
		}
		out = append(out, one)
	}
	return out
}

// patternGoSource returns the Go source of a pattern with the regular expression expr. If
// withFurtherRequiredLiterals is true, the source includes the sets of literals that a match requires in
// addition to the first set. The engine checks these sets only in the patterns of a rule, and not in its other
// expressions.
func patternGoSource(expr string, withFurtherRequiredLiterals bool) string {
	lits, err := prefilter.RequiredLiteralAlternatives(expr)
	if err != nil {
		panic(err) // cannot fail: the expression was compiled when the rule was validated
	}
	also, err := prefilter.AdditionalRequiredLiteralSets(expr)
	if err != nil {
		panic(err)
	}
	needs, err := prefilter.RequiredTextFeaturesOf(expr)
	if err != nil {
		panic(err)
	}
	out := fmt.Sprintf("{expr: %q", expr)
	if lits != nil {
		out += fmt.Sprintf(", lits: %#v", lits)
	}
	if withFurtherRequiredLiterals && len(also) > 0 {
		out += fmt.Sprintf(", furtherRequiredLiterals: %#v", also)
	}
	if marks := strings.Map(negativeIfLetterOrSpace, needs.ASCIIBytesInEveryMatch); marks != "" {
		out += fmt.Sprintf(", requiredByteSet: %q", marks)
	}
	return out + "}"
}

func writeList(b *bytes.Buffer, name string, list []string) {
	if len(list) > 0 {
		fmt.Fprintf(b, "%s: %#v,\n", name, []string(list))
	}
}
