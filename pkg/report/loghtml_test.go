package report

import (
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestLogPageIsInert: what an agent wrote is text on the page, whatever it is.
func TestLogPageIsInert(t *testing.T) {
	hostile := "</td></table><script>alert(1)</script>\x1b[2J\u202e"
	s := &audit.Summary{
		FirstVerdictTime: time.Unix(0, 0), LastVerdictTime: time.Unix(1, 0), Total: audit.VerdictCounts{ApprovedByPerson: 4},
		Days:    []audit.NamedVerdictCounts{{Name: "1970-01-01", VerdictCounts: audit.VerdictCounts{ApprovedByPerson: 4, Blocked: 1}}},
		Rules:   []audit.NamedVerdictCounts{{Name: "asks_too_often", VerdictCounts: audit.VerdictCounts{ApprovedByPerson: 4}}, {Name: hostile, VerdictCounts: audit.VerdictCounts{DeniedByPerson: 4}}},
		Stopped: []audit.StoppedAction{{Decision: verdict.Block, Payload: hostile, Reasoning: hostile, Type: hostile, Caller: hostile}},
	}
	var b strings.Builder
	if err := WriteAuditPageHTML(&b, &AuditPage{Summary: s, ChainIntact: true, ChainVerificationText: hostile, SuggestedPolicyYAML: "a:\n  b\n" + hostile}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, "<script") || strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("hostile text is not inert")
	}
	if !strings.Contains(page, "a:\n  b\n") {
		t.Error("a policy's lines are not kept")
	}
	if n := strings.Count(page, "<td>asks_too_often</td>"); n != 2 {
		t.Errorf("a rule that people mostly approve stands %d times, want 2", n)
	}
}
