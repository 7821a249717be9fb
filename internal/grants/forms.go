package grants

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A compiledGrantRule is an entry of [knowledge.GrantForms] with its expressions compiled.
type compiledGrantRule struct {
	*knowledge.PermissionChangeRule
	configObjectKeyPathPattern                                               *regexp.Regexp
	requiredFileContentFinder                                                *prefilter.RegexpFinder // text that marks a file as one of this rule's; nil if the file name suffices
	matchConditions, objectApplicabilityConditions, matchExceptionConditions []keyValueCondition
	objectApplicabilityAndMatchConditions                                    []keyValueCondition // objectApplicabilityConditions and matchConditions together
	permissionScopeKeyPaths                                                  []keyPath
	requiredKeyNameAlternatives                                              [][]string // lower-case key names; a file that the rule matches contains a name from each inner list
}

// A keyValueCondition requires that at least one of several keys has a value that matches a
// pattern.
type keyValueCondition struct {
	keyPaths          []keyPath
	valuePattern      *regexp.Regexp
	matchesEveryValue bool // any text may match
}

// A keyPath is a path of keys in an object. If includesDescendants is set, it also stands for all paths
// below it.
type keyPath struct {
	path                string
	includesDescendants bool
}

var compiledGrantRules [len(knowledge.GrantForms)]struct {
	once sync.Once
	compiledGrantRule
}

// grantRuleAt returns an entry, which is compiled when it is first asked for.
func grantRuleAt(i int) *compiledGrantRule {
	f := &compiledGrantRules[i]
	f.once.Do(func() {
		e := &knowledge.GrantForms[i]
		f.compiledGrantRule = compiledGrantRule{PermissionChangeRule: e, configObjectKeyPathPattern: regexp.MustCompile(e.ObjectPathPattern), matchConditions: compileConditions(e.MatchConditions), objectApplicabilityConditions: compileConditions(e.ObjectSelectionConditions), matchExceptionConditions: compileConditions(e.ExceptConditions), permissionScopeKeyPaths: parseKeyPaths(e.PipeSeparatedScopeKeys)}
		f.objectApplicabilityAndMatchConditions = slices.Concat(f.objectApplicabilityConditions, f.matchConditions)
		if at, err := prefilter.RequiredLiteralAlternatives(e.ObjectPathPattern); err == nil && len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return strings.Contains(name, "/") }) {
			f.requiredKeyNameAlternatives = append(f.requiredKeyNameAlternatives, at)
		}
		for _, c := range f.matchConditions {
			var last []string
			for _, k := range c.keyPaths {
				last = append(last, strings.ToLower(path.Base(k.path)))
			}
			f.requiredKeyNameAlternatives = append(f.requiredKeyNameAlternatives, last)
		}
		if e.RequiredFileContentPattern != "" {
			f.requiredFileContentFinder = prefilter.NewRegexpFinder(e.RequiredFileContentPattern)
		}
	})
	return &f.compiledGrantRule
}

func compileConditions(texts []string) (out []keyValueCondition) {
	for _, text := range texts {
		keys, value, _ := strings.Cut(text, " ")
		matches := regexp.MustCompile("(?is)^(?:" + value + ")$")
		out = append(out, keyValueCondition{parseKeyPaths(keys), matches, matches.MatchString("") || matches.MatchString("x y")})
	}
	return out
}

func parseKeyPaths(text string) (out []keyPath) {
	if text == "" {
		return nil
	}
	for k := range strings.SplitSeq(text, "|") {
		folder, deep := strings.CutSuffix(k, "/*")
		out = append(out, keyPath{folder, deep})
	}
	return out
}
