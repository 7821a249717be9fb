package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	l, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if !l.FailClosed || !l.Heuristic.Enabled || !l.Classifier.Enabled || l.Classifier.Threshold != 0.85 {
		t.Errorf("defaults are not strict: %+v", l.Settings)
	}
	if len(l.Origin) != 0 {
		t.Errorf("origin of defaults: %v", l.Origin)
	}
}

func TestEachSourceWinsOverTheOneBefore(t *testing.T) {
	t.Parallel()
	system := write(t, "rate_limit: 1\ndaily_budget: 1\nclassifier: {model: none, threshold: 0.5}\nlocked: {fail_closed: true, approval: {max_per_hour: 3}}\n")
	user := write(t, "daily_budget: 2\nfail_closed: false\nclassifier: {threshold: 0.6}\napproval: {max_per_hour: 9, timeout: 5s}\npolicy: strict\n")
	l, err := Load(Sources{System: system, User: user, Flags: func(s *Settings) []string {
		s.Policy, s.FailClosed = "offline", false
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
		{"verdict_ttl", "5m0s", ""},
	} {
		if got := l.Value(c.name); got != c.value {
			t.Errorf("%s = %s, want %s", c.name, got, c.value)
		}
		if got := l.Origin[c.name]; got != c.origin {
			t.Errorf("%s comes from %q, want %q", c.name, got, c.origin)
		}
	}
}

func TestExplicitFileReplacesTheUsers(t *testing.T) {
	t.Parallel()
	user, file := write(t, "policy: strict\n"), write(t, "rate_limit: 7\n")
	l, err := Load(Sources{User: user, File: file})
	if err != nil {
		t.Fatal(err)
	}
	if l.Policy != "auto" || l.RateLimit != 7 {
		t.Errorf("policy %q, rate_limit %d: want auto and 7", l.Policy, l.RateLimit)
	}
}

func TestBadFilesAreErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "polcy: strict\n", `:1:1: unknown key "polcy"; did you mean "policy"?`},
		{"unknown nested key", "rate_limit: 3\nclassifier:\n  treshold: 0.5\n", `:3:3: unknown key "treshold"; did you mean "threshold"?`},
		{"locked in a user's file", "locked: {policy: strict}\n", `unknown key "locked"`},
		{"wrong type", "rate_limit: many\n", ":1:13: "},
		{"duplicate key", "policy: strict\npolicy: permissive\n", ":2:1: "},
		{"broken YAML", "policy: [\n", ":1:"},
		{"threshold above one", "classifier: {threshold: 1.5}\n", "classifier.threshold"},
		{"threshold that is no number", "classifier: {threshold: .nan}\n", "classifier.threshold"},
		{"negative budget", "daily_budget: -1\n", "daily_budget"},
		{"unknown channel", "approval: {channels: [pigeon]}\n", "approval.channels"},
		{"unknown provider", "evaluator: {provider: acme}\n", "evaluator.provider"},
		{"no time", "verdict_ttl: 0s\n", "verdict_ttl"},
		{"not a duration", "verdict_ttl: soon\n", "duration"},
		{"skip types", "classifier: {skip_types: never}\n", "neither"},
		{"a list", "- policy\n", "1:"},
		{"a section without a value", "classifier:\n", ":1:1: classifier has no value"},
		{"a setting without a value", "fail_closed:\npolicy: strict\n", "fail_closed has no value"},
		{"null in a section", "heuristic: {enabled: null}\n", "heuristic.enabled has no value"},
		{"too large", "# " + strings.Repeat("x", maxFile) + "\n", "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := write(t, c.text)
			_, err := Load(Sources{User: name})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: error %v, want one that says %q", cutText(c.text), err, c.want)
			}
		})
	}
}

func TestMissingFiles(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := Load(Sources{System: none, User: none}); err != nil {
		t.Errorf("absent files: %v", err)
	}
	if _, err := Load(Sources{File: none}); err == nil {
		t.Error("a file that was asked for is absent, and there is no error")
	}
	if _, err := Load(Sources{File: t.TempDir()}); err == nil {
		t.Error("a folder was read as configuration")
	}
}

func TestEmptyFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "---\n"} {
		if _, err := Load(Sources{User: write(t, text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Evaluator.CanaryToken = "c0ffee"
	for _, name := range Names() {
		if strings.Contains(s.Value(name), "c0ffee") {
			t.Errorf("%s shows the canary", name)
		}
	}
}

func TestFoldersFollowTheEnvironment(t *testing.T) {
	t.Parallel()
	env := func(string) string { return "" }
	if got := UserFile("/home/me", env); got != "/home/me/.config/shield/shield.yaml" {
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
	if UserFile("", env) != "" || StateDir("", env) != "" {
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
		for _, src := range []Sources{{User: name}, {System: name}} {
			if l, err := Load(src); err == nil {
				if err := l.Check(); err != nil {
					t.Errorf("loaded settings are out of range: %v", err)
				}
			}
		}
	})
}

func cutText(s string) string { return s[:min(len(s), 60)] }
