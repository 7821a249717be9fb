package policy

import (
	"regexp"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// payloadContentFieldNames are the payload fields whose texts are matched with the criterion "content" of a
// rule.
var payloadContentFieldNames = [...]string{"content", "body", "text"}

// A regexpCriterion matches regular expressions, which it compiles on first use.
type regexpCriterion struct {
	expressions []string
	compileOnce sync.Once
	regexps     []*regexp.Regexp
	err         error
}

func (t *regexpCriterion) compile() ([]*regexp.Regexp, error) {
	t.compileOnce.Do(func() {
		for _, expr := range t.expressions {
			re, err := regexp.Compile(expr)
			if err != nil {
				t.err = err
				return
			}
			t.regexps = append(t.regexps, re)
		}
	})
	return t.regexps, t.err
}

// matchesAnyTextVariant reports whether an expression matches somewhere in a text variant that
// isAccepted accepts. If isAccepted is nil, all variants are accepted.
func (t *regexpCriterion) matchesAnyTextVariant(variants []analysis.PayloadTextVariant, isAccepted func(*analysis.PayloadTextVariant) bool) (bool, error) {
	res, err := t.compile()
	if err != nil {
		return false, err
	}
	for i := range variants {
		if isAccepted != nil && !isAccepted(&variants[i]) {
			continue
		}
		for _, re := range res {
			if re.MatchString(variants[i].Text) {
				return true, nil
			}
		}
	}
	return false, nil
}

// matchesWhole reports whether an expression matches all of s.
func (t *regexpCriterion) matchesWhole(s string) (bool, error) {
	t.compileOnce.Do(func() {
		for _, expr := range t.expressions {
			re, err := regexp.Compile(`\A(?:` + expr + `)\z`)
			if err != nil {
				t.err = err
				return
			}
			t.regexps = append(t.regexps, re)
		}
	})
	for _, re := range t.regexps {
		if re.MatchString(s) {
			return true, nil
		}
	}
	return false, t.err
}

// wholeActionCriteria are the criteria that read an action's texts, run a jq program, or depend on the session.
// They apply to the whole case, not to one effect.
type wholeActionCriteria struct {
	commands, content *regexpCriterion
	when              *condition
	session           *rulefile.Session
	loosensPolicy     bool // a match makes the policy less strict, see [wholeActionCriteria.match]
}

func compileWholeActionCriteria(c *rulefile.Criteria, loosensPolicy bool) *wholeActionCriteria {
	before := len(c.Session.Labels) > 0 || len(c.Session.EarlierActionTypesOrKinds) > 0
	if len(c.Commands) == 0 && len(c.Content) == 0 && c.ConditionJQ == "" && !before {
		return nil
	}
	s := &wholeActionCriteria{loosensPolicy: loosensPolicy}
	if before {
		s.session = &c.Session
	}
	if len(c.Commands) > 0 {
		s.commands = &regexpCriterion{expressions: c.Commands}
	}
	if len(c.Content) > 0 {
		s.content = &regexpCriterion{expressions: c.Content}
	}
	if c.ConditionJQ != "" {
		s.when = &condition{expr: c.ConditionJQ}
	}
	return s
}

// match reports whether all criteria match. For criteria that make the policy stricter, a match in any view
// is enough. For criteria that make it less strict, an expression must match the whole raw command, and the
// command must run only one program: "git status" must not allow "git status; rm -rf /", and a decoded view
// must not count as the raw text.
func (s *wholeActionCriteria) match(in *ruleSearch) (bool, error) {
	if s == nil {
		return true, nil
	}
	c := in.judgedCase
	if s.commands != nil {
		ok, err := s.matchCommand(c)
		if !ok || err != nil {
			return false, err
		}
	}
	if s.content != nil {
		var take func(*analysis.PayloadTextVariant) bool
		if s.loosensPolicy {
			take = func(v *analysis.PayloadTextVariant) bool { return v.TransformationName == "raw" }
		}
		ok, err := s.content.matchesAnyTextVariant(c.FieldTextVariants(payloadContentFieldNames[:]...), take)
		if !ok || err != nil {
			return false, err
		}
	}
	if s.when != nil {
		if ok, err := s.when.isTrue(in); !ok || err != nil {
			return false, err
		}
	}
	if s.session != nil {
		return meetsSessionCriterion(s.session, c)
	}
	return true, nil
}

func (s *wholeActionCriteria) matchCommand(c *analysis.ActionCase) (bool, error) {
	if !s.loosensPolicy {
		return s.commands.matchesAnyTextVariant(c.TextVariants(), func(v *analysis.PayloadTextVariant) bool { return v.Field == "command" })
	}
	programs := 0
	for i := range c.Effects {
		if c.Effects[i].Kind == effect.Execute {
			programs++
		}
	}
	command := c.Action.Text("command")
	if programs > 1 || command == "" {
		return false, nil
	}
	return s.commands.matchesWhole(command)
}

// A ruleException is one entry of a rule's exceptions.
type ruleException struct {
	actionTypesAndEffectKinds    []string
	globs                        []string
	hasGlobMatchingInEveryFolder bool // whether one of the globs matches a name in every folder, as **/.env does
	paths                        func() (*effect.Globs, error)
	hosts                        []effect.HostPattern
	requiredTargetTrust          string // required value of [effect.Effect.IsTargetTrusted]: "true", "false", or "" for either
	requiredRestorability        string // required restorability of a removed file: "true" or "false" (by version control), "kept" (backed up by shield), or "" for any
	sendsEarlierReadValue        string // whether the effect carries a value that the session has seen: "true", "false", or "" for either
	effectPropertyCriteria       effectPropertyCriteria
	wholeActionCriteria          *wholeActionCriteria
	loosensPolicy                bool
}

func compileException(c *rulefile.Criteria, vars map[string][]string, loosens bool) (ruleException, error) {
	x := ruleException{actionTypesAndEffectKinds: c.ActionTypesAndEffectKinds, requiredTargetTrust: c.RequiredTargetTrust, requiredRestorability: c.RequiredRestorability, sendsEarlierReadValue: c.Session.SendsEarlierReadValue, globs: c.Paths, effectPropertyCriteria: compileEffectPropertyCriteria(c.EffectPropertyCriteria), wholeActionCriteria: compileWholeActionCriteria(c, loosens), loosensPolicy: loosens}
	x.paths = sync.OnceValues(func() (*effect.Globs, error) { return effect.NewGlobs(c.Paths, vars) })
	for _, g := range c.Paths {
		x.hasGlobMatchingInEveryFolder = x.hasGlobMatchingInEveryFolder || segmentGlob{glob: g}.matchesAnyFolder()
	}
	for _, h := range c.Hosts {
		p, err := effect.ParseHostPattern(h)
		if err != nil {
			return x, err
		}
		x.hosts = append(x.hosts, p)
	}
	return x, nil
}

// match reports whether the exception holds for an effect. An exception that makes the policy less strict
// must cover everything that the effect touches; one that makes it stricter need only possibly match a part.
func (x *ruleException) match(s *ruleSearch, e *effect.Effect) (bool, error) {
	if len(x.actionTypesAndEffectKinds) > 0 && !slices.Contains(x.actionTypesAndEffectKinds, s.judgedCase.Action.Type) && (s.judgedCase.Action.OriginalTypeSharedByOtherTools == "" || !slices.Contains(x.actionTypesAndEffectKinds, s.judgedCase.Action.OriginalTypeSharedByOtherTools)) && !slices.Contains(x.actionTypesAndEffectKinds, string(e.KindForPolicies())) {
		return false, nil
	}
	if x.requiredTargetTrust != "" && (x.requiredTargetTrust == "true") != e.IsTargetTrusted || !meetsRestorableCriterion(x.requiredRestorability, e) ||
		x.sendsEarlierReadValue != "" && (x.sendsEarlierReadValue == "true") != (e.Cause == effect.CauseSecretReadEarlierInSession) {
		return false, nil
	}
	if ok, err := x.effectPropertyCriteria.match(s, e); !ok || err != nil {
		return false, err
	}
	if len(x.globs) > 0 {
		globs, err := x.paths()
		if err != nil || e.Path == "" {
			return false, err
		}
		ok := false
		if x.loosensPolicy {
			_, ok = globs.FirstCoveringGlob(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive)
		} else {
			_, ok = globs.FirstPossibleMatch(e.Path, e.PathIsPattern, e.Recursive)
			ok = ok || x.hasGlobMatchingInEveryFolder && (e.PathIsPattern || e.Recursive)
		}
		if !ok {
			return false, nil
		}
	}
	if len(x.hosts) > 0 && !matchHosts(x.hosts, e.Host) {
		return false, nil
	}
	return x.wholeActionCriteria.match(s)
}

// meetsRestorableCriterion reports whether a removed file has the restorability that a rule requires: "true" if
// version control can restore it, "false" if it cannot, "kept" if shield backs it up, "" for any.
func meetsRestorableCriterion(requiredRestorable string, e *effect.Effect) bool {
	switch requiredRestorable {
	case "":
		return true
	case "kept":
		return e.IsBackedUpByShield
	}
	return (requiredRestorable == "true") == e.IsRestorableWithoutBackup
}

func matchHosts(patterns []effect.HostPattern, host string) bool {
	if host == "" {
		return false
	}
	addr := effect.ParseAddr(host)
	for i := range patterns {
		if patterns[i].Match(host, addr) {
			return true
		}
	}
	return false
}
