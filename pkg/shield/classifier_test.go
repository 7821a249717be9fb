package shield

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestSidecar holds that a sidecar judges as the model, and that its failure
// blocks.
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
	p, err := NewPipeline(Config{Policy: "permissive", Classifier: Classifier{Addr: srv.URL}})
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
		o := p.Judge(t.Context(), Item{Line: 1, Action: a}, Range{First: TierClassify, Last: TierClassify})
		if o.Verdict.Decision != tt.want || o.Verdict.Error != tt.err {
			t.Errorf("%s: %v %q (%s), want %v %q", tt.answer, o.Verdict.Decision, o.Verdict.Error, o.Verdict.Reasoning, tt.want, tt.err)
		}
	}
	if _, err := NewPipeline(Config{Classifier: Classifier{Addr: "http://classifier.example"}}); err == nil {
		t.Error("a sidecar that may not be asked is no error")
	}
}

// TestSidecarIsBound holds that verdicts of one sidecar are not those of
// another, nor of none.
func TestSidecarIsBound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, addr := range []string{"", "http://127.0.0.1:1", "http://127.0.0.1:2"} {
		_, print, err := new(Pipeline).newClassifier(Config{Classifier: Classifier{Addr: addr}})
		if err != nil {
			t.Fatal(err)
		}
		seen[print] = true
	}
	if len(seen) != 3 {
		t.Errorf("fingerprints %v, want three", seen)
	}
}
