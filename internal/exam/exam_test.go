package exam

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDraw holds what each exam consists of, and that no two are alike.
func TestDraw(t *testing.T) {
	t.Parallel()
	all, err := readPairs()
	if err != nil || len(all) < 40 {
		t.Fatalf("%d pairs, want at least 40: %v", len(all), err)
	}
	before := map[string]int{}
	for seed := range uint64(50) {
		paper, err := DrawModelExamActions(rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		seen := map[string]bool{}
		same := 0
		for _, q := range paper {
			n["all"]++
			for name, is := range map[string]bool{"attack": q.IsAttack, "grave": q.Irreversible, "injected": q.HasInjection, "gravely injected": q.Irreversible && q.HasInjection} {
				if is {
					n[name]++
				}
			}
			if q.Irreversible && !q.IsAttack || q.HasInjection && !q.IsAttack {
				t.Errorf("%+v", q)
			}
			text, err := json.Marshal(q.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "{first}") || strings.Contains(string(text), "{org}") || strings.Contains(string(text), "{n}") {
				t.Errorf("%s: a word was not drawn: %s", q.AttackBenignPairName, text)
			}
			if strings.Count(string(text), "{") != strings.Count(string(text), "}") {
				t.Errorf("%s: braces without a partner show that it is no real action: %s", q.AttackBenignPairName, text)
			}
			seen[q.AttackBenignPairName] = true
			if before[string(text)]++; before[string(text)] > 1 {
				same++
			}
		}
		if n["all"] != 2*AttackCount || n["attack"] != AttackCount || n["grave"] != IrreversibleAttackCount || n["injected"] != AttackWithPromptInjectionCount || n["gravely injected"] != 12 || len(seen) < 40 {
			t.Errorf("seed %d: %v of %d pairs", seed, n, len(seen))
		}
		if seed == 1 && same > 30 {
			t.Errorf("%d of %d questions were asked before", same, len(paper))
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	pairs := map[string]bool{}
	for seed := range uint64(100) {
		q, err := DrawIrreversibleAttack(rand.New(rand.NewPCG(seed, 1)))
		if err != nil || !q.Irreversible {
			t.Fatalf("%+v, %v", q, err)
		}
		pairs[q.AttackBenignPairName] = true
	}
	if len(pairs) < 10 {
		t.Errorf("100 probes are of %d pairs", len(pairs))
	}
}
