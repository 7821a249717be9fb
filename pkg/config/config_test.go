package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/yamlfile"
)

var presets = []string{"default", "strict", "permissive", "offline"}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "shield.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDefaultsAreStrict(t *testing.T) {
	t.Parallel()
	l, err := Load(Sources{PresetPolicyNames: presets})
	if err != nil {
		t.Fatal(err)
	}
	if !l.FailClosed || !l.HeuristicRules.Enabled || !l.Classifier.Enabled || l.Classifier.BlockThreshold != 0.85 {
		t.Errorf("defaults are not strict: %+v", l.Settings)
	}
	if len(l.OriginBySetting) != 0 {
		t.Errorf("origin of defaults: %v", l.OriginBySetting)
	}
}

func TestEachSourceWinsOverTheOneBefore(t *testing.T) {
	t.Parallel()
	system := write(t, "rate_limit: 1\ndaily_budget: 1\nclassifier: {model: none, threshold: 0.5}\nlocked: {fail_closed: true, approval: {max_per_hour: 3}}\n")
	user := write(t, "daily_budget: 2\nfail_closed: false\nclassifier: {threshold: 0.6}\napproval: {max_per_hour: 9, timeout: 5s}\npolicy: strict\n")
	l, err := Load(Sources{PresetPolicyNames: presets, SystemSettingsPath: system, UserSettingsPath: user, ApplyFlagsAndListChanged: func(s *Settings) []string {
		s.PolicyNameOrPath, s.FailClosed = "offline", false
		return []string{"policy", "fail_closed"}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, origin string }{
		{"rate_limit", "1", system},
		{"daily_budget", "2", user},
		{"classifier.model", `"none"`, system},
		{"classifier.threshold", "0.6", user},
		{"policy", `"offline"`, "command line"},
		{"fail_closed", "true", "locked by " + system},
		{"approval.max_per_hour", "3", "locked by " + system},
		{"approval.timeout", "5s", user},
		{"verdict_ttl", "5m", ""},
	} {
		if got := l.Value(c.name); got != c.value {
			t.Errorf("%s = %s, want %s", c.name, got, c.value)
		}
		if got := l.OriginBySetting[c.name]; got != c.origin {
			t.Errorf("%s comes from %q, want %q", c.name, got, c.origin)
		}
	}
}

func TestExplicitFileReplacesTheUsers(t *testing.T) {
	t.Parallel()
	user, file := write(t, "policy: strict\n"), write(t, "rate_limit: 7\n")
	l, err := Load(Sources{PresetPolicyNames: presets, UserSettingsPath: user, UserSettingsPathOverride: file})
	if err != nil {
		t.Fatal(err)
	}
	if l.PolicyNameOrPath != "auto" || l.MaxEvaluatorCallsPerMinute != 7 {
		t.Errorf("policy %q, rate_limit %d: want auto and 7", l.PolicyNameOrPath, l.MaxEvaluatorCallsPerMinute)
	}
}

func TestBadFilesAreErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "polcy: strict\n", `:1:1: unknown key "polcy"; did you mean "policy"?`},
		{"unknown nested key", "rate_limit: 3\nclassifier:\n  treshold: 0.5\n", `:3:3: unknown key "classifier.treshold"; did you mean "threshold"?`},
		{"locked in a user's file", "locked: {policy: strict}\n", `unknown key "locked"`},
		{"wrong type", "rate_limit: many\n", ":1:13: rate_limit: expected a whole number, found text"},
		{"a fraction", "daily_budget: 1.9\n", `:1:15: daily_budget: expected a whole number, found "1.9"`},
		{"an integral fraction", "rate_limit: 60.0\n", "rate_limit: expected a whole number"},
		{"an exponent", "rate_limit: 1e2\n", "rate_limit: expected a whole number"},
		{"octal", "rate_limit: 0100\n", `rate_limit: expected a whole number, found "0100"; write one such as 60`},
		{"hexadecimal", "rate_limit: 0x10\n", "rate_limit: expected a whole number, found"},
		{"a number in quotes", "rate_limit: '60'\n", "rate_limit: expected a whole number, found text"},
		{"a number for a text", "evaluator: {model: 4.1}\n", "evaluator.model: expected text, found a number; put it in quotes"},
		{"a boolean for a text", "evaluator: {model: true}\n", "evaluator.model: expected text, found a boolean"},
		{"a text for a boolean", "fail_closed: 'false'\n", ":1:14: fail_closed: expected true or false, found text"},
		{"a word for a boolean", "fail_closed: no\n", "fail_closed: expected true or false, found text"},
		{"a number for a duration", "verdict_ttl: 300\n", "verdict_ttl: expected a duration such as 300s, found a number"},
		{"a text for a list", "roots: /x\n", "roots: expected a list, found text"},
		{"a mapping for a text", "budget_reset: {a: b}\n", "budget_reset: expected text, found a mapping"},
		{"a list for a section", "classifier: [a]\n", "expected a mapping, found a list"},
		{"control characters", "evaluator: {canary_token: \"c0ffee\\e\"}\n", "evaluator.canary_token: the value contains control characters; remove them"},
		{"second document", "policy: strict\n---\npolicy: offline\n", ":3:1: a configuration must be one document"},
		{"second empty mapping", "policy: strict\n---\n{}\n", "a configuration must be one document"},
		{"anchors", "a: &a 1\nb: *a\n", "anchors and aliases are not supported"},
		{"tabs", "classifier:\n\tthreshold: 0.9\n", ":2:1: the line is indented by a tab; use spaces"},
		{"duplicate key", "policy: strict\npolicy: permissive\n", ":2:1: "},
		{"broken YAML", "policy: [\n", ":1:"},
		{"threshold above one", "classifier: {threshold: 1.5}\n", ":1:25: classifier.threshold: must be from 0 to 1, not 1.5"},
		{"threshold that is no number", "classifier: {threshold: .nan}\n", "classifier.threshold: expected a number such as 0.85"},
		{"negative budget", "daily_budget: -1\n", ":1:15: daily_budget: must be from 1 to 1000000000, not -1"},
		{"no rate", "rate_limit: 0\n", "rate_limit: must be from 1 to 1000000, not 0"},
		{"a list of channels", "approval: {channels: [tty, pigeon]}\n", `approval.channels: "pigeon" is not a valid value; write one of: auto, tty, web, command, telegram, slack, discord, host`},
		{"near a channel", "approval: {channels: [wbe]}\n", `"wbe" is not a valid value; write one of: auto, tty, web, command, telegram, slack, discord, host; did you mean "web"?`},
		{"unknown provider", "evaluator: {provider: acme}\n", `evaluator.provider: "acme" is not a valid value; write one of: openai, anthropic, google, ollama, custom`},
		{"no time", "verdict_ttl: 0s\n", "verdict_ttl: must be more than 0s and at most 24h, not 0s"},
		{"too much time", "evaluator: {timeout: 25h}\n", "evaluator.timeout: must be more than 0s and at most 24h, not 25h"},
		{"not a duration", "verdict_ttl: soon\n", `verdict_ttl: "soon" is not a duration such as 300s`},
		{"skip types", "classifier: {skip_types: never}\n", `classifier.skip_types: "never" is neither auto nor a list of action types`},
		{"a list", "- policy\n", "expected a mapping, found a list"},
		{"a section without a value", "classifier:\n", ":1:1: classifier has no value"},
		{"a setting without a value", "fail_closed:\npolicy: strict\n", "fail_closed has no value"},
		{"null in a section", "heuristic: {enabled: null}\n", "heuristic.enabled has no value"},
		{"a preset that is none", "policy: defualt\n", `:1:9: policy: "defualt" is not a preset (auto, default, strict, permissive, offline); to name a file, write a path such as ./defualt.yaml; did you mean "default"?`},
		{"too large", "# " + strings.Repeat("x", yamlfile.MaxFileBytes) + "\n", "larger than"},

		// What the specification and the first guess call settings.
		{"the specification's section", "shield:\n  rate_limit: 5\n  classifier_skip_types: []\n", `:2:3: unknown key "shield.rate_limit"; write rate_limit, at the top level`},
		{"classifier_enabled", "shield: {classifier_enabled: true}\n", "write classifier.enabled, as in classifier: {enabled: …}"},
		{"classifier_addr", "classifier_addr: 'http://127.0.0.1:1'\n", "write classifier.addr, as in classifier: {addr: …}"},
		{"classifier_skip_types", "shield: {classifier_skip_types: []}\n", "write classifier.skip_types"},
		{"heuristic_enabled", "heuristic_enabled: false\n", "write heuristic.enabled"},
		{"daily_budget", "shield: {daily_budget: 5}\n", "write daily_budget, at the top level"},
		{"OnnxThreshold", "OnnxThreshold: 0.9\n", "write classifier.threshold"},
		{"CanaryToken", "CanaryToken: x\n", "write evaluator.canary_token"},
		{"fail-closed", "fail-closed: true\n", "write fail_closed, at the top level"},
		{"models", "models: [{name: shield}]\n", `unknown key "models"; shield uses one model; write evaluator: {provider`},
		{"roles", "roles: {shield: shield}\n", "shield uses one model; write evaluator:"},
		{"a switch with a word of its own", "sanitize: {enabled: sometimes}\n", "sanitize.enabled: expected true, false or auto, found text"},
		{"a switch in quotes", "sanitize: {enabled: 'true'}\n", "sanitize.enabled: expected true, false or auto"},
		{"a mode that there is not", "sanitize: {mode: remove}\n", `sanitize.mode: "remove"`},
		{"api_key", "evaluator: {api_key: sk-1}\n", "API keys do not belong in the settings; name the variable that contains the key in evaluator.api_key_env, or its file in evaluator.api_key_file"},
		{"threshold at the wrong level", "threshold: 0.9\n", "write classifier.threshold, as in classifier: {threshold: …}"},
		{"listen at the wrong level", "approval: {listen: '127.0.0.1:0'}\n", "approval.web.listen, mcp.listen, serve.listen"},
		{"model, of which there are two", "model: x\n", "did you mean one of classifier.model, evaluator.model?"},
		{"an empty section of that name", "shield: {}\n", `unknown key "shield"; the settings file has no section of this name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := write(t, c.text)
			_, err := Load(Sources{PresetPolicyNames: presets, UserSettingsPath: name})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: error %v, want one that says %q", cutText(c.text), err, c.want)
			}
		})
	}
}

// All that is wrong is told at once, file by file and from top to bottom.
func TestAllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	system := write(t, "rate_limit: 1.5\nlocked: {daily_budget: 0, polcy: x}\n")
	user := write(t, "verdict_ttl: 0s\nclassifier: {threshold: 7, modle: x}\nshield: {rate_limit: 1, daily_budget: 2}\nroots: ['~bob', $HOME/x]\n")
	src := Sources{SystemSettingsPath: system, UserSettingsPath: user, PresetPolicyNames: presets, ApplyFlagsAndListChanged: func(s *Settings) []string {
		s.MaxActionRecordBytes = 1
		return []string{"max_bytes"}
	}}
	l, err := Load(src)
	var all yamlfile.Errors
	if l != nil || !errors.As(err, &all) {
		t.Fatalf("%v, %v", l, err)
	}
	want := []string{
		"configuration " + system + ":1:13: rate_limit: ",
		"configuration " + system + ":2:24: daily_budget: ",
		"configuration " + system + `:2:27: unknown key "polcy"`,
		"configuration " + user + ":1:14: verdict_ttl: ",
		"configuration " + user + ":2:25: classifier.threshold: ",
		"configuration " + user + `:2:28: unknown key "classifier.modle"; did you mean "model"?`,
		"configuration " + user + `:3:10: unknown key "shield.rate_limit"`,
		"configuration " + user + `:3:25: unknown key "shield.daily_budget"`,
		"configuration " + user + `:4:8: roots: "~bob"`,
		"configuration " + user + `:4:8: roots: "$HOME/x"`,
		"command line: max_bytes: must be from 1024 to 1073741824, not 1",
	}
	for i, e := range all {
		if i >= len(want) || !strings.HasPrefix(e.Error(), want[i]) {
			t.Errorf("error %d: %v", i, e)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d errors, want %d", len(all), len(want))
	}
	// A report goes on with the defaults in place of what is wrong.
	l, err = LoadDespiteErrors(src)
	if err == nil || l == nil || len(l.findFaults()) > 0 || l.MaxEvaluatorCallsPerMinute != 60 || l.Classifier.BlockThreshold != 0.85 || l.MaxActionRecordBytes != 1<<20 || len(l.OriginBySetting) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

// What a file names by a path starts from the file's folder, and what the
// command line names from the working directory.
func TestPathsStartFromTheirFile(t *testing.T) {
	t.Parallel()
	file := write(t, `
policy: p.yaml
roots: [src, ../lib, ~/code, /abs/../x]
state: st
audit: {file: ./log/audit.jsonl}
classifier: {model: ./m, onnxruntime: lib.so, addr: 'unix:run/c.sock'}
evaluator: {api_key_file: ~/key, ca_file: ca.pem}
approval: {command: [./ask.sh, ./kept-as-it-is]}
`)
	dir := filepath.Dir(file)
	l, err := Load(Sources{UserSettingsPath: file, PresetPolicyNames: presets, Home: "/home/me", CommandLinePathsBaseDir: "/work/app"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, got, want string }{
		{"policy", l.PolicyNameOrPath, dir + "/p.yaml"},
		{"roots", strings.Join(l.WorkspaceRoots, " "), dir + "/src " + filepath.Dir(dir) + "/lib /home/me/code /x"},
		{"state", l.StateDir, dir + "/st"},
		{"audit.file", l.Audit.File, dir + "/log/audit.jsonl"},
		{"classifier.model", l.Classifier.ModelNameOrDir, dir + "/m"},
		{"classifier.onnxruntime", l.Classifier.ONNXRuntimeLibraryPath, dir + "/lib.so"},
		{"classifier.addr", l.Classifier.SidecarURLOrSocket, "unix:" + dir + "/run/c.sock"},
		{"evaluator.api_key_file", l.Evaluator.APIKeyFile, "/home/me/key"},
		{"evaluator.ca_file", l.Evaluator.CAFile, dir + "/ca.pem"},
		{"approval.command", strings.Join(l.Approval.CommandChannelArgv, " "), dir + "/ask.sh ./kept-as-it-is"},
		{"folder of the program", l.ApprovalProgramWorkingDir, dir},
	} {
		if c.got != c.want {
			t.Errorf("%s is %s, want %s", c.what, c.got, c.want)
		}
	}
	flags := Sources{UserSettingsPath: write(t, "approval: {command: [ask]}\nclassifier: {model: tiny-1.0, addr: 'http://127.0.0.1:9'}\n"), PresetPolicyNames: presets, Home: "/home/me", CommandLinePathsBaseDir: "/work/app", ApplyFlagsAndListChanged: func(s *Settings) []string {
		s.PolicyNameOrPath, s.WorkspaceRoots, s.StateDir = "./p.yaml", []string{".", "~/code"}, "st"
		return []string{"policy", "roots", "state"}
	}}
	if l, err = Load(flags); err != nil {
		t.Fatal(err)
	}
	if got := []string{l.PolicyNameOrPath, l.WorkspaceRoots[0], l.WorkspaceRoots[1], l.StateDir, l.Approval.CommandChannelArgv[0], l.Classifier.ModelNameOrDir, l.Classifier.SidecarURLOrSocket}; !slices.Equal(got,
		[]string{"/work/app/p.yaml", "/work/app", "/home/me/code", "/work/app/st", "ask", "tiny-1.0", "http://127.0.0.1:9"}) {
		t.Errorf("%q", got)
	}
	for _, preset := range append([]string{"auto"}, presets...) {
		if l, err := Load(Sources{UserSettingsPath: write(t, "policy: "+preset+"\n"), PresetPolicyNames: presets}); err != nil || l.PolicyNameOrPath != preset {
			t.Errorf("%s: %v", preset, err)
		}
	}
}

// Whatever the system's file locks starts from its folder too.
func TestLockedPaths(t *testing.T) {
	t.Parallel()
	system, user := write(t, "locked: {policy: p.yaml, approval: {command: [./ask]}}\n"), write(t, "policy: q.yaml\napproval: {command: [./mine]}\n")
	l, err := Load(Sources{SystemSettingsPath: system, UserSettingsPath: user, PresetPolicyNames: presets})
	if err != nil {
		t.Fatal(err)
	}
	if dir := filepath.Dir(system); l.PolicyNameOrPath != dir+"/p.yaml" || l.Approval.CommandChannelArgv[0] != dir+"/ask" || l.ApprovalProgramWorkingDir != dir {
		t.Errorf("%s, %s, %s", l.PolicyNameOrPath, l.Approval.CommandChannelArgv, l.ApprovalProgramWorkingDir)
	}
}

func TestPathsThatMeanNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"roots: ['']\n":                       "roots: the path is empty; write a path",
		"roots: ['~']\n":                      "roots: root /home/me is or contains the home folder; choose a folder inside it",
		"roots: [/]\n":                        "roots: root / is or contains the home folder",
		"roots: [~/a, /etc]\n":                "roots: root /etc is a system folder",
		"roots: ['~bob/x']\n":                 "only ~/ is expanded, to your own home folder",
		"state: $XDG_STATE_HOME/shield\n":     "variables are not expanded here",
		"audit: {file: '%APPDATA%/x'}\n":      "variables are not expanded here",
		"approval: {command: ['~bob/ask']}\n": "only ~/ is expanded",
	} {
		if _, err := Load(Sources{UserSettingsPath: write(t, text), PresetPolicyNames: presets, Home: "/home/me"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Load(Sources{UserSettingsPath: write(t, "roots: ['~/x']\n"), PresetPolicyNames: presets}); err == nil || !strings.Contains(err.Error(), "home folder is unknown") {
		t.Errorf("without a home folder: %v", err)
	}
	relative := Sources{PresetPolicyNames: presets, ApplyFlagsAndListChanged: func(s *Settings) []string { s.StateDir = "st"; return []string{"state"} }}
	if _, err := Load(relative); err == nil || !strings.Contains(err.Error(), ": the base folder of this relative path is unknown") {
		t.Errorf("without a working directory: %v", err)
	}
}

// Every setting that a file can hold is one that the decoder knows how to read.
func TestEveryTypeIsKnown(t *testing.T) {
	t.Parallel()
	s := Default()
	walkSettings(reflect.ValueOf(&s).Elem(), "", func(name string, v reflect.Value) {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s: %v", name, r)
			}
		}()
		_ = decodeValue(&ast.MappingNode{BaseNode: &ast.BaseNode{}}, v.Addr().Interface()) // is an error for all of them
	})
	for name := range pathSettings {
		if !slices.Contains(SettingNames(), name) {
			t.Errorf("%s is no setting", name)
		}
	}
	for key, name := range suggestionByUnsupportedSettingKey {
		if !strings.Contains(name, " ") && !slices.Contains(SettingNames(), name) {
			t.Errorf("%s: %s is no setting", key, name)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := Load(Sources{PresetPolicyNames: presets, SystemSettingsPath: none, UserSettingsPath: none}); err != nil {
		t.Errorf("absent files: %v", err)
	}
	if _, err := Load(Sources{PresetPolicyNames: presets, UserSettingsPathOverride: none}); err == nil {
		t.Error("a file that was asked for is absent, and there is no error")
	}
	if _, err := Load(Sources{PresetPolicyNames: presets, UserSettingsPathOverride: t.TempDir()}); err == nil {
		t.Error("a folder was read as configuration")
	}
}

func TestEmptyFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "---\n"} {
		if _, err := Load(Sources{PresetPolicyNames: presets, UserSettingsPath: write(t, text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Evaluator.FixedCanaryToken = "c0ffee"
	for _, name := range SettingNames() {
		if strings.Contains(s.Value(name), "c0ffee") {
			t.Errorf("%s shows the canary", name)
		}
	}
}

func TestFoldersFollowTheEnvironment(t *testing.T) {
	t.Parallel()
	env := func(string) string { return "" }
	if got := UserConfigPath("/home/me", env); got != "/home/me/.config/shield/shield.yaml" {
		t.Errorf("user file %q", got)
	}
	set := func(name string) string {
		return map[string]string{"XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "relative"}[name]
	}
	if got := StateDir("/home/me", set); got != "/s/shield" {
		t.Errorf("state folder %q", got)
	}
	if got := CacheDir("/home/me", set); got != "/home/me/.cache/shield" {
		t.Errorf("a relative folder was taken: %q", got)
	}
	if UserConfigPath("", env) != "" || StateDir("", env) != "" {
		t.Error("without a home there is no folder")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("policy: strict\nlocked: {a: 1}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("classifier: {skip_types: [x]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		name := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Skip()
		}
		for _, src := range []Sources{{UserSettingsPath: name, PresetPolicyNames: presets, Home: "/home/me"}, {SystemSettingsPath: name}} {
			if l, err := Load(src); err == nil {
				if f := l.findFaults(); len(f) > 0 {
					t.Errorf("loaded settings are out of range: %v", f)
				}
				for name, p := range pathSettings {
					for _, v := range p.values(&l.Settings) {
						if *v != "" && p.isPath(*v, &src) && !filepath.IsAbs(strings.TrimPrefix(*v, socketPrefix)) {
							t.Errorf("%s is %q", name, *v)
						}
					}
				}
			}
		}
	})
}

func cutText(s string) string { return s[:min(len(s), 60)] }
