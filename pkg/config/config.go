// Package config reads shield's settings: the defaults, the system's file, the
// user's file, the command line, and what the system's file locks, each over
// the one before.
//
// A configuration file is never taken from the working directory, since the
// agent writes there.
package config

import (
	"fmt"
	"time"
)

// Settings are all that a person can set. [Default] gives the strict values.
type Settings struct {
	Policy       string     `yaml:"policy" json:"policy"` // auto, a preset's name, or a path
	Roots        []string   `yaml:"roots" json:"roots"`
	Classifier   Classifier `yaml:"classifier" json:"classifier"`
	Heuristic    Heuristic  `yaml:"heuristic" json:"heuristic"`
	Evaluator    Evaluator  `yaml:"evaluator" json:"evaluator"`
	Approval     Approval   `yaml:"approval" json:"approval"`
	FailClosed   bool       `yaml:"fail_closed" json:"fail_closed"`
	RateLimit    int        `yaml:"rate_limit" json:"rate_limit"`     // Tier 2 attempts a minute
	DailyBudget  int        `yaml:"daily_budget" json:"daily_budget"` // Tier 2 evaluations a day
	BudgetReset  string     `yaml:"budget_reset" json:"budget_reset"` // local or utc
	VerdictTTL   Duration   `yaml:"verdict_ttl" json:"verdict_ttl"`
	State        string     `yaml:"state" json:"state"` // folder of seal key, state and audit log; "" is the user's state folder
	Audit        Audit      `yaml:"audit" json:"audit"`
	Sanitize     Sanitize   `yaml:"sanitize" json:"sanitize"`
	MaxRecordLen int        `yaml:"max_bytes" json:"max_bytes"` // of one input record
}

// Classifier settings are those of Tier 1's model.
type Classifier struct {
	Enabled     bool    `yaml:"enabled" json:"enabled"`
	Model       string  `yaml:"model" json:"model"`             // a name, a folder, or none
	Threshold   float64 `yaml:"threshold" json:"threshold"`     // 0.0–1.0: from here on an injection is blocked
	SkipTypes   Types   `yaml:"skip_types" json:"skip_types"`   // auto, or a list of action types
	Addr        string  `yaml:"addr" json:"addr"`               // a sidecar's URL or Unix socket
	ONNXRuntime string  `yaml:"onnxruntime" json:"onnxruntime"` // the runtime library's path
}

// Heuristic settings are those of Tier 1's rules. Rules marked always_block
// run even if not Enabled.
type Heuristic struct {
	Enabled bool `yaml:"enabled" json:"enabled"`
}

// Evaluator settings are those of Tier 2. No Provider means no Tier 2.
type Evaluator struct {
	Provider    string   `yaml:"provider" json:"provider"` // openai, anthropic, google, ollama or custom
	Model       string   `yaml:"model" json:"model"`
	APIKeyEnv   string   `yaml:"api_key_env" json:"api_key_env"`
	APIKeyFile  string   `yaml:"api_key_file" json:"api_key_file"`
	BaseURL     string   `yaml:"base_url" json:"base_url"`
	CanaryToken string   `yaml:"canary_token" json:"-"`
	Proxy       string   `yaml:"proxy" json:"proxy"`
	CAFile      string   `yaml:"ca_file" json:"ca_file"`
	Timeout     Duration `yaml:"timeout" json:"timeout"`
}

// Approval settings are those of Tier 3.
type Approval struct {
	Channels   []string `yaml:"channels" json:"channels"` // tty, web, command
	Timeout    Duration `yaml:"timeout" json:"timeout"`
	MaxPerHour int      `yaml:"max_per_hour" json:"max_per_hour"`
	Command    []string `yaml:"command" json:"command"` // of the channel "command"
	Web        Web      `yaml:"web" json:"web"`
}

// Web settings are those of the approval channel "web".
type Web struct {
	Listen string `yaml:"listen" json:"listen"` // a loopback address
}

// Audit settings are those of the log. No File means audit.jsonl in the state
// folder.
type Audit struct {
	Enabled  bool   `yaml:"enabled" json:"enabled"`
	File     string `yaml:"file" json:"file"`
	MaxBytes int    `yaml:"max_bytes" json:"max_bytes"` // size from which on the log goes on in a new file
}

// Sanitize settings are those of text that goes back to the model.
type Sanitize struct {
	Enabled string `yaml:"enabled" json:"enabled"` // auto, true or false
}

// Default returns the settings of a shield that nobody configured.
func Default() Settings {
	return Settings{
		Policy:       "auto",
		Classifier:   Classifier{Enabled: true, Model: "default", Threshold: 0.85, SkipTypes: Types{Auto: true}},
		Heuristic:    Heuristic{Enabled: true},
		Evaluator:    Evaluator{Timeout: Duration(30 * time.Second)},
		Approval:     Approval{Channels: []string{"tty"}, Timeout: Duration(300 * time.Second), MaxPerHour: 10, Web: Web{Listen: "127.0.0.1:0"}},
		FailClosed:   true,
		RateLimit:    60,
		DailyBudget:  100,
		BudgetReset:  "local",
		VerdictTTL:   Duration(300 * time.Second),
		Audit:        Audit{Enabled: true, MaxBytes: 64 << 20},
		Sanitize:     Sanitize{Enabled: "auto"},
		MaxRecordLen: 1 << 20,
	}
}

// Check returns an error that names the first setting outside its range.
func (s *Settings) Check() error {
	within := func(name string, v, low, high float64) error {
		if !(v >= low && v <= high) {
			return fmt.Errorf("%s: %v is outside %v to %v", name, v, low, high)
		}
		return nil
	}
	const day = float64(24 * time.Hour)
	for _, err := range []error{
		within("classifier.threshold", s.Classifier.Threshold, 0, 1),
		within("rate_limit", float64(s.RateLimit), 1, 1e6),
		within("daily_budget", float64(s.DailyBudget), 1, 1e9),
		within("approval.max_per_hour", float64(s.Approval.MaxPerHour), 1, 1e4),
		within("audit.max_bytes", float64(s.Audit.MaxBytes), 1<<16, 1<<40),
		within("max_bytes", float64(s.MaxRecordLen), 1<<10, 1<<30),
		duration("verdict_ttl", s.VerdictTTL, day),
		duration("evaluator.timeout", s.Evaluator.Timeout, day),
		duration("approval.timeout", s.Approval.Timeout, day),
		oneOf("budget_reset", s.BudgetReset, "local", "utc"),
		oneOf("sanitize.enabled", s.Sanitize.Enabled, "auto", "true", "false"),
		oneOf("evaluator.provider", s.Evaluator.Provider, "", "openai", "anthropic", "google", "ollama", "custom"),
	} {
		if err != nil {
			return err
		}
	}
	for _, channel := range s.Approval.Channels {
		if err := oneOf("approval.channels", channel, "tty", "web", "command"); err != nil {
			return err
		}
	}
	return nil
}

func duration(name string, d Duration, most float64) error {
	if d <= 0 || float64(d) > most {
		return fmt.Errorf("%s: %v is not between 0s and 24h", name, d)
	}
	return nil
}

func oneOf(name, v string, allowed ...string) error {
	for _, a := range allowed {
		if v == a {
			return nil
		}
	}
	return fmt.Errorf("%s: %q is not one of %q", name, v, allowed)
}
