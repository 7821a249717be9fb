package policy

import (
	"fmt"
	"strings"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

//go:generate go run ./gen

// A preset is a policy that is part of shield, generated from policies/*.yaml. Its lists are indices into
// presetRules.
type preset struct {
	name                                                 string
	denyRuleIndexes, verifyRuleIndexes, allowRuleIndexes []uint16
	fingerprint                                          string
}

func (p preset) ruleLists() rulefile.PolicyRuleLists {
	pick := func(list []uint16) []rulefile.Rule {
		out := make([]rulefile.Rule, len(list))
		for i, n := range list {
			out[i] = presetRules[n]
		}
		return out
	}
	return rulefile.PolicyRuleLists{Deny: pick(p.denyRuleIndexes), Verify: pick(p.verifyRuleIndexes), Allow: pick(p.allowRuleIndexes)}
}

func presetNamed(name string) (*preset, bool) {
	for i := range presets {
		if presets[i].name == name {
			return &presets[i], true
		}
	}
	return nil, false
}

// PresetNames returns the names of all presets.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i := range presets {
		names[i] = presets[i].name
	}
	return names
}

// PresetRuleReason returns the reason of a built-in rule by its name; ok is false for other rules.
func PresetRuleReason(ruleName string) (reason string, ok bool) {
	for i := range presetRules {
		if presetRules[i].Name == ruleName {
			return presetRules[i].Reason, true
		}
	}
	return "", false
}

// Preset returns the built-in policy with a name.
func Preset(name string, opts Options) (*Policy, error) {
	p, ok := presetNamed(name)
	if !ok {
		return nil, fmt.Errorf("unknown preset %s%s (the presets are %s)", yamlfile.QuoteForMessage(name), suggest.DidYouMeanSuffix(name, PresetNames()), strings.Join(PresetNames(), ", "))
	}
	opts.FoldersByGlobVariable = opts.allFoldersByGlobVariable()
	return newPolicy(name, p.fingerprint, p.ruleLists(), opts), nil
}
