package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
)

// unfingerprintedReasonBySetting lists the settings that [Settings.Fingerprint] leaves out, each
// with the reason why it cannot change a verdict.
var unfingerprintedReasonBySetting = map[string]string{
	"policy":                       "the fingerprint of the rules covers it, whatever name they were loaded by",
	"policy.bundle":                "as policy",
	"policy.keys":                  "as policy",
	"policy.grace":                 "a bundle that is past it judges nothing",
	"layers.team":                  "as policy",
	"layers.user":                  "as policy",
	"layers.project":               "as policy",
	"classifier.model":             "the fingerprint of the model covers it",
	"classifier.addr":              "the fingerprint of the model covers it",
	"evaluator.api_key_env":        "a key decides who pays, not which model answers",
	"evaluator.api_key_file":       "a key decides who pays, not which model answers",
	"evaluator.canary_token":       "a secret; the verdict is the same with any canary",
	"evaluator.price.input":        "it says what an answer costs",
	"evaluator.price.output":       "it says what an answer costs",
	"approval.notify_file":         "it says who hears of a question, not who answers",
	"approval.telegram.token_file": "a token says by which bot is asked",
	"approval.slack.token_file":    "as approval.telegram.token_file",
	"approval.discord.token_file":  "as approval.telegram.token_file",
	"approval.web.listen":          "the page shows the same question at every address",
	"state":                        "the seal key in the folder tells installations apart",
	"store_key_file":               "the key says what is shared; the verdict is the same",
	"store_password_env":           "a password says who may ask the store",
	"store_password_file":          "a password says who may ask the store",
	"store_ca_file":                "it says how the store is known",
	"audit.enabled":                "the log is written after the verdict",
	"audit.file":                   "the log is written after the verdict",
	"audit.max_bytes":              "the log is written after the verdict",
	"sanitize.enabled":             "it is about what comes back, after the verdict",
	"sanitize.mode":                "it is about what comes back, after the verdict",
	"sanitize.evaluator":           "it is about what comes back, after the verdict",
	"hook.answer":                  "it only changes the form of the answer to a host",
	"hook.permission_request":      "it only changes the form of the answer to a host",
	"hook.timeout":                 "a hook that takes too long denies whatever the verdict is",
	"mcp.listen":                   "a call is judged the same at every address",
	"mcp.tls_cert":                 "a call is judged the same at every address",
	"mcp.tls_key":                  "a call is judged the same at every address",
	"mcp.token_file":               "it says who may ask",
	"mcp.servers":                  "a call names its server by its type",
	"serve.listen":                 "it says where is asked, not what is answered",
	"serve.tls_cert":               "as serve.listen",
	"serve.tls_key":                "as serve.listen",
	"serve.tokens_file":            "as serve.listen",
	"telemetry.otlp":               "it only receives verdicts",
	"max_bytes":                    "a longer record is never judged",
}

// Fingerprint returns the SHA-256 of the settings that can change a verdict, in
// hex.
func (s *Settings) Fingerprint() string {
	h := sha256.New()
	walkSettings(reflect.ValueOf(*s), "", func(name string, v reflect.Value) {
		if _, out := unfingerprintedReasonBySetting[name]; out {
			return
		}
		value, err := json.Marshal(v.Interface())
		if err != nil {
			value = []byte(err.Error()) // only NaN or an infinity fails, which no file can contain
		}
		fmt.Fprintf(h, "%s=%s\n", name, value)
	})
	return hex.EncodeToString(h.Sum(nil))
}
