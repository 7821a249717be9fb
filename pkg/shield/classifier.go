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
	return cfg.effectiveSettings().Classifier.EffectiveSettings()
}

// OpenModel opens the model that a configuration names. It returns nil if none is set. The error wraps
// [classify.ErrNoRuntime] if the configuration uses the default model and runtime and this build has
// no runtime: Tier 1 then works with rules alone.
func OpenModel(cfg Config) (*classify.Model, error) {
	c := cfg.classifierSettings()
	files, digest := models.Default(unpackedTo(cfg, "model")), models.Digest
	switch {
	case c.Model == "" || c.Model == noModelFingerprint:
		return nil, nil
	case isModelFolder(c.Model):
		files, digest = owner.DirFS(c.Model), ""
	case c.Model != "default":
		dir, err := modelstore.Open(cfg.Models, nil, nil).Find(c.Model)
		if err != nil {
			return nil, err
		}
		files, digest = owner.DirFS(dir), ""
	}
	if !classify.Native || c.ONNXRuntime == "" && !ortlib.Available() {
		return nil, noRuntimeError(c)
	}
	if c.ONNXRuntime != "" { // report a wrong path now, not at the first action that needs the model
		if err := ortlib.Check(c.ONNXRuntime); err != nil {
			return nil, err
		}
	}
	m, err := classify.OpenModel(files, digest, func() (string, error) { return runtimePath(cfg) })
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", c.Model, err)
	}
	return m, nil
}

// noRuntimeError returns the error for a build that cannot run a model. Tier 1 works without a model only
// if the settings name neither a model nor a runtime.
func noRuntimeError(c config.Classifier) error {
	fix := "install a shield that was built with cgo for this system"
	if classify.Native {
		fix = "name a library with --onnxruntime FILE"
	}
	if c.Model == "default" && c.ONNXRuntime == "" {
		return fmt.Errorf("%w; %s", classify.ErrNoRuntime, fix)
	}
	return fmt.Errorf("model %q: %v; %s, or choose --model none", c.Model, classify.ErrNoRuntime, fix)
}

// runtimePath returns the path of the ONNX Runtime library, which it unpacks on first use.
func runtimePath(cfg Config) (string, error) {
	if path := cfg.classifierSettings().ONNXRuntime; path != "" {
		return path, ortlib.Check(path)
	}
	if cfg.CacheDir == "" {
		return "", errors.New("onnxruntime: no cache folder to unpack it to; set HOME, or name a library with --onnxruntime FILE")
	}
	return ortlib.Extract(unpackedTo(cfg, "onnxruntime"))
}

// unpackedTo returns the folder of the cache to which something is unpacked; "" without a cache.
func unpackedTo(cfg Config, name string) string {
	if cfg.CacheDir == "" {
		return ""
	}
	return filepath.Join(cfg.CacheDir, name)
}

// newClassifier returns Tier 1 and the fingerprint of its model. Without a runtime Tier 1 falls back
// to rules if model and runtime are the default ones; it is an error if the settings name either.
func (p *Pipeline) newClassifier(cfg Config, rules *policy.Policy) (*classify.Classifier, string, error) {
	place := &p.analyzer.Place
	var clock func() time.Time
	if p.measuresLatency {
		clock = p.now
	}
	s, c := cfg.effectiveSettings(), cfg.classifierSettings()
	opts := classify.Options{
		NoHeuristic: !s.Heuristic.Enabled, Home: place.Home, Roots: place.Roots, Clock: clock,
		Threshold: s.Classifier.Threshold, FailOpen: !s.FailClosed,
		Exempt: rules.Exempts,
	}
	if addr := c.Addr; addr != "" {
		m, err := classify.NewSidecar(addr, classify.SidecarOptions{})
		if err != nil {
			return nil, "", err
		}
		opts.Model, opts.SkipTypes = m, c.SkipTypes.List
		p.usesSidecar = true
		return classify.New(opts), "sidecar:" + addr, nil // the model behind the sidecar is not known
	}
	m, err := cfg.pool.sharedModel(cfg)
	switch {
	case errors.Is(err, classify.ErrNoRuntime):
		p.missingPart = "only rules judge, since the model cannot be used: " + err.Error()
		opts.Note = p.missingPart
		return classify.New(opts), noModelFingerprint, nil
	case err != nil:
		return nil, "", err
	case m == nil:
		return classify.New(opts), noModelFingerprint, nil
	}
	m.SingleUse = cfg.Single
	opts.Model, opts.DecideByEffects = m, c.Model == "default"
	opts.Threshold = cmp.Or(c.Threshold, m.Card.Threshold)
	if c.Threshold == 0 {
		opts.Thresholds = m.Card.Thresholds
	}
	opts.SafeThresholds, opts.DoubtThresholds = m.Card.SafeThresholds, m.Card.DoubtThresholds
	if opts.SkipTypes = c.SkipTypes.List; c.SkipTypes.Auto {
		opts.SkipTypes = m.Card.SkipTypes
	}
	return classify.New(opts), m.Digest, nil
}

// MissingPartNote names a configured part that this pipeline works without, "" if there is none.
func (p *Pipeline) MissingPartNote() string {
	switch {
	case p.ineffectiveEntries == nil:
		return p.missingPart
	case p.missingPart == "":
		return p.ineffectiveEntries.Error()
	}
	return p.missingPart + "; " + p.ineffectiveEntries.Error()
}
