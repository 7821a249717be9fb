package analysis

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

//go:generate go run ./gen

// A danger is a row of policies/dangers.yaml: who may allow an effect of some kinds under some conditions.
type danger struct {
	level                                     dangerLevel
	name                                      string // "": the effect's kind or cause is the name
	effects                                   []effect.Kind
	requiredConditions, alternativeConditions []effectCondition
	minApprovingAuthority                     verdict.ApprovalAuthority
	minSafeAnswerConfidence                   float64
	reason                                    string
}

// A dangerLevel is a section of policies/dangers.yaml.
type dangerLevel uint8

const (
	dangerLevelDoubtful dangerLevel = iota
	dangerLevelHarmless
	dangerLevelOrdinary
	dangerLevelUnusual
)

// An effectCondition is a condition that an effect must meet or, if negated is set, must not meet.
type effectCondition struct {
	negated     bool
	name, value string
}

// dangersByKind maps each kind of effect to its rows, in the order of the table.
var dangersByKind = sync.OnceValue(func() map[effect.Kind][]*danger {
	rows := map[effect.Kind][]*danger{}
	for _, word := range append(slices.Clone(effect.Kinds()), kindUnexamined) {
		for i := range dangers {
			if d := &dangers[i]; len(d.effects) == 0 || slices.Contains(d.effects, word) {
				rows[word] = append(rows[word], d)
			}
		}
	}
	return rows
})

// kindUnexamined is the kind that policies/dangers.yaml uses for parts of a case that were not examined.
const kindUnexamined effect.Kind = "unexamined"

// findDanger returns the first row of the table that applies to an effect of the case.
func (c *ActionCase) findDanger(e *effect.Effect) *danger {
	holds := func(f effectCondition) bool { return c.effectMeetsCondition(e, f) != f.negated }
	for _, d := range dangersByKind()[e.KindForPolicies()] {
		if !slices.ContainsFunc(d.requiredConditions, func(f effectCondition) bool { return !holds(f) }) && (len(d.alternativeConditions) == 0 || slices.ContainsFunc(d.alternativeConditions, holds)) {
			return d
		}
	}
	return &dangers[len(dangers)-1]
}

// effectMeetsCondition reports whether an effect meets a condition, such as that it has a certain
// label.
func (c *ActionCase) effectMeetsCondition(e *effect.Effect, condition effectCondition) bool {
	switch condition.name {
	case "label":
		return e.HasLabel(effect.TaintLabel(condition.value))
	case "harm":
		return condition.value == "" && len(e.Harms) > 0 || e.HasHarm(effect.Harm(condition.value))
	case "cause":
		return condition.value == "" && e.CauseOrFirstHarm() != "" || condition.value != "" && e.CauseOrFirstHarm() == condition.value
	case "class":
		return condition.value == "" && e.Class != effect.UnknownClass || condition.value != "" && string(e.Class) == condition.value
	case "verb":
		return e.RemoteOperationVerb == condition.value
	case "path":
		return e.Path != ""
	case "trusted":
		return e.IsTargetTrusted
	case "kept":
		return e.IsBackedUpByShield
	case "loopback":
		return effect.IsLoopbackHost(e.Host)
	case "nowhere":
		return isNullOrStdStream(e)
	case "workspace":
		return c.executionContext.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot)
	case "temporary":
		return isTemporaryFile(e)
	case "own-caches":
		return c.ClearsCache(e)
	case "agent-workings":
		return c.affectsOnlyAgentScratchFiles(e)
	case "others":
		return c.stopsOtherUsersProcesses(e)
	case "unread":
		return c.runsUnreadableScript(e)
	}
	panic("no fact " + condition.name) // unreachable: a test checks the names of the facts
}

// An EffectSafetyDoubt is the reason why a case is not allowed although no rule matched and the model answered
// SAFE. The zero EffectSafetyDoubt is no doubt.
type EffectSafetyDoubt struct {
	CauseName               string                    // name of the danger in policies/dangers.yaml; else the effect's kind or, if that is unknown, its cause
	Reason                  string                    // for people
	MinApprovingAuthority   verdict.ApprovalAuthority // lowest authority that may allow the case
	MinSafeAnswerConfidence float64                   // lowest confidence of the model's answer SAFE that removes the doubt, 0.0–1.0; 0: that of the action's type

	IsEffectUnusual bool // the effect is known but not ordinary
}

// NeedsAuthorityAboveClassifier reports whether no confidence of the model can clear a doubt.
func (d EffectSafetyDoubt) NeedsAuthorityAboveClassifier() bool {
	return d.MinApprovingAuthority > verdict.AuthorityClassifier
}

// WorstDoubt returns the most severe doubt about the case; the zero value if there is none. A doubt is more
// severe if it needs a higher authority; then, if it needs more confidence of the model; then, if its effect is
// unknown and not only unusual. safeThresholdByDoubtCause comes from a model's card. Its keys are values of
// [EffectSafetyDoubt.CauseName], and its values are the least confidences at which the model's answer SAFE
// removes the doubt with this name. The model cannot remove a doubt whose name is not in the map. If the map is
// nil, the confidences in policies/dangers.yaml apply.
func (c *ActionCase) WorstDoubt(safeThresholdByDoubtCause map[string]float64) (worst EffectSafetyDoubt) {
	if c.UnexaminedReason != "" {
		worst = c.doubtAbout(&effect.Effect{Kind: kindUnexamined, Reason: c.UnexaminedReason}, safeThresholdByDoubtCause)
		c.Tier1AllowEvidence.AddDoubt(worst)
	}
	for i := range c.Effects {
		if worst.MinApprovingAuthority == verdict.AuthorityNoneSuffices && c.Tier1AllowEvidence == nil {
			break
		}
		d := c.doubtAbout(&c.Effects[i], safeThresholdByDoubtCause)
		c.Tier1AllowEvidence.AddDoubt(d)
		if isMoreSevere(d, worst) {
			worst = d
		}
	}
	return worst
}

// isMoreSevere reports whether doubt d is more severe than another: only a higher authority may allow it, the
// model needs more confidence to clear it, or its effect is unknown and not only unusual.
func isMoreSevere(d, than EffectSafetyDoubt) bool {
	switch {
	case d.Reason == "" || than.Reason == "":
		return d.Reason != ""
	case d.MinApprovingAuthority != than.MinApprovingAuthority:
		return d.MinApprovingAuthority > than.MinApprovingAuthority
	case d.NeedsAuthorityAboveClassifier():
		return false
	case d.MinSafeAnswerConfidence != than.MinSafeAnswerConfidence:
		return d.MinSafeAnswerConfidence > than.MinSafeAnswerConfidence
	}
	return than.IsEffectUnusual && !d.IsEffectUnusual
}

// doubtAbout returns the doubt about an effect.
func (c *ActionCase) doubtAbout(e *effect.Effect, safeThresholdByDoubtCause map[string]float64) EffectSafetyDoubt {
	row := c.findDanger(e)
	if row.reason == "" {
		return EffectSafetyDoubt{}
	}
	d := EffectSafetyDoubt{CauseName: row.name, MinApprovingAuthority: row.minApprovingAuthority, MinSafeAnswerConfidence: row.minSafeAnswerConfidence, IsEffectUnusual: row.level == dangerLevelUnusual}
	if d.CauseName == "" {
		d.CauseName = string(e.KindForPolicies())
		if e.Certainty == effect.Unknown {
			d.CauseName = string(e.Cause)
		}
	}
	if safeThresholdByDoubtCause != nil && row.minApprovingAuthority == verdict.AuthorityClassifier {
		least, ok := safeThresholdByDoubtCause[d.CauseName]
		if d.MinSafeAnswerConfidence = least; !ok {
			d.MinApprovingAuthority = verdict.AuthorityEvaluator
		}
	}
	d.Reason = c.fillReasonPlaceholdersFromEffect(row.reason, e)
	return d
}

// effectAdviceSeparator precedes the advice in the Reason of an effect. This advice replaces the
// rest of the reason template in policies/dangers.yaml.
const effectAdviceSeparator = "; instead: "

// fillReasonPlaceholdersFromEffect replaces the placeholders in a reason of policies/dangers.yaml, such as {object}, by
// texts about an effect.
func (c *ActionCase) fillReasonPlaceholdersFromEffect(reasonTemplate string, e *effect.Effect) string {
	before, rest, open := strings.Cut(reasonTemplate, "{")
	if !open {
		return reasonTemplate
	}
	name, rest, _ := strings.Cut(rest, "}")
	switch name {
	case "object":
		name = describeEffectObject(e)
	case "reason":
		if strings.Contains(e.Reason, effectAdviceSeparator) {
			return before + redact.TruncateAndReplaceControlChars(e.Reason, 200)
		}
		name = redact.TruncateAndReplaceControlChars(e.Reason, 120)
	case "harm":
		name = string(e.Harms[0])
	case "program":
		name = c.describePrivilegedProgram(e)
	}
	return before + name + c.fillReasonPlaceholdersFromEffect(rest, e)
}

// describeEffectObject names the object of an effect.
func describeEffectObject(e *effect.Effect) string {
	for _, s := range [...]string{e.Host, e.RemoteTargetName, e.Path, e.Program, e.Reason} {
		if s != "" {
			return redact.TruncateAndReplaceControlChars(s, 80)
		}
	}
	return "a remote host"
}

// describePrivilegedProgram returns the program, with its arguments, that runs with the privileges that an
// effect gives: the first that follows the effect; if none does, the object of the effect.
func (c *ActionCase) describePrivilegedProgram(e *effect.Effect) string {
	for _, x := range c.effectsListedAfter(e) {
		if x.Kind == effect.Execute {
			return redact.TruncateAndReplaceControlChars(strings.Join(append([]string{x.Program}, x.Args...), " "), 80)
		}
	}
	return describeEffectObject(e)
}

// effectsListedAfter returns the effects of the case that follow one of them.
func (c *ActionCase) effectsListedAfter(e *effect.Effect) []effect.Effect {
	for i := range c.Effects {
		if &c.Effects[i] == e {
			return c.Effects[i+1:]
		}
	}
	return nil
}

// CanModelAllowDanger reports whether a model may clear the danger with a name.
func CanModelAllowDanger(dangerName string) bool {
	return slices.ContainsFunc(dangers[:], func(d danger) bool {
		return d.minApprovingAuthority == verdict.AuthorityClassifier && (d.name == dangerName && dangerName != "" || d.name == "" && slices.Contains(d.requiredConditions, effectCondition{name: "cause", value: dangerName}))
	})
}
