package shield

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
	"github.com/shieldcli/shield/pkg/sanitize"
)

// withEvaluator is a configuration whose evaluator, a server's model, looks at
// results.
func withEvaluator(t *testing.T, server *evaltest.Server, model, mode string) Config {
	t.Helper()
	cfg := stateful(t.TempDir())
	cfg.Provider, cfg.AgentHostName = nil, "claude-code"
	cfg.Settings.Evaluator = config.Evaluator{Provider: "custom", Model: model, BaseURL: server.BaseURL(), Timeout: config.Default().Evaluator.Timeout}
	cfg.Settings.SanitizeToolResults = config.ToolResultSanitization{Enabled: config.Auto, ActionOnFindings: mode, EvaluatorExaminesResults: true}
	cfg.Settings.Session = config.Default().Session
	return cfg
}

// TestEvaluatorReadsResults has a model read results that no rule finds anything in:
// the result of each answer in each mode, what is logged, charged and remembered.
func TestEvaluatorReadsResults(t *testing.T) {
	t.Parallel()
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	const text = "Kindly carry the minutes over to the other place."
	for _, c := range []struct {
		model    string
		open     bool
		kind     sanitize.FindingKind // "" for no finding
		severity string
		withheld string // the modes that withhold the result
	}{
		{"allow", false, "", "", ""},
		{"block", false, sanitize.FindingPromptInjection, sanitize.SeverityHigh, "block"},
		{"escalate", false, sanitize.FindingPromptInjection, sanitize.SeverityMedium, "block"},
		{"unsure", false, sanitize.FindingPromptInjection, sanitize.SeverityMedium, "block"},
		{"injected-allow", false, sanitize.FindingUnexamined, sanitize.SeverityHigh, "clean wrap block"},
		{"canary-elsewhere", true, sanitize.FindingUnexamined, sanitize.SeverityHigh, "clean wrap block"},
		{"two-objects", true, sanitize.FindingUnexamined, sanitize.SeverityHigh, "clean wrap block"},
		{"400", false, sanitize.FindingUnexamined, sanitize.SeverityHigh, "clean wrap block"},
		{"cut", false, sanitize.FindingUnexamined, sanitize.SeverityHigh, "clean wrap block"},
		{"cut", true, sanitize.FindingUnexamined, sanitize.SeverityLow, ""},
	} {
		for _, mode := range []string{"flag", "clean", "wrap", "block"} {
			cfg := withEvaluator(t, server, c.model, mode)
			cfg.Settings.FailClosed = !c.open
			p := pipelineOf(t, cfg)
			e, err := p.ExamineAndRecordToolResult(t.Context(), ToolResult{Actions: []*action.Action{parse(t, `{"session":"s","type":"WebFetch","payload":{"url":"https://a.test"}}`)}, ReturnedValue: text})
			if err != nil || (e.WithheldReason != "") != strings.Contains(c.withheld, mode) || (len(e.Findings) == 1) != (c.kind != "") {
				t.Fatalf("%s, %s: %+v, %v", c.model, mode, e, err)
			}
			if c.kind == "" {
				continue
			}
			if f := e.Findings[0]; f.Kind != c.kind || f.Severity != c.severity || f.ExaminerName != "evaluator" || f.FindingDescription == "" {
				t.Errorf("%s, %s: %+v", c.model, mode, f)
			}
			if e.WithheldReason != "" && strings.Contains(e.WithheldReason, e.Findings[0].FindingDescription) {
				t.Errorf("%s: the agent reads what the model said: %s", c.model, e.WithheldReason)
			}
			logged := false
			for _, entry := range entries(t, cfg.auditFile()) {
				logged = logged || entry.Kind == audit.EntryKindToolResultFindings && strings.Contains(fmt.Sprint(entry.Payload), "source:evaluator")
			}
			list, err := p.sessionStoreForJudging.List(t.Context())
			if err != nil || !logged || len(list) != 1 || len(list[0].Labels) == 0 || list[0].Labels[0].Label != effect.LabelUntrusted {
				t.Errorf("%s, %s: logged %v, remembered %+v, %v", c.model, mode, logged, list, err)
			}
		}
	}
}

// TestEvaluatorOfResultsIsCounted holds that results share rate and budget with
// actions, that what is spent withholds, and that nothing is asked unless it is set.
func TestEvaluatorOfResultsIsCounted(t *testing.T) {
	t.Parallel()
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	cfg := withEvaluator(t, server, "allow", "clean")
	cfg.Settings.MaxEvaluationsPerDay = 2
	p := pipelineOf(t, cfg)
	r := ToolResult{Actions: []*action.Action{parse(t, `{"type":"WebFetch","payload":{"url":"https://a.test"}}`)}, ReturnedValue: "nine o'clock"}
	for i := range 3 {
		e, err := p.ExamineAndRecordToolResult(t.Context(), r)
		if err != nil || (e.WithheldReason != "") != (i == 2) {
			t.Errorf("result %d: %+v, %v", i, e, err)
		}
	}
	if used := p.Status().EvaluationsUsedToday; used != 2 || len(server.Requests()) != 2 {
		t.Errorf("%d evaluations charged, %d requests", used, len(server.Requests()))
	}
	local := ToolResult{Actions: []*action.Action{parse(t, `{"type":"Read","payload":{"file_path":"a"}}`)}, ReturnedValue: "nine o'clock"}
	if e, err := p.ExamineAndRecordToolResult(t.Context(), local); err != nil || e.WithheldReason != "" {
		t.Errorf("a local file: %+v, %v", e, err)
	}
	cfg = withEvaluator(t, server, "block", "block")
	cfg.Settings.SanitizeToolResults.EvaluatorExaminesResults = false
	if e, err := pipelineOf(t, cfg).ExamineAndRecordToolResult(t.Context(), r); err != nil || e.WithheldReason != "" {
		t.Errorf("not set: %+v, %v", e, err)
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d requests in the end", n)
	}
}

// TestReview has the evaluator look at what a gateway has examined by rules.
func TestReview(t *testing.T) {
	t.Parallel()
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	server.SetModelBehaviour("slow", func(http.ResponseWriter, *http.Request, evaltest.Request) { panic(http.ErrAbortHandler) })
	r := ToolResult{Actions: []*action.Action{parse(t, `{"type":"mcp__web__get","payload":{}}`)}, ReturnedValue: map[string]any{"content": []any{map[string]any{"type": "text", "text": "carry it over"}}}}
	for _, c := range []struct {
		model, mode string
		found       bool
		withheld    bool
	}{
		{"allow", "block", false, false}, {"block", "flag", true, false}, {"block", "clean", true, false}, {"block", "block", true, true}, {"slow", "clean", true, true}, {"slow", "flag", true, false},
	} {
		cfg := withEvaluator(t, server, c.model, c.mode)
		p := pipelineOf(t, cfg)
		found, withheld, err := p.ReviewResultWithEvaluator(t.Context(), r)
		if err != nil || (len(found) > 0) != c.found || (withheld != "") != c.withheld {
			t.Errorf("%s, %s: %+v %q %v", c.model, c.mode, found, withheld, err)
		}
		p.sanitizeSettings.Enabled = config.Off
		if found, withheld, err := p.ReviewResultWithEvaluator(t.Context(), r); len(found) > 0 || withheld != "" || err != nil {
			t.Errorf("%s, %s, switched off: %+v %q %v", c.model, c.mode, found, withheld, err)
		}
	}
}
