package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// globVariables are the names of variables with which globs may begin, even if [Options.FoldersByGlobVariable] has no folders for
// them.
var globVariables = [...]string{"HOME", "WORKSPACE", "SHIELD", "SHIELD_PROGRAM", "SHIELD_POLICY", "SHIELD_WAY", "SHIELD_ABOVE", "SHIELD_CACHE", "SHIELD_CACHE_PARENT"}

// allFoldersByGlobVariable returns the folders of all variables that globs can begin with, by the variable's name; nil
// for a variable without folders.
func (o Options) allFoldersByGlobVariable() map[string][]string {
	vars := make(map[string][]string, len(o.FoldersByGlobVariable)+len(globVariables))
	for _, name := range globVariables {
		vars[name] = nil
	}
	for name, folders := range o.FoldersByGlobVariable {
		vars[name] = folders
	}
	return vars
}

// Load reads a policy file. name is its name in messages. The rules of the protected core always come before
// the file's own, whether it extends a preset or not. An error lists every fault of the file with its
// position; the caller must then not allow any action.
func Load(name string, data []byte, opts Options) (*Policy, error) {
	opts.FoldersByGlobVariable = opts.allFoldersByGlobVariable()
	f, set, lost, err := assembleRules(name, data, opts)
	if err != nil {
		return nil, err
	}
	p := newPolicy(name, set.Fingerprint(), set, opts)
	p.shieldPromptRuleNames = slices.Concat(presetOwnChannel, f.ShieldPromptRuleNames)
	if err := p.compileHeuristicExceptions(opts); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	p.missingPresetRulesError = yamlfile.AnnotateErrorsWithFile("policy", name, lost.Err())
	for _, l := range []*ruleList{&p.denyAndVerifyRules, &p.allow} {
		if _, err := l.compile(); err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
	}
	return p, nil
}

// ExtendedPresetName returns the preset that a policy file extends, "" if it names none.
func ExtendedPresetName(policyYAML []byte) string {
	f, err := rulefile.Parse("policy", policyYAML, rulefile.CriterionSyntaxChecks{})
	if _, known := presetNamed(f.Extends); err != nil || !known {
		return ""
	}
	return f.Extends
}

// assembleRules parses a policy file and combines its rules with those of the core and its preset. The third
// result lists the exceptions and settings for rules that do not exist, and the rules that have the name of a
// preset rule. With an error it returns the part that it could read.
func assembleRules(name string, data []byte, opts Options) (*rulefile.File, rulefile.PolicyRuleLists, yamlfile.Errors, error) {
	f, err := rulefile.Parse(name, data, criterionSyntaxChecks(opts.FoldersByGlobVariable))
	var errs yamlfile.Errors
	errs.Add(err)
	errs.Add(moveHeuristicRuleExceptions(f, opts.HeuristicExistsAndAlwaysBlocks))
	set, lost, err := mergeWithPresetRules(f)
	errs.Add(err)
	lost.Add(f.CheckShieldPromptRulesExist(set.Verify))
	if len(set.Deny)+len(set.Verify) > maxRules || len(set.Allow) > maxRules {
		errs.Add(yamlfile.Pos{}.Errorf("the policy has more than %d deny and verify rules, or allow rules, including those of the preset; combine some", maxRules))
	}
	for _, l := range [][]rulefile.Rule{set.Deny, set.Verify, set.Allow, set.HeuristicExceptions} {
		for i := range l {
			addCanonicalActionTypes(&l[i])
		}
	}
	return f, set, lost, yamlfile.AnnotateErrorsWithFile("policy", name, errs.Err())
}

// moveHeuristicRuleExceptions moves the exceptions to heuristic rules out of the deny and verify lists of a file. An
// exception to a rule that no longer exists stays in its list, where it has no effect; one to a rule that
// always blocks is an error.
func moveHeuristicRuleExceptions(f *rulefile.File, lookUpHeuristicRule func(id string) (exists, always bool)) error {
	var errs yamlfile.Errors
	for _, l := range []*[]rulefile.Rule{&f.Deny, &f.Verify} {
		*l = slices.DeleteFunc(*l, func(r rulefile.Rule) bool {
			if lookUpHeuristicRule == nil || !r.OnlyAddsExceptionsToPreset || !rulefile.IsHeuristicRuleID(r.Name) {
				return false
			}
			exists, always := lookUpHeuristicRule(r.Name)
			if always {
				errs.Add(r.Pos.Errorf("rule %s is part of the protected core, which allows no exceptions; remove the exception", yamlfile.QuoteForMessage(r.Name)))
			}
			if exists {
				f.HeuristicExceptions = append(f.HeuristicExceptions, r)
			}
			return exists
		})
	}
	return errs.Err()
}

// mergeWithPresetRules returns a file's rules combined with those of the core and its preset.
// Entries that amend a rule which the preset lacks, and rules that have the name of a preset rule,
// are returned in mergeWarnings. They are no error: after an update of shield a valid policy must
// not turn into one that blocks everything.
func mergeWithPresetRules(f *rulefile.File) (mergedLists rulefile.PolicyRuleLists, mergeWarnings yamlfile.Errors, err error) {
	var errs yamlfile.Errors
	core := preset{denyRuleIndexes: coreRules}.ruleLists()
	base := core
	if f.Extends != "" {
		if p, ok := presetNamed(f.Extends); ok {
			base = p.ruleLists()
		} else {
			errs.Add(f.ExtendsPos.Errorf("unknown preset %s%s (the presets are %s)",
				yamlfile.QuoteForMessage(f.Extends), suggest.DidYouMeanSuffix(f.Extends, PresetNames()), strings.Join(PresetNames(), ", ")))
		}
	}
	// The rules of the protected core come before all others, so that verdicts show their reasons. They are cut
	// from rest here, and put in front below.
	rest := base
	rest.Deny = base.Deny[len(core.Deny):]
	mergedLists, mergeWarnings = f.MergeBeforeBase(rest)
	if len(errs) > 0 {
		mergeWarnings = nil // the amended rule may be in the preset whose name is misspelled
	}
	mergeWarnings.Add(duplicateNameWarnings(f, base).Err())
	mergedLists.Deny = append(core.Deny[:len(core.Deny):len(core.Deny)], mergedLists.Deny...)
	return mergedLists, mergeWarnings, errs.Err()
}

// duplicateNameWarnings returns a warning for each rule that has the name of a rule of the preset: both apply, but verdicts
// refer to rules by name.
func duplicateNameWarnings(f *rulefile.File, base rulefile.PolicyRuleLists) (out yamlfile.Errors) {
	taken := map[string]bool{}
	for _, l := range [][]rulefile.Rule{base.Deny, base.Verify, base.Allow} {
		for i := range l {
			taken[l[i].Name] = true
		}
	}
	for _, l := range [][]rulefile.Rule{f.Deny, f.Verify, f.Allow} {
		for i := range l {
			if r := &l[i]; taken[r.Name] && !r.OnlyAddsExceptionsToPreset {
				out.Add(r.Pos.Errorf("the preset already has a rule %s, and both apply; choose another name or, to add exceptions to that rule, write only \"name\" and \"except\"", yamlfile.QuoteForMessage(r.Name)))
			}
		}
	}
	return out
}

// addCanonicalActionTypes adds shield's own names to the types of a rule, because actions have these names when rules
// match them: "Bash" is execute_command. The given name is kept for a different tool with that name.
func addCanonicalActionTypes(r *rulefile.Rule) {
	r.ActionTypesAndEffectKinds = withCanonicalActionTypes(r.ActionTypesAndEffectKinds)
	r.Session.EarlierActionTypesOrKinds = withCanonicalActionTypes(r.Session.EarlierActionTypesOrKinds)
	for i := range r.Except {
		if types := withCanonicalActionTypes(r.Except[i].ActionTypesAndEffectKinds); len(types) > len(r.Except[i].ActionTypesAndEffectKinds) {
			r.Except = slices.Clone(r.Except)
			r.Except[i].ActionTypesAndEffectKinds = types
		}
	}
}

func withCanonicalActionTypes(types []string) []string {
	out := types
	for _, t := range types {
		if name := resolveActionTypeAlias(t); name != t && !slices.Contains(out, name) {
			out = append(slices.Clip(out), name)
		}
	}
	return out
}

// resolveActionTypeAlias returns shield's name for an action type or a kind of effect, or
// name itself if it is neither.
func resolveActionTypeAlias(name string) string {
	if slices.Contains(effect.Kinds(), effect.Kind(name)) {
		return name
	}
	return cmp.Or(action.CanonicalType(name), name)
}

// criterionSyntaxChecks returns the functions with which package rulefile checks globs, hosts, jq conditions and
// effect properties. vars are the folders of glob variables.
func criterionSyntaxChecks(vars map[string][]string) rulefile.CriterionSyntaxChecks {
	return rulefile.CriterionSyntaxChecks{
		Glob: func(glob string) error {
			_, err := effect.NewGlobs([]string{glob}, vars)
			return err
		},
		Host: func(pattern string) error {
			_, err := effect.ParseHostPattern(pattern)
			return err
		},
		JQ: func(expr string) error {
			_, err := compileJQCondition(expr)
			return err
		},
		EffectProperty: checkEffectPropertyValue,
	}
}
