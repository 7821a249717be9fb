package shield

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Config says how a pipeline judges. The zero value is usable and the
// strictest; fields of other packages' types may be nil.
type Config struct {
	Policy   string   // a preset's name, a file's path, or "" or "auto" for the preset that fits the other fields
	Roots    []string // workspace folders; none means Dir
	Home     string   // the home folder that "~" means; may be unknown
	Dir      string   // the folder that relative paths without a cwd start from; may be unknown
	FoldCase bool     // the file system ignores case (Windows, macOS)
	Own      []string // files and folders of shield itself beside those that other fields name: never read, never changed
	Program  string   // shield's own file: never changed
	CacheDir string   // the folder of what shield unpacks and loads: never changed

	// StateDir holds the seal key, the state file and the audit log. Without it
	// verdicts are not sealed.
	StateDir string

	NoHeuristic   bool       // run only the heuristic rules that always block
	Classifier    Classifier // the model of Tier 1
	OnnxThreshold float64    // 0.0–1.0: from here on a model's injection is blocked; 0 means the model's own, or 0.85

	LockWait time.Duration // for other processes that use the state folder; 0 means 1.5 s

	AuditFile string       // the audit log's path; "" writes none
	AuditMax  int64        // bytes from which on it goes on in a new file; 0 means 64 MiB
	Caller    audit.Caller // who asks, for the log
	UTC       bool         // the daily budget refills at midnight UTC instead of local midnight

	Evaluator   Evaluator         // the language model of Tier 2
	Provider    evaluate.Provider // asks it; nil means one made from Evaluator
	CanaryToken string            // fixes the evaluator's canary; "" draws one for each evaluation
	RateLimit   int               // Tier 2 attempts a minute; 0 means 60
	DailyBudget int               // Tier 2 evaluations a day; 0 means 100
	MaxPerHour  int               // requests for approval an hour; 0 means 60
	Approve     approve.Options   // who is asked in Tier 3; the pipeline fills Store, Binding, StateDir, MaxPerHour, Redactor and Clock

	FailOpen   bool          // allow, degraded, where a failure would block
	VerdictTTL time.Duration // how long an ALLOW may be acted on; 0 means 300 s

	NoFiles  bool // judge by the text alone: no link is followed and no script read, so that the machine has no say
	Timed    bool // the steps of [Outcome.Trail] carry their latency
	Trace    bool // every verdict carries its trail, with latencies, effects and views
	NoAction bool // verdicts leave the action out

	// Notify is told what a person should know though no verdict says it, such as
	// a sudden rise in evaluations. Any goroutine may call it; nil tells nobody.
	Notify func(text string)

	Clock func() time.Time // nil means the system's
}

// A Pipeline judges actions. Goroutines may share it.
type Pipeline struct {
	analyzer *analysis.Analyzer
	tiers    [4]Tier
	sealer   *verdict.Sealer // nil without a state folder
	now      func() time.Time
	ttl      time.Duration
	trace    bool
	timed    bool
	noAction bool
	limits   state.Limits
	store    *state.Store // nil without a state folder
	person   *approve.Approver
	log      *audit.Log // nil without an audit file
	redactor *redact.Redactor
	caller   audit.Caller
	prints   audit.Fingerprints
	note     string // what is done without
	nobody   string // why no person can be asked, and what to do; "" if one can
	notify   func(text string)
}

// NewPipeline returns a pipeline, or an error if a policy, a root or the state
// folder cannot be used.
func NewPipeline(cfg Config) (*Pipeline, error) {
	p := &Pipeline{now: cfg.Clock, ttl: cfg.VerdictTTL, trace: cfg.Trace, timed: cfg.Timed || cfg.Trace, noAction: cfg.NoAction, caller: cfg.Caller, notify: cfg.Notify}
	if p.now == nil {
		p.now = time.Now
	}
	if p.ttl == 0 {
		p.ttl = 300 * time.Second
	}
	p.limits = Limits(cfg)
	var err error
	p.analyzer, err = NewAnalyzer(cfg)
	if err != nil {
		return nil, err
	}
	rules, err := LoadPolicy(cfg, PolicyOptions(cfg, &p.analyzer.Place))
	if err != nil {
		return nil, err
	}
	p.redactor = redact.New(cfg.CanaryToken)
	classifier, model, err := p.newClassifier(cfg)
	if err != nil {
		return nil, err
	}
	prints := fingerprints(cfg, rules.Fingerprint(), model)
	if err := p.openState(cfg, prints); err != nil {
		return nil, err
	}
	person, err := p.newApprover(cfg)
	if err != nil {
		return nil, err
	}
	usable, nobody := person.Usable()
	if !usable {
		p.nobody = nobody
	}
	evaluator, err := p.newEvaluator(cfg, usable)
	if err != nil {
		return nil, err
	}
	p.tiers = [4]Tier{
		rules,
		classifier,
		evaluator,
		person,
	}
	return p, nil
}

// openState opens what the state folder holds: seal key, state file and log.
func (p *Pipeline) openState(cfg Config, prints verdict.Fingerprints) error {
	p.prints = auditFingerprints(prints)
	if cfg.StateDir == "" {
		return nil
	}
	var err error
	if p.store, err = state.Open(cfg.StateDir, StateOptions(cfg, p.now)); err != nil {
		return err
	}
	key, err := SealKey(context.Background(), cfg.StateDir, p.store)
	if err != nil {
		return err
	}
	p.sealer = verdict.NewSealer(key, prints)
	if cfg.AuditFile != "" {
		p.log, err = audit.Open(cfg.AuditFile, audit.Options{Clock: p.now, Heads: p.store, Redactor: p.redactor, MaxBytes: cfg.AuditMax, LockWait: cfg.LockWait})
	}
	return err
}

// Limits returns the limits of a configuration.
func Limits(cfg Config) state.Limits {
	return state.Limits{PerMinute: orDefault(cfg.RateLimit, 60), PerDay: orDefault(cfg.DailyBudget, 100), PerHour: orDefault(cfg.MaxPerHour, 10)}
}

// StateOptions returns how the state file of a configuration is kept.
func StateOptions(cfg Config, now func() time.Time) state.Options {
	opts := state.Options{Clock: now, Location: time.Local, Uptime: state.Uptime, LockWait: cfg.LockWait}
	if cfg.UTC {
		opts.Location = nil
	}
	opts.Used = func() (string, error) { return used(cfg) }
	return opts
}

// used says what shows that an installation was used before. The seal key is
// made after the state file, so that nobody finds the one without the other
// unless it was taken away.
func used(cfg Config) (string, error) {
	if cfg.AuditFile != "" {
		if has, err := audit.HasEntries(cfg.AuditFile); has || err != nil {
			return "the audit log has entries", err
		}
	}
	if has, err := verdict.HasKey(cfg.StateDir); has || err != nil {
		return "the seal key is there, so there was one", err
	}
	return "", nil
}

// SealKey returns the key of seals, and creates it on first use, after the
// state file.
func SealKey(ctx context.Context, dir string, store *state.Store) ([verdict.KeySize]byte, error) {
	has, err := verdict.HasKey(dir)
	if err == nil && !has {
		_, _, err = store.Head(ctx)
	}
	if err != nil {
		return [verdict.KeySize]byte{}, err
	}
	return verdict.LoadKey(dir)
}

// Close waits until everything is on the disk and frees the state.
func (p *Pipeline) Close() error {
	errs := []error{p.person.Close()}
	if p.log != nil {
		errs = append(errs, p.log.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	return errors.Join(errs...)
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// fingerprints returns what a seal binds a verdict to: policy, rules, model and
// configuration.
func fingerprints(cfg Config, policy, classifier string) verdict.Fingerprints {
	settings, _ := json.Marshal(struct {
		Roots                 []string
		Home, Dir             string
		NoHeuristic, FailOpen bool
		OnnxThreshold         float64
		VerdictTTL            time.Duration
		RateLimit             int
		DailyBudget           int
		Provider, Model, URL  string
		SkipTypes             []string
	}{
		cfg.Roots, cfg.Home, cfg.Dir, cfg.NoHeuristic, cfg.FailOpen, cfg.OnnxThreshold, cfg.VerdictTTL, cfg.RateLimit, cfg.DailyBudget,
		cfg.Evaluator.Provider, cfg.Evaluator.Model, cfg.Evaluator.BaseURL, cfg.Classifier.SkipTypes,
	})
	sum := sha256.Sum256(settings)
	return verdict.Fingerprints{Policy: policy, Rules: classify.Fingerprint(), Model: classifier, Config: hex.EncodeToString(sum[:])}
}

// Evaluate judges an action in all tiers. It answers always; whatever fails is
// a BLOCK.
func (p *Pipeline) Evaluate(ctx context.Context, a *action.Action) verdict.Verdict {
	o := p.Judge(ctx, Item{Line: 1, Action: a}, All)
	p.Record(&o)
	p.Settle(ctx, &o)
	return o.Verdict
}

// Reader returns a reader of actions and of verdicts that this pipeline, or an
// equally configured one of the same installation, has sealed. name is what
// messages call the input; maxBytes is the length of the longest action. The
// pipeline must have a state folder.
func (p *Pipeline) Reader(r io.Reader, name string, maxBytes int) *verdict.Reader {
	return verdict.NewReader(r, verdict.ReaderOptions{Name: name, MaxBytes: maxBytes, Sealer: p.sealer, Now: p.now})
}

// Status says what of the limits is used, and more; see [state.Status].
type Status struct {
	Tier2Used   int // evaluations charged today
	Tier2Budget int // evaluations a day
	State       state.Status
	Err         error // why nothing is known; everything counts as used then
}

// Status returns what of the limits is used. Without a state folder nothing is.
func (p *Pipeline) Status() Status {
	s := Status{Tier2Budget: p.limits.PerDay}
	if p.store == nil {
		return s
	}
	s.State, s.Err = p.store.Status(context.Background(), p.limits)
	s.Tier2Used = s.State.Used
	if s.Err != nil {
		s.Tier2Used = s.Tier2Budget
	}
	return s
}
