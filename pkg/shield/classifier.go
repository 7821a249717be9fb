package shield

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/shieldcli/shield/internal/ortlib"
	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/models"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/modelstore"
	"github.com/shieldcli/shield/pkg/policy"
)

// noModelFingerprint is the classifier fingerprint of a Tier 1 without a model.
const noModelFingerprint = "none"

// classifierSettings returns the settings of Tier 1's model; they are zero if no model is set.
func (cfg *Config) classifierSettings() config.Classifier {
	return cfg.effectiveSettings().Classifier.EmptyIfDisabledOrModelNone()
}

// OpenModel opens the model that a configuration names. It returns nil if none is set. The error wraps
// [classify.ErrNoRuntime] if the configuration uses the default model and runtime and this build has
// no runtime: Tier 1 then works with rules alone.
func OpenModel(cfg Config) (*classify.Model, error) {
	c := cfg.classifierSettings()
	files, digest := models.DefaultModelFolder(cacheFolderForUnpackedFiles(cfg, "model")), models.Digest
	switch {
	case c.ModelNameOrDir == "" || c.ModelNameOrDir == noModelFingerprint:
		return nil, nil
	case isModelFolder(c.ModelNameOrDir):
		files, digest = owner.DirFSOfRegularFiles(c.ModelNameOrDir), ""
	case c.ModelNameOrDir != "default":
		dir, err := modelstore.Open(cfg.ModelDir, nil, nil).Find(c.ModelNameOrDir)
		if err != nil {
			return nil, err
		}
		files, digest = owner.DirFSOfRegularFiles(dir), ""
	}
	if !classify.IsONNXRuntimeSupported || c.ONNXRuntimeLibraryPath == "" && !ortlib.Available() {
		return nil, missingONNXRuntimeError(c)
	}
	if c.ONNXRuntimeLibraryPath != "" { // report a wrong path now, not at the first action that needs the model
		if err := ortlib.CheckLibraryPermissions(c.ONNXRuntimeLibraryPath); err != nil {
			return nil, err
		}
	}
	m, err := classify.OpenModel(files, digest, func() (string, error) { return onnxRuntimeLibraryPath(cfg) })
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", c.ModelNameOrDir, err)
	}
	return m, nil
}

// missingONNXRuntimeError returns the error for a build that cannot run a model. Tier 1 works without a model only
// if the settings name neither a model nor a runtime.
func missingONNXRuntimeError(c config.Classifier) error {
	fix := "install a shield that was built with cgo for this system"
	if classify.IsONNXRuntimeSupported {
		fix = "name a library with --onnxruntime FILE"
	}
	if c.ModelNameOrDir == "default" && c.ONNXRuntimeLibraryPath == "" {
		return fmt.Errorf("%w; %s", classify.ErrNoRuntime, fix)
	}
	return fmt.Errorf("model %q: %v; %s, or choose --model none", c.ModelNameOrDir, classify.ErrNoRuntime, fix)
}

// onnxRuntimeLibraryPath returns the path of the ONNX Runtime library, which it unpacks on first use.
func onnxRuntimeLibraryPath(cfg Config) (string, error) {
	if path := cfg.classifierSettings().ONNXRuntimeLibraryPath; path != "" {
		return path, ortlib.CheckLibraryPermissions(path)
	}
	if cfg.CacheDir == "" {
		return "", errors.New("onnxruntime: no cache folder to unpack it to; set HOME, or name a library with --onnxruntime FILE")
	}
	return ortlib.Extract(cacheFolderForUnpackedFiles(cfg, "onnxruntime"))
}

// cacheFolderForUnpackedFiles returns the folder of the cache to which something is unpacked; "" without a cache.
func cacheFolderForUnpackedFiles(cfg Config, subfolder string) string {
	if cfg.CacheDir == "" {
		return ""
	}
	return filepath.Join(cfg.CacheDir, subfolder)
}

// newClassifier returns Tier 1 and the fingerprint of its model. Without a runtime Tier 1 falls back
// to rules if model and runtime are the default ones; it is an error if the settings name either.
func (p *Pipeline) newClassifier(cfg Config, rules *policy.Policy) (*classify.Classifier, string, error) {
	place := &p.analyzer.DefaultExecutionContext
	var clock func() time.Time
	if p.measuresLatency {
		clock = p.now
	}
	s, c := cfg.effectiveSettings(), cfg.classifierSettings()
	opts := classify.Options{
		RunsOnlyAlwaysBlockRules: !s.HeuristicRules.Enabled, Home: place.Home, WorkspaceRoots: place.WorkspaceRoots, Clock: clock,
		BlockThreshold: s.Classifier.BlockThreshold, FailOpen: !s.FailClosed,
		PolicyExemptsFromRule: rules.DisablesHeuristicRule,
	}
	if addr := c.SidecarURLOrSocket; addr != "" {
		m, err := classify.NewSidecarClient(addr, classify.SidecarOptions{})
		if err != nil {
			return nil, "", err
		}
		opts.Model, opts.ModelSkippedActionTypes = m, c.SkippedActionTypes.List
		p.usesClassifierSidecar = true
		return classify.New(opts), "sidecar:" + addr, nil // the model behind the sidecar is not known
	}
	m, err := cfg.pool.sharedModel(cfg)
	switch {
	case errors.Is(err, classify.ErrNoRuntime):
		p.missingModelNote = "only rules judge, since the model cannot be used: " + err.Error()
		opts.MissingModelNote = p.missingModelNote
		return classify.New(opts), noModelFingerprint, nil
	case err != nil:
		return nil, "", err
	case m == nil:
		return classify.New(opts), noModelFingerprint, nil
	}
	m.ScoresOnlyOneTextPerProcess = cfg.JudgesSingleAction
	opts.Model, opts.OrdinaryEffectsOverrideModel = m, c.ModelNameOrDir == "default"
	opts.BlockThreshold = cmp.Or(c.BlockThreshold, m.Card.BlockThreshold)
	if c.BlockThreshold == 0 {
		opts.BlockThresholdByActionType = m.Card.BlockThresholdByActionType
	}
	opts.SafeThresholdByActionType, opts.SafeThresholdByDoubtCause = m.Card.SafeThresholdByActionType, m.Card.SafeThresholdByDoubtCause
	if opts.ModelSkippedActionTypes = c.SkippedActionTypes.List; c.SkippedActionTypes.UsesModelOwnList {
		opts.ModelSkippedActionTypes = m.Card.SkippedActionTypes
	}
	return classify.New(opts), m.FilesDigest, nil
}

// UnusableModelOrPolicyNote names a configured part that this pipeline works without, "" if there is none.
func (p *Pipeline) UnusableModelOrPolicyNote() string {
	switch {
	case p.ineffectivePolicyEntriesError == nil:
		return p.missingModelNote
	case p.missingModelNote == "":
		return p.ineffectivePolicyEntriesError.Error()
	}
	return p.missingModelNote + "; " + p.ineffectivePolicyEntriesError.Error()
}
