package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A yamlStringList is a YAML list of strings, or one string.
type yamlStringList []string

func (l *yamlStringList) UnmarshalYAML(unmarshal func(any) error) error {
	var many []string
	if err := unmarshal(&many); err == nil {
		*l = many
		return nil
	}
	var one string
	if err := unmarshal(&one); err != nil {
		return err
	}
	*l = yamlStringList{one}
	return nil
}

// ruleExamples are commands, or actions as mappings, which become JSON.
type ruleExamples []string

func (e *ruleExamples) UnmarshalYAML(unmarshal func(any) error) error {
	var items []any
	if err := unmarshal(&items); err != nil {
		return err
	}
	for _, item := range items {
		switch item := item.(type) {
		case string:
			*e = append(*e, item)
		case map[string]any:
			raw, err := exampleJSON(item)
			if err != nil {
				return err
			}
			*e = append(*e, raw)
		default:
			return fmt.Errorf("example %v is neither a command nor an action; quote it", item)
		}
	}
	return nil
}

// exampleJSON writes an action with its type first; that is how examples in JSON
// are distinguished from commands.
func exampleJSON(action map[string]any) (string, error) {
	typ, _ := action["type"].(string)
	if len(action) != 2 || typ == "" {
		return "", fmt.Errorf("example action %v needs type and payload only", action)
	}
	payload, err := json.Marshal(action["payload"], json.Deterministic(true))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`{"type":%q,"payload":%s}`, typ, payload), nil
}

type rule struct {
	ID                      string       `yaml:"id"`
	Name                    string       `yaml:"name"`
	FormerNames             []string     `yaml:"former_names"`
	Category                string       `yaml:"category"`
	Severity                string       `yaml:"severity"`
	Outcome                 string       `yaml:"outcome"`
	Platform                string       `yaml:"platform"`
	Description             string       `yaml:"description"`
	Advice                  string       `yaml:"advice"`
	ActionTypes             []string     `yaml:"types"`
	PayloadFields           []string     `yaml:"fields"`
	TextTransformationNames []string     `yaml:"views"`
	MatchCondition          string       `yaml:"needs"`
	Patterns                []string     `yaml:"patterns"`
	ExcludedTextPattern     string       `yaml:"except"`
	TriggerClauses          []clause     `yaml:"effects"`
	RequiredClauses         []clause     `yaml:"requires"`
	ForbiddenClauses        []clause     `yaml:"unless"`
	MatchingExamples        ruleExamples `yaml:"match"`
	NonMatchingExamples     ruleExamples `yaml:"pass"`
}

type clause struct {
	EffectKinds         yamlStringList `yaml:"kind"`
	Program             yamlStringList `yaml:"program"`
	ProgramClasses      yamlStringList `yaml:"class"`
	Args                string         `yaml:"args"`
	ExcludedArgsPattern string         `yaml:"not"`
	Path                yamlStringList `yaml:"path"`
	NotPath             yamlStringList `yaml:"not_path"`
	Host                yamlStringList `yaml:"host"`
	EffectCauses        yamlStringList `yaml:"cause"`
	Harm                yamlStringList `yaml:"harm"`
	Recursive           bool           `yaml:"recursive"`
	MustBeNonRecursive  bool           `yaml:"single"`
	Unrestorable        bool           `yaml:"lost"`
}

// loadRules reads and checks all rules and returns them in the order of their ids.
func loadRules(files []string) ([]rule, error) {
	var all []rule
	var errs []error
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var rules []rule
		if err := yaml.UnmarshalWithOptions(data, &rules, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("%s: %s", name, yaml.FormatError(err, false, true))
		}
		for i := range rules {
			if err := rules[i].validateFields(); err != nil {
				errs = append(errs, fmt.Errorf("%s: rule %s: %w", name, rules[i].ID, err))
			}
		}
		all = append(all, rules...)
	}
	slices.SortStableFunc(all, func(a, b rule) int { return cmp.Compare(a.ID, b.ID) })
	names := map[string]bool{}
	for i := range all {
		if i > 0 && all[i].ID == all[i-1].ID {
			errs = append(errs, fmt.Errorf("two rules have the id %s", all[i].ID))
		}
		for _, name := range append([]string{all[i].Name}, all[i].FormerNames...) {
			if names[name] {
				errs = append(errs, fmt.Errorf("two rules have or had the name %s", name))
			}
			names[name] = true
		}
	}
	return all, errors.Join(errs...)
}

var idPattern = regexp.MustCompile(`^(PI|PT|DE|SD|EE|SP|GEN|EM|MS|XP|UX|WIN)-\d{3}$`)

func (r *rule) validateFields() error {
	var errs []error
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	demand(idPattern.MatchString(r.ID), "id %q is not a group and three digits, such as XP-001", r.ID)
	demand(regexp.MustCompile(`^[a-z][a-z0-9_]+$`).MatchString(r.Name), "name %q is not lower case with underscores", r.Name)
	demand(r.Category != "" && r.Description != "", "category or description is missing")
	demand(slices.Contains([]string{"critical", "high", "medium", "low"}, r.Severity), "severity %q is unknown", r.Severity)
	demand(slices.Contains([]string{"block", "escalate", "always_block"}, r.Outcome), "outcome %q is unknown", r.Outcome)
	demand(slices.Contains([]string{"any", "unix", "macos", "windows"}, r.Platform), "platform %q is unknown", r.Platform)
	demand(slices.Contains([]string{"", "code", "reader", "request"}, r.MatchCondition), "needs %q is unknown", r.MatchCondition)
	demand(len(r.MatchingExamples) >= 3 && len(r.NonMatchingExamples) >= 3, "fewer than three match or pass examples")
	demand(len(r.Patterns)+len(r.TriggerClauses) > 0, "has neither patterns nor effects")
	demand(len(r.PayloadFields) == 0 || len(r.ActionTypes) > 0, "fields are only allowed together with types")
	for _, p := range r.Patterns {
		lits, err := prefilter.RequiredLiteralAlternatives(p)
		demand(err == nil, "pattern %q: %v", p, err)
		demand(lits != nil || r.MatchCondition != "" || len(r.PayloadFields) > 0,
			"pattern %q has no literal of at least three bytes that every match contains; add needs or fields", p)
	}
	if _, err := regexp.Compile(r.ExcludedTextPattern); err != nil {
		errs = append(errs, err)
	}
	for i := range r.TriggerClauses {
		demand(r.TriggerClauses[i].validateClause(true) == nil, "effects, entry %d: %v", i+1, r.TriggerClauses[i].validateClause(true))
	}
	for i := range r.RequiredClauses {
		demand(r.RequiredClauses[i].validateClause(false) == nil, "requires, entry %d: %v", i+1, r.RequiredClauses[i].validateClause(false))
	}
	for i := range r.ForbiddenClauses {
		demand(r.ForbiddenClauses[i].validateClause(false) == nil, "unless, entry %d: %v", i+1, r.ForbiddenClauses[i].validateClause(false))
	}
	return errors.Join(errs...)
}

// validateClause checks a clause. A clause that selects a rule by execute effects needs a program, a harm or
// arguments with literals, otherwise it would be compared with every command.
func (c *clause) validateClause(isTriggerClause bool) error {
	for _, expr := range []string{c.Args, c.ExcludedArgsPattern} {
		if _, err := regexp.Compile(expr); err != nil {
			return err
		}
	}
	for _, p := range c.Program {
		if p != strings.ToLower(p) || strings.HasSuffix(p, ".exe") {
			return fmt.Errorf("program %q must be in lower case, without .exe", p)
		}
	}
	if form := c.exampleReplaceableByCommandTable(); form != "" && isTriggerClause {
		return fmt.Errorf("%q is only words and options: name the harm in the program's entry, and match {harm: NAME}", form)
	}
	for _, glob := range slices.Concat(c.Path, c.NotPath) {
		name, listed := strings.CutPrefix(glob, "@")
		if _, known := knowledge.GlobsOfPathList(name); listed && !known {
			return fmt.Errorf("no list %q; there are %q", glob, knowledge.PathListNames())
		}
	}
	for _, host := range c.Host {
		name, listed := strings.CutPrefix(host, "@")
		if _, known := knowledge.Hosts(name); listed && !known {
			return fmt.Errorf("no list of hosts %q; there are %q", host, knowledge.HostListNames())
		}
	}
	for _, cause := range c.EffectCauses {
		if !slices.Contains(effect.Causes(), effect.EffectCause(cause)) {
			return fmt.Errorf("cause %q is not one of %q", cause, effect.Causes())
		}
	}
	for _, harm := range c.Harm {
		if !slices.Contains(effect.Harms(), effect.Harm(harm)) {
			return fmt.Errorf("harm %q is not one of %q", harm, effect.Harms())
		}
	}
	for i := range c.ProgramClasses {
		if c.ProgramClasses[i] == "unknown" {
			c.ProgramClasses[i] = ""
		}
	}
	execute := len(c.EffectKinds) == 0 || slices.Equal(c.EffectKinds, yamlStringList{"execute"})
	if lits, _ := prefilter.RequiredLiteralAlternatives(c.Args); isTriggerClause && execute && len(c.Program)+len(c.Harm) == 0 && lits == nil {
		return errors.New("has neither a program, a harm nor arguments with a literal of at least three bytes")
	}
	if !execute && (len(c.Program)+len(c.Harm) > 0 || c.Args != "" || c.ExcludedArgsPattern != "" || len(c.ProgramClasses) > 0) {
		return errors.New("program, harm, class and arguments are only allowed for effects of kind execute")
	}
	return nil
}
