package shield

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/modelstore"
	"github.com/shieldcli/shield/pkg/verdict"
)

// maxPooledPipelines is how many unused pipelines a pool keeps.
const maxPooledPipelines = 64

// A PipelinePool lends pipelines, for a process that judges actions for many other processes. On
// each loan it checks the files that the configuration names, and does not lend a pipeline that
// would now be built differently. Goroutines can share a pool; the zero value is an empty pool.
type PipelinePool struct {
	mu            sync.Mutex
	pipelines     map[poolKey]*pooledPipeline
	models        map[poolKey]*classify.Model
	lendCallCount uint64
}

type poolKey [sha256.Size]byte

type pooledPipeline struct {
	pipeline        *Pipeline
	borrowerCount   int    // number of borrowers that have not returned the pipeline
	lastLoanNumber  uint64 // number of the pipeline's last loan; a full pool drops the pipeline with the lowest number
	closeWhenUnused bool   // the pool has dropped the pipeline, which is closed when its last borrower returns it
}

// Lend returns a pipeline that judges like one from [NewPipeline], and a function to call when it is
// no longer used.
func (l *PipelinePool) Lend(cfg Config) (p *Pipeline, done func(), err error) {
	once := cfg.OffersAllowOnce
	cfg.pool, cfg.JudgesSingleAction, cfg.OffersAllowOnce = l, false, true
	s := cfg.effectiveSettings()
	if err := s.Check(); err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	analyzer, err := NewAnalyzer(cfg)
	if err != nil {
		return nil, nil, err
	}
	key, err := cfg.pipelinePoolKey(&analyzer.DefaultExecutionContext)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	has := l.pipelines[key]
	if has == nil {
		made, err := NewPipeline(cfg)
		if err != nil {
			return nil, nil, err
		}
		if l.pipelines == nil {
			l.pipelines = map[poolKey]*pooledPipeline{}
		}
		has = &pooledPipeline{pipeline: made}
		l.pipelines[key] = has
	}
	l.lendCallCount++
	has.borrowerCount++
	has.lastLoanNumber = l.lendCallCount
	l.evict()
	lent := *has.pipeline
	lent.ownedByPool, lent.analyzer, lent.caller, lent.notifyUser, lent.unknownToolLookup = true, analyzer, cfg.Caller, cfg.NotifyUser, cfg.LookUpUnknownTool
	lent.agentHostName, lent.parentSessionAndProcesses, lent.isolatesSessionsFromEachOther = cfg.AgentHostName, cfg.parentSessionAndProcesses(), cfg.IsolatesSessions
	lent.judgesExecutedActions = cfg.JudgesExecutedActions
	lent.verdictsIncludeTrail, lent.measuresLatency, lent.omitsActionFromVerdicts = cfg.VerdictsIncludeTrail, cfg.measuresLatency(), cfg.OmitsActionFromVerdicts
	if !once {
		lent.allowOnceDecisionStore = nil
	}
	lent.omitsLatenciesFromTierSteps, lent.observeActionTelemetry = !cfg.TierStepsIncludeLatency && !cfg.VerdictsIncludeTrail, cfg.Observe
	return &lent, sync.OnceFunc(func() { l.returnPipeline(has) }), nil
}

// Warm loads the models of the pool and of a configuration.
func (l *PipelinePool) Warm(cfg Config) error {
	p, done, err := l.Lend(cfg)
	if err != nil {
		return err
	}
	defer done()
	p.tiers[TierClassify].(*classify.Classifier).PrebuildRuleTables()
	l.mu.Lock()
	models := maps.Clone(l.models)
	l.mu.Unlock()
	for _, m := range models {
		if _, err := m.Score(context.Background(), "ls"); err != nil {
			return fmt.Errorf("load the model: %w", err)
		}
	}
	return nil
}

// returnPipeline returns a pipeline to the pool.
func (l *PipelinePool) returnPipeline(pooled *pooledPipeline) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pooled.borrowerCount--; pooled.closeWhenUnused && pooled.borrowerCount == 0 {
		_ = pooled.pipeline.Close() // each verdict was on disk before it was returned
	}
}

// evict closes the pipelines that were not used for the longest time.
func (l *PipelinePool) evict() {
	for len(l.pipelines) > maxPooledPipelines {
		var key poolKey
		var oldest *pooledPipeline
		for k, e := range l.pipelines {
			if oldest == nil || e.lastLoanNumber < oldest.lastLoanNumber {
				key, oldest = k, e
			}
		}
		l.dropPipeline(key, oldest)
	}
}

func (l *PipelinePool) dropPipeline(key poolKey, e *pooledPipeline) {
	delete(l.pipelines, key)
	if e.closeWhenUnused = true; e.borrowerCount == 0 {
		_ = e.pipeline.Close()
	}
}

// Clear drops all pipelines and models. Lent ones stay usable.
func (l *PipelinePool) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.pipelines {
		l.dropPipeline(key, e)
	}
	l.models = nil
}

// sharedModel returns the model of a configuration, shared by all pipelines that load the same files. The
// caller holds the mutex.
func (l *PipelinePool) sharedModel(cfg Config) (*classify.Model, error) {
	if l == nil {
		return OpenModel(cfg)
	}
	key, err := cfg.modelPoolKey()
	if err != nil {
		return nil, err
	}
	if m := l.models[key]; m != nil {
		return m, nil
	}
	m, err := OpenModel(cfg)
	if m != nil && err == nil {
		if l.models == nil || len(l.models) >= maxPooledPipelines {
			l.models = map[poolKey]*classify.Model{}
		}
		l.models[key] = m
	}
	return m, err
}

// pipelinePoolKey returns the key of pipelines that are built the same way: the configuration with the current
// state of its files and folders.
func (cfg *Config) pipelinePoolKey(place *effect.PathContext) (key poolKey, err error) {
	own, err := cfg.fingerprint()
	if err != nil {
		return key, err
	}
	model, err := cfg.modelPoolKey()
	if err != nil {
		return key, err
	}
	text, err := cfg.policyText()
	if err != nil {
		return key, err
	}
	policy := []string{string(text)}
	for _, l := range cfg.policyLayers() {
		if text, err = ReadPolicyFile(l.policyPath); err != nil {
			return key, fmt.Errorf("load policy: %w", err)
		}
		policy = append(policy, l.name, string(text))
	}
	var api string
	if name := cfg.effectiveSettings().Evaluator.APIKeyEnv; name != "" && cfg.LookupEnvironmentVariable != nil {
		api, _ = cfg.LookupEnvironmentVariable(name)
	}
	var seal [verdict.KeySize]byte
	if cfg.StateDir != "" {
		has, err := verdict.HasKey(cfg.StateDir)
		if has && err == nil {
			seal, err = verdict.LoadKey(cfg.StateDir)
		}
		if err != nil {
			return key, err
		}
	}
	return hashAsJSON(own, cfg.Caller.User, cfg.effectiveSettings(), cfg.StateDir, cfg.auditFile(), cfg.LockWait, cfg.measuresLatency(), cfg.BacksUpLostFiles, cfg.AllowsIfFilesBackedUp, place.Home, place.CWD, place.WorkspaceRoots,
		PolicyOptions(*cfg, place).FoldersByGlobVariable, policy, model[:], api, seal[:])
}

// modelPoolKey returns the key of a model: for one in a folder it includes the folder's files.
func (cfg *Config) modelPoolKey() (poolKey, error) {
	c := cfg.classifierSettings()
	dir := ""
	switch {
	case c.ModelNameOrDir == "" || c.ModelNameOrDir == noModelFingerprint || c.ModelNameOrDir == "default":
	case isModelFolder(c.ModelNameOrDir):
		dir = c.ModelNameOrDir
	default:
		var err error
		if dir, err = modelstore.Open(cfg.ModelDir, nil, nil).Find(c.ModelNameOrDir); err != nil {
			return poolKey{}, err
		}
	}
	var files []string
	if dir != "" {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return poolKey{}, err
		}
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(dir, e.Name()))
			if err != nil {
				return poolKey{}, err
			}
			files = append(files, fmt.Sprintf("%s %d %d", e.Name(), info.Size(), info.ModTime().UnixNano()))
		}
	}
	return hashAsJSON(c, cfg.CacheDir, cfg.ModelDir, files)
}

// hashAsJSON returns the SHA-256 of the JSON encodings of the given values.
func hashAsJSON(parts ...any) (key poolKey, err error) {
	h := sha256.New()
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return key, err
		}
		_, _ = io.WriteString(h, string(text)+"\n") // writing to a hash does not fail
	}
	return poolKey(h.Sum(nil)), nil
}
