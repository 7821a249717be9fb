// Package config reads shield's settings: the defaults, the system's file, the user's file, the
// command line, and the locked section of the system's file, each overriding the one before.
//
// The configuration file is never read from the working directory, since the agent writes there.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/bundle"
	"github.com/shieldcli/shield/pkg/telemetry"
)

// Settings are all settings of shield. [Default] returns the strict values.
type Settings struct {
	PolicyNameOrPath              string                 `yaml:"policy" json:"policy"`         // auto, a preset's name, or a path
	PolicyBundle                  PolicyBundle           `yaml:"policy,mapping" json:"bundle"` // the settings under policy, if it is a mapping
	PolicyLayers                  PolicyLayers           `yaml:"layers" json:"layers"`
	WorkspaceRoots                []string               `yaml:"roots" json:"roots"`
	Classifier                    Classifier             `yaml:"classifier" json:"classifier"`
	HeuristicRules                HeuristicRules         `yaml:"heuristic" json:"heuristic"`
	Evaluator                     Evaluator              `yaml:"evaluator" json:"evaluator"`
	Approval                      Approval               `yaml:"approval" json:"approval"`
	FailClosed                    bool                   `yaml:"fail_closed" json:"fail_closed"`
	MaxEvaluatorCallsPerMinute    int                    `yaml:"rate_limit" json:"rate_limit"`     // most calls of the evaluator (Tier 2) in a minute
	MaxEvaluationsPerDay          int                    `yaml:"daily_budget" json:"daily_budget"` // most evaluations (Tier 2) in a day
	EvaluationBudgetResetTimezone string                 `yaml:"budget_reset" json:"budget_reset"` // the day starts at midnight: local or utc
	VerdictTTL                    Duration               `yaml:"verdict_ttl" json:"verdict_ttl"`
	StateDir                      string                 `yaml:"state" json:"state"` // folder of seal key, state and audit log; "" is the user's state folder
	Audit                         Audit                  `yaml:"audit" json:"audit"`
	SanitizeToolResults           ToolResultSanitization `yaml:"sanitize" json:"sanitize"`
	Hook                          Hook                   `yaml:"hook" json:"hook"`
	TrustedTargets                TrustedTargets         `yaml:"trusted" json:"trusted"`
	Session                       Session                `yaml:"session" json:"session"`
	ContainerEffectsTrustMode     string                 `yaml:"container" json:"container"` // auto or no: whether effects that stay inside a container count as ordinary
	Undo                          Undo                   `yaml:"undo" json:"undo"`
	MCP                           MCP                    `yaml:"mcp" json:"mcp"`
	Serve                         JudgingService         `yaml:"serve" json:"serve"`
	Telemetry                     Telemetry              `yaml:"telemetry" json:"telemetry"`
	CrossMachineStateStoreURL     string                 `yaml:"store" json:"store"`                             // URL of a Redis or Valkey server that machines share; "" keeps everything in the state folder
	StoreEncryptionKeyFile        string                 `yaml:"store_key_file" json:"store_key_file"`           // file with the secret key, in hex, that all machines with the same store use
	StorePasswordEnv              string                 `yaml:"store_password_env" json:"store_password_env"`   // environment variable that holds the server's password
	StorePasswordFile             string                 `yaml:"store_password_file" json:"store_password_file"` // file with the server's password, readable by its owner only
	StoreCAFile                   string                 `yaml:"store_ca_file" json:"store_ca_file"`             // PEM certificates to trust instead of the system's
	MaxActionRecordBytes          int                    `yaml:"max_bytes" json:"max_bytes"`                     // most bytes of one input record
}

// PolicyBundle names a signed policy, which replaces the policy file or preset of the settings. An empty
// URLOrPath means that there is none.
type PolicyBundle struct {
	URLOrPath          string   `yaml:"bundle" json:"bundle"` // an https URL, or a path
	MinisignPublicKeys []string `yaml:"keys" json:"keys"`     // minisign public keys; one of them must have signed the bundle
	ExpiryGracePeriod  Duration `yaml:"grace" json:"grace"`   // how long an expired bundle is still used
}

// PolicyLayers name policy files below the main policy. They can only make the policy stricter. Each may
// be "".
type PolicyLayers struct {
	TeamPolicyPath    string `yaml:"team" json:"team"`
	UserPolicyPath    string `yaml:"user" json:"user"`
	ProjectPolicyPath string `yaml:"project" json:"project"`
}

// Classifier settings are those of Tier 1's model.
type Classifier struct {
	Enabled                bool                         `yaml:"enabled" json:"enabled"`
	ModelNameOrDir         string                       `yaml:"model" json:"model"`             // a name, a folder, or none
	BlockThreshold         float64                      `yaml:"threshold" json:"threshold"`     // 0.0–1.0: an injection with this confidence or more is blocked; 0: the model's own value
	SkippedActionTypes     ActionTypeListOrModelDefault `yaml:"skip_types" json:"skip_types"`   // auto, or a list of action types
	SidecarURLOrSocket     string                       `yaml:"addr" json:"addr"`               // URL or Unix socket of a classifier in another process
	ONNXRuntimeLibraryPath string                       `yaml:"onnxruntime" json:"onnxruntime"` // path of the ONNX Runtime library
}

// EmptyIfDisabledOrModelNone returns the settings, or the zero value if no model is used.
func (c Classifier) EmptyIfDisabledOrModelNone() Classifier {
	if !c.Enabled || c.ModelNameOrDir == "none" {
		return Classifier{}
	}
	return c
}

// HeuristicRules settings are those of Tier 1's rules. Rules marked always_block
// run even if not Enabled.
type HeuristicRules struct {
	Enabled bool `yaml:"enabled" json:"enabled"`
}

// Evaluator settings are those of Tier 2. No Provider means no Tier 2.
type Evaluator struct {
	Provider         string   `yaml:"provider" json:"provider"` // openai, anthropic, google, ollama or custom
	Model            string   `yaml:"model" json:"model"`
	APIKeyEnv        string   `yaml:"api_key_env" json:"api_key_env"`   // environment variable that holds the key; "" for the provider's usual one
	APIKeyFile       string   `yaml:"api_key_file" json:"api_key_file"` // file with the key, readable by its owner only
	BaseURL          string   `yaml:"base_url" json:"base_url"`         // address of the service, if not the provider's; needed for custom
	FixedCanaryToken string   `yaml:"canary_token" json:"-"`            // a fixed canary token; "" draws a new one for each evaluation
	Proxy            string   `yaml:"proxy" json:"proxy"`               // URL of a proxy; "" connects directly, and ignores the proxy variables of the environment
	CAFile           string   `yaml:"ca_file" json:"ca_file"`           // PEM certificates to trust instead of the system's
	Timeout          Duration `yaml:"timeout" json:"timeout"`           // time limit of one evaluation
	Price            Price    `yaml:"price" json:"price"`
}

// A Price is the provider's price for a million tokens, in any currency; 0 if unknown.
type Price struct {
	InputPerMillionTokens  float64 `yaml:"input" json:"input"`
	OutputPerMillionTokens float64 `yaml:"output" json:"output"`
}

// Approval settings are those of Tier 3.
type Approval struct {
	Channels             ApprovalChannels `yaml:"channels" json:"channels"`         // auto, or a list of tty, web, command, telegram, slack, discord, host
	UnattendedDenyOrWait string           `yaml:"unattended" json:"unattended"`     // what happens to a question that reaches no user: "deny", or "wait" and a duration, such as "wait 10m"
	Timeout              Duration         `yaml:"timeout" json:"timeout"`           // time for an answer, from when the question is shown
	MaxQuestionsPerHour  int              `yaml:"max_per_hour" json:"max_per_hour"` // most questions in an hour
	CommandChannelArgv   []string         `yaml:"command" json:"command"`           // the program and arguments of the channel "command"
	Web                  WebApprovalPage  `yaml:"web" json:"web"`
	Telegram             Telegram         `yaml:"telegram" json:"telegram"`
	Slack                ChatApproval     `yaml:"slack" json:"slack"`
	Discord              ChatApproval     `yaml:"discord" json:"discord"`
	NotificationURLsFile string           `yaml:"notify_file" json:"notify_file"` // file, readable only by its owner, with the URLs of chats to notify of each question on the approval web page
}

// WebApprovalPage settings are those of the approval channel "web".
type WebApprovalPage struct {
	Listen string `yaml:"listen" json:"listen"` // a loopback address; "" means 127.0.0.1:0
}

// Telegram settings are those of the approval channel "telegram".
type Telegram struct {
	TokenFile string `yaml:"token_file" json:"token_file"` // file with the token of a bot that no other machine uses, readable by its owner only
	ChatID    int    `yaml:"chat" json:"chat"`             // number of the chat in which shield asks; 0 is the chat with the only approver
	Approvers []int  `yaml:"approvers" json:"approvers"`   // numbers of the users whose answers count
}

// ChatApproval settings are those of an approval channel that is answered by reactions.
type ChatApproval struct {
	TokenFile string   `yaml:"token_file" json:"token_file"` // file with the token of a bot, readable by its owner only
	ChatID    string   `yaml:"chat" json:"chat"`             // ID of the chat in which shield asks; "" is the chat with the only approver
	Approvers []string `yaml:"approvers" json:"approvers"`   // IDs of the users whose answers count
}

// Audit settings are those of the log. No File means audit.jsonl in the state
// folder.
type Audit struct {
	Enabled      bool   `yaml:"enabled" json:"enabled"`
	File         string `yaml:"file" json:"file"`
	MaxFileBytes int    `yaml:"max_bytes" json:"max_bytes"` // size at which the log continues in a new file
}

// AuditFile returns the path of the audit log, or "" if there is none. stateDir
// is the state folder, "" if there is none.
func (s *Settings) AuditFile(stateDir string) string {
	switch {
	case !s.Audit.Enabled:
		return ""
	case s.Audit.File != "" || stateDir == "":
		return s.Audit.File
	default:
		return filepath.Join(stateDir, "audit.jsonl")
	}
}

// ToolResultSanitization settings choose which tool results are examined before an agent reads them, and what happens to
// a result with findings.
type ToolResultSanitization struct {
	Enabled                  Switch `yaml:"enabled" json:"enabled"`     // auto: results of the web, of mail and of tool servers; every result if a chat is among approval.channels
	ActionOnFindings         string `yaml:"mode" json:"mode"`           // flag, clean, wrap or block
	EvaluatorExaminesResults bool   `yaml:"evaluator" json:"evaluator"` // whether the evaluator examines the tool results, in addition to the other checks
}

// Hook settings are those of agent hosts' hooks.
type Hook struct {
	AnswerToHostOnAllow          string   `yaml:"answer" json:"answer"`                         // the answer to a host for an ALLOW: delegate or allow
	AnswerPermissionPromptsOnOff string   `yaml:"permission_request" json:"permission_request"` // on or off: whether shield answers a host's permission prompt for an ALLOW
	Timeout                      Duration `yaml:"timeout" json:"timeout"`                       // a hook that takes longer denies
}

// TrustedTargets settings name hosts and resources that ordinary work may send data to or change. They do not
// override deny rules, and secrets are never sent there.
type TrustedTargets struct {
	Hosts               []string `yaml:"hosts" json:"hosts"`             // names, globs or CIDR prefixes; HOST/PATH for a part of a shared host
	GitRemotes          []string `yaml:"git_remotes" json:"git_remotes"` // names of git remotes
	Recipients          []string `yaml:"recipients" json:"recipients"`   // globs of mail addresses and channels
	RemoteResourceGlobs []string `yaml:"targets" json:"targets"`         // globs of databases, clusters and resources
}

// Undo settings limit the copies of files that actions delete or overwrite.
type Undo struct {
	Enabled             bool     `yaml:"enabled" json:"enabled"`
	BackupRetention     Duration `yaml:"keep" json:"keep"`
	MaxTotalBackupBytes int64    `yaml:"max_bytes" json:"max_bytes"` // most bytes of all copies; at most a twentieth of the disk
}

// Session settings limit how much shield remembers about a session, and how many denials stop a
// session.
type Session struct {
	SessionTrackingEnabled      bool     `yaml:"enabled" json:"enabled"`
	IdleSessionRetention        Duration `yaml:"keep" json:"keep"`               // how long a session is remembered after its last action
	MaxTaintLabelledFiles       int      `yaml:"max_files" json:"max_files"`     // maximum number of files of a user whose origin is remembered; other files then have an unknown origin
	MaxDenialsBeforeSessionStop int      `yaml:"max_denials" json:"max_denials"` // denials within ten minutes after which a host's session stops
}

// MCP settings are those of the gateway in front of MCP servers.
type MCP struct {
	SamplingDenyOrAllow string      `yaml:"sampling" json:"sampling"`     // deny or allow: whether servers can use the client's model
	Listen              string      `yaml:"listen" json:"listen"`         // HOST:PORT at which shield mcp serve listens
	TLSCert             string      `yaml:"tls_cert" json:"tls_cert"`     // PEM file with the certificate
	TLSKey              string      `yaml:"tls_key" json:"tls_key"`       // PEM file with the private key
	TokenFile           string      `yaml:"token_file" json:"token_file"` // file with the token that clients must send, readable by its owner only
	Servers             []MCPServer `yaml:"servers" json:"servers"`       // the servers behind shield mcp serve
}

// An MCPServer is a server behind shield mcp serve: a command line, or a URL.
type MCPServer struct {
	Name      string             `yaml:"name" json:"name"` // letters, digits, - and _
	Command   []string           `yaml:"command" json:"command,omitempty"`
	URL       string             `yaml:"url" json:"url,omitempty"`
	TokenFile string             `yaml:"token_file" json:"token_file,omitempty"` // file with the token that shield sends to the server
	Contain   *ServerContainment `yaml:"contain" json:"contain,omitempty"`       // how the server that Command starts is contained; nil: not contained
}

// ServerContainment lists what a contained server can reach besides the workspace.
type ServerContainment struct {
	ReadablePaths   []string `yaml:"read" json:"read,omitempty"`       // files and folders that the server can read, even if they contain credentials
	WritablePaths   []string `yaml:"write" json:"write,omitempty"`     // existing files and folders that the server can change
	NetworkAccess   string   `yaml:"network" json:"network,omitempty"` // network access: open or none; "" is open
	MustBeContained bool     `yaml:"require" json:"require,omitempty"` // the server does not start where it cannot be contained
}

// String returns the settings as one line of JSON; "" if c is nil.
func (c *ServerContainment) String() string {
	if c == nil {
		return ""
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// JudgingService holds the settings of the service that judges actions of other machines. If Listen is "",
// the service accepts connections only on its Unix socket.
type JudgingService struct {
	Listen     string `yaml:"listen" json:"listen"`           // HOST:PORT
	TLSCert    string `yaml:"tls_cert" json:"tls_cert"`       // file of PEM certificates
	TLSKey     string `yaml:"tls_key" json:"tls_key"`         // file with the private key, readable by its owner only
	TokensFile string `yaml:"tokens_file" json:"tokens_file"` // file with a line NAME TOKEN for each client, readable by its owner only
}

// Telemetry settings name where shield serve and shield mcp serve send spans and metrics.
type Telemetry struct {
	OTLPEndpointURL string `yaml:"otlp" json:"otlp"` // URL of an OpenTelemetry collector; "" sends nothing
}

// MaxHookTimeout is the longest that a hook may take: hosts stop waiting at
// ten minutes.
const MaxHookTimeout = 590 * time.Second

// Default returns the settings of an unconfigured shield.
func Default() Settings {
	return Settings{
		PolicyNameOrPath:              "auto",
		PolicyBundle:                  PolicyBundle{ExpiryGracePeriod: Duration(72 * time.Hour)},
		Classifier:                    Classifier{Enabled: true, ModelNameOrDir: "default", BlockThreshold: 0.85, SkippedActionTypes: ActionTypeListOrModelDefault{UsesModelOwnList: true}},
		HeuristicRules:                HeuristicRules{Enabled: true},
		Evaluator:                     Evaluator{Timeout: Duration(30 * time.Second)},
		Approval:                      Approval{Channels: ApprovalChannels{AutoChannels}, UnattendedDenyOrWait: "deny", Timeout: Duration(300 * time.Second), MaxQuestionsPerHour: 60, Web: WebApprovalPage{Listen: "127.0.0.1:0"}},
		FailClosed:                    true,
		MaxEvaluatorCallsPerMinute:    60,
		MaxEvaluationsPerDay:          100,
		EvaluationBudgetResetTimezone: "local",
		VerdictTTL:                    Duration(300 * time.Second),
		Audit:                         Audit{Enabled: true, MaxFileBytes: 64 << 20},
		SanitizeToolResults:           ToolResultSanitization{Enabled: Auto, ActionOnFindings: "flag"},
		Hook:                          Hook{AnswerToHostOnAllow: "delegate", AnswerPermissionPromptsOnOff: "off", Timeout: Duration(50 * time.Second)},
		TrustedTargets:                TrustedTargets{GitRemotes: []string{"origin"}},
		Session:                       Session{SessionTrackingEnabled: true, IdleSessionRetention: Duration(24 * time.Hour), MaxTaintLabelledFiles: 10_000, MaxDenialsBeforeSessionStop: 10},
		ContainerEffectsTrustMode:     "auto",
		Undo:                          Undo{Enabled: true, BackupRetention: Duration(7 * 24 * time.Hour), MaxTotalBackupBytes: 5 << 30},
		MCP:                           MCP{SamplingDenyOrAllow: "deny"},
		MaxActionRecordBytes:          1 << 20,
	}
}

// A settingFault is a setting whose value cannot be used.
type settingFault struct{ setting, msg string }

// Check returns an error that names every setting whose value cannot be used.
func (s *Settings) Check() error {
	var errs []error
	for _, f := range s.findFaults() {
		errs = append(errs, fmt.Errorf("%s %s", f.setting, f.msg))
	}
	return errors.Join(errs...)
}

// findFaults returns all settings whose values cannot be used.
func (s *Settings) findFaults() []settingFault {
	var out []settingFault
	const day = Duration(24 * time.Hour)
	for _, f := range []*settingFault{
		checkFraction("classifier.threshold", s.Classifier.BlockThreshold),
		checkRange("evaluator.price.input", s.Evaluator.Price.InputPerMillionTokens, 0, 100_000),
		checkRange("evaluator.price.output", s.Evaluator.Price.OutputPerMillionTokens, 0, 100_000),
		checkRange("rate_limit", s.MaxEvaluatorCallsPerMinute, 1, 1_000_000),
		checkRange("daily_budget", s.MaxEvaluationsPerDay, 1, 1_000_000_000),
		checkRange("approval.max_per_hour", s.Approval.MaxQuestionsPerHour, 1, 10_000),
		checkRange("audit.max_bytes", s.Audit.MaxFileBytes, 1<<16, 1<<30),
		checkRange("session.max_files", s.Session.MaxTaintLabelledFiles, 1, 100_000),
		checkRange("session.max_denials", s.Session.MaxDenialsBeforeSessionStop, 1, 1000),
		checkRange("undo.max_bytes", s.Undo.MaxTotalBackupBytes, 1<<20, 1<<44),
		checkDurationBetween("undo.keep", s.Undo.BackupRetention, Duration(24*time.Hour), 90*day),
		checkDurationBetween("session.keep", s.Session.IdleSessionRetention, Duration(time.Minute), 30*day),
		checkRange("max_bytes", s.MaxActionRecordBytes, 1<<10, 1<<30),
		checkDurationAtMost("verdict_ttl", s.VerdictTTL, day),
		checkDurationAtMost("evaluator.timeout", s.Evaluator.Timeout, day),
		checkDurationAtMost("approval.timeout", s.Approval.Timeout, day),
		checkDurationBetween("hook.timeout", s.Hook.Timeout, Duration(time.Second), Duration(MaxHookTimeout)),
		checkOneOf("sanitize.mode", s.SanitizeToolResults.ActionOnFindings, "flag", "clean", "wrap", "block"),
		checkOneOf("hook.answer", s.Hook.AnswerToHostOnAllow, "delegate", "allow"),
		checkOneOf("mcp.sampling", s.MCP.SamplingDenyOrAllow, "deny", "allow"),
		checkOneOf("hook.permission_request", s.Hook.AnswerPermissionPromptsOnOff, "off", "on"),
		checkOneOf("container", s.ContainerEffectsTrustMode, "auto", "no"),
		checkOneOf("budget_reset", s.EvaluationBudgetResetTimezone, "local", "utc"),
		checkOneOf("evaluator.provider", s.Evaluator.Provider, "", "openai", "anthropic", "google", "ollama", "custom"),
	} {
		if f != nil {
			out = append(out, *f)
		}
	}
	out = append(out, s.PolicyBundle.findFaults()...)
	if s.Telemetry.OTLPEndpointURL != "" {
		if err := telemetry.CheckCollectorURL(s.Telemetry.OTLPEndpointURL); err != nil {
			out = append(out, settingFault{"telemetry.otlp", err.Error()})
		}
	}
	out = append(out, s.MCP.findFaults()...)
	for _, channel := range s.Approval.Channels {
		if channel == AutoChannels && len(s.Approval.Channels) > 1 {
			out = append(out, settingFault{"approval.channels", "auto cannot be combined with other channels; write auto alone, or only the others"})
		} else if f := checkOneOf("approval.channels", channel, AutoChannels, "tty", "web", "command", "telegram", "slack", "discord", "host"); f != nil {
			out = append(out, *f)
		}
	}
	if _, err := s.Approval.UnattendedWaitDuration(); err != nil {
		out = append(out, settingFault{"approval.unattended", err.Error()})
	}
	if s.CrossMachineStateStoreURL != "" && s.StoreEncryptionKeyFile == "" {
		out = append(out, settingFault{"store", "needs store_key_file, a file that is the same on all machines; make one with 'openssl rand -hex 32'"})
	}
	if s.StorePasswordEnv != "" && s.StorePasswordFile != "" {
		out = append(out, settingFault{"store_password_env", "and store_password_file are both set; leave one out"})
	}
	if v := s.Serve; v.Listen != "" {
		if _, _, err := net.SplitHostPort(v.Listen); err != nil {
			out = append(out, settingFault{"serve.listen", fmt.Sprintf("%s is not HOST:PORT; write both", yamlfile.QuoteForMessage(v.Listen))})
		}
		if v.TLSCert == "" || v.TLSKey == "" || v.TokensFile == "" {
			out = append(out, settingFault{"serve.listen", "needs serve.tls_cert, serve.tls_key and serve.tokens_file; set them"})
		}
	}
	return out
}

func (b *PolicyBundle) findFaults() (out []settingFault) {
	_, err := bundle.ParseKeys(b.MinisignPublicKeys)
	switch {
	case err != nil:
		out = append(out, settingFault{"policy.keys", err.Error()})
	case b.URLOrPath != "" && len(b.MinisignPublicKeys) == 0:
		out = append(out, settingFault{"policy.bundle", "needs policy.keys; set it to the public keys of the signers"})
	case b.URLOrPath == "" && len(b.MinisignPublicKeys) > 0:
		out = append(out, settingFault{"policy.keys", "needs policy.bundle; set it to the URL or file of the signed bundle"})
	}
	if err := bundle.CheckSourceURL(b.URLOrPath); err != nil {
		out = append(out, settingFault{"policy.bundle", err.Error()})
	}
	if f := checkDurationBetween("policy.grace", b.ExpiryGracePeriod, 0, Duration(30*24*time.Hour)); f != nil {
		out = append(out, *f)
	}
	return out
}

func checkFraction(name string, v float64) *settingFault {
	if v >= 0 && v <= 1 {
		return nil
	}
	return &settingFault{name, fmt.Sprintf("must be from 0 to 1, not %v", v)}
}

func checkRange[T int | int64 | float64](name string, v, low, high T) *settingFault {
	if v >= low && v <= high {
		return nil
	}
	return &settingFault{name, fmt.Sprintf("must be from %v to %v, not %v", low, high, v)}
}

func checkDurationAtMost(name string, d, most Duration) *settingFault {
	if d > 0 && d <= most {
		return nil
	}
	return &settingFault{name, fmt.Sprintf("must be more than 0s and at most %v, not %v", most, d)}
}

func checkDurationBetween(name string, d, least, most Duration) *settingFault {
	if d >= least && d <= most {
		return nil
	}
	return &settingFault{name, fmt.Sprintf("must be from %v to %v, not %v", least, most, d)}
}

func checkOneOf(name, v string, allowed ...string) *settingFault {
	if slices.Contains(allowed, v) {
		return nil
	}
	allowed = slices.DeleteFunc(slices.Clone(allowed), func(a string) bool { return a == "" })
	return &settingFault{name, fmt.Sprintf("%s is not a valid value; write one of: %s%s", yamlfile.QuoteForMessage(v), strings.Join(allowed, ", "), suggest.DidYouMeanSuffix(v, allowed))}
}
