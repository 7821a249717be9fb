package shield

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A provider answers ALLOW with the canary that the prompt holds.
type provider struct{ calls *int }

var canary = regexp.MustCompile(`[0-9a-f]{64}`)

func (p provider) Complete(_ context.Context, prompt evaluate.Prompt) (string, error) {
	*p.calls++
	out, err := json.Marshal(map[string]any{"decision": "ALLOW", "confidence": 0.9, "reasoning": "fine", "canary": canary.FindString(prompt.System)})
	return string(out), err
}

// note is an action that the preset default has the evaluator review, and about which offline does not
// ask: the model of these tests was not examined.
const note = `{"type":"write_file","payload":{"path":"a@example.com.txt","content":"hi"},"session":"s1"}`

// TestEvaluatorIsChargedAndRemembered holds that an evaluation is charged once,
// and that its verdict serves the same action in the same session only.
func TestEvaluatorIsChargedAndRemembered(t *testing.T) {
	t.Parallel()
	calls := 0
	p, err := NewPipeline(Config{Clock: instant, Home: "/home/me", WorkingDir: "/home/me/app", StateDir: t.TempDir(), Provider: provider{&calls}, MaxEvaluationsPerDay: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	other := strings.Replace(note, "a@", "b@", 1)
	session := strings.Replace(note, `"s1"`, `"s2"`, 1)
	for i, c := range []struct {
		record string
		want   verdict.Decision
		calls  int
	}{{note, verdict.Allow, 1}, {note, verdict.Allow, 1}, {session, verdict.Allow, 2}, {other, verdict.Block, 2}, {note, verdict.Allow, 2}} {
		v := p.Evaluate(t.Context(), parse(t, c.record))
		if v.Decision != c.want || calls != c.calls || v.Tier != TierEvaluate {
			t.Errorf("%d: %s at tier %d (%s), %d calls; want %s and %d", i, v.Decision, v.Tier, v.Reasoning, calls, c.want, c.calls)
		}
	}
	status := p.Status()
	if status.Err != nil || status.EvaluationsUsedToday != 2 || status.MaxEvaluationsPerDay != 2 {
		t.Errorf("status %+v, %v; want 2 of 2 used", status, status.Err)
	}
}
