package shield

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/bundle"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/shell"
)

// maxPolicyBytes is the size of the largest policy file that is read, in bytes.
const maxPolicyBytes = 4 << 20

// NewAnalyzer returns the analyzer of a configuration, or an error if a root is invalid.
func NewAnalyzer(cfg Config) (*analysis.Analyzer, error) {
	opts := analysis.Options{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, ReplaySession: session.ReplayAndAnalyzeLastAction, CWD: cfg.WorkingDir, Home: cfg.Home, WorkspaceRoots: cfg.effectiveSettings().WorkspaceRoots, FoldCase: cfg.IgnoresPathCase, InspectLocalFiles: !cfg.IgnoresFileSystem, DiskFileOverlay: cfg.FileOverlay, ApprovalPageStatus: approve.ApprovalPageQuestionStatusReader(cfg.StateDir), TrustedDestinations: analysis.TrustedDestinations(cfg.effectiveSettings().TrustedTargets)}
	if cfg.ExecutionContainer != nil && cfg.effectiveSettings().ContainerEffectsTrustMode == "auto" {
		opts.ExecutionContainer = cfg.ExecutionContainer
	}
	return analysis.New(opts)
}

// policyNameOrPath returns the name of the policy that a configuration asks for, and
// whether it is a preset's rather than a file's.
func (cfg *Config) policyNameOrPath() (nameOrPath string, isPreset bool) {
	s := cfg.effectiveSettings()
	nameOrPath = s.PolicyNameOrPath
	if nameOrPath == "" || nameOrPath == "auto" {
		nameOrPath = "offline"
		if cfg.Provider != nil || s.Evaluator.Provider != "" {
			nameOrPath = "default"
		}
	}
	return nameOrPath, slices.Contains(policy.PresetNames(), nameOrPath)
}

// LoadPolicy returns the policy that a configuration names, with the layers below it: a bundle, a
// preset, a file, or, for "auto" and "", the preset that fits.
func LoadPolicy(cfg Config, opts policy.Options) (*policy.Policy, error) {
	p, _, err := loadPolicy(cfg, opts)
	return p, err
}

// loadPolicy is [LoadPolicy]; it also returns the bundle of the policy, nil if it is from none.
func loadPolicy(cfg Config, opts policy.Options) (*policy.Policy, *bundle.Bundle, error) {
	p, from, err := loadPolicyWithoutLayers(cfg, opts)
	if err != nil {
		return nil, nil, err
	}
	var lower []*policy.Policy
	for _, l := range cfg.policyLayers() {
		data, err := ReadPolicyFile(l.policyPath)
		if err != nil {
			return nil, nil, fmt.Errorf("the %[1]s layer of the policy cannot be loaded: %[2]w; correct the setting layers.%[1]s", l.name, err)
		}
		layer, err := policy.LoadLayer(l.name, l.policyPath, data, opts)
		if err != nil {
			return nil, nil, err
		}
		lower = append(lower, layer)
	}
	return p.WithLowerLayers(lower...), from, nil
}

func loadPolicyWithoutLayers(cfg Config, opts policy.Options) (p *policy.Policy, from *bundle.Bundle, err error) {
	if from, err = cfg.loadBundle(); from != nil || err != nil {
		if err == nil {
			p, err = policy.Load(from.String(), from.Policy(), opts)
		}
		return p, from, err
	}
	name, preset := cfg.policyNameOrPath()
	if preset {
		p, err = policy.Preset(name, opts)
		return p, nil, err
	}
	data, err := ReadPolicyFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("policy %q is not a file or preset; the presets are %s", name, strings.Join(policy.PresetNames(), ", "))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load policy: %w", err)
	}
	p, err = policy.Load(name, data, opts)
	return p, nil, err
}

// A lowerPriorityPolicyLayer is a policy file that the policy is combined with.
type lowerPriorityPolicyLayer struct{ name, policyPath string }

// policyLayers returns the layers of a configuration, the highest first.
func (cfg *Config) policyLayers() (out []lowerPriorityPolicyLayer) {
	s := cfg.effectiveSettings().PolicyLayers
	for _, l := range []lowerPriorityPolicyLayer{{"team", s.TeamPolicyPath}, {"user", s.UserPolicyPath}, {"project", s.ProjectPolicyPath}} {
		if l.policyPath != "" {
			out = append(out, l)
		}
	}
	return out
}

// policyText returns the text of the policy file or bundle; nil for a preset. The team, user and project
// policies combined with it are not included.
func (cfg *Config) policyText() ([]byte, error) {
	if b, err := cfg.loadBundle(); b != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return b.Policy(), nil
	}
	name, preset := cfg.policyNameOrPath()
	if preset {
		return nil, nil
	}
	data, err := ReadPolicyFile(name)
	if err != nil {
		return nil, fmt.Errorf("load policy: %w", err)
	}
	return data, nil
}

// PolicyPresetName returns the preset that a configuration uses, or that the policy
// file it names extends.
func PolicyPresetName(cfg Config) (string, error) {
	name, preset := cfg.policyNameOrPath()
	if preset && cfg.effectiveSettings().PolicyBundle.URLOrPath == "" {
		return name, nil
	}
	data, err := cfg.policyText()
	if err != nil {
		return "", err
	}
	if name = policy.ExtendedPresetName(data); name == "" {
		return "", errors.New("the policy in use extends no preset, so there is no rule to add an exception to; add extends to the policy")
	}
	return name, nil
}

// ReadPolicyFile reads a policy or a table of cases, up to [maxPolicyBytes] bytes.
func ReadPolicyFile(name string) ([]byte, error) {
	data, _, err := owner.ReadRegularFile(name, maxPolicyBytes)
	return data, err
}

// AllowRuleNonMatchReasons returns a line for each allow rule that names an action but does not cover it, with the reason.
func (p *Pipeline) AllowRuleNonMatchReasons(ctx context.Context, a *action.Action) ([]string, error) {
	gaps, err := p.rules.AllowRuleMismatches(ctx, p.analyzer.AnalyzeAction(a))
	out := make([]string, len(gaps))
	for i, g := range gaps {
		out[i] = g.Rule + ": " + g.NotCoveredReason
	}
	return out, err
}
