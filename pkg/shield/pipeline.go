package shield

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/telemetry"
	"github.com/shieldcli/shield/pkg/undo"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Pipeline judges actions. Goroutines may share it.
type Pipeline struct {
	analyzer                      *analysis.Analyzer
	rules                         *policy.Policy
	tiers                         [4]Tier
	sealer                        *verdict.Sealer // nil without a state folder
	now                           func() time.Time
	verdictLifetime               time.Duration
	verdictsIncludeTrail          bool
	measuresLatency               bool // steps carry their latency
	omitsLatenciesFromTierSteps   bool // latencies are measured but left out of verdicts and log
	observeActionTelemetry        func(telemetry.Action)
	omitsActionFromVerdicts       bool
	limits                        state.EvaluationAndApprovalLimits
	store                         *state.Store                             // nil without a state folder
	allowOnceDecisionStore        *approve.DecisionStore                   // nil if actions cannot be allowed once
	personDecisionStore           *approve.DecisionStore                   // a person's approvals of kinds of actions, and classes of tools; nil without a state folder
	advanceApprovalsPath          string                                   // a person's file of answers; "" for none
	unknownToolLookup             func(*action.Action) approve.UnknownTool // what is known of an unknown tool; may be nil
	usesStrictPolicyPreset        bool                                     // the preset is strict: a question is asked even if the user has named the object
	installationIDForApprovalKeys string                                   // binds approvals to this installation, also where the store is shared
	approver                      *approve.Approver
	log                           *audit.Log // nil without an audit file
	stateAndAuditLockFilePaths    []string   // lock files of state and audit log; a process that holds a lock delays log entries
	redactor                      *redact.Redactor
	sanitizeSettings              config.ToolResultSanitization
	asksPersonInChatService       bool // a person is asked in a chat, where other people's texts may come in
	caller                        audit.Caller
	fingerprints                  audit.PolicyAndModelFingerprints
	usesClassifierSidecar         bool          // Tier 1 asks another process
	missingModelNote              string        // why the classifier's model cannot be used; "" if it can; see [Pipeline.UnusableModelOrPolicyNote]
	ineffectivePolicyEntriesError error         // policy entries that have no effect
	checkPolicyExpiry             func() error  // why the policy is no longer valid; nil if it never expires
	noReviewerDenialText          string        // text of a denial without a model and a person to ask; "" if there is a model
	cannotAskPersonReason         func() string // why no person can be asked, and what to do; "" if one can be. Computed on demand, since it reads the parent processes
	notifyUser                    func(text string)

	sessionStoreForJudging        *session.Store // the sessions that actions are judged with; nil if session tracking is off
	persistentSessionStore        *session.Store // where allowed actions are stored if the stream has sessions of its own; else nil
	actionStreamID                string         // random name of the current stream of actions; "" outside a stream, if a host names the sessions, or if session tracking is off
	agentHostName                 string         // the host program whose session names are trusted; "" if only the agent names sessions, see [Config]
	parentSessionAndProcesses     session.Lineage
	isolatesSessionsFromEachOther bool
	judgesExecutedActions         bool                  // the actions have already run, so denials are not remembered
	connectionWithOwnDenialCount  string                // connection whose denials are counted apart from its session; "" if they are counted with it
	credentialHashKey             [verdict.KeySize]byte // key of the hashes of credentials; without a state folder they are not stored
	sessionEventTypesInPolicy     []string              // earlier events that the policy refers to
	policyCountsSessionActions    bool

	evaluatorOptions          evaluate.Options // options of requests to the evaluator's model
	evaluatorModelName        string           // the name that an exam result is bound to; "" if there is none
	offlinePolicyPreset       func() (*policy.Policy, error)
	analyzerWithoutFileSystem func() (*analysis.Analyzer, error) // returns an analyzer that reads no files, for exam actions
	runningModelProbes        *sync.WaitGroup                    // probes that run
	judgesSingleAction        bool
	buildClassifierRuleTables func() // prepares the classifier
	usesAssistedPreset        bool   // the policy is the preset "assisted" or extends it

	undoStore                   *undo.Store // where lost files are kept; nil if the pipeline only prints verdicts
	allowsWithBackup            bool        // an action can be allowed if the files that it deletes or overwrites are backed up
	asksBeforePermanentFileLoss bool        // a command that deletes or overwrites files without a backup needs approval

	asksOncePerEditedInstructionFile bool // a project's own instruction file is asked about once per session

	ownedByPool bool // a [PipelinePool] owns the pipeline and closes it
}

// NewPipeline returns a pipeline, or an error if a policy, a root or the state folder is unusable.
func NewPipeline(cfg Config) (*Pipeline, error) {
	s := cfg.effectiveSettings()
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	p := &Pipeline{now: cfg.now, verdictLifetime: s.VerdictTTL.AsTimeDuration(), verdictsIncludeTrail: cfg.VerdictsIncludeTrail, measuresLatency: cfg.measuresLatency(), omitsLatenciesFromTierSteps: !cfg.TierStepsIncludeLatency && !cfg.VerdictsIncludeTrail, observeActionTelemetry: cfg.Observe, omitsActionFromVerdicts: cfg.OmitsActionFromVerdicts, unknownToolLookup: cfg.LookUpUnknownTool, caller: cfg.Caller, notifyUser: cfg.NotifyUser, sanitizeSettings: s.SanitizeToolResults}
	p.limits = Limits(cfg)
	p.asksPersonInChatService = slices.ContainsFunc(s.Approval.Channels, func(name string) bool { return approve.ChatServiceTitle(name) != "" })
	var err error
	p.analyzer, err = NewAnalyzer(cfg)
	if err != nil {
		return nil, err
	}
	rules, from, err := loadPolicy(cfg, PolicyOptions(cfg, &p.analyzer.DefaultExecutionContext))
	if err != nil {
		return nil, err
	}
	if cfg.ExecutionContainer != nil && !rules.HasVerifyRuleExceptingCause(string(effect.CauseInContainer)) {
		cfg.ExecutionContainer = nil
		if p.analyzer, err = NewAnalyzer(cfg); err != nil {
			return nil, err
		}
	}
	p.rules, p.ineffectivePolicyEntriesError = rules, rules.MissingPresetRulesError()
	preset, err := PolicyPresetName(cfg)
	p.asksOncePerEditedInstructionFile = err == nil && (preset == assistedPolicyPresetName || preset == "offline" || preset == "permissive")
	p.usesStrictPolicyPreset, p.usesAssistedPreset = err != nil || preset == "strict", err == nil && preset == assistedPolicyPresetName
	p.enforceBundleExpiry(from, s.PolicyBundle.ExpiryGracePeriod.AsTimeDuration())
	p.redactor = redact.New(s.Evaluator.FixedCanaryToken)
	classifier, model, err := p.newClassifier(cfg, rules)
	if err != nil {
		return nil, err
	}
	prints, err := newVerdictFingerprints(cfg, rules.Fingerprint(), model)
	if err != nil {
		return nil, err
	}
	if err := p.openStateFolder(cfg, prints); err != nil {
		return nil, err
	}
	p.openSessions(cfg, rules)
	p.openUndoStore(cfg, rules)
	person, err := p.newApprover(cfg, rules)
	if err != nil {
		return nil, err
	}
	p.cannotAskPersonReason = sync.OnceValue(func() string {
		if usable, why := person.CanAskUser(); !usable {
			return why
		}
		return ""
	})
	p.runningModelProbes, p.judgesSingleAction, p.buildClassifierRuleTables = new(sync.WaitGroup), cfg.JudgesSingleAction, classifier.PrebuildRuleTables
	p.analyzerWithoutFileSystem = sync.OnceValues(func() (*analysis.Analyzer, error) {
		blind := cfg
		blind.IgnoresFileSystem = true
		return NewAnalyzer(blind)
	})
	p.offlinePolicyPreset = sync.OnceValues(func() (*policy.Policy, error) {
		return policy.Preset("offline", PolicyOptions(cfg, &p.analyzer.DefaultExecutionContext))
	})
	evaluator, err := p.newEvaluator(cfg, func() bool { return p.cannotAskPersonReason() == "" })
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

// measuresLatency reports whether the latency of each step is measured.
func (cfg *Config) measuresLatency() bool {
	return cfg.TierStepsIncludeLatency || cfg.VerdictsIncludeTrail || cfg.Observe != nil
}

func (cfg *Config) now() time.Time {
	if cfg.Clock == nil {
		return time.Now()
	}
	return cfg.Clock()
}

// openStateFolder opens the files of the state folder: seal key, state file and log.
func (p *Pipeline) openStateFolder(cfg Config, configFingerprints verdict.Fingerprints) error {
	p.fingerprints = auditFingerprints(configFingerprints)
	if cfg.StateDir == "" {
		return nil
	}
	opts, err := StateOptions(cfg, p.now)
	if err != nil {
		return err
	}
	if p.store, err = state.Open(cfg.StateDir, opts); err != nil {
		return err
	}
	key, err := LoadOrCreateSealKey(context.Background(), cfg.StateDir, p.store)
	if err != nil {
		return err
	}
	p.sealer = verdict.NewSealer(key, configFingerprints)
	p.credentialHashKey = deriveSessionDataKey(key, opts.Remote)
	installation := deriveKey(key, "approvals")
	p.installationIDForApprovalKeys = "approve " + hex.EncodeToString(installation[:8])
	p.advanceApprovalsPath, p.personDecisionStore = cfg.AdvanceApprovalsPath, NewDecisionStore(key, p.store, p.now)
	if cfg.OffersAllowOnce {
		p.allowOnceDecisionStore = p.personDecisionStore
	}
	if file := cfg.auditFile(); file != "" {
		max := int64(cfg.effectiveSettings().Audit.MaxFileBytes)
		p.stateAndAuditLockFilePaths = append(state.AuditHeadAndStateLockPaths(cfg.StateDir), audit.LockFilePath(file))
		p.log, err = audit.Open(file, audit.Options{Clock: p.now, HeadStore: p.store, Redactor: p.redactor, MaxFileBytes: max, LockWait: cfg.LockWait})
	}
	return err
}

// openSessions opens the memory of sessions, if the settings enable it.
func (p *Pipeline) openSessions(cfg Config, rules *policy.Policy) {
	s := cfg.effectiveSettings()
	if !s.Session.SessionTrackingEnabled {
		return
	}
	opts := SessionOptions(cfg, p.now)
	opts.CredentialHashKey = p.credentialHashKey
	p.sessionStoreForJudging = session.NewStore(p.store, opts)
	p.agentHostName, p.parentSessionAndProcesses, p.isolatesSessionsFromEachOther, p.judgesExecutedActions = cfg.AgentHostName, cfg.parentSessionAndProcesses(), cfg.IsolatesSessions, cfg.JudgesExecutedActions
	p.sessionEventTypesInPolicy, p.policyCountsSessionActions = rules.RequiredSessionHistory()
}

// SessionOptions returns the options of a configuration's session store.
func SessionOptions(cfg Config, now func() time.Time) session.Options {
	s := cfg.effectiveSettings().Session
	return session.Options{Clock: now, SessionRetention: s.IdleSessionRetention.AsTimeDuration(), MaxFileRecordsPerUser: s.MaxTaintLabelledFiles, MaxDenials: s.MaxDenialsBeforeSessionStop, IsolateSessionsFromEachOther: cfg.IsolatesSessions}
}

// Limits returns the limits of a configuration.
func Limits(cfg Config) state.EvaluationAndApprovalLimits {
	s := cfg.effectiveSettings()
	return state.EvaluationAndApprovalLimits{MaxEvaluatorCallsPerMinute: s.MaxEvaluatorCallsPerMinute, MaxEvaluationsPerDay: s.MaxEvaluationsPerDay, MaxApprovalRequestsPerHour: s.Approval.MaxQuestionsPerHour}
}

// StateOptions returns the options of a configuration's state file.
func StateOptions(cfg Config, now func() time.Time) (state.Options, error) {
	opts := state.Options{Clock: now, BudgetResetLocation: time.Local, BootIDAndUptime: state.BootIDAndUptime, MaxFileLockWait: cfg.LockWait}
	if cfg.effectiveSettings().EvaluationBudgetResetTimezone == "utc" {
		opts.BudgetResetLocation = nil
	}
	opts.EvidenceOfEarlierStateFile = func() (string, error) { return evidenceOfEarlierStateFile(cfg) }
	var err error
	opts.Remote, err = LoadSharedStoreConfig(cfg)
	return opts, err
}

// evidenceOfEarlierStateFile says which file shows that an installation was used before. The seal key is created after the
// state file, so a key without a state file means that the state file was removed.
func evidenceOfEarlierStateFile(cfg Config) (string, error) {
	if file := cfg.auditFile(); file != "" {
		if has, err := audit.HasEntries(file); has || err != nil {
			return "the audit log shows that a state file existed", err
		}
	}
	if has, err := verdict.HasKey(cfg.StateDir); has || err != nil {
		return "the seal key shows that a state file existed", err
	}
	return "", nil
}

// LoadOrCreateSealKey returns the key that seals verdicts. On first use it creates the key after the state file,
// so that a key without a state file shows that the state file was removed.
func LoadOrCreateSealKey(ctx context.Context, dir string, store *state.Store) ([verdict.KeySize]byte, error) {
	has, err := verdict.HasKey(dir)
	if err == nil && !has {
		_, _, err = store.AuditHead(ctx)
	}
	if err != nil {
		return [verdict.KeySize]byte{}, err
	}
	return verdict.LoadKey(dir)
}

// deriveSessionDataKey returns the key of stored session data: the key shared by the machines of a remote store,
// or one of this installation.
func deriveSessionDataKey(sealKey [verdict.KeySize]byte, sharedStore *state.SharedStoreServer) [verdict.KeySize]byte {
	if sharedStore != nil {
		sealKey = sharedStore.EncryptionMasterKey
	}
	return deriveKey(sealKey, "credentials of sessions")
}

// deriveKey returns a key for one use, from which the original key cannot be computed.
func deriveKey(key [verdict.KeySize]byte, use string) (out [verdict.KeySize]byte) {
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte(use)) // writing to a hash does not fail
	copy(out[:], mac.Sum(nil))
	return out
}

// Close waits until everything is on disk and closes the state. It does not close a pipeline of a
// [PipelinePool].
func (p *Pipeline) Close() error {
	if p.ownedByPool {
		return nil
	}
	p.runningModelProbes.Wait()
	errs := []error{p.approver.Close()}
	if p.sessionStoreForJudging != nil {
		errs = append(errs, p.sessionStoreForJudging.FlushSentDataCounts(context.Background()))
	}
	if p.log != nil {
		errs = append(errs, p.log.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	return errors.Join(errs...)
}

// EvaluationUsageStatus is the number of evaluations used today, their daily limit, the status of the store, and
// the error if it cannot be read.
type EvaluationUsageStatus struct {
	EvaluationsUsedToday int // evaluations charged today
	MaxEvaluationsPerDay int // evaluations a day
	StoreStatus          state.StoreStatus
	Err                  error // why the state cannot be read; EvaluationsUsedToday is then the daily limit. nil if it was read
}

// Status returns the used part of the limits. Without a state folder nothing is used.
func (p *Pipeline) Status() EvaluationUsageStatus {
	s := EvaluationUsageStatus{MaxEvaluationsPerDay: p.limits.MaxEvaluationsPerDay}
	if p.store == nil {
		return s
	}
	s.StoreStatus, s.Err = p.store.Status(context.Background(), p.limits)
	s.EvaluationsUsedToday = s.StoreStatus.EvaluationsUsed
	if s.Err != nil {
		s.EvaluationsUsedToday = s.MaxEvaluationsPerDay
	}
	return s
}
