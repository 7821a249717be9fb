// Package grants compares two versions of a security-relevant file and reports permissions that the
// new one adds and checks that it removes: CI workflows, container images, compose files, Kubernetes
// manifests, Terraform, cloud policies, editor settings, code owners. Files are parsed into objects,
// which pkg/knowledge/grants.yaml evaluates.
package grants

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/sorted"
)

// A SecurityWeakening describes how a change of a file adds a permission or removes a security check.
type SecurityWeakening struct {
	HarmName    string // see effect.Harm
	Description string // what the file now allows, or no longer checks
}

// Limits of a file.
const (
	MaxFileBytes          = 128 << 10
	maxKeyPathBytes       = 4096   // bytes of the key path of a value
	maxConfigFileObjects  = 20_000 // including repetitions by aliases
	maxObjectNesting      = 64
	maxSecurityWeakenings = 8
)

// ErrLimit is the error for a file that is too large or too deeply nested.
var ErrLimit = errors.New("the permission or CI file is too large or nested too deeply to parse; split the file")

// FindSecurityWeakenings returns the permissions that a file's new text adds, and the checks that it
// removes. fileExisted says that the file existed; grantRuleIndexes are the indexes of the
// knowledge.GrantForms for this file name. An error other than [ErrLimit] means that the new text
// could not be parsed.
func FindSecurityWeakenings(file, oldText, newText string, fileExisted bool, grantRuleIndexes []int) ([]SecurityWeakening, error) {
	if len(newText) > MaxFileBytes || len(oldText) > MaxFileBytes {
		return nil, ErrLimit
	}
	if isCodeOwners(file) {
		return findCodeOwnerWeakenings(oldText, newText), nil
	}
	if strings.TrimSpace(oldText) == "" && !IsCIOrCodeOwnersFile(file) && !TextMatchesGrantRule(grantRuleIndexes, newText) && !mayContainGrantKeys(grantRuleIndexes, newText, fileExisted) {
		return nil, nil // no rule can apply; parsing is not needed, since a new file that is invalid has no effect
	}
	after, err := parseConfigFileObjects(file, newText)
	if err != nil {
		return nil, err
	}
	before, err := parseConfigFileObjects(file, oldText)
	if errors.Is(err, ErrLimit) {
		return nil, err
	}
	if err != nil {
		before, fileExisted = nil, false // the old text is unknown
	}
	var out []SecurityWeakening
	for _, i := range grantRuleIndexes {
		f := grantRuleAt(i)
		if f.OnlyExistingFiles && !fileExisted || len(out) == maxSecurityWeakenings || len(before) == 0 && f.PermissionChangeKind != "grant" { // without an old version there are no checks to lose
			continue
		}
		if (f.PermissionChangeKind == "check" && isCICheckCommandRemoved(f, before, after)) || f.PermissionChangeKind != "check" && isWeakerAfter(f, before, after) {
			out = append(out, SecurityWeakening{f.HarmName, f.Description})
		}
	}
	return out, nil
}

// IsCIOrCodeOwnersFile reports whether a file's only purpose is checks or permissions, so that one that cannot
// be parsed is suspicious.
func IsCIOrCodeOwnersFile(file string) bool {
	return isCodeOwners(file) || strings.Contains(file, "/workflows/") || strings.HasSuffix(file, ".gitlab-ci.yml") || strings.Contains(file, "/.circleci/")
}

// TextMatchesGrantRule reports whether one of the grant rules can apply to a text. It always can if
// that rule selects files by their names only.
func TextMatchesGrantRule(grantRuleIndexes []int, text string) bool {
	for _, i := range grantRuleIndexes {
		f := grantRuleAt(i)
		if f.requiredFileContentFinder == nil {
			return true
		}
		if found, _ := f.requiredFileContentFinder.Match(text); found {
			return true
		}
	}
	return false
}

// mayContainGrantKeys reports whether a text contains the keys that a grant entry asks for. Text with escapes
// always may.
func mayContainGrantKeys(grantRuleIndexes []int, text string, fileExisted bool) bool {
	if strings.IndexByte(text, '\\') >= 0 {
		return true
	}
	text = strings.ToLower(text)
	return slices.ContainsFunc(grantRuleIndexes, func(i int) bool {
		f := grantRuleAt(i)
		return f.PermissionChangeKind == "grant" && (!f.OnlyExistingFiles || fileExisted) && !slices.ContainsFunc(f.requiredKeyNameAlternatives, func(any []string) bool {
			return !slices.ContainsFunc(any, func(name string) bool { return strings.Contains(text, name) })
		})
	})
}

// ChangeConcernsGrantRule reports whether the lines that a change removes or adds concern a grant rule in
// knowledge.GrantForms. It is for files that cannot be read or parsed. Both texts consist of whole lines.
func ChangeConcernsGrantRule(grantRuleIndexes []int, removedLines, addedLines string) bool {
	for _, i := range grantRuleIndexes {
		f := grantRuleAt(i)
		switch {
		case f.PermissionChangeKind == "check":
			if anyTrimmedLineMatches(removedLines, f.configObjectKeyPathPattern.MatchString) {
				return true
			}
		case f.PermissionChangeKind == "grant" && anyTrimmedLineMatches(addedLines, func(line string) bool { return lineMatchesGrantRule(f, line) }), f.PermissionChangeKind != "grant" && anyTrimmedLineMatches(removedLines, func(line string) bool { return lineMatchesGrantRule(f, line) }):
			return true
		}
	}
	return false
}

// keyValueLinePattern splits a line of YAML, JSON, Terraform or a Dockerfile into key and value.
var keyValueLinePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:-\s+)?["']?([\w./-]+)["']?\s*(?:[:=]|\s)\s*(.*?)[,\s]*$`)
})

// lineMatchesGrantRule reports whether a line matches an entry, as far as a single line shows.
func lineMatchesGrantRule(f *compiledGrantRule, line string) bool {
	item := strings.Trim(strings.TrimPrefix(line, "- "), ` "',`)
	key, value := "", item
	if m := keyValueLinePattern().FindStringSubmatch(line); m != nil {
		key, value = m[1], strings.Trim(m[2], ` "'`)
	}
	conditions := f.matchConditions
	if f.PermissionChangeKind == "grant" {
		conditions = f.objectApplicabilityAndMatchConditions
	}
	for i := range conditions {
		c := &conditions[i]
		for _, k := range c.keyPaths {
			if strings.EqualFold(path.Base(k.path), key) && (c.valuePattern.MatchString(value) || strings.ContainsAny(value, "[{$")) {
				return true
			}
		}
		if !c.matchesEveryValue && (key == "" || strings.HasPrefix(line, "- ")) && c.valuePattern.MatchString(item) {
			return true // the line is an item of a list, whose key is on an earlier line
		}
	}
	return false
}

func anyTrimmedLineMatches(text string, lineMatcher func(string) bool) bool {
	for line := range strings.Lines(text) {
		if lineMatcher(strings.TrimSpace(line)) {
			return true
		}
	}
	return false
}

// A configFileObject is a mapping in a configuration file, with the texts in it by key path. The
// elements of a key path are separated by slashes.
type configFileObject struct {
	keyPath         string
	fields          map[string][]string
	cannotFailCIRun bool // the configuration file says that CI skips this object, such as a job, or ignores its failure
}

// isWeakerAfter reports whether, under the entry f of grants.yaml, the objects after a change grant more
// permissions than before, or fewer of them contain a check. For an entry of the kind guard, more of them must
// also lack the check.
func isWeakerAfter(f *compiledGrantRule, before, after []configFileObject) bool {
	of1, has1, now := countMatchingObjectsAndPermissions(f, after)
	if f.PermissionChangeKind == "grant" && has1 == 0 {
		return false
	}
	of0, has0, old := countMatchingObjectsAndPermissions(f, before)
	switch f.PermissionChangeKind {
	case "grant":
		for right, n := range now {
			if n > old[right] {
				return true
			}
		}
		return false
	case "gone":
		return has1 < has0
	}
	return has1 < has0 && of1-has1 > of0-has0
}

// countMatchingObjectsAndPermissions returns how many objects the rule f applies to, how many of these also meet
// its match conditions and none of its exceptions and, for rules of the kind grant, how many of the matching
// objects grant each permission.
func countMatchingObjectsAndPermissions(f *compiledGrantRule, objects []configFileObject) (applicableCount, matchingCount int, grantCountByPermission map[string]int) {
	for i := range objects {
		o := &objects[i]
		if !f.configObjectKeyPathPattern.MatchString(o.keyPath) || !o.meetsConditions(f.objectApplicabilityConditions, true) {
			continue
		}
		if applicableCount++; o.meetsConditions(f.matchConditions, true) && (len(f.matchExceptionConditions) == 0 || !o.meetsConditions(f.matchExceptionConditions, false)) {
			if matchingCount++; f.PermissionChangeKind == "grant" {
				if grantCountByPermission == nil {
					grantCountByPermission = map[string]int{}
				}
				o.countGrantedPermissions(f, grantCountByPermission)
			}
		}
	}
	return applicableCount, matchingCount, grantCountByPermission
}

// countGrantedPermissions adds to out what an object grants by the rule f, 1 for each different permission: ""
// for the object itself, each KEY=VALUE that meets a condition, and each value that defines the scope.
func (o *configFileObject) countGrantedPermissions(f *compiledGrantRule, out map[string]int) {
	seen := map[string]bool{"": true}
	for _, v := range o.valuesAtKeys(f.permissionScopeKeyPaths) {
		seen["with "+v] = true
	}
	for i := range f.objectApplicabilityAndMatchConditions {
		for _, v := range o.valuesAtKeys(f.objectApplicabilityAndMatchConditions[i].keyPaths) {
			if f.objectApplicabilityAndMatchConditions[i].valuePattern.MatchString(v[strings.IndexByte(v, '=')+1:]) {
				seen[v] = true
			}
		}
	}
	for right := range seen {
		out[right]++
	}
}

// valuesAtKeys returns the texts behind keys, as KEY=TEXT.
func (o *configFileObject) valuesAtKeys(keys []keyPath) (out []string) {
	for _, k := range keys {
		for name, values := range o.fields {
			if name != k.path && (!k.includesDescendants || !isKeyPathBelow(name, k.path)) {
				continue
			}
			for _, v := range values {
				out = append(out, name+"="+v)
			}
		}
	}
	return out
}

// meetsConditions reports whether an object satisfies all, or any, of some conditions.
func (o *configFileObject) meetsConditions(conditions []keyValueCondition, all bool) bool {
	for i := range conditions {
		if o.meetsCondition(&conditions[i]) != all {
			return !all
		}
	}
	return all
}

func (o *configFileObject) meetsCondition(c *keyValueCondition) bool {
	for _, k := range c.keyPaths {
		if slices.ContainsFunc(o.fields[k.path], c.valuePattern.MatchString) {
			return true
		}
		if !k.includesDescendants {
			continue
		}
		for name, values := range o.fields {
			if isKeyPathBelow(name, k.path) && slices.ContainsFunc(values, c.valuePattern.MatchString) {
				return true
			}
		}
	}
	return false
}

// isKeyPathBelow reports whether a path of keys is below another.
func isKeyPathBelow(childPath, parentPath string) bool {
	return len(childPath) > len(parentPath) && childPath[len(parentPath)] == '/' && childPath[:len(parentPath)] == parentPath
}

// isCICheckCommandRemoved reports whether a check that some step did is no longer done by any step.
func isCICheckCommandRemoved(f *compiledGrantRule, before, after []configFileObject) bool {
	return hasCICheckCommand(f, before) && !hasCICheckCommand(f, after)
}

// alwaysSucceedingCommandPattern matches commands that check nothing, or whose failure is ignored.
var alwaysSucceedingCommandPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:echo\b[^|&;]*|true|:|exit 0|printf\b[^|&;]*|#.*)?\s*$|\|\|\s*(?:true|:|exit 0|echo\b)|--passWithNoTests\b|--exit-zero\b|;\s*(?:true|exit 0)\s*$`)
})

func hasCICheckCommand(f *compiledGrantRule, objects []configFileObject) bool {
	what := f.configObjectKeyPathPattern
	for i := range objects {
		o := &objects[i]
		if o.cannotFailCIRun {
			continue
		}
		for key, values := range o.fields {
			script := o.keyPath == "scripts" && !strings.Contains(key, "/")
			if !script && !slices.Contains(commandKeys, key) {
				continue
			}
			for _, v := range values {
				for line := range strings.Lines(v) {
					if alwaysSucceedingCommandPattern().MatchString(line) {
						continue
					}
					if what.MatchString(line) || script && what.MatchString(key) {
						return true
					}
				}
			}
		}
	}
	return false
}

// commandKeys are the keys of commands and actions in CI files.
var commandKeys = []string{"run", "script", "before_script", "after_script", "command", "commands", "uses", "bash", "sh", "pwsh", "args", "id", "orb", "template", "task", "image"}

// isCodeOwners reports whether a file is a CODEOWNERS file.
func isCodeOwners(file string) bool { return path.Base(file) == "CODEOWNERS" }

// findCodeOwnerWeakenings returns the code owners that a change of a CODEOWNERS file removes from path patterns, and the
// new patterns without an owner.
func findCodeOwnerWeakenings(old, text string) (out []SecurityWeakening) {
	now, before := parseCodeOwners(text), parseCodeOwners(old)
	for pattern, who := range before {
		for _, owner := range who {
			if !slices.Contains(now[pattern], owner) && len(out) < maxSecurityWeakenings {
				out = append(out, SecurityWeakening{"weakens", "removes " + owner + " as a code owner of " + pattern})
			}
		}
	}
	for pattern, who := range now {
		if _, was := before[pattern]; len(who) == 0 && !was && old != "" && len(out) < maxSecurityWeakenings {
			out = append(out, SecurityWeakening{"weakens", "leaves no code owner for " + pattern})
		}
	}
	sorted.SortStableBy(out, func(a, b SecurityWeakening) int { return strings.Compare(a.Description, b.Description) })
	return out
}

func parseCodeOwners(text string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 && words[0][0] != '[' && len(out) < maxConfigFileObjects {
			out[words[0]] = words[1:]
		}
	}
	return out
}
