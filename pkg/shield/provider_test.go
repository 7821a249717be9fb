package shield

import (
	"context"
	"encoding/json"
	"regexp"
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

const mail = `{"type":"send_email","payload":{"to":"a@example.com","subject":"hi","body":"hi"},"session":"s1"}`

// TestEvaluatorIsChargedAndRemembered holds that an evaluation is charged once,
// and that its verdict serves the same action in the same session only.
func TestEvaluatorIsChargedAndRemembered(t *testing.T) {
	t.Parallel()
	calls := 0
	p, err := NewPipeline(Config{Clock: instant, Home: "/home/me", Dir: "/home/me/app", StateDir: t.TempDir(), Provider: provider{&calls}, DailyBudget: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	other := `{"type":"send_email","payload":{"to":"b@example.com","subject":"hi","body":"hi"},"session":"s1"}`
	session := `{"type":"send_email","payload":{"to":"a@example.com","subject":"hi","body":"hi"},"session":"s2"}`
	for i, c := range []struct {
		record string
		want   verdict.Decision
		calls  int
	}{{mail, verdict.Allow, 1}, {mail, verdict.Allow, 1}, {session, verdict.Allow, 2}, {other, verdict.Block, 2}, {mail, verdict.Allow, 2}} {
		v := p.Evaluate(t.Context(), parse(t, c.record))
		if v.Decision != c.want || calls != c.calls || v.Tier != TierEvaluate {
			t.Errorf("%d: %s at tier %d (%s), %d calls; want %s and %d", i, v.Decision, v.Tier, v.Reasoning, calls, c.want, c.calls)
		}
	}
	status := p.Status()
	if status.Err != nil || status.Tier2Used != 2 || status.Tier2Budget != 2 {
		t.Errorf("status %+v, %v; want 2 of 2 used", status, status.Err)
	}
}
