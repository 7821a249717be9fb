package shield

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/shieldcli/shield/internal/container"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/telemetry"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Config says how a pipeline judges. The zero value is usable and the
// strictest; fields of other packages' types may be nil.
type Config struct {
	// Settings are what a person can set; nil means [Defaults]. Change a copy of
	// those, since a setting's zero value is seldom its default: one that is out of
	// range is an error.
	Settings *config.Settings

	// Each of these is in place of the setting, unless it is zero.
	Policy        string   // a preset's name, a file's path, or "auto" for the preset that fits the other settings
	Roots         []string // workspace folders; none means Dir
	OnnxThreshold float64  // 0.0–1.0: from here on a model's injection is blocked
	CanaryToken   string   // fixes the evaluator's canary
	RateLimit     int      // Tier 2 attempts a minute
	DailyBudget   int      // Tier 2 evaluations a day

	Home     string   // the home folder that "~" means; may be unknown
	Dir      string   // the folder that relative paths without a cwd start from; may be unknown
	FoldCase bool     // the file system ignores case (Windows, macOS)
	Own      []string // files and folders of shield itself beside those that other fields and settings name: never read, never changed
	Program  string   // shield's own file: never changed
	CacheDir string   // the folder of what shield unpacks and loads: never changed
	Bundles  string   // the folder of signed policies that were fetched: never read, never changed
	Models   string   // the folder of installed models, absolute; "" if there is none

	// StateDir holds the seal key, the state file and the audit log. Without it
	// verdicts are not sealed. It is the setting "state" or what stands for it.
	StateDir string

	LockWait time.Duration // for other processes that use the state folder; 0 means 10 s

	Caller   audit.Caller                              // who asks, for the log
	Provider evaluate.Provider                         // asks the model of Tier 2; nil means one made from the settings
	Approve  approve.Options                           // who is asked in Tier 3; the pipeline fills Approval, Store, Binding, StateDir, Redactor and Clock
	Lookup   func(variable string) (v string, ok bool) // finds the evaluator's key in the environment; nil finds none

	NoFiles bool // judge by the text alone, as if no file existed: the result is the same on every machine
	// Container is the container that actions run in, as the kernel shows it; nil for none, or if
	// the setting "container" is no.
	Container *container.Container

	Layer    analysis.Layer // files over those of the disk; nil for none
	LookBack bool           // actions happened already: that one is denied now is not compared with the later ones of its session
	Timed    bool           // the steps of [Outcome.Trail] carry their latency
	Trace    bool           // every verdict carries its trail, with latencies, effects and views
	NoAction bool           // verdicts leave the action out
	Single   bool           // the process judges one action: what that needs is prepared at once, and nothing that only pays later

	// Host is the host program that reports actions one by one and whose word the
	// sessions of actions are. "" means that they are the agent's own word.
	Host    string
	Answers string // a person's file of answers in advance, see [approve.Answers]; "" for none
	// Which says what is known of the unknown tool that an action is of. nil knows nothing.
	Which func(*action.Action) approve.Tool

	Once   bool   // refusals get a reference, by which a person can allow the action once; needs a state folder
	Keeps  bool   // what an allowed action deletes or overwrites is kept before the verdict is given; for the process that answers who runs it
	IfKept bool   // without Keeps: what would be allowed if that were kept is ALLOW on this condition
	Parent string // the session of the host that those of this pipeline began in; may be unknown
	Apart  bool   // sessions share nothing, and an action without one has no memory

	// Processes returns names of the process of the host and of those above it, the nearest
	// first. A session that begins is below one whose host is among them. nil knows none.
	Processes func() []string

	// Notify is told what a person should know though no verdict says it, such as
	// a sudden rise in evaluations. Any goroutine may call it; nil means that it
	// is not told.
	Notify func(text string)

	// Observe is notified of each verdict when it has been logged. It must not wait. Any
	// goroutine may call it; nil means that it is not told.
	Observe func(telemetry.Action)

	Clock func() time.Time // nil means the system's

	pool *Pool // that the model is taken from; nil opens one
}

// Defaults returns the settings of a pipeline that was given none: those of
// [config.Default], but neither a model nor a person is asked, and no log is
// written.
func Defaults() config.Settings {
	s := config.Default()
	s.Classifier = config.Classifier{SkipTypes: config.Types{Auto: true}}
	s.Approval.Channels = nil
	s.Audit.Enabled = false
	return s
}

// settings returns the settings in force.
func (cfg *Config) settings() config.Settings {
	var s config.Settings
	if cfg.Settings != nil {
		s = *cfg.Settings
	} else {
		s = Defaults()
	}
	if len(cfg.Roots) > 0 {
		s.Roots = cfg.Roots
	}
	if cfg.Policy != "" {
		s.Policy, s.Bundle = cfg.Policy, config.Default().Bundle
	}
	s.Classifier.Threshold = cmp.Or(cfg.OnnxThreshold, s.Classifier.Threshold)
	s.Evaluator.CanaryToken = cmp.Or(cfg.CanaryToken, s.Evaluator.CanaryToken)
	s.RateLimit = cmp.Or(cfg.RateLimit, s.RateLimit)
	s.DailyBudget = cmp.Or(cfg.DailyBudget, s.DailyBudget)
	return s
}

// lineage returns in what the sessions of the host began.
func (cfg *Config) lineage() session.Lineage {
	return session.Lineage{Parent: cfg.Parent, Processes: cfg.Processes}
}

// auditFile returns the path of the audit log, or "" if there is none.
func (cfg *Config) auditFile() string {
	s := cfg.settings()
	return s.AuditFile(cfg.StateDir)
}

// notFingerprinted lists the fields of [Config] that its fingerprint leaves out, each
// with the reason why it cannot change a verdict, or what stands for it.
var notFingerprinted = map[string]string{
	"Settings":      "they have a fingerprint of their own",
	"Policy":        "a setting",
	"Roots":         "a setting",
	"OnnxThreshold": "a setting",
	"CanaryToken":   "a setting",
	"RateLimit":     "a setting",
	"DailyBudget":   "a setting",
	"Models":        "the fingerprint of the model covers it",
	"Bundles":       "the fingerprint of the policy covers it",
	"StateDir":      "the seal key in the folder tells installations apart",
	"Caller":        "only the log says who asks",
	"Provider":      "code; the program that passes it keeps it the same",
	"Approve":       "beside the settings, it says how a question is shown",
	"Lookup":        "a key decides who pays, not which model answers",
	"Layer":         "only what looks back has one, and seals nothing",
	"LookBack":      "as Layer",
	"Timed":         "it says what a trail shows",
	"Trace":         "it says what a verdict shows",
	"Single":        "it says what is prepared, and when",
	"NoAction":      "it says what a verdict shows",
	"Host":          "what its sessions remember is part of the bindings",
	"Parent":        "as Host",
	"Keeps":         "the verdict says so",
	"IfKept":        "as Keeps",
	"Which":         "the effects of a tool's class are part of the bindings",
	"Once":          "a person's permission is a verdict of its own",
	"Apart":         "as Host",
	"Processes":     "as Host",
	"LockWait":      "it bounds the wait for other processes",
	"Notify":        "only people are told",
	"Observe":       "it only receives verdicts",
	"Clock":         "the time of a verdict is in the verdict",
	"pool":          "it says who opens a model, not which",
}

// fingerprint returns the SHA-256 of what can change a verdict beside policy,
// rules and model, in hex.
func (cfg *Config) fingerprint() (string, error) {
	s := cfg.settings()
	h := sha256.New()
	_, _ = io.WriteString(h, s.Fingerprint()) // a hash does not fail
	for v, i := reflect.ValueOf(*cfg), 0; i < v.NumField(); i++ {
		name := v.Type().Field(i).Name
		if _, out := notFingerprinted[name]; out {
			continue
		}
		value, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			return "", fmt.Errorf("fingerprint of %s: %w", name, err)
		}
		fmt.Fprintf(h, "\n%s=%s", name, value)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fingerprints returns what a seal binds a verdict to: policy, rules, model and
// configuration.
func fingerprints(cfg Config, policy, classifier string) (verdict.Fingerprints, error) {
	own, err := cfg.fingerprint()
	return verdict.Fingerprints{Policy: policy, Rules: classify.Fingerprint(), Model: classifier, Config: own}, err
}
