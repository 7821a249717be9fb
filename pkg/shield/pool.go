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

// maxPooled is how many unused pipelines a pool keeps.
const maxPooled = 64

// A Pool lends pipelines, for a process that judges for many others. The files that a configuration
// names are checked on each loan, and a pipeline that would now be built differently is not lent.
// Goroutines may share a pool; the zero Pool is empty.
type Pool struct {
	mu     sync.Mutex
	kept   map[poolKey]*pooled
	models map[poolKey]*classify.Model
	loans  uint64
}

type poolKey [sha256.Size]byte

type pooled struct {
	p    *Pipeline
	lent int    // number of users
	last uint64 // number of its last loan
	gone bool   // close it when its last user has returned it
}

// Lend returns a pipeline that judges like one from [NewPipeline], and a function to call when it is
// no longer used.
func (l *Pool) Lend(cfg Config) (p *Pipeline, done func(), err error) {
	once := cfg.Once
	cfg.pool, cfg.Single, cfg.Once = l, false, true
	s := cfg.settings()
	if err := s.Check(); err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	analyzer, err := NewAnalyzer(cfg)
	if err != nil {
		return nil, nil, err
	}
	key, err := cfg.key(&analyzer.Place)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	has := l.kept[key]
	if has == nil {
		made, err := NewPipeline(cfg)
		if err != nil {
			return nil, nil, err
		}
		if l.kept == nil {
			l.kept = map[poolKey]*pooled{}
		}
		has = &pooled{p: made}
		l.kept[key] = has
	}
	l.loans++
	has.lent++
	has.last = l.loans
	l.evict()
	lent := *has.p
	lent.lent, lent.analyzer, lent.caller, lent.notify, lent.which = true, analyzer, cfg.Caller, cfg.Notify, cfg.Which
	lent.host, lent.lineage, lent.apart = cfg.Host, cfg.lineage(), cfg.Apart
	lent.lookBack = cfg.LookBack
	lent.trace, lent.timed, lent.noAction = cfg.Trace, cfg.timed(), cfg.NoAction
	if !once {
		lent.refusals = nil
	}
	lent.unseen, lent.observe = !cfg.Timed && !cfg.Trace, cfg.Observe
	return &lent, sync.OnceFunc(func() { l.back(has) }), nil
}

// Warm loads the models of the pool and of a configuration.
func (l *Pool) Warm(cfg Config) error {
	p, done, err := l.Lend(cfg)
	if err != nil {
		return err
	}
	defer done()
	p.tiers[TierClassify].(*classify.Classifier).Warm()
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

// back returns a pipeline to the pool.
func (l *Pool) back(has *pooled) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if has.lent--; has.gone && has.lent == 0 {
		_ = has.p.Close() // each verdict was on disk before it was returned
	}
}

// evict closes the pipelines that were not used for the longest time.
func (l *Pool) evict() {
	for len(l.kept) > maxPooled {
		var key poolKey
		var oldest *pooled
		for k, e := range l.kept {
			if oldest == nil || e.last < oldest.last {
				key, oldest = k, e
			}
		}
		l.drop(key, oldest)
	}
}

func (l *Pool) drop(key poolKey, e *pooled) {
	delete(l.kept, key)
	if e.gone = true; e.lent == 0 {
		_ = e.p.Close()
	}
}

// Clear drops all pipelines and models. Lent ones stay usable.
func (l *Pool) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.kept {
		l.drop(key, e)
	}
	l.models = nil
}

// model returns the model of a configuration, shared by all pipelines that load the same files. The
// caller holds the mutex.
func (l *Pool) model(cfg Config) (*classify.Model, error) {
	if l == nil {
		return OpenModel(cfg)
	}
	key, err := cfg.modelKey()
	if err != nil {
		return nil, err
	}
	if m := l.models[key]; m != nil {
		return m, nil
	}
	m, err := OpenModel(cfg)
	if m != nil && err == nil {
		if l.models == nil || len(l.models) >= maxPooled {
			l.models = map[poolKey]*classify.Model{}
		}
		l.models[key] = m
	}
	return m, err
}

// key returns the key of pipelines that are built the same way: the configuration with the current
// state of its files and folders.
func (cfg *Config) key(place *effect.Place) (key poolKey, err error) {
	own, err := cfg.fingerprint()
	if err != nil {
		return key, err
	}
	model, err := cfg.modelKey()
	if err != nil {
		return key, err
	}
	text, err := cfg.policyText()
	if err != nil {
		return key, err
	}
	policy := []string{string(text)}
	for _, l := range cfg.layers() {
		if text, err = ReadPolicyFile(l.file); err != nil {
			return key, fmt.Errorf("load policy: %w", err)
		}
		policy = append(policy, l.name, string(text))
	}
	var api string
	if name := cfg.settings().Evaluator.APIKeyEnv; name != "" && cfg.Lookup != nil {
		api, _ = cfg.Lookup(name)
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
	return digest(own, cfg.Caller.User, cfg.settings(), cfg.StateDir, cfg.auditFile(), cfg.LockWait, cfg.timed(), cfg.Keeps, cfg.IfKept, place.Home, place.CWD, place.Roots,
		PolicyOptions(*cfg, place).Vars, policy, model[:], api, seal[:])
}

// modelKey returns the key of a model: for one in a folder it includes the folder's files.
func (cfg *Config) modelKey() (poolKey, error) {
	c := cfg.classifier()
	dir := ""
	switch {
	case c.Model == "" || c.Model == noModel || c.Model == "default":
	case isFolder(c.Model):
		dir = c.Model
	default:
		var err error
		if dir, err = modelstore.Open(cfg.Models, nil, nil).Find(c.Model); err != nil {
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
	return digest(c, cfg.CacheDir, cfg.Models, files)
}

// digest returns the SHA-256 of values, as JSON.
func digest(parts ...any) (key poolKey, err error) {
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
