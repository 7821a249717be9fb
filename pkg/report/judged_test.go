package report

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// TestShortReason: a person sees the danger without the rule's name, and that no one could be asked.
func TestShortReason(t *testing.T) {
	t.Parallel()
	const push = "policy verify [force_push]: force push overwrites commits; ask the user (execute git)"
	for _, tt := range []struct{ reasoning, code, want string }{
		{"policy deny [wipe_system]: deletes a home folder: all of it; name files", "", "deletes a home folder: all of it"},
		{"heuristic [git_discard_work, medium]: Discards work; stash it", "", "Discards work"},
		{push, "", "force push overwrites commits"},
		{push, "unavailable", "no one could be asked: force push overwrites commits"},
		{"the action needs review, but no person can be asked: " + push, "unavailable", "no one could be asked: force push overwrites commits"},
		{"the user must decide, but cannot be asked (no terminal); run x; reason for the review: " + push, "nobody", "the user must decide, but cannot be asked (no terminal)"},
		{"model: does not look like an attack", "", "model: does not look like an attack"},
		{"unknown effect: the array [a]: unread", "", "unknown effect: the array [a]: unread"},
	} {
		var out strings.Builder
		v := &verdict.Verdict{Decision: verdict.Block, Reasoning: tt.reasoning, ErrorCode: tt.code}
		if err := WriteVerdictLine(&out, JudgedAction{ActionText: "x", Verdict: v}, Style{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(out.String()), "deny   x")); got != tt.want {
			t.Errorf("%s, %q: got %q, want %q", tt.reasoning, tt.code, got, tt.want)
		}
	}
}
