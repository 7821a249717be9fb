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

// Config holds the settings and environment of a pipeline. The zero value is usable and the strictest;
// fields of other packages' types may be nil.
type Config struct {
	// Settings are the user's settings; nil means [Defaults]. Start from a copy of Defaults: the zero
	// value of a setting is seldom its default, and a value out of range is an error.
	Settings *config.Settings

	// Each of the next fields replaces the setting of its name, unless it is zero.
	Policy        string   // a preset's name, a file's path, or "auto" for the preset that fits the other settings
	Roots         []string // workspace folders; none means Dir
	OnnxThreshold float64  // 0.0–1.0: the model's score from which an injection is blocked
	CanaryToken   string   // fixed canary token of the evaluator; "" draws a new one for each attempt
	RateLimit     int      // Tier 2 attempts a minute
	DailyBudget   int      // Tier 2 evaluations a day

	Home     string   // the home folder that "~" means; "" if unknown
	Dir      string   // the working folder for actions without a cwd; "" if unknown
	FoldCase bool     // the file system ignores case (Windows, macOS)
	Own      []string // more files and folders of shield itself: agents can neither read nor change them
	Program  string   // shield's executable: agents cannot change it
	CacheDir string   // the folder into which shield unpacks libraries: agents cannot change it
	Bundles  string   // the folder of fetched signed policies: agents can neither read nor change it
	Models   string   // the folder of installed models, absolute; "" if there is none

	// StateDir holds the seal key, the state file and the audit log. Without it verdicts are not
	// sealed. It is the setting "state" or its default.
	StateDir string

	LockWait time.Duration // how long to wait for other processes that use the state folder; 0 means 10 s

	Caller   audit.Caller                              // the calling program, for the log
	Provider evaluate.Provider                         // the client of the model of Tier 2; nil means one made from the settings
	Approve  approve.Options                           // the person to ask in Tier 3; the pipeline sets Approval, Store, Binding, StateDir, Redactor and Clock
	Lookup   func(variable string) (v string, ok bool) // looks up the evaluator's key in the environment; nil means that no variable is set

	NoFiles bool // judge by the text alone, as if no file existed, so that the result is the same on every machine
	// Container is the container in which actions run, as the kernel reports it; nil if there is none
	// or the setting "container" is no.
	Container *container.Container

	Layer    analysis.FileOverlay // files that replace those of the disk; nil for none
	LookBack bool                 // the actions have already run: a denial is not compared with later actions of its session
	Timed    bool                 // the steps of [Outcome.Trail] carry their latency
	Trace    bool                 // every verdict carries its trail, with latencies, effects and views
	NoAction bool                 // leave the action out of verdicts
	Single   bool                 // the process judges a single action: prepare at once what it needs, and skip what pays off only later

	// Host is the host program that reports actions one by one and vouches for their session names. ""
	// means that session names are the agent's claim.
	Host    string
	Answers string // a person's file of answers in advance, see [approve.Answers]; "" for none
	// Which returns what is known about the unknown tool of an action; nil means that nothing is
	// known.
	Which func(*action.Action) approve.Tool

	Once   bool   // refusals get a reference, by which a person can allow the action once; needs a state folder
	Keeps  bool   // keep what an allowed action deletes or overwrites before the verdict is given; for a process whose caller runs the action
	IfKept bool   // without Keeps: an action that is allowed only with a backup is ALLOW with ConditionBackedUp
	Parent string // the host's session in which the sessions of this pipeline began; "" if unknown
	Apart  bool   // sessions share nothing, and an action without a session has no memory

	// Processes returns names of the host's process and its ancestors, nearest first. A new session
	// becomes a child of a session whose host is among them. nil means that the processes are
	// unknown.
	Processes func() []string

	// Notify receives warnings for a person that no verdict carries, such as a sudden rise in
	// evaluations. Any goroutine may call it; it may be nil.
	Notify func(text string)

	// Observe receives each verdict after it is logged. It must not block. Any goroutine may call it;
	// it may be nil.
	Observe func(telemetry.Action)

	Clock func() time.Time // nil means the system clock

	pool *Pool // provides a shared model; if nil, the pipeline opens its own
}

// Defaults returns the settings of a pipeline that has none: [config.Default], but without a model, a
// person to ask and a log.
func Defaults() config.Settings {
	s := config.Default()
	s.Classifier = config.Classifier{SkipTypes: config.Types{Auto: true}}
	s.Approval.Channels = nil
	s.Audit.Enabled = false
	return s
}

// effectiveSettings returns the settings in force.
func (cfg *Config) effectiveSettings() config.Settings {
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

// lineage returns where the host's sessions began: the session and the processes above them.
func (cfg *Config) lineage() session.Lineage {
	return session.Lineage{Parent: cfg.Parent, Processes: cfg.Processes}
}

// auditFile returns the path of the audit log, or "" if there is none.
func (cfg *Config) auditFile() string {
	s := cfg.effectiveSettings()
	return s.AuditFile(cfg.StateDir)
}

// notFingerprinted lists the fields of [Config] that the fingerprint leaves out, each with the reason:
// the field cannot change a verdict, or another fingerprint covers it.
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

// fingerprint returns the hex SHA-256 of all that can change a verdict besides policy, rules and
// model.
func (cfg *Config) fingerprint() (string, error) {
	s := cfg.effectiveSettings()
	h := sha256.New()
	_, _ = io.WriteString(h, s.Fingerprint()) // writing to a hash does not fail
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

// fingerprints returns the hashes of policy, rules, model and configuration to which a seal binds a
// verdict.
func fingerprints(cfg Config, policy, classifier string) (verdict.Fingerprints, error) {
	own, err := cfg.fingerprint()
	return verdict.Fingerprints{Policy: policy, Rules: classify.Fingerprint(), Model: classifier, Config: own}, err
}
