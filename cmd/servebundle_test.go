package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/bundle"
)

// TestServiceKeepsBundle holds that a service fetches a signed policy at its start if it
// needs one, and later takes a newer one, and no other.
func TestServiceKeepsBundle(t *testing.T) {
	w := servedWorld(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "acme.tar.gz")
	private, public, err := bundle.GenerateKey("")
	if err != nil {
		t.Fatal(err)
	}
	key, err := bundle.ParsePrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	publish := func(version int64) {
		t.Helper()
		archive, err := bundle.Build(bundle.Manifest{Name: "acme", Version: version, Expires: w.Now().AddDate(1, 0, 0)}, map[string][]byte{bundle.PolicyFile: []byte("extends: offline\n")})
		if err == nil {
			archive, _, err = bundle.Sign(archive, key)
		}
		if err == nil {
			err = os.WriteFile(file, archive, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	settingsFile := filepath.Join(dir, "settings.yaml")
	text := fmt.Sprintf("classifier: {model: none}\npolicy: {bundle: %s, keys: [%s]}\n", file, strings.SplitN(strings.TrimSpace(string(public)), "\n", 2)[1])
	if err := os.WriteFile(settingsFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := w.Getenv
	w.Getenv = func(name string) string {
		if name == "SHIELD_CONFIG" {
			return settingsFile
		}
		return getenv(name)
	}
	var said bytes.Buffer
	w.Err = &said
	s := newServer(t, w)
	app := newApp(s.environment, "serve")
	reload := func() (err error) {
		app.Commands[0].Action = func(c *cli.Context) error { err = s.reload(c); return nil }
		if err := app.Run([]string{"shield", "serve"}); err != nil {
			t.Fatal(err)
		}
		return err
	}
	if err := reload(); err == nil || !strings.Contains(err.Error(), "no bundle is installed yet; download it with 'shield policy bundle update'") {
		t.Errorf("without a bundle: error %v", err)
	}
	publish(3)
	if err := reload(); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	for _, tt := range []struct {
		version int64
		says    string
	}{
		{4, "shield: serve: policy bundle acme version 4 is in use now\n"},
		{4, ""},
		{3, "shield: serve: the policy bundle was not updated; to retry, run 'shield policy bundle update': policy bundle " + file + ": acme version 3 is older than version 4"},
	} {
		publish(tt.version)
		s.fetchPolicyBundle(t.Context(), s.settings.Load())
		if got := said.String(); !strings.HasPrefix(got, tt.says) || tt.says == "" && got != "" {
			t.Errorf("version %d: %q", tt.version, got)
		}
		said.Reset()
	}
}
