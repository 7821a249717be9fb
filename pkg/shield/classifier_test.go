package shield

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/ortlib"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestSidecar holds that a sidecar judges as the model, and that its failure
// blocks.
// with returns the defaults with a classifier that is in use.
func with(c config.Classifier) *config.Settings {
	s := Defaults()
	s.Classifier, s.Classifier.Enabled = c, true
	return &s
}

func TestSidecar(t *testing.T) {
	t.Parallel()
	answer := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/classify" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(srv.Close)
	p, err := NewPipeline(Config{PolicyNameOrPath: "permissive", Settings: with(config.Classifier{SidecarURLOrSocket: srv.URL})})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		answer string
		want   verdict.Decision
		err    string
	}{
		{`{"label":"INJECTION","confidence":0.9}`, verdict.Block, ""},
		{`{"label":"INJECTION","confidence":0.6}`, verdict.Escalate, ""},
		{`{"label":"SAFE","confidence":0.9}`, verdict.Allow, ""},
		{`{"label":"SAFE"}`, verdict.Block, "classifier"},
	} {
		answer = tt.answer
		a := &action.Action{Type: "execute_command", Payload: map[string]any{"command": "touch a.txt"}}
		o := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: a}, TierRange{First: TierClassify, Last: TierClassify})
		if o.Verdict.Decision != tt.want || o.Verdict.ErrorCode != tt.err {
			t.Errorf("%s: %v %q (%s), want %v %q", tt.answer, o.Verdict.Decision, o.Verdict.ErrorCode, o.Verdict.Reasoning, tt.want, tt.err)
		}
	}
	if _, err := NewPipeline(Config{Settings: with(config.Classifier{SidecarURLOrSocket: "http://classifier.example"})}); err == nil {
		t.Error("a sidecar that may not be asked is no error")
	}
}

// TestSidecarIsBound holds that verdicts of one sidecar are not those of
// another, nor of none.
func TestSidecarIsBound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, addr := range []string{"", "http://127.0.0.1:1", "http://127.0.0.1:2"} {
		tier := policyTier(t, Config{})
		_, print, err := tier.newClassifier(Config{Settings: with(config.Classifier{SidecarURLOrSocket: addr})}, tier.rules)
		if err != nil {
			t.Fatal(err)
		}
		seen[print] = true
	}
	if len(seen) != 3 {
		t.Errorf("fingerprints %v, want three", seen)
	}
}

// TestModelIsRefused holds that a model that was named and cannot be used is an
// error: only the default model may be replaced by rules alone.
func TestModelIsRefused(t *testing.T) {
	t.Parallel()
	bert := filepath.Join("..", "classify", "testdata", "models", "bert")
	for name, c := range map[string]Config{
		"no such folder": {Settings: with(config.Classifier{ModelNameOrDir: filepath.Join(t.TempDir(), "none")})},
		"no model in it": {Settings: with(config.Classifier{ModelNameOrDir: t.TempDir()})},
		"not installed":  {Settings: with(config.Classifier{ModelNameOrDir: "unheard-of"}), ModelDir: t.TempDir()},
		"no models":      {Settings: with(config.Classifier{ModelNameOrDir: "unheard-of"})},
		"outside":        {Settings: with(config.Classifier{ModelNameOrDir: ".."}), ModelDir: filepath.Join(t.TempDir(), "models")},
	} {
		p, err := NewPipeline(c)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if errors.Is(err, classify.ErrNoRuntime) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q", name, err)
		}
		if p != nil {
			t.Errorf("%s: a pipeline beside an error", name)
		}
	}
	for _, c := range []config.Classifier{{}, {ModelNameOrDir: "none"}} {
		if m, err := OpenModel(Config{Settings: with(c)}); m != nil || err != nil {
			t.Errorf("%+v: %v, %v", c, m, err)
		}
	}
	if ortlib.Available() {
		return
	}
	// A build without ONNX Runtime.
	for _, c := range []config.Classifier{{ModelNameOrDir: bert}, {ModelNameOrDir: bert, ONNXRuntimeLibraryPath: "/lib.so"}} {
		if m, err := OpenModel(Config{Settings: with(c)}); m != nil || err == nil || errors.Is(err, classify.ErrNoRuntime) {
			t.Errorf("%+v: %v, %v", c, m, err)
		}
	}
}

// TestHeuristicsOnly holds that a build without ONNX Runtime says so in the
// pipeline's note and in what Tier 1 says, once the model would have been asked.
func TestHeuristicsOnly(t *testing.T) {
	t.Parallel()
	p, err := NewPipeline(Config{PolicyNameOrPath: "permissive", Settings: with(config.Classifier{ModelNameOrDir: "default"}), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if ortlib.Available() {
		if p.UnusableModelOrPolicyNote() != "" {
			t.Errorf("note %q", p.UnusableModelOrPolicyNote())
		}
		t.Skip("this build carries ONNX Runtime")
	}
	if !strings.HasPrefix(p.UnusableModelOrPolicyNote(), "only rules judge, since the model cannot be used: this build of shield has no ONNX Runtime; ") {
		t.Errorf("note %q", p.UnusableModelOrPolicyNote())
	}
	for command, said := range map[string]bool{"touch a.txt": true, "true": false} {
		a := &action.Action{Type: "execute_command", Payload: map[string]any{"command": command}}
		o := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: a}, TierRange{First: TierClassify, Last: TierClassify})
		trail := o.Trail()
		if len(trail) != 1 || trail[0].JudgeName != "heuristic" || strings.Contains(trail[0].Reasoning, p.UnusableModelOrPolicyNote()) != said {
			t.Errorf("%s: %+v", command, trail)
		}
	}
}

// TestScriptTooLongForModel checks that the code of a script is not taken for harmless because the model cannot read it whole.
func TestScriptTooLongForModel(t *testing.T) {
	t.Parallel()
	if !ortlib.Available() {
		t.Skip("this build has no ONNX Runtime")
	}
	dir := t.TempDir()
	for name, functions := range map[string]int{"small.py": 20, "long.py": 1500} {
		var text strings.Builder
		for i := range functions {
			fmt.Fprintf(&text, "def f%d(x):\n    return x + %d\n\n", i, i)
		}
		text.WriteString("print(f1(2))\n")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := NewPipeline(Config{PolicyNameOrPath: "offline", Settings: with(config.Classifier{ModelNameOrDir: "default"}), CacheDir: t.TempDir(), Home: t.TempDir(), WorkingDir: dir, WorkspaceRoots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	for name, allowed := range map[string]bool{"small.py": true, "long.py": false} {
		a, err := action.Parse([]byte(`{"type":"execute_command","payload":{"command":"python3 ` + name + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		v := p.Evaluate(t.Context(), a)
		if got := v.Decision == verdict.Allow; got != allowed || !allowed && !strings.Contains(v.Reasoning, "too long for the model") {
			t.Errorf("%s: %s %s", name, v.Decision, v.Reasoning)
		}
	}
}
