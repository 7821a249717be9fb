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
	PolicyNameOrPath           string   // a preset's name, a file's path, or "auto" for the preset that fits the other settings
	WorkspaceRoots             []string // workspace folders; none means those of Settings or, if they name none, WorkingDir
	OnnxThreshold              float64  // 0.0–1.0: the model's score from which an injection is blocked
	CanaryToken                string   // fixed canary token of the evaluator; "" draws a new one for each attempt
	MaxEvaluatorCallsPerMinute int      // Tier 2 attempts a minute
	MaxEvaluationsPerDay       int      // Tier 2 evaluations a day

	Home                      string   // the home folder that "~" means; "" if unknown
	WorkingDir                string   // the working folder for actions without a cwd; "" if unknown
	IgnoresPathCase           bool     // the file system ignores case (Windows, macOS)
	ExtraProtectedShieldPaths []string // more files and folders of shield itself: agents can neither read nor change them
	ShieldProgramPath         string   // shield's executable: agents cannot change it
	CacheDir                  string   // the folder into which shield unpacks libraries: agents cannot change it
	ProtectedCacheDir         string   // the cache folder that policies protect; "" means CacheDir
	BundleDir                 string   // the folder of fetched signed policies: agents can neither read nor change it
	ModelDir                  string   // the folder of installed models, absolute; "" if there is none

	// StateDir holds the seal key, the state file and the audit log. Without it verdicts are not
	// sealed. It is the setting "state" or its default.
	StateDir string

	LockWait time.Duration // how long to wait for other processes that use the state folder; 0 means 10 s

	Caller                    audit.Caller                              // the calling program, for the log
	Provider                  evaluate.ModelProvider                    // the client of the model of Tier 2; nil means one made from the settings
	ApprovalOptions           approve.Options                           // the person to ask in Tier 3; the pipeline sets Approval, Store, Binding, StateDir, Redactor and Clock
	LookupEnvironmentVariable func(variable string) (v string, ok bool) // looks up the evaluator's key in the environment; nil means that no variable is set

	IgnoresFileSystem bool // judge by the text alone, as if no file existed, so that the result is the same on every machine
	// ExecutionContainer is the container in which actions run, as the kernel reports it; nil if there is none
	// or the setting "container" is no.
	ExecutionContainer *container.Container

	FileOverlay             analysis.FileOverlay // files that replace those of the disk; nil for none
	JudgesExecutedActions   bool                 // the actions have already run: a denial is not compared with later actions of its session
	TierStepsIncludeLatency bool                 // the steps of [VerdictWithLogData.Trail] carry their latency
	VerdictsIncludeTrail    bool                 // every verdict carries its trail, with latencies, effects and views
	OmitsActionFromVerdicts bool                 // leave the action out of verdicts
	JudgesSingleAction      bool                 // the process judges a single action: prepare at once what it needs, and skip what pays off only later

	// AgentHostName is the host program that reports actions one by one and vouches for their session names. ""
	// means that session names are the agent's claim.
	AgentHostName        string
	AdvanceApprovalsPath string // a person's file of answers in advance, see [approve.ReadAdvanceApprovals]; "" for none
	// LookUpUnknownTool returns what is known about the unknown tool of an action; nil means that nothing is
	// known.
	LookUpUnknownTool func(*action.Action) approve.UnknownTool

	OffersAllowOnce       bool   // refusals get a reference, by which a person can allow the action once; needs a state folder
	BacksUpLostFiles      bool   // back up the files that an allowed action deletes or overwrites, before the verdict is returned; for a process whose caller runs the action
	AllowsIfFilesBackedUp bool   // with BacksUpLostFiles false: allow what needs a backup, with [verdict.AllowConditionFilesBackedUp]
	ParentSessionID       string // the host's session in which the sessions of this pipeline began; "" if unknown
	IsolatesSessions      bool   // sessions share nothing, and an action without a session has no memory

	// HostAndAncestorProcessNames returns names of the host's process and its ancestors, nearest first. A new session
	// becomes a child of a session whose host is among them. nil means that the processes are
	// unknown.
	HostAndAncestorProcessNames func() []string

	// NotifyUser receives warnings for a person that no verdict carries, such as a sudden rise in
	// evaluations. Any goroutine may call it; it may be nil.
	NotifyUser func(text string)

	// Observe receives each verdict after it is logged. It must not block. Any goroutine may call it;
	// it may be nil.
	Observe func(telemetry.Action)

	Clock func() time.Time // nil means the system clock

	pool *PipelinePool // provides a shared model; if nil, the pipeline opens its own
}

// Defaults returns the settings of a pipeline that has none: [config.Default], but without a model, a
// person to ask and a log.
func Defaults() config.Settings {
	s := config.Default()
	s.Classifier = config.Classifier{SkippedActionTypes: config.ActionTypeListOrModelDefault{UsesModelOwnList: true}}
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
	if len(cfg.WorkspaceRoots) > 0 {
		s.WorkspaceRoots = cfg.WorkspaceRoots
	}
	if cfg.PolicyNameOrPath != "" {
		s.PolicyNameOrPath, s.PolicyBundle = cfg.PolicyNameOrPath, config.Default().PolicyBundle
	}
	s.Classifier.BlockThreshold = cmp.Or(cfg.OnnxThreshold, s.Classifier.BlockThreshold)
	s.Evaluator.FixedCanaryToken = cmp.Or(cfg.CanaryToken, s.Evaluator.FixedCanaryToken)
	s.MaxEvaluatorCallsPerMinute = cmp.Or(cfg.MaxEvaluatorCallsPerMinute, s.MaxEvaluatorCallsPerMinute)
	s.MaxEvaluationsPerDay = cmp.Or(cfg.MaxEvaluationsPerDay, s.MaxEvaluationsPerDay)
	return s
}

// parentSessionAndProcesses returns where the host started the sessions of this pipeline: the ID of the parent
// session, and the processes of the host and its ancestors.
func (cfg *Config) parentSessionAndProcesses() session.Lineage {
	return session.Lineage{ParentSessionID: cfg.ParentSessionID, HostAndAncestorProcessNames: cfg.HostAndAncestorProcessNames}
}

// auditFile returns the path of the audit log, or "" if there is none.
func (cfg *Config) auditFile() string {
	s := cfg.effectiveSettings()
	return s.AuditFile(cfg.StateDir)
}

// reasonByUnfingerprintedField lists the fields of [Config] that the fingerprint leaves out, each with the reason:
// the field cannot change a verdict, or another fingerprint covers it.
var reasonByUnfingerprintedField = map[string]string{
	"Settings":                    "they have a fingerprint of their own",
	"PolicyNameOrPath":            "a setting",
	"WorkspaceRoots":              "a setting",
	"OnnxThreshold":               "a setting",
	"CanaryToken":                 "a setting",
	"MaxEvaluatorCallsPerMinute":  "a setting",
	"MaxEvaluationsPerDay":        "a setting",
	"ModelDir":                    "the fingerprint of the model covers it",
	"BundleDir":                   "the fingerprint of the policy covers it",
	"StateDir":                    "the seal key in the folder tells installations apart",
	"Caller":                      "only the log says who asks",
	"Provider":                    "code; the program that passes it keeps it the same",
	"ApprovalOptions":             "beside the settings, it says how a question is shown",
	"LookupEnvironmentVariable":   "a key decides who pays, not which model answers",
	"FileOverlay":                 "only what looks back has one, and seals nothing",
	"JudgesExecutedActions":       "as FileOverlay",
	"TierStepsIncludeLatency":     "it says what a trail shows",
	"VerdictsIncludeTrail":        "it says what a verdict shows",
	"JudgesSingleAction":          "it says what is prepared, and when",
	"OmitsActionFromVerdicts":     "it says what a verdict shows",
	"AgentHostName":               "what its sessions remember is part of the bindings",
	"ParentSessionID":             "as AgentHostName",
	"BacksUpLostFiles":            "the verdict says so",
	"AllowsIfFilesBackedUp":       "as BacksUpLostFiles",
	"LookUpUnknownTool":           "the effects of a tool's class are part of the bindings",
	"OffersAllowOnce":             "a person's permission is a verdict of its own",
	"IsolatesSessions":            "as AgentHostName",
	"HostAndAncestorProcessNames": "as AgentHostName",
	"LockWait":                    "it bounds the wait for other processes",
	"NotifyUser":                  "only people are told",
	"Observe":                     "it only receives verdicts",
	"Clock":                       "the time of a verdict is in the verdict",
	"pool":                        "it says who opens a model, not which",
}

// fingerprint returns the hex SHA-256 of all that can change a verdict besides policy, rules and
// model.
func (cfg *Config) fingerprint() (string, error) {
	s := cfg.effectiveSettings()
	h := sha256.New()
	_, _ = io.WriteString(h, s.Fingerprint()) // writing to a hash does not fail
	for v, i := reflect.ValueOf(*cfg), 0; i < v.NumField(); i++ {
		name := v.Type().Field(i).Name
		if _, out := reasonByUnfingerprintedField[name]; out {
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

// newVerdictFingerprints returns the hashes of policy, rules, model and configuration to which a seal binds a
// verdict.
func newVerdictFingerprints(cfg Config, policyFingerprint, modelFingerprint string) (verdict.Fingerprints, error) {
	own, err := cfg.fingerprint()
	return verdict.Fingerprints{Policy: policyFingerprint, ClassifierRules: classify.BuiltInRulesFingerprint(), ClassifierModel: modelFingerprint, Config: own}, err
}
