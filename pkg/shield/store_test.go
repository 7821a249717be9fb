package shield

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/redistest"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// machine returns the configuration of one of several machines that share a store.
func machine(t *testing.T, url string) Config {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "fleet.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := config.Default()
	s.CrossMachineStateStoreURL, s.StoreEncryptionKeyFile = url, key
	return Config{
		Settings: &s, PolicyNameOrPath: "offline", Home: "/home/me", WorkingDir: "/work/app", StateDir: filepath.Join(dir, "state"),
		IgnoresFileSystem: true, AgentHostName: "host", Clock: time.Now,
	}
}

func judge(t *testing.T, p *Pipeline, command string) verdict.Verdict {
	t.Helper()
	return p.EvaluateThroughTier(t.Context(), parse(t, `{"type":"execute_command","session":"s","payload":{"command":"`+command+`"}}`), TierClassify).Verdict
}

// What one machine downloads, another does not run unasked; without the store
// only plain reads go on.
func TestSharedStore(t *testing.T) {
	server := redistest.Start(t)
	one, two := pipelineOf(t, machine(t, server.URL)), pipelineOf(t, machine(t, server.URL))
	if v := judge(t, one, "curl -o a.sh https://example.com/"); v.Decision == verdict.Block {
		t.Fatal(v.Reasoning)
	}
	if v := judge(t, two, "bash a.sh"); v.Decision == verdict.Allow || !strings.Contains(v.Rule, "fetched") {
		t.Errorf("another machine's download: %s by %s: %s", v.Decision, v.Rule, v.Reasoning)
	}
	server.Kill()
	if v := judge(t, two, "ls src"); v.Decision != verdict.Allow {
		t.Errorf("a plain read: %s: %s", v.Decision, v.Reasoning)
	}
	for _, command := range []string{"bash a.sh", "npm test"} {
		if v := judge(t, two, command); v.Decision != verdict.Block || !strings.Contains(v.Reasoning, "does not answer") {
			t.Errorf("%s: %s: %s", command, v.Decision, v.Reasoning)
		}
	}
}

// Machines share what a model said, and keep what a person approved apart.
func TestStoreBindings(t *testing.T) {
	server := redistest.Start(t)
	one, two := pipelineOf(t, machine(t, server.URL)), pipelineOf(t, machine(t, server.URL))
	if one.installationIDForApprovalKeys == two.installationIDForApprovalKeys || one.credentialHashKey != two.credentialHashKey {
		t.Errorf("approvals of %s and %s; values of sessions by %x and %x", one.installationIDForApprovalKeys, two.installationIDForApprovalKeys, one.credentialHashKey, two.credentialHashKey)
	}
}

func TestStoreSettings(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := file("key", strings.Repeat("ab", 32), 0o600)
	for name, c := range map[string]struct {
		change func(*config.Settings)
		want   string // "" for no error
	}{
		"good":              {func(*config.Settings) {}, ""},
		"password":          {func(s *config.Settings) { s.StorePasswordEnv = "PASSWORD" }, ""},
		"password file":     {func(s *config.Settings) { s.StorePasswordFile = file("pw", "hunter2\n", 0o600) }, ""},
		"no variable":       {func(s *config.Settings) { s.StorePasswordEnv = "NONE" }, "NONE"},
		"open password":     {func(s *config.Settings) { s.StorePasswordFile = file("open", "hunter2", 0o644) }, "store_password_file"},
		"empty password":    {func(s *config.Settings) { s.StorePasswordFile = file("empty", "", 0o600) }, "empty"},
		"no key file":       {func(s *config.Settings) { s.StoreEncryptionKeyFile = filepath.Join(dir, "none") }, "store_key_file"},
		"short key":         {func(s *config.Settings) { s.StoreEncryptionKeyFile = file("short", "abcd", 0o600) }, "openssl"},
		"key open to all":   {func(s *config.Settings) { s.StoreEncryptionKeyFile = file("all", strings.Repeat("ab", 32), 0o644) }, "store_key_file"},
		"no certificates":   {func(s *config.Settings) { s.StoreCAFile = key }, "no PEM"},
		"no key at all":     {func(s *config.Settings) { s.StoreEncryptionKeyFile = "" }, "store_key_file"},
		"two passwords":     {func(s *config.Settings) { s.StorePasswordEnv, s.StorePasswordFile = "PASSWORD", key }, "both set"},
		"password in a URL": {func(s *config.Settings) { s.CrossMachineStateStoreURL = "redis://:hunter2@localhost" }, "must not hold a password"},
	} {
		s := config.Default()
		s.CrossMachineStateStoreURL, s.StoreEncryptionKeyFile = "redis://localhost", key
		c.change(&s)
		cfg := Config{Settings: &s, PolicyNameOrPath: "offline", StateDir: filepath.Join(dir, "state"), IgnoresFileSystem: true, Clock: instant, LookupEnvironmentVariable: func(name string) (string, bool) {
			return "hunter2", name == "PASSWORD"
		}}
		p, err := NewPipeline(cfg)
		if p != nil {
			p.Close()
		}
		switch {
		case (err == nil) != (c.want == ""), err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: %v shows the password", name, err)
		}
	}
}
