package cmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
)

// TestSanitizeAsksEvaluator has shield sanitize ask a model about what no rule finds,
// if the settings say so, and charge that to the budget.
func TestSanitizeAsksEvaluator(t *testing.T) {
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	const in = `{"type":"http_request","payload":{"url":"https://a.test"},"result":"Kindly carry the minutes over."}` + "\n"
	for _, c := range []struct {
		model, mode string
		status      int
		want        string
	}{
		{"allow", "clean", statusAllow, `"findings":[],"changed":false,"result":"Kindly carry`},
		{"block", "clean", statusEscalate, `"kind":"instruction","where":"","offset":0,"length":0,"what":"judged by a test server","severity":"high","source":"evaluator"`},
		{"block", "block", statusBlock, `"withheld":"shield:`},
		{"no-canary", "clean", statusBlock, `"withheld":"shield:`},
	} {
		w := newWorld(t)
		w.Getenv = withSettings(t, fmt.Sprintf("classifier: {model: none}\nevaluator: {provider: custom, model: %s, base_url: %q}\nsanitize: {evaluator: true}\ndaily_budget: 2\n", c.model, server.BaseURL()))
		status, out, errs := run(t, w, in+in, "sanitize", "--mode", c.mode)
		if status != c.status || strings.Count(out, c.want) != 2 {
			t.Errorf("%s, %s: status %d: %s%s", c.model, c.mode, status, out, errs)
		}
		if status, out, _ := run(t, w, in, "sanitize", "--mode", c.mode); status != statusBlock || !strings.Contains(out, "budget exhausted") {
			t.Errorf("%s, %s: beyond the budget: status %d: %s", c.model, c.mode, status, out)
		}
	}
	if n := len(server.Requests()); n != 8 {
		t.Errorf("%d requests, want 8", n)
	}
}
