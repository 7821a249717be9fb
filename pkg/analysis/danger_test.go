package analysis

import (
	"regexp"
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestDangers holds that every fact of the table is one, with words that effects have, that every word has a
// row for what no other row takes, and that no row is behind one that takes all that it would.
func TestDangers(t *testing.T) {
	t.Parallel()
	known := map[string][]string{}
	for _, l := range effect.Labels() {
		known["label"] = append(known["label"], string(l))
	}
	for _, h := range effect.Harms() {
		known["harm"] = append(known["harm"], string(h))
	}
	for _, w := range effect.Causes() {
		known["cause"] = append(known["cause"], string(w))
	}
	known["class"] = []string{string(effect.ReadOnly), string(effect.LocalWrite), string(effect.Network), string(effect.Destructive), string(effect.Privileged)}
	known["verb"] = []string{"change"}
	var c ActionCase
	for _, d := range dangers {
		for _, f := range slices.Concat(d.requiredConditions, d.alternativeConditions) {
			c.effectMeetsCondition(&effect.Effect{}, f) // panics for a fact that is none
			if words, ok := known[f.name]; f.value != "" && (!ok || !slices.Contains(words, f.value)) {
				t.Errorf("%+v: no effect is %s=%s", d, f.name, f.value)
			}
		}
		for _, m := range regexp.MustCompile(`\{(\w*)\}?`).FindAllStringSubmatch(d.reason, -1) {
			if !slices.Contains([]string{"object", "reason", "harm", "program"}, m[1]) {
				t.Errorf("%q: nothing stands for %s", d.reason, m[0])
			}
		}
	}
	for word, rows := range dangersByKind() {
		for i, d := range rows[:len(rows)-1] {
			if len(d.requiredConditions)+len(d.alternativeConditions) == 0 && len(rows[i+1].effects) > 0 {
				t.Errorf("%s: %+v is never read", word, *rows[i+1])
			}
		}
		if last := rows[len(rows)-1]; len(last.requiredConditions)+len(last.alternativeConditions) > 0 || last.minApprovingAuthority == verdict.AuthorityNotNeeded {
			t.Errorf("%s: an effect that no row is about", word)
		}
	}
}

// TestDoubt holds who may allow an effect, what a model's card changes about it, and that it is the gravest doubt
// that counts.
func TestDoubt(t *testing.T) {
	t.Parallel()
	variable := effect.Effect{Kind: effect.Execute, Certainty: effect.Unknown, Cause: effect.CauseVariableNotSetByCommand, Reason: "$A"}
	output := effect.Effect{Kind: effect.Execute, Certainty: effect.Unknown, Cause: effect.CauseCommandOutput, Reason: "$(b)"}
	outside := effect.Effect{Kind: effect.WriteFile, Path: "/srv/a"}
	for name, tt := range map[string]struct {
		effects []effect.Effect
		clears  map[string]float64
		cause   string
		who     verdict.ApprovalAuthority
		least   float64
	}{
		"none":                 {[]effect.Effect{{Kind: effect.WriteFile, Path: "/dev/null"}}, nil, "", verdict.AuthorityNotNeeded, 0},
		"unusual":              {[]effect.Effect{outside}, nil, "outside", verdict.AuthorityClassifier, 0},
		"unknown":              {[]effect.Effect{outside, variable}, nil, "variable", verdict.AuthorityClassifier, 0.75},
		"final":                {[]effect.Effect{variable, output, outside}, nil, "output", verdict.AuthorityEvaluator, 0},
		"of a card":            {[]effect.Effect{outside, variable}, map[string]float64{"outside": 0.9, "variable": 0.6}, "outside", verdict.AuthorityClassifier, 0.9},
		"not on a card":        {[]effect.Effect{outside, variable}, map[string]float64{"outside": 0.9}, "variable", verdict.AuthorityEvaluator, 0},
		"final whatever it is": {[]effect.Effect{output}, map[string]float64{"output": 0.1}, "output", verdict.AuthorityEvaluator, 0},
		"final, behind one":    {[]effect.Effect{{Kind: effect.Listen}, output}, nil, "other", verdict.AuthorityEvaluator, 0},
	} {
		d := (&ActionCase{Effects: tt.effects}).WorstDoubt(tt.clears)
		if d.CauseName != tt.cause || d.MinApprovingAuthority != tt.who || d.MinSafeAnswerConfidence != tt.least || d.NeedsAuthorityAboveClassifier() != (tt.who > verdict.AuthorityClassifier) {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := (&ActionCase{UnexaminedReason: "too long"}).WorstDoubt(nil); d.CauseName != "unexamined" || !d.NeedsAuthorityAboveClassifier() {
		t.Errorf("unexamined: %+v", d)
	}
	evaluator, person := EffectSafetyDoubt{Reason: "a", MinApprovingAuthority: verdict.AuthorityEvaluator}, EffectSafetyDoubt{Reason: "b", MinApprovingAuthority: verdict.AuthorityPerson}
	if !isMoreSevere(person, evaluator) || isMoreSevere(evaluator, person) || isMoreSevere(evaluator, evaluator) {
		t.Error("of two final doubts, not the one counts that fewer may allow")
	}
	for name, want := range map[string]bool{"variable": true, "outside": true, "script": false, "output": false, "frob": false, "": false} {
		if CanModelAllowDanger(name) != want {
			t.Errorf("Clears(%q) is not %t", name, want)
		}
	}
}
