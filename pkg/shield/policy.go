package shield

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy"
)

// maxPolicy is the size in bytes from which on a policy file is refused.
const maxPolicy = 4 << 20

// NewAnalyzer returns the analyzer of a configuration, or an error if a root
// cannot be one.
func NewAnalyzer(cfg Config) (*analysis.Analyzer, error) {
	return analysis.New(analysis.Options{CWD: cfg.Dir, Home: cfg.Home, Roots: cfg.settings().Roots, FoldCase: cfg.FoldCase, Files: !cfg.NoFiles})
}

// PolicyOptions returns the folders that a configuration's policy speaks of.
func PolicyOptions(cfg Config, place *effect.Place) policy.Options {
	canonical := func(paths ...string) (out []string) {
		for _, p := range paths {
			if p != "" {
				p, _ = place.Path(p, false)
				out = append(out, p)
			}
		}
		return out
	}
	return policy.Options{Vars: map[string][]string{
		"HOME":           canonical(cfg.Home),
		"WORKSPACE":      place.Roots,
		"SHIELD":         canonical(append(slices.Clone(cfg.Own), cfg.StateDir)...),
		"SHIELD_PROGRAM": canonical(cfg.Program),
		"SHIELD_CACHE":   canonical(cfg.CacheDir),
	}}
}

// LoadPolicy returns the policy that a configuration names: a preset, a file,
// or, for "auto" and "", the preset that fits.
func LoadPolicy(cfg Config, opts policy.Options) (*policy.Policy, error) {
	s := cfg.settings()
	name := s.Policy
	if name == "" || name == "auto" {
		name = "offline"
		if cfg.Provider != nil || s.Evaluator.Provider != "" {
			name = "default"
		}
	}
	if slices.Contains(policy.Presets(), name) {
		return policy.Preset(name, opts)
	}
	data, err := ReadPolicyFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("policy %q is neither a file nor one of the presets %s", name, strings.Join(policy.Presets(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("load policy: %w", err)
	}
	return policy.Load(name, data, opts)
}

// ReadPolicyFile reads a policy or a table of cases, bounded in size.
func ReadPolicyFile(name string) ([]byte, error) {
	data, _, err := owner.ReadFile(name, maxPolicy)
	return data, err
}
