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

// A Weakening describes how a change of a file adds a permission or removes a security check.
type Weakening struct {
	Harm        string // see effect.Harm
	Description string // what the file now allows, or no longer checks
}

// Limits of a file.
const (
	MaxBytes        = 128 << 10
	maxKeyPathBytes = 4096   // bytes of the key path of a value
	maxObjects      = 20_000 // including repetitions by aliases
	maxDepth        = 64
	maxWeakenings   = 8
)

// ErrLimit is the error for a file that is too large or too deeply nested.
var ErrLimit = errors.New("the permission or CI file is too large or nested too deeply to parse; split the file")

// FindWeakenings returns the permissions that a file's new text adds, and the checks that it removes. was says
// that the file existed; forms are the indexes of the knowledge.GrantForms for this file name. An
// error other than [ErrLimit] means that the new text could not be parsed.
func FindWeakenings(file, old, text string, was bool, forms []int) ([]Weakening, error) {
	if len(text) > MaxBytes || len(old) > MaxBytes {
		return nil, ErrLimit
	}
	if isCodeOwners(file) {
		return removedOwners(old, text), nil
	}
	if strings.TrimSpace(old) == "" && !IsSecurityOnlyFile(file) && !MatchesForm(forms, text) && !mayGrant(forms, text, was) {
		return nil, nil // an invalid file has no effect, so it hides nothing
	}
	after, err := parseObjects(file, text)
	if err != nil {
		return nil, err
	}
	before, err := parseObjects(file, old)
	if errors.Is(err, ErrLimit) {
		return nil, err
	}
	if err != nil {
		before, was = nil, false // the old text is unknown
	}
	var out []Weakening
	for _, i := range forms {
		f := formAt(i)
		if f.Old && !was || len(out) == maxWeakenings || len(before) == 0 && f.Kind != "grant" { // without an old version there are no checks to lose
			continue
		}
		if (f.Kind == "check" && isCheckRemoved(f, before, after)) || f.Kind != "check" && isWeakerAfter(f, before, after) {
			out = append(out, Weakening{f.Harm, f.Says})
		}
	}
	return out, nil
}

// IsSecurityOnlyFile reports whether a file's only purpose is checks or permissions, so that one that cannot
// be parsed is suspicious.
func IsSecurityOnlyFile(file string) bool {
	return isCodeOwners(file) || strings.Contains(file, "/workflows/") || strings.HasSuffix(file, ".gitlab-ci.yml") || strings.Contains(file, "/.circleci/")
}

// MatchesForm reports whether a text can be a file of the given forms, if the file name does not
// decide it.
func MatchesForm(forms []int, text string) bool {
	for _, i := range forms {
		f := formAt(i)
		if f.fileMarkFinder == nil {
			return true
		}
		if found, _ := f.fileMarkFinder.Match(text); found {
			return true
		}
	}
	return false
}

// mayGrant reports whether a text contains the keys that a grant entry asks for. Text with escapes
// always may.
func mayGrant(forms []int, text string, was bool) bool {
	if strings.IndexByte(text, '\\') >= 0 {
		return true
	}
	text = strings.ToLower(text)
	return slices.ContainsFunc(forms, func(i int) bool {
		f := formAt(i)
		return f.Kind == "grant" && (!f.Old || was) && !slices.ContainsFunc(f.requiredNames, func(any []string) bool {
			return !slices.ContainsFunc(any, func(name string) bool { return strings.Contains(text, name) })
		})
	})
}

// ChangeConcernsForm reports whether the removed or added lines of an unparsable file concern an entry. Both
// texts consist of whole lines.
func ChangeConcernsForm(forms []int, gone, come string) bool {
	for _, i := range forms {
		f := formAt(i)
		switch {
		case f.Kind == "check":
			if lineMatches(gone, f.objectPathPattern.MatchString) {
				return true
			}
		case f.Kind == "grant" && lineMatches(come, func(line string) bool { return lineMatchesForm(f, line) }), f.Kind != "grant" && lineMatches(gone, func(line string) bool { return lineMatchesForm(f, line) }):
			return true
		}
	}
	return false
}

// keyValueLine splits a line of YAML, JSON, Terraform or a Dockerfile into key and value.
var keyValueLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:-\s+)?["']?([\w./-]+)["']?\s*(?:[:=]|\s)\s*(.*?)[,\s]*$`)
})

// lineMatchesForm reports whether a line matches an entry, as far as a single line shows.
func lineMatchesForm(f *compiledForm, line string) bool {
	item := strings.Trim(strings.TrimPrefix(line, "- "), ` "',`)
	key, value := "", item
	if m := keyValueLine().FindStringSubmatch(line); m != nil {
		key, value = m[1], strings.Trim(m[2], ` "'`)
	}
	conditions := f.matchConditions
	if f.Kind == "grant" {
		conditions = f.allConditions
	}
	for i := range conditions {
		c := &conditions[i]
		for _, k := range c.keyPaths {
			if strings.EqualFold(path.Base(k.path), key) && (c.valuePattern.MatchString(value) || strings.ContainsAny(value, "[{$")) {
				return true
			}
		}
		if !c.matchesAnyText && (key == "" || strings.HasPrefix(line, "- ")) && c.valuePattern.MatchString(item) {
			return true // an item of a list
		}
	}
	return false
}

func lineMatches(text string, matches func(string) bool) bool {
	for line := range strings.Lines(text) {
		if matches(strings.TrimSpace(line)) {
			return true
		}
	}
	return false
}

// An object is a mapping in a file, with the texts in it by key path. Path elements are separated by
// slashes.
type object struct {
	keyPath         string
	fields          map[string][]string
	failuresIgnored bool // failures in it are ignored
}

// isWeakerAfter reports whether, under the entry f of grants.yaml, the objects after a change grant
// more permissions than before, or fewer of them contain a check.
func isWeakerAfter(f *compiledForm, before, after []object) bool {
	of1, has1, now := countMatches(f, after)
	if f.Kind == "grant" && has1 == 0 {
		return false
	}
	of0, has0, old := countMatches(f, before)
	switch f.Kind {
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

// countMatches returns how many objects an entry applies to, how many of them match it, and the permissions
// that these give: each matched value with its scope.
func countMatches(f *compiledForm, objects []object) (of, has int, rights map[string]int) {
	for i := range objects {
		o := &objects[i]
		if !f.objectPathPattern.MatchString(o.keyPath) || !o.meetsConditions(f.objectConditions, true) {
			continue
		}
		if of++; o.meetsConditions(f.matchConditions, true) && (len(f.exceptConditions) == 0 || !o.meetsConditions(f.exceptConditions, false)) {
			if has++; f.Kind == "grant" {
				if rights == nil {
					rights = map[string]int{}
				}
				o.countRights(f, rights)
			}
		}
	}
	return of, has, rights
}

// countRights counts the values of an object that an entry asks for, with the values that define their
// scope.
func (o *object) countRights(f *compiledForm, out map[string]int) {
	seen := map[string]bool{"": true}
	for _, v := range o.valuesAtKeys(f.scopeKeys) {
		seen["with "+v] = true
	}
	for i := range f.allConditions {
		for _, v := range o.valuesAtKeys(f.allConditions[i].keyPaths) {
			if f.allConditions[i].valuePattern.MatchString(v[strings.IndexByte(v, '=')+1:]) {
				seen[v] = true
			}
		}
	}
	for right := range seen {
		out[right]++
	}
}

// valuesAtKeys returns the texts behind keys, as KEY=TEXT.
func (o *object) valuesAtKeys(keys []keyPath) (out []string) {
	for _, k := range keys {
		for name, values := range o.fields {
			if name != k.path && (!k.includesBelow || !isKeyBelow(name, k.path)) {
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
func (o *object) meetsConditions(conditions []condition, all bool) bool {
	for i := range conditions {
		if o.meetsCondition(&conditions[i]) != all {
			return !all
		}
	}
	return all
}

func (o *object) meetsCondition(c *condition) bool {
	for _, k := range c.keyPaths {
		if slices.ContainsFunc(o.fields[k.path], c.valuePattern.MatchString) {
			return true
		}
		if !k.includesBelow {
			continue
		}
		for name, values := range o.fields {
			if isKeyBelow(name, k.path) && slices.ContainsFunc(values, c.valuePattern.MatchString) {
				return true
			}
		}
	}
	return false
}

// isKeyBelow reports whether a path of keys is below another.
func isKeyBelow(name, folder string) bool {
	return len(name) > len(folder) && name[len(folder)] == '/' && name[:len(folder)] == folder
}

// isCheckRemoved reports whether a check that some step did is no longer done by any step.
func isCheckRemoved(f *compiledForm, before, after []object) bool {
	return runsCheckCommand(f, before) && !runsCheckCommand(f, after)
}

// idleCommand matches commands that check nothing, or whose failure is ignored.
var idleCommand = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:echo\b[^|&;]*|true|:|exit 0|printf\b[^|&;]*|#.*)?\s*$|\|\|\s*(?:true|:|exit 0|echo\b)|--passWithNoTests\b|--exit-zero\b|;\s*(?:true|exit 0)\s*$`)
})

func runsCheckCommand(f *compiledForm, objects []object) bool {
	what := f.objectPathPattern
	for i := range objects {
		o := &objects[i]
		if o.failuresIgnored {
			continue
		}
		for key, values := range o.fields {
			script := o.keyPath == "scripts" && !strings.Contains(key, "/")
			if !script && !slices.Contains(commandKeys, key) {
				continue
			}
			for _, v := range values {
				for line := range strings.Lines(v) {
					if idleCommand().MatchString(line) {
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

// removedOwners returns the owners that were removed from paths.
func removedOwners(old, text string) (out []Weakening) {
	now, before := parseCodeOwners(text), parseCodeOwners(old)
	for pattern, who := range before {
		for _, owner := range who {
			if !slices.Contains(now[pattern], owner) && len(out) < maxWeakenings {
				out = append(out, Weakening{"weakens", "removes " + owner + " as a code owner of " + pattern})
			}
		}
	}
	for pattern, who := range now {
		if _, was := before[pattern]; len(who) == 0 && !was && old != "" && len(out) < maxWeakenings {
			out = append(out, Weakening{"weakens", "leaves no code owner for " + pattern})
		}
	}
	sorted.By(out, func(a, b Weakening) int { return strings.Compare(a.Description, b.Description) })
	return out
}

func parseCodeOwners(text string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 && words[0][0] != '[' && len(out) < maxObjects {
			out[words[0]] = words[1:]
		}
	}
	return out
}
