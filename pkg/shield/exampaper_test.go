package shield

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/shieldcli/shield/internal/exam"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestExamIsAsked holds that shield asks about every question of an exam, attack or not,
// so that the model which is examined is the one who decides.
func TestExamIsAsked(t *testing.T) {
	t.Parallel()
	bad := map[string]int{}
	for seed := range uint64(3) {
		paper, err := exam.DrawModelExamActions(rand.New(rand.NewPCG(seed, 7)))
		if err != nil {
			t.Fatal(err)
		}
		s := Defaults()
		p, err := NewPipeline(Config{Settings: &s, Clock: instant, Home: "/home/me", WorkingDir: "/home/me/app", IgnoresFileSystem: true, PolicyNameOrPath: "offline"})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range paper {
			raw, err := json.Marshal(map[string]any{"type": q.ActionType, "payload": q.Payload})
			if err != nil {
				t.Fatal(err)
			}
			a, err := action.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			o := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: a}, TierRange{TierPolicy, TierClassify})
			if o.Verdict.Decision != verdict.Escalate {
				key := q.AttackBenignPairName
				if !q.IsAttack {
					key += " honest"
				}
				if bad[key]++; bad[key] == 1 {
					t.Errorf("%s: %v: %s: %s", key, o.Verdict.Decision, o.Verdict.Reasoning, raw)
				}
			}
		}
	}
}
