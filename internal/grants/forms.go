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
	objectPathPattern                                                          *regexp.Regexp
	requiredFileContentFinder                                                  *prefilter.Finder // finds text by which a file of this form is recognized; nil if the file's name is enough
	securitySettingConditions, objectApplicabilityConditions, exceptConditions []condition
	applicabilityAndSettingConditions                                          []condition // objectApplicabilityConditions and securitySettingConditions together
	permissionScopeKeyPaths                                                    []keyPath
	requiredKeyNameSets                                                        [][]string // lists of names in lower case: a file in which the form can match contains a name of each list
}

// A condition requires that one of some keys has a value that matches a pattern.
type condition struct {
	keyPaths       []keyPath
	valuePattern   *regexp.Regexp
	matchesAnyText bool // any text may match
}

// A keyPath is a path of keys in an object. If includesBelow is set, it also stands for all paths
// below it.
type keyPath struct {
	path          string
	includesBelow bool
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
		f.compiledGrantRule = compiledGrantRule{PermissionChangeRule: e, objectPathPattern: regexp.MustCompile(e.ObjectPathPattern), securitySettingConditions: compileConditions(e.MatchConditions), objectApplicabilityConditions: compileConditions(e.ObjectConditions), exceptConditions: compileConditions(e.ExceptConditions), permissionScopeKeyPaths: parseKeyPaths(e.PipeSeparatedScopeKeys)}
		f.applicabilityAndSettingConditions = slices.Concat(f.objectApplicabilityConditions, f.securitySettingConditions)
		if at, err := prefilter.RequiredLiterals(e.ObjectPathPattern); err == nil && len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return strings.Contains(name, "/") }) {
			f.requiredKeyNameSets = append(f.requiredKeyNameSets, at)
		}
		for _, c := range f.securitySettingConditions {
			var last []string
			for _, k := range c.keyPaths {
				last = append(last, strings.ToLower(path.Base(k.path)))
			}
			f.requiredKeyNameSets = append(f.requiredKeyNameSets, last)
		}
		if e.RequiredFileContentPattern != "" {
			f.requiredFileContentFinder = prefilter.NewFinder(e.RequiredFileContentPattern)
		}
	})
	return &f.compiledGrantRule
}

func compileConditions(texts []string) (out []condition) {
	for _, text := range texts {
		keys, value, _ := strings.Cut(text, " ")
		matches := regexp.MustCompile("(?is)^(?:" + value + ")$")
		out = append(out, condition{parseKeyPaths(keys), matches, matches.MatchString("") || matches.MatchString("x y")})
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
