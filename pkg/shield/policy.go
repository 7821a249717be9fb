package shield

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/shell"
)

// maxPolicy is the size in bytes from which on a policy file is refused.
const maxPolicy = 4 << 20

// NewAnalyzer returns the analyzer of a configuration, or an error if a root
// cannot be one.
func NewAnalyzer(cfg Config) (*analysis.Analyzer, error) {
	return analysis.New(analysis.Options{Shell: shell.Analyze, Written: shell.Written, Replay: session.Replay, CWD: cfg.Dir, Home: cfg.Home, Roots: cfg.settings().Roots, FoldCase: cfg.FoldCase, Files: !cfg.NoFiles, Trusted: analysis.Trusted(cfg.settings().Trusted)})
}

// policyName returns the name of the policy that a configuration asks for, and
// whether it is a preset's rather than a file's.
func (cfg *Config) policyName() (name string, preset bool) {
	s := cfg.settings()
	name = s.Policy
	if name == "" || name == "auto" {
		name = "offline"
		if cfg.Provider != nil || s.Evaluator.Provider != "" {
			name = "default"
		}
	}
	return name, slices.Contains(policy.Presets(), name)
}

// LoadPolicy returns the policy that a configuration names: a preset, a file,
// or, for "auto" and "", the preset that fits.
func LoadPolicy(cfg Config, opts policy.Options) (*policy.Policy, error) {
	name, preset := cfg.policyName()
	if preset {
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

// PolicyPreset returns the preset that a configuration uses, or that the policy
// file it names extends.
func PolicyPreset(cfg Config) (string, error) {
	name, preset := cfg.policyName()
	if preset {
		return name, nil
	}
	data, err := ReadPolicyFile(name)
	if err != nil {
		return "", fmt.Errorf("load policy: %w", err)
	}
	if name = policy.Extends(data); name == "" {
		return "", errors.New("the policy in use extends no preset, whose rules exceptions could be made to")
	}
	return name, nil
}

// ReadPolicyFile reads a policy or a table of cases, bounded in size.
func ReadPolicyFile(name string) ([]byte, error) {
	data, _, err := owner.ReadFile(name, maxPolicy)
	return data, err
}
