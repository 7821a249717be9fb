package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// effectPropertyCriteria are the criteria of a rule on properties of an effect other than kind, path and host. All must hold.
type effectPropertyCriteria []effectPropertyCriterion

type effectPropertyCriterion struct {
	name                          string
	allowedValues, excludedValues []string
	argRegexpCriterion            *regexpCriterion // regular expressions for "args"; with them, allowedValues and excludedValues are not used
}

func compileEffectPropertyCriteria(list []rulefile.EffectPropertyCriterion) effectPropertyCriteria {
	var out effectPropertyCriteria
	for _, f := range list {
		c := effectPropertyCriterion{name: f.Name}
		if f.Name == "args" {
			c.argRegexpCriterion = &regexpCriterion{expressions: f.AcceptedOrExcludedValues}
		}
		for _, entry := range f.AcceptedOrExcludedValues {
			if other, without := strings.CutPrefix(entry, "!"); without {
				c.excludedValues = append(c.excludedValues, other)
			} else {
				c.allowedValues = append(c.allowedValues, entry)
			}
		}
		out = append(out, c)
	}
	return out
}

// match reports whether an effect of the case has all the properties.
func (fs effectPropertyCriteria) match(s *ruleSearch, e *effect.Effect) (bool, error) {
	for i := range fs {
		f := &fs[i]
		ok := false
		switch f.name {
		case "causes":
			ok = f.acceptsValue(e.CauseOrFirstHarm())
		case "classes":
			ok = f.acceptsValue(string(s.programClass(e)))
		case "programs":
			ok = f.acceptsValue(e.Program)
		case "verbs":
			ok = f.acceptsValue(e.RemoteOperationVerb)
		case "names":
			ok = e.Path != "" && !e.PathIsPattern && !e.Recursive && f.acceptsValue(strings.TrimSuffix(path.Base(e.Path), ".exe"))
		case "labels":
			ok = slices.ContainsFunc(e.DataLabels, func(l effect.TaintLabel) bool { return f.acceptsValue(string(l)) })
		case "args":
			res, err := f.argRegexpCriterion.compile()
			if err != nil {
				return false, err
			}
			lines := strings.Join(e.Args, "\n")
			for _, re := range res {
				ok = ok || re.MatchString(lines)
			}
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

func (f *effectPropertyCriterion) acceptsValue(value string) bool {
	return !slices.Contains(f.excludedValues, value) && (len(f.allowedValues) == 0 || slices.Contains(f.allowedValues, value))
}

// programClass returns the class of the program that causes an effect: the program of the last
// Execute effect up to and including e in the list of effects. If there is none, it returns the
// class of read-only programs.
func (s *ruleSearch) programClass(e *effect.Effect) effect.ProgramClass {
	class := effect.ReadOnly
	for i := range s.judgedCase.Effects {
		if x := &s.judgedCase.Effects[i]; x.Kind == effect.Execute {
			class = x.Class
		}
		if e == &s.judgedCase.Effects[i] {
			break
		}
	}
	return class
}

// checkEffectPropertyValue returns an error if no effect can have the given value of the named
// property.
func checkEffectPropertyValue(propertyName, value string) error {
	var known []string
	switch propertyName {
	case "causes":
		for _, c := range effect.Causes() {
			known = append(known, string(c))
		}
	case "labels":
		for _, l := range effect.Labels() {
			known = append(known, string(l))
		}
	case "classes":
		for _, c := range [...]effect.ProgramClass{effect.ReadOnly, effect.LocalWrite, effect.Network, effect.Destructive, effect.Privileged} {
			known = append(known, string(c))
		}
	default:
		return nil
	}
	if !slices.Contains(known, value) {
		return fmt.Errorf("%[1]q is not a valid value of %[2]s; use a value that 'shield explain' shows%[3]s", value, propertyName, suggest.DidYouMeanSuffix(value, known))
	}
	return nil
}
