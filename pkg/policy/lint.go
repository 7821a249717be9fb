package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A LintSeverity says how serious a [LintFinding] is.
type LintSeverity uint8

// The severities.
const (
	Note    LintSeverity = iota // worth knowing
	Warning                     // the file can be used, but has an effect that its author probably did not intend
	Error                       // the file cannot be used
)

// String returns the severity in lower case.
func (s LintSeverity) String() string { return [...]string{"note", "warning", "error"}[s] }

// A LintFinding is something in a policy file that its author should look at.
type LintFinding struct {
	Line, Column int // counted from 1; 0 means the whole file
	Severity     LintSeverity
	Msg          string
}

// LintPolicyFile returns everything in a policy file that is wrong or probably not intended, in the
// order of the file. If the file can be used, it also judges the examples of its rules.
func LintPolicyFile(ctx context.Context, name string, data []byte, an *analysis.Analyzer, opts Options) []LintFinding {
	opts.FoldersByGlobVariable = opts.allFoldersByGlobVariable()
	f, set, lost, err := assembleRules(name, data, opts)
	l := linter{ctx: ctx, analyzer: an, mergedRuleLists: set}
	for _, w := range lost {
		l.add(w.Pos, Warning, "%s", w.Msg)
	}
	var errs yamlfile.Errors
	if errors.As(err, &errs) {
		for _, e := range errs {
			l.add(e.Pos, Error, "%s", e.Msg)
		}
	} else if p, err := Load(name, data, opts); err != nil {
		l.add(yamlfile.Pos{}, Error, "%v", err)
	} else {
		l.policy = p
	}
	return l.examine(f)
}

// examine returns the findings on a file.
func (l *linter) examine(f *rulefile.File) []LintFinding {
	l.lintList("deny", f.Deny)
	l.lintList("verify", f.Verify)
	l.lintList("allow", f.Allow)
	for i := range f.HeuristicExceptions {
		r := &f.HeuristicExceptions[i]
		for k := range r.Except {
			l.reportUnknownActionTypes(&r.Except[k])
		}
		for _, e := range append(r.MatchingExamples, r.NonMatchingExamples...) {
			l.add(e.Pos, Note, "rule %s is a heuristic rule: the policy alone does not judge its examples; use shield explain", r.Name)
		}
	}
	sorted.SortStableBy(l.findings, func(a, b LintFinding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return l.findings
}

type linter struct {
	ctx             context.Context
	analyzer        *analysis.Analyzer
	mergedRuleLists rulefile.PolicyRuleLists // the file's rules with those of the core and its preset, as far as they are readable
	policy          *Policy                  // nil if the file cannot be used
	findings        []LintFinding
}

//go:noinline
func (l *linter) add(at yamlfile.Pos, s LintSeverity, format string, args ...any) {
	l.findings = append(l.findings, LintFinding{at.Line, at.Column, s, fmt.Sprintf(format, args...)})
}

func (l *linter) lintList(list string, rules []rulefile.Rule) {
	for i := range rules {
		r := &rules[i]
		l.reportUnknownActionTypes(&r.Criteria)
		for k := range r.Except {
			l.reportUnknownActionTypes(&r.Except[k])
		}
		l.lintExamples(r)
		if r.OnlyAddsExceptionsToPreset {
			continue
		}
		l.reportUnreachableRule(list, r.Name)
		l.reportUnmatchableHosts(r)
		if r.Reason == "" && list != "allow" {
			l.add(r.Pos, Note, "rule %s has no reason, so a refusal does not tell the agent what to do instead; add one", r.Name)
		}
		if list == "allow" {
			l.reportUnintendedAllowScope(r)
		}
	}
}

// lintExamples judges the examples of a rule. The examples of an entry that only adds exceptions apply to the
// preset's rule with these exceptions.
func (l *linter) lintExamples(r *rulefile.Rule) {
	for _, e := range r.MatchingExamples {
		l.lintExample(r, e, true)
	}
	for _, e := range r.NonMatchingExamples {
		l.lintExample(r, e, false)
	}
}

// reportUnknownActionTypes reports action types that are unknown or not spelled as shield spells them.
func (l *linter) reportUnknownActionTypes(c *rulefile.Criteria) {
	for i, t := range c.ActionTypesAndEffectKinds {
		at := c.EntryPositionsByCriterionKey["action_types"][i]
		switch canonical := resolveActionTypeAlias(t); {
		case canonical != t:
			l.add(at, Note, "%s is treated as %s, its name in shield; write action_types: [%s]", strconv.Quote(t), canonical, canonical)
		case slices.Contains(actionTypesAndEffectKinds(), t):
		case strings.ContainsAny(t, "*?[{"):
			l.add(at, Warning, "%s matches no action: action types have no wildcards, so list each type", yamlfile.QuoteForMessage(t))
		case suggest.Nearest(t, actionTypesAndEffectKinds()) != "":
			l.add(at, Warning, "unknown action type %s; correct the name%s", yamlfile.QuoteForMessage(t), suggest.DidYouMeanSuffix(t, actionTypesAndEffectKinds()))
		case !analysis.IsKnownActionType(t):
			l.add(at, Note, "%s is not a type that shield knows: it only matches a tool with exactly this name", yamlfile.QuoteForMessage(t))
		}
	}
}

// actionTypesAndEffectKinds returns the action types and kinds of effects.
func actionTypesAndEffectKinds() []string {
	out := slices.Clone(action.CanonicalTypes())
	for _, k := range effect.Kinds() {
		out = append(out, string(k))
	}
	return out
}

// actionTypesWithoutNetworkHost are action types and kinds of effects without a host.
var actionTypesWithoutNetworkHost = []string{
	string(effect.DeleteFile), string(effect.DeleteDirectory), string(effect.MoveFile), string(effect.ListDirectory), string(effect.CreateDirectory),
	string(effect.ChangePermissions), string(effect.ChangePrivilege), string(effect.StopProcess), string(effect.ReadSecret), string(effect.ReadClipboard),
	"read_file", "write_file", "copy_file", "move_directory", "copy_directory", "search_files", "memory_write", "memory_search",
}

// reportUnmatchableHosts reports a rule that has hosts, but lists only action types and effect
// kinds that never have a host.
func (l *linter) reportUnmatchableHosts(r *rulefile.Rule) {
	if len(r.Hosts) == 0 || len(r.ActionTypesAndEffectKinds) == 0 {
		return
	}
	for _, t := range r.ActionTypesAndEffectKinds {
		if !slices.Contains(actionTypesWithoutNetworkHost, resolveActionTypeAlias(t)) {
			return
		}
	}
	l.add(r.EntryPositionsByCriterionKey["hosts"][0], Warning, "rule %s has hosts, but %s never has a host: remove hosts, or add a type such as http_request", r.Name, strings.Join(r.ActionTypesAndEffectKinds, ", "))
}

// reportUnintendedAllowScope reports allow rules that probably allow more or less than intended.
func (l *linter) reportUnintendedAllowScope(r *rulefile.Rule) {
	if len(r.ActionTypesAndEffectKinds) == 0 && len(r.Commands) == 0 {
		l.add(r.Pos, Note, "rule %s allows every kind of effect: list the action_types that it should allow", r.Name)
	}
	for i, t := range r.ActionTypesAndEffectKinds {
		t = resolveActionTypeAlias(t)
		if tier := analysis.MinTierForActionType(t); tier > 0 && !slices.Contains(effect.Kinds(), effect.Kind(t)) {
			l.add(r.EntryPositionsByCriterionKey["action_types"][i], Note, "actions of type %s always go to Tier %d or higher, so this rule does not allow them; remove the type", t, tier)
		}
	}
}

// lintExample judges one example of a rule and reports if another rule decides it.
func (l *linter) lintExample(r *rulefile.Rule, e rulefile.Example, mustMatchRule bool) {
	if l.policy == nil {
		return
	}
	v, err := judgeRuleExample(l.ctx, l.analyzer, l.policy, &e)
	if err == nil && mustMatchRule && v.Rule != r.Name {
		if why := l.exampleNotCoveredReason(r.Name, &e); why != "" {
			l.add(e.Pos, Warning, "rule %s does not cover this example: %s; correct the rule or the example", r.Name, why)
			return
		}
	}
	switch {
	case err != nil:
		l.add(e.Pos, Warning, "rule %s: the example is not a valid action: %v", r.Name, err)
	case mustMatchRule && v.Rule == "":
		l.add(e.Pos, Warning, "rule %s does not match this example, and no other rule does; correct the rule or the example", r.Name)
	case mustMatchRule && v.Rule != r.Name:
		l.add(e.Pos, Warning, "rule %s does not decide this example, rule %s does; move the rule up, or correct the example", r.Name, v.Rule)
	case !mustMatchRule && v.Rule == r.Name:
		l.add(e.Pos, Warning, "rule %s matches this example, which is listed under pass; correct the rule, or move the example", r.Name)
	}
}

// exampleNotCoveredReason returns why an allow rule does not cover an example; "" if it does, or if the rule is not an allow
// rule.
func (l *linter) exampleNotCoveredReason(ruleName string, e *rulefile.Example) string {
	a, err := action.Parse(e.Action)
	if err != nil {
		return ""
	}
	gaps, err := l.policy.AllowRuleMismatches(l.ctx, l.analyzer.AnalyzeAction(a))
	i := slices.IndexFunc(gaps, func(g AllowRuleMismatch) bool { return g.Rule == ruleName })
	if err != nil || i < 0 {
		return ""
	}
	return gaps[i].NotCoveredReason
}
